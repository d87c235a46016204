"""Sampled non-links stand for all: strata are disjoint and cover the candidates, samples are uniform within them."""

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare

from helpers import message_of, small_graphs
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.synthetic import stochastic_block_model
from vgae.stack import strata
from vgae.stack.strata import STRATA, Sample, SampleSizes, fold_links, sample_strata

RUNS = 600
ALL = SampleSizes(two_hop=10**6, others=10**6)


def as_set(pairs: Pairs) -> set[tuple[int, int]]:
    return {(int(min(pair)), int(max(pair))) for pair in pairs}


def strata_of(known: Graph, seen: Graph, listed: Pairs) -> dict[str, set[tuple[int, int]]]:
    """The strata as sets, by their definition."""
    sides = known.sides
    pairs = {
        (i, j) for i, j in combinations(range(known.num_nodes), 2) if sides is None or sides[i] != sides[j]
    } - as_set(known.edges)
    neighbours = [set(seen.adjacency[[node]].indices.tolist()) for node in range(seen.num_nodes)]
    pairs -= as_set(listed)
    two_hop = {(i, j) for i, j in pairs if neighbours[i] & neighbours[j]}
    return {"two_hop": two_hop, "others": pairs - two_hop}


def num_free(known: Graph, listed: Pairs) -> int:
    """How many candidates are neither links nor listed."""
    return sum(len(pairs) for pairs in strata_of(known, known, listed).values())


def uniformity(counts: list[int], num: int) -> float:
    """How often counts would differ by more if in each of RUNS samples `num` of them were drawn, all equally likely."""
    size = len(counts)
    variance = RUNS * num * (size - num) / (size * (size - 1))  # with a covariance of -1 / (size - 1) of it
    return float(chi2.sf(((np.array(counts) - RUNS * num / size) ** 2).sum() / variance, size - 1))


def by_stratum(sample: Sample) -> dict[str, Pairs]:
    return {name: sample.pairs[sample.strata == number] for number, name in enumerate(STRATA)}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Graph, Graph, Any]:
    """A graph, the same without some links, and any pairs as listed."""
    known = draw(small_graphs(least_nodes=2))
    if draw(st.booleans()):  # bipartite: even and odd nodes
        across = [*known.edges[(known.edges.sum(axis=1) % 2) == 1].tolist(), [0, 1]]
        known = Graph.from_edges(across, num_nodes=known.num_nodes)
        known = known.with_parts(sides=(np.arange(known.num_nodes) % 2).astype(np.uint8))
    kept = draw(st.lists(st.booleans(), min_size=known.num_edges, max_size=known.num_edges))
    seen = known.with_edges(known.edges[np.array([True, *kept[1:]])])  # a graph has a link
    node = st.integers(0, known.num_nodes - 1)
    listed = draw(st.lists(st.tuples(node, node), max_size=10))
    return known, seen, np.array(listed, dtype=np.int64).reshape(-1, 2)


@given(cases(), st.integers(1, 20), st.integers(1, 20), st.integers(0, 100))
@settings(max_examples=150, deadline=None)
def test_a_sample_is_one_of_disjoint_strata_that_cover_all_non_links_that_are_not_listed(
    case: tuple[Graph, Graph, Any], two_hop: int, others: int, seed: int
) -> None:
    known, seen, best = case
    sizes = SampleSizes(two_hop=two_hop, others=others)
    sample = sample_strata(known, seen, best, sizes, seed=seed)
    expected = strata_of(known, seen, best)
    assert sample.sizes == tuple(len(expected[name]) for name in STRATA)
    assert sample.total == num_free(known, best)
    assert not sample.estimated
    for number, (name, pairs) in enumerate(by_stratum(sample).items()):
        most = getattr(sizes, name)
        assert len(pairs) == min(most, len(expected[name]))
        assert len(as_set(pairs)) == len(pairs)
        assert as_set(pairs) <= expected[name]
        assert sample.weights[sample.strata == number].sum() == pytest.approx(len(expected[name]))


