"""A fitted stack as a scorer: log odds in any order, its first stage, its histogram and what each base adds."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from stacking import SMALL, WithFewTrees, all_candidates, bipartite_graph, codes, random_graph, stack_of

from vgae.baselines.degrees import Degrees
from vgae.baselines.similarities import SIMILARITIES
from vgae.baselines.similarity import Doubles
from vgae.evaluation.all_pairs import Candidates, Listed, ListScorer
from vgae.evaluation.histogram import bins_of
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs
from vgae.graph.synthetic import stochastic_block_model
from vgae.stack import scorer, shortlist
from vgae.stack.fit import fit_stack
from vgae.stack.scorer import FittedStack

BASES = f"gae({SMALL}),gae({SMALL};decoder=source_target),neighbours,cosines,degrees"


@cache
def stack() -> FittedStack:
    graph = stochastic_block_model(60, 6, degree_within=6, degree_between=1, feature_dim=30)
    return fit_stack(graph, WithFewTrees(bases=BASES, folds=2, base_seeds=2, device="cpu"))


@cache
def across() -> FittedStack:
    return fit_stack(bipartite_graph(), stack_of(f"gae({SMALL}),paths,degrees"))


def codes_of(pairs: Pairs) -> IntArray:
    """A number for each pair, in their order."""
    found: IntArray = pairs.min(axis=1) * 10**6 + pairs.max(axis=1)
    return found


def test_logits_are_the_meta_models_of_the_evidence() -> None:
    pairs = all_candidates(stack().graph)
    expected = stack().meta.log_odds(stack().bases.describe(pairs))
    found = stack().logits(pairs)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected.astype(np.float32))
    assert isinstance(stack(), ListScorer)
    assert stack().symmetric


def test_orders_and_repetitions_play_no_part_to_the_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = all_candidates(stack().graph)
    once = stack().logits(pairs)
    shuffled = np.random.default_rng(0).permutation(len(pairs))
    assert np.array_equal(stack().logits(pairs[shuffled, ::-1]), once[shuffled])
    assert np.array_equal(stack().logits(np.concatenate([pairs, pairs[::-1]])), np.concatenate([once, once[::-1]]))
    monkeypatch.setattr(scorer, "PART", 100)
    in_parts = stack().logits(pairs[shuffled])
    assert np.array_equal(in_parts, stack().logits(pairs)[shuffled])
    assert np.mean(np.abs(in_parts - once[shuffled]) < 1e-4) > 0.99  # rounding may cross a threshold of a tree
    assert stack().logits(pairs[:0]).shape == (0,)


def test_evidence_in_hand_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []

    class Counting(Degrees):
        """Degrees, and how many pairs were asked about at a time."""

        def _describe(self, pairs: Pairs) -> list[Doubles]:
            sizes.append(len(pairs))
            return super()._describe(pairs)

    monkeypatch.setitem(SIMILARITIES, "counting", Counting)
    small, graph = random_graph(20, 30, 0), random_graph(1500, 3000, 0)
    large = fit_stack(small, stack_of("counting", folds=2)).on(graph)
    sizes.clear()
    pairs = all_candidates(graph)[:1_000_000]
    assert len(large.logits(pairs)) == 1_000_000
    assert sizes == [scorer.PART] * 2


# ------------------------------------------------------------------------------------------------------ the first stage


@pytest.mark.parametrize("make", [stack, across], ids=["plain", "bipartite"])
def test_the_list_of_a_small_graph_is_all_candidates(make: Callable[[], FittedStack]) -> None:
    one = make()
    listed = one.listed(Candidates.of(one.graph))
    pairs = all_candidates(one.graph)
    assert np.array_equal(codes(listed.pairs), codes(pairs))
    assert np.allclose(listed.logits, one.logits(listed.pairs), atol=1e-4)


@pytest.mark.parametrize("make", [stack, across], ids=["plain", "bipartite"])
def test_what_was_scored_before_is_scored_alike_again(make: Callable[[], FittedStack]) -> None:
    one, pairs = replace(make()), all_candidates(make().graph)
    assert one.last.listed is None  # nothing of another stack
    expected = dict(zip(codes(pairs).tolist(), one.logits(pairs)[np.argsort(codes_of(pairs))].tolist(), strict=True))
    for left_out in (pairs[::2], pairs[1::3], pairs[:0]):
        listed = one.listed(Candidates.of(one.graph, np.concatenate([one.graph.edges, left_out])))
        assert len(listed.pairs) == len(pairs) - len(left_out)
        found = [expected[code] for code in codes_of(listed.pairs).tolist()]
        assert np.mean(np.abs(listed.logits - found) < 1e-4) > 0.99


def test_lists_of_nodes_have_their_logits() -> None:
    listed = stack().listed_for(Candidates.of(stack().graph), [3, 8], 5)
    assert set(listed.pairs[:, 0].tolist()) == {3, 8}
    assert np.array_equal(listed.logits, stack().logits(listed.pairs))
    pairs = all_candidates(stack().graph)
    assert len(listed.pairs) == np.isin(pairs, [3, 8]).sum()  # of a small graph, all


@pytest.mark.parametrize("make", [stack, across], ids=["plain", "bipartite"])
@pytest.mark.parametrize("counted", [10**6, 40])
def test_a_histogram_counts_every_candidate_once(
    monkeypatch: pytest.MonkeyPatch, make: Callable[[], FittedStack], counted: int
) -> None:
    one = make()
    monkeypatch.setattr(scorer, "COUNTED", counted)
    pairs = all_candidates(one.graph)
    candidates = Candidates.of(one.graph)
    listed = Listed(pairs[::3], one.logits(pairs[::3]))
    found = one.histogram(candidates, listed)
    assert found.total == pytest.approx(len(pairs), rel=1e-9)
    if counted > len(pairs):
        expected = np.concatenate([listed.logits, one.logits(np.delete(pairs, np.s_[::3], axis=0))])
        assert np.array_equal(np.unique(bins_of(torch.from_numpy(expected)).numpy()), found.bins)
    whole = one.histogram(candidates, one.listed(candidates))
    assert whole.total == len(pairs)
    assert (whole.counts @ whole.values) / len(pairs) == pytest.approx(one.logits(pairs).mean(), abs=0.01)


def test_a_histogram_of_a_sample_is_unbiased(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scorer, "COUNTED", 400)
    monkeypatch.setattr(shortlist, "SHARING", 200)
    monkeypatch.setattr(scorer, "FIRST_STAGE", 20)
    candidates, pairs = Candidates.of(stack().graph), all_candidates(stack().graph)
    listed = stack().listed(candidates)
    assert len(listed.pairs) < len(pairs) / 2
    found = stack().histogram(candidates, listed)
    probability = (found.counts / (1 + np.exp(-found.values))).sum()
    every = (1 / (1 + np.exp(-stack().logits(pairs).astype(np.float64)))).sum()
    assert found.total == pytest.approx(len(pairs))
    assert probability == pytest.approx(every, rel=0.1)


def test_known_pairs_beside_the_links_are_not_counted() -> None:
    pairs = all_candidates(stack().graph)
    known = np.concatenate([stack().graph.edges, pairs[:100], pairs[:10], [[7, 7]]])
    candidates = Candidates.of(stack().graph, known)
    listed = stack().listed(candidates)
    assert len(listed.pairs) == len(pairs) - 100
    assert stack().histogram(candidates, listed).total == len(pairs) - 100


# ----------------------------------------------------------------------------------------------------- what a base adds


def test_contributions_sum_up_to_the_logit() -> None:
    for pair in all_candidates(stack().graph)[::200]:
        mean, added, values = stack().contributions(pair[None])
        assert list(added) == [base.text for base in stack().bases.bases]
        assert mean + sum(added.values()) == pytest.approx(float(stack().logits(pair[None])[0]), abs=1e-3)
        assert list(values) == list(stack().bases.columns)
        assert list(values.values()) == stack().bases.describe(pair[None])[0].tolist()
    turned = stack().contributions(pair[None, ::-1])
    assert turned == (mean, added, values)


def test_a_stack_on_another_graph_keeps_its_meta_model() -> None:
    other = stochastic_block_model(70, 6, feature_dim=30, seed=5)
    directed = Graph.from_edges(other.edges[:, ::-1], num_nodes=70, features=other.features, directed=True)
    moved = stack().on(directed)
    assert moved.graph.num_nodes == 70
    assert not moved.graph.directed
    pairs = all_candidates(other)[::20]
    assert np.allclose(moved.logits(pairs), stack().meta.log_odds(stack().bases.on(other).describe(pairs)), atol=1e-4)
