"""Scorers with a first stage: what they rank, what they miss, and how their logits are counted."""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
import torch

import vgae
from vgae.baselines.compare import compare
from vgae.baselines.embedding import EmbeddingScorer
from vgae.estimators.links import LinkPredictor, Scored
from vgae.evaluation.all_pairs import (
    Candidates,
    Listed,
    ListScorer,
    Ranker,
    census,
    rank_all_pairs,
    sweep,
    sweep_list,
    top_metrics,
)
from vgae.evaluation.calibration import Calibration
from vgae.evaluation.histogram import Histogram
from vgae.graph.pairs import Pairs
from vgae.stack import scorer as stack_scorer
from vgae.stack.config import StackConfig
from vgae.stack.fit import fit_stack
from vgae.stack.scorer import FittedStack


@dataclass(frozen=True, eq=False)
class Shortlisted:
    """The scorer of an embedding that ranks some pairs only: those that `keep` divides the sum of the ends of."""

    inner: EmbeddingScorer
    keep: int
    symmetric: bool = True

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        return self.inner.logits(pairs)

    def _of(self, pairs: list[tuple[int, int]], candidates: Candidates) -> Listed:
        known = {frozenset(pair) for pair in candidates.known.tolist()}
        found = [pair for pair in pairs if frozenset(pair) not in known and sum(pair) % self.keep == 0]
        listed = np.random.default_rng(0).permutation(np.array(found, dtype=np.int64).reshape(-1, 2))
        return Listed(listed, self.logits(listed))

    def listed(self, candidates: Candidates, top: int = 0) -> Listed:
        del top
        return self._of(list(combinations(range(candidates.num_nodes), 2)), candidates)

    def listed_for(self, candidates: Candidates, nodes: list[int], top: int) -> Listed:
        del top
        return self._of([(i, j) for i in nodes for j in range(candidates.num_nodes) if i != j], candidates)

    def histogram(self, candidates: Candidates, listed: Listed) -> Histogram:
        del listed
        return census(self.inner, candidates)


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(60, 3, degree_within=9, degree_between=2, seed=3), test=0.2)


@pytest.fixture(scope="module")
def embedding() -> EmbeddingScorer:
    # Halves make equal scores, which are in random order.
    halves = np.round(2 * np.random.default_rng(5).normal(size=(60, 2))) / 2
    return EmbeddingScorer(halves.astype(np.float32))


def asked(scorer: Ranker, split: vgae.LinkSplit) -> LinkPredictor:
    model = LinkPredictor()
    held_out = np.concatenate([split.val.links, split.test.links])
    model.scored_ = Scored(scorer, split.train, held_out, lambda: Calibration(shift=0.0))
    return model


def test_a_list_of_all_pairs_is_ranked_like_all_pairs(split: vgae.LinkSplit, embedding: EmbeddingScorer) -> None:
    links, candidates = split.test.links, Candidates.of(split.train)
    rows, listed = (rank_all_pairs(each, links, candidates) for each in (embedding, Shortlisted(embedding, 1)))
    assert listed.pop("first_stage_recall") == 1
    assert listed == {name: value for name, value in rows.items() if not name.startswith("node")}
    model, other = asked(embedding, split), asked(Shortlisted(embedding, 1), split)
    for nodes in (None, [7, 3, 50]):
        one, two = (each.recommend(11, nodes) for each in (model, other))
        np.testing.assert_array_equal(one.pairs, two.pairs)
        np.testing.assert_array_equal(one.logits, two.logits)
    found, again = (each.reliability(split.test)[1] for each in (model, other))
    np.testing.assert_array_equal(found.pairs, again.pairs)


def test_links_that_the_first_stage_misses_are_ranked_below_all(
    split: vgae.LinkSplit, embedding: EmbeddingScorer
) -> None:
    links, candidates, scorer = split.test.links, Candidates.of(split.train), Shortlisted(embedding, 2)
    assert isinstance(scorer, ListScorer)
    assert not isinstance(embedding, ListScorer)
    found = sweep(scorer, candidates, links[:, ::-1], 20)
    on_list = links.sum(axis=1) % 2 == 0
    assert 0 < on_list.sum() < len(links)
    np.testing.assert_array_equal(torch.isfinite(found.marked).numpy(), on_list)
    np.testing.assert_array_equal(found.marked.numpy()[on_list], embedding.logits(links[on_list]))
    assert rank_all_pairs(scorer, links, candidates)["first_stage_recall"] == pytest.approx(on_list.mean())
    listed = scorer.listed(candidates)
    best = np.sort(listed.logits)[::-1][:20]
    np.testing.assert_array_equal(found.best.logits.numpy(), best)
    assert found.best.num_ties == int((listed.logits == best[-1]).sum()) - int((best == best[-1]).sum())