@given(cases())
@settings(max_examples=50, deadline=None)
def test_all_of_every_stratum_where_there_are_no_more(case: tuple[Graph, Graph, Any]) -> None:
    sample = sample_strata(*case, ALL)
    assert {name: as_set(pairs) for name, pairs in by_stratum(sample).items()} == strata_of(*case)
    assert (sample.weights == 1).all()


@pytest.mark.parametrize("block", [1, 50, 4_000_000])
@pytest.mark.parametrize("num", [7, 1000])
def test_blocks_of_any_size_find_the_same_strata(monkeypatch: pytest.MonkeyPatch, block: int, num: int) -> None:
    monkeypatch.setattr(strata, "BLOCK", block)
    known = stochastic_block_model(40, 2, degree_within=8, seed=1)
    seen = known.with_edges(known.edges[::2])
    best = np.array([[0, 1], [5, 3], [7, 30], [2, 39]])
    sample = sample_strata(known, seen, best, SampleSizes(two_hop=num, others=num))
    expected = strata_of(known, seen, best)
    assert sample.sizes == tuple(len(expected[name]) for name in STRATA)
    assert all(as_set(pairs) <= expected[name] for name, pairs in by_stratum(sample).items())


@pytest.mark.parametrize(
    "known",
    [
        Graph.from_edges([(0, 1)]),
        Graph.from_edges([(0, 1)], num_nodes=5),
        Graph.from_edges(list(combinations(range(6), 2))),
        Graph.from_edges([(0, leaf) for leaf in range(1, 30)]),
        Graph.from_edges([(0, 1), (2, 1), (3, 2)], directed=True),
    ],
    ids=["two nodes", "one link", "complete", "star", "directed"],
)
def test_any_graph(known: Graph) -> None:
    none = np.empty((0, 2), dtype=np.int64)
    sample = sample_strata(known, known, none, ALL)
    assert {name: as_set(pairs) for name, pairs in by_stratum(sample).items()} == strata_of(known, known, none)
    assert sample.total == known.num_nodes * (known.num_nodes - 1) // 2 - known.num_edges


def test_the_same_seed_gives_the_same_sample_and_another_another() -> None:
    known = stochastic_block_model(60, 3, seed=0)
    seen, best = known.with_edges(known.edges[::2]), np.array([[0, 1], [1, 2], [3, 9], [4, 5], [6, 7]])
    sizes = SampleSizes(two_hop=30, others=30)
    first, second, other = (sample_strata(known, seen, best, sizes, seed=seed) for seed in (3, 3, 4))
    assert np.array_equal(first.pairs, second.pairs)
    assert not np.array_equal(first.pairs, other.pairs)


@pytest.mark.parametrize("dense", [False, True], ids=["others are common", "others are rare"])
def test_every_pair_of_a_stratum_is_equally_likely(dense: bool) -> None:
    known = stochastic_block_model(24, 2, degree_within=7 if dense else 3, degree_between=3 if dense else 1, seed=2)
    seen = known.with_edges(known.edges[np.arange(known.num_edges) % 4 > 0])
    best = np.array([[i, j] for i in range(8) for j in range(i + 1, 9)])
    expected = strata_of(known, seen, best)
    assert (len(expected["others"]) < strata.RARE * known.num_candidate_pairs) == dense
    counts = {name: dict.fromkeys(pairs, 0) for name, pairs in expected.items()}
    sizes = SampleSizes(two_hop=9, others=3)
    for seed in range(RUNS):
        for name, pairs in by_stratum(sample_strata(known, seen, best, sizes, seed=seed)).items():
            for pair in as_set(pairs):
                counts[name][pair] += 1
    for name, found in counts.items():
        assert 1e-3 < uniformity(list(found.values()), getattr(sizes, name)) < 1 - 1e-3, name


