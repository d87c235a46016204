"""The verdict: what is compared with what, when a difference counts, and what is said."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
import torch

import vgae
from helpers import message_of
from vgae.baselines import BASELINES
from vgae.baselines import compare as comparing
from vgae.baselines.compare import compare, score_baselines
from vgae.evaluation.all_pairs import Candidates, rank_all_pairs
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.pairs import Pairs, canonical, to_ranks
from vgae.ops import Factors


@dataclass
class Oracle:
    """A scorer that knows some links of a graph, and guesses about all other pairs."""

    links: Pairs
    num_nodes: int
    noise: float = 0.0
    symmetric: bool = True

    def matrix(self) -> npt.NDArray[np.float32]:
        scores = np.zeros((self.num_nodes, self.num_nodes), dtype=np.float32)
        scores[tuple(self.links.T)] = scores[tuple(self.links[:, ::-1].T)] = 1
        noise = np.random.default_rng(0).normal(0, 1, scores.shape).astype(np.float32)
        return scores + self.noise * (noise + noise.T)

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        return self.matrix()[pairs[:, 0], pairs[:, 1]]

    def rows(self) -> Factors:
        return Factors(torch.from_numpy(self.matrix()), torch.eye(self.num_nodes))


def blocks(num_nodes: int = 300, seed: int = 0) -> vgae.LinkSplit:
    graph = vgae.stochastic_block_model(num_nodes, 10, degree_within=9, degree_between=1, seed=seed)
    return vgae.split_links(graph, val=0.1, test=0.2, seed=0)


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return blocks()


def test_every_score_is_that_of_the_evaluator(split: vgae.LinkSplit) -> None:
    model = Oracle(split.test.links[::2], 300, noise=0.3)
    found = compare(model, split)
    known = np.concatenate([split.train.edges, canonical(split.val.links)])
    candidates = Candidates(300, known)
    scorers = {"model": model} | {name: BASELINES[name](split.train, 0) for name in ("cn", "aa", "ra", "pa")}
    for name, scorer in scorers.items():
        scores = found.model if name == "model" else found.heuristics[name]
        expected = vgae.evaluate(scorer, split.test) | rank_all_pairs(scorer, split.test.links, candidates)
        assert set(scores) == {"auc", "ap", "precision@10", "precision@100"}
        assert scores == pytest.approx({metric: expected[metric] for metric in scores}, rel=1e-9)
    pairs = 300 * 299 // 2 - len(known)
    assert found.random == pytest.approx(
        {"auc": 0.5, "ap": 0.5} | dict.fromkeys(("precision@10", "precision@100"), len(split.test.links) / pairs)
    )


def test_a_model_that_knows_the_links_is_better_than_every_heuristic(split: vgae.LinkSplit) -> None:
    found = vgae.verdict(Oracle(split.test.links, 300), split)
    assert found.comparison.beaten_by is None
    assert found.sentences[0].startswith("The model ranks better than every heuristic: AUC 100.0 against ")
    assert any(
        "At the top of the list the model is better than every heuristic: of the 100 best new pairs 100" in each
        for each in found.sentences
    )
    assert next(iter(found.table)) == "Oracle"
    assert list(found.table)[-1] == "random"
    assert found.table["Oracle"]["precision@100"] == 1.0
    assert "Oracle" in str(found)


def test_a_model_that_guesses_is_beaten_and_no_better_than_chance(split: vgae.LinkSplit) -> None:
    found = vgae.verdict(Oracle(split.test.links[:0], 300, noise=1.0), split)
    name = found.comparison.beaten_by
    assert name in ("cn", "aa", "ra")
    text = " ".join(found.sentences)
    assert "The model is beaten by " in text
    assert f"To use it instead: vgae.Baseline({name!r})" in text
    assert "no better than chance" in text


def test_models_that_cannot_be_told_apart_are_said_to_be_so(split: vgae.LinkSplit) -> None:
    found = vgae.verdict(vgae.Baseline("ra").fit(split.train), split)
    assert found.comparison.differences["auc"][1].value == pytest.approx(0, abs=0.01)
    assert "cannot be told apart by AUC" in found.sentences[0]


def test_a_collapsed_model_is_said_to_be_one(split: vgae.LinkSplit) -> None:
    found = vgae.verdict(Oracle(split.test.links[:0], 300), split)
    assert found.comparison.collapsed
    assert found.sentences[0].startswith("The model has collapsed: its logits are the same for nearly all pairs")
    assert found.to_json()["collapsed"] is True
    assert not vgae.verdict(Oracle(split.test.links[:0], 300, noise=1e-9), split).comparison.collapsed


def test_a_few_links_say_little(split: vgae.LinkSplit) -> None:
    few = vgae.LinkSplit(split.train, split.val, vgae.HeldOut(split.test.links[:4], split.test.non_links[:4]), 0)
    found = vgae.verdict(Oracle(few.test.links, 300), few)
    assert found.sentences[0].startswith("With 4 test links no score says much about the model; hold out more")
    assert found.comparison.beaten_by is None
    assert not any("ranks better" in each for each in found.sentences)
    some = vgae.LinkSplit(split.train, split.val, vgae.HeldOut(split.test.links[:15], split.test.non_links[:15]), 0)
    text = vgae.verdict(Oracle(some.test.links[::2], 300, noise=0.5), some).sentences[0]
    assert text.startswith("The 15 test links are few: the AUC has a standard error of ")


def test_without_test_links_validation_is_judged_and_without_any_nothing(split: vgae.LinkSplit) -> None:
    no_test = vgae.LinkSplit(split.train, split.val, vgae.HeldOut.none(), 0)
    found = vgae.verdict(Oracle(split.val.links, 300), no_test)
    assert (found.comparison.pairs, found.comparison.num_links) == ("validation", len(split.val.links))
    assert found.table["Oracle"]["precision@100"] == 1.0  # validation links are not known then
    nothing = vgae.LinkSplit(split.train, vgae.HeldOut.none(), vgae.HeldOut.none(), 0)
    found = vgae.verdict(Oracle(split.val.links, 300, noise=0.1), nothing)
    assert found.sentences == (
        "Nothing was held out to judge the model by; hold out links with --test 0.1 (in Python, test=0.1).",
    )
    assert found.table == {}
    assert found.to_json()["pairs"] is None


def test_features_that_hurt_are_named(split: vgae.LinkSplit) -> None:
    model = Oracle(split.test.links[:0], 300, noise=1.0)
    better = Oracle(split.test.links, 300, noise=0.1)
    found = vgae.verdict(model, split, variants={"without features": better})
    assert found.table["without features"]["auc"] > 0.99
    assert any("The model without features has an AUC of" in each and "hurt" in each for each in found.sentences)
    same = vgae.verdict(better, split, variants={"without features": model})
    assert any("without features do no better" in each for each in same.sentences)


def test_feature_cosine_is_a_heuristic_where_there_are_features(split: vgae.LinkSplit) -> None:
    assert "cosine" not in compare(Oracle(split.test.links, 300), split).heuristics
    features = np.random.default_rng(0).normal(size=(300, 5)).astype(np.float32)
    features[7] = 0
    graph = split.train.with_parts(features=features)
    found = compare(Oracle(split.test.links, 300), vgae.LinkSplit(graph, split.val, split.test, 0))
    lengths = np.linalg.norm(features, axis=1, keepdims=True)
    unit = features / np.where(lengths > 0, lengths, 1)
    links, non_links = (
        np.sum(unit[pairs[:, 0]] * unit[pairs[:, 1]], axis=1) for pairs in (split.test.links, split.test.non_links)
    )
    assert found.heuristics["cosine"] == pytest.approx(auc_and_ap(links, non_links), abs=1e-6)


def test_work_is_limited_and_that_is_said(split: vgae.LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    model = Oracle(split.test.links, 300, noise=0.2)
    whole = compare(model, split)
    monkeypatch.setattr(comparing, "MOST_PAIRS", 50)
    found = compare(model, split)
    assert (found.num_links, found.num_non_links) == (50, 50)
    assert "Scores are on a random 50 links of" in found.notes[0]
    assert found.model["precision@100"] == whole.model["precision@100"]  # all links are looked for all the same
    monkeypatch.setattr(comparing, "MOST_WORK", 10)
    found = compare(model, split)
    assert found.notes[1:] == ("Precision at K of cn, aa and ra is left out: too many pairs share a neighbour.",)
    assert "precision@10" not in found.heuristics["cn"]
    assert "precision@10" in found.heuristics["pa"]
    monkeypatch.setattr(comparing, "MOST_NODES", 100)
    found = compare(model, split)
    assert found.notes[1].endswith("left out for more than 100 nodes; vgae evaluate computes it.")
    assert found.columns == ("auc", "ap")
    monkeypatch.setattr(comparing, "MOST_RANKED", 300 * 299 // 2 - 1)  # of which the command leaves it out too
    found = compare(model, split)
    assert found.notes[1].endswith("left out for more than 100 nodes; model.evaluate in Python computes it.")


def test_a_star_of_many_leaves_is_judged_within_bounds() -> None:
    """The product of a star with itself has N² entries."""
    leaves = np.arange(1, 60_001)
    star = vgae.Graph.from_edges(np.stack([np.zeros_like(leaves), leaves], axis=1))
    split = vgae.split_links(star, seed=0)
    found = score_baselines({name: BASELINES[name](split.train, 0) for name in ("cn", "pa")}, split)
    assert "precision@10" not in found.scores["cn"]
    assert found.scores["cn"]["auc"] < 0.5  # leaves share the hub, and new leaves share nothing with it
    assert found.scores["pa"]["precision@1000"] == 0


def test_two_kinds_of_nodes_are_judged_across() -> None:
    generator = np.random.default_rng(0)
    links = np.unique(np.stack([generator.integers(0, 60, 700), 60 + generator.integers(0, 40, 700)], axis=1), axis=0)
    graph = vgae.Graph.from_edges(links, num_nodes=100).with_parts(sides=(np.arange(100) >= 60).astype(np.uint8))
    split = vgae.split_links(graph, val=0.1, test=0.2, seed=0)
    found = compare(Oracle(split.test.links, 100), split)
    assert found.heuristics["cn"]["auc"] == 0.5
    share = len(split.test.links) / (60 * 40 - split.train.num_edges - len(split.val.links))
    assert found.random["precision@100"] == found.heuristics["cn"]["precision@100"] == pytest.approx(share)


def test_ranks_of_known_pairs_are_needed_once() -> None:
    """A link of validation that is given in both directions is known once."""
    split = blocks(seed=3)
    double = vgae.HeldOut(np.concatenate([split.val.links, split.val.links[:, ::-1]]), split.val.non_links)
    found = compare(Oracle(split.test.links, 300), vgae.LinkSplit(split.train, double, split.test, 0))
    expected = compare(Oracle(split.test.links, 300), split)
    assert found.heuristics == expected.heuristics
    assert len(np.unique(to_ranks(canonical(double.links), 300))) == len(split.val.links)


def test_what_is_no_split_is_refused(split: vgae.LinkSplit, tmp_path: Path) -> None:
    del tmp_path
    assert "split: a LinkSplit is needed" in message_of(lambda: vgae.verdict(Oracle(split.test.links, 300), split.test))  # type: ignore[arg-type]