def test_equal_scores_of_a_list_are_in_random_order(split: vgae.LinkSplit) -> None:
    links, candidates = split.test.links, Candidates.of(split.train)
    pairs = np.concatenate([links[:4], split.test.non_links[:6]])
    flat = Listed(pairs, np.zeros(10, dtype=np.float32))
    found = sweep_list(flat, candidates, links, 5)
    assert top_metrics(found.best, found.marked, [5])["precision@5"] == pytest.approx(0.4)
    nothing = sweep_list(Listed(pairs[:0], flat.logits[:0]), candidates, links, 5)
    assert top_metrics(nothing.best, nothing.marked, [5]) == {}
    assert torch.isinf(nothing.marked).all()


# ------------------------------------------------------------------------------------------------------------- a stack


@pytest.fixture(scope="module")
def stack(split: vgae.LinkSplit) -> FittedStack:
    bases = "gae(iterations=5;latent_dim=4),neighbours,degrees"
    return fit_stack(split.train, StackConfig(bases=bases, folds=2, base_seeds=1, boosting=0, device="cpu"))


def all_candidates(split: vgae.LinkSplit) -> Pairs:
    numbering = split.train.all_pairs
    return numbering.pairs(np.setdiff1d(np.arange(numbering.size), numbering.ranks(split.train.links)))


def test_the_histogram_of_a_stack_is_exact_where_all_pairs_are_counted(
    split: vgae.LinkSplit, stack: FittedStack
) -> None:
    candidates = Candidates.of(split.train)
    logits = stack.logits(all_candidates(split))
    exact = Histogram.weighted([(logits, 1.0)])
    part = all_candidates(split)[::3]
    listed = Listed(part, stack.logits(part))
    found = stack.histogram(candidates, listed)
    np.testing.assert_array_equal(found.bins, exact.bins)
    np.testing.assert_allclose(found.counts, exact.counts)


def test_a_sample_stands_for_the_pairs_outside_of_the_list(
    split: vgae.LinkSplit, stack: FittedStack, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stack_scorer, "COUNTED", 500)
    pairs = all_candidates(split)
    logits = stack.logits(pairs)
    order = np.argsort(-logits, kind="stable")
    listed = Listed(pairs[order[:200]], logits[order[:200]])
    found = stack.histogram(Candidates.of(split.train), listed)
    assert found.total == pytest.approx(len(pairs))
    top = found.values >= listed.logits.min()
    assert found.counts[top].sum() == pytest.approx(200, abs=8)  # exact on the list, but for the bin at its border
    mean = float(found.counts @ found.values / found.total)
    error = logits[order[200:]].std() / np.sqrt(500)
    assert abs(mean - logits.mean()) < 4 * error


def test_a_stack_stands_beside_heuristics_and_its_bases(split: vgae.LinkSplit, stack: FittedStack) -> None:
    found = compare(stack, split)
    assert found.model["auc"] == vgae.evaluate(stack, split.test)["auc"]
    assert "precision@10" in found.model
    logits = stack.bases.describe(split.test.pairs)
    for column, values in zip(stack.bases.columns, logits.T, strict=True):
        expected = vgae.evaluate(_Fixed(split.test.pairs, values), split.test)
        assert found.bases[column] == {name: expected[name] for name in ("auc", "ap")}
    name, difference = found.best_base or ("", None)
    assert found.bases[name]["auc"] == max(each["auc"] for each in found.bases.values())
    assert difference is not None
    assert difference.value == pytest.approx(found.model["auc"] - found.bases[name]["auc"])
    assert compare(EmbeddingScorer(np.ones((60, 2), dtype=np.float32)), split).best_base is None


@dataclass(frozen=True, eq=False)
class _Fixed:
    pairs: Pairs
    values: npt.NDArray[np.float32]

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        np.testing.assert_array_equal(pairs, self.pairs)
        return self.values