def test_weighted_sums_are_unbiased_for_sums_over_all_non_links() -> None:
    known = stochastic_block_model(50, 2, seed=3)
    seen, best = known.with_edges(known.edges[::2]), np.array([[0, j] for j in range(1, 20)])
    every = np.concatenate(list(by_stratum(sample_strata(known, seen, best, ALL)).values()))

    shared = (seen.adjacency @ seen.adjacency).toarray()

    def total(pairs: Pairs, weights: Any) -> float:
        return float((weights * np.exp(-pairs[:, 0] / 10) * (1 + shared[pairs[:, 0], pairs[:, 1]])).sum())

    sizes = SampleSizes(two_hop=30, others=20)
    samples = [sample_strata(known, seen, best, sizes, seed=seed) for seed in range(500)]
    found = np.array([total(sample.pairs, sample.weights) for sample in samples])
    assert abs(found.mean() - total(every, 1.0)) < 4 * found.std() / np.sqrt(len(found))
    unweighted = np.array([total(s.pairs, s.total / len(s.pairs)) for s in samples])
    assert abs(unweighted.mean() - total(every, 1.0)) > 10 * unweighted.std() / np.sqrt(len(found))


def test_by_wedges_pairs_are_as_likely_and_the_size_is_near(monkeypatch: pytest.MonkeyPatch) -> None:
    known = stochastic_block_model(40, 2, degree_within=6, seed=4)
    seen, best = known.with_edges(known.edges[np.arange(known.num_edges) % 4 > 0]), np.array([[0, 1], [2, 3]])
    expected = strata_of(known, seen, best)
    monkeypatch.setattr(strata, "MOST_WORK", 0)
    monkeypatch.setattr(strata, "DRAWS", 300)
    counts = dict.fromkeys(expected["two_hop"], 0)
    sizes, estimates = SampleSizes(two_hop=5, others=5), []
    for seed in range(RUNS):
        sample = sample_strata(known, seen, best, sizes, seed=seed)
        assert sample.estimated
        assert sample.total == num_free(known, best)
        assert sample.weights.sum() == pytest.approx(sample.total)
        estimates.append(sample.sizes[0])
        for pair in as_set(by_stratum(sample)["two_hop"]):
            counts[pair] += 1
        assert as_set(by_stratum(sample)["others"]) <= expected["others"]
    assert 1e-3 < uniformity(list(counts.values()), 5) < 1 - 1e-3
    error = np.std(estimates) / np.sqrt(len(estimates))
    assert abs(np.mean(estimates) - len(expected["two_hop"])) < 4 * error + 0.5


@given(small_graphs(least_nodes=3), st.integers(2, 9), st.integers(0, 100))
@settings(max_examples=50, deadline=None)
def test_folds_are_as_equal_as_can_be(graph: Graph, num_folds: int, seed: int) -> None:
    if num_folds > graph.num_edges:
        with pytest.raises(InputError):
            fold_links(graph, num_folds, seed)
        return
    folds = fold_links(graph, num_folds, seed)
    sizes = np.bincount(folds, minlength=num_folds)
    assert len(sizes) == num_folds
    assert len(folds) == graph.num_edges
    assert sizes.max() - sizes.min() <= 1
    assert np.array_equal(folds, fold_links(graph, num_folds, seed))


def test_folds_are_at_random() -> None:
    graph = Graph.from_edges([(i, i + 1) for i in range(30)])
    counts = np.zeros((30, 3))
    for seed in range(600):
        counts[np.arange(30), fold_links(graph, 3, seed)] += 1
    assert chisquare(counts.ravel()).pvalue > 1e-3


def test_what_cannot_be_is_said_in_a_sentence() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)])
    assert message_of(lambda: fold_links(graph, 5)) == "folds: 5 folds need at least 5 links, and the graph has 2."
    assert "folds: a whole number" in message_of(lambda: fold_links(graph, 1))
    other = Graph.from_edges([(0, 1)], num_nodes=7)
    assert "7 nodes" in message_of(lambda: sample_strata(graph, other, []))
    assert "listed: row 0" in message_of(lambda: sample_strata(graph, graph, [(0, 9)]))
    assert "two_hop" in message_of(lambda: SampleSizes(two_hop=0))
