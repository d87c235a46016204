"""What is measured of a method: against computations by hand, other ways to the same figure, and the protocols."""

from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import vgae
from vgae.baselines import BASELINES
from vgae.evaluation.heart import evaluate_heart
from vgae.evaluation.held_out import have_links
from vgae.experiments.measures import (
    MOST_WORK,
    TOP,
    by_column,
    column_metrics,
    measure,
    precision_of_recommended,
    precision_over_all,
    sampled_metrics,
)
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut, LinkSplit
from vgae.graph.synthetic import stochastic_block_model


@dataclass(frozen=True)
class Given:
    """Scores by pair, written down."""

    scores: dict[tuple[int, int], float]

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        return np.array([self.scores[i, j] for i, j in pairs.tolist()], dtype=np.float32)


@dataclass(frozen=True)
class Plain:
    """A scorer of which nothing is known but its scores."""

    scorer: Any
    symmetric: bool = True

    def logits(self, pairs: Pairs) -> Any:
        return self.scorer.logits(pairs)

    def rows(self) -> Any:
        return self.scorer.rows()


@pytest.fixture(scope="module")
def split() -> LinkSplit:
    return vgae.split_links(stochastic_block_model(80, 4, seed=1), val=0.1, test=0.2, seed=0)


def test_pairs_of_nodes_without_training_links_are_left_out() -> None:
    # Nodes 4 and 5 have no training links. The scores of their pairs decide AUC, and have no part in the rest.
    train = Graph.from_edges([[0, 1], [1, 2], [2, 3]], num_nodes=6)
    test = HeldOut(np.array([[0, 2], [1, 3], [0, 4], [3, 5]]), np.array([[0, 3], [1, 4], [2, 5], [4, 5]]))
    scores = {(0, 2): 3.0, (1, 3): 1.0, (0, 4): 9.0, (3, 5): 8.0, (0, 3): 2.0, (1, 4): 0.0, (2, 5): 7.0, (4, 5): -1.0}
    found = sampled_metrics(Given(scores), LinkSplit(train, HeldOut.none(), test, seed=0))
    links, non_links = ([scores[i, j] for i, j in pairs.tolist()] for pairs in (test.links, test.non_links))
    by_hand = np.mean([link > other for link, other in product(links, non_links)])
    assert found["auc"] == by_hand == 13 / 16
    assert found["left_out"] == 0.5
    assert found["auc_linked"] == 0.5  # 3 is above 2, and 1 is not
    assert found["ap_linked"] == pytest.approx((1 / 1 + 2 / 3) / 2)
    assert have_links(train, test.non_links).tolist() == [True, False, False, False]


def test_where_nothing_is_left_there_is_no_figure_and_where_all_is_it_is_the_same(split: LinkSplit) -> None:
    train = Graph.from_edges([[0, 1]], num_nodes=4)
    test = HeldOut(np.array([[0, 2]]), np.array([[1, 3]]))
    found = sampled_metrics(Given({(0, 2): 1.0, (1, 3): 0.0}), LinkSplit(train, HeldOut.none(), test, seed=0))
    assert found == {"auc": 1.0, "ap": 1.0, "left_out": 1.0}
    pairs = split.test
    links, non_links = (each[have_links(split.train, each)] for each in (pairs.links, pairs.non_links))
    kept = LinkSplit(split.train, split.val, HeldOut(links, non_links), seed=0)
    found = sampled_metrics(BASELINES["aa"](split.train, 0), kept)
    assert (found["auc"], found["ap"], found["left_out"]) == (found["auc_linked"], found["ap_linked"], 0)


def test_precision_by_recommendation_is_that_over_all_pairs(split: LinkSplit) -> None:
    model = vgae.VGAE(iterations=20, seed=0, device="cpu").fit(split.train, validation=split.val)
    by_rank = model.rank_all_pairs(split.test.links)
    expected = {f"precision@{k}": by_rank[f"precision@{k}"] for k in TOP}
    assert 0 < expected["precision@100"] < 1
    assert precision_over_all(model, split) == pytest.approx(expected)
    assert precision_of_recommended(model, split) == pytest.approx(expected)
    without = vgae.VGAE(iterations=20, seed=0, device="cpu").fit(split.train)  # it recommends validation links
    assert precision_of_recommended(without, split) != pytest.approx(expected)


def test_columns_of_a_stack_are_measured_as_the_baselines_that_they_are(split: LinkSplit) -> None:
    stack = vgae.Stack(bases="neighbours,ppr", folds=2, seed=0, device="cpu").fit(split.train, validation=split.val)
    found = column_metrics(stack, split)
    assert {name.split(" by ")[1] for name in found} == {"cn", "aa", "ra", "ppr"}
    expected = measure(BASELINES["ppr"](split.train, 0), split)  # 80 nodes: the first stage lists all pairs
    for name in ("auc", "ap", *(f"precision@{k}" for k in TOP)):
        assert found[by_column(name, "ppr")] == pytest.approx(expected[name], abs=1e-6)
    assert found[by_column("auc", "ra")] == pytest.approx(measure(BASELINES["ra"](split.train, 0), split)["auc"])


@pytest.mark.parametrize("name", ["cn", "ra", "pa"])
def test_precision_of_heuristics_counts_equal_scores_in_random_order(split: LinkSplit, name: str) -> None:
    scorer = BASELINES[name](split.train, 0)
    assert precision_over_all(scorer, split) == pytest.approx(precision_over_all(Plain(scorer), split))


def test_what_scores_pairs_one_by_one_has_no_precision(split: LinkSplit) -> None:
    class OneByOne:
        def logits(self, pairs: Pairs) -> Any:
            return BASELINES["cn"](split.train, 0).logits(pairs)

    found = measure(OneByOne(), split)
    assert set(found) == {"auc", "ap", "left_out", "auc_linked", "ap_linked"}


def test_all_pairs_are_not_ranked_where_that_takes_too_long(split: LinkSplit) -> None:
    @dataclass(frozen=True)
    class Walking(Plain):
        cost: float = 0.0

        def work(self, pairs: Pairs) -> float:
            assert set(pairs.ravel().tolist()) == set(range(split.train.num_nodes))
            return self.cost

    scorer = BASELINES["ra"](split.train, 0)
    assert precision_over_all(Walking(scorer), split) == precision_over_all(Plain(scorer), split)
    assert precision_over_all(Walking(scorer, cost=2 * MOST_WORK), split) == {}


def test_hard_non_links_are_those_of_the_protocol(split: LinkSplit) -> None:
    scorer = BASELINES["ra"](split.train, 0)
    found, expected = measure(scorer, split, hard=True), evaluate_heart(scorer, split, sets=("test",))["test"]
    for name in ("mrr", "hits@10", "hits@20"):
        assert found[f"heart_{name}"] == expected[name]
