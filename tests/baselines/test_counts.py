"""All scores of a heuristic, counted or listed without dense rows, against the sweep over all pairs."""

import numpy as np
import pytest
import scipy.sparse as sp

import vgae
from vgae.baselines import BASELINES, common_neighbours
from vgae.baselines import best_pairs as listing
from vgae.baselines import counts as counting
from vgae.baselines.best_pairs import best_pairs
from vgae.baselines.counts import count_all, count_scores
from vgae.baselines.heuristics import DegreeScorer, NeighbourScorer, chunks
from vgae.evaluation.all_pairs import Candidates, census, sweep, top_metrics
from vgae.graph.pairs import canonical, to_ranks
from vgae.ops import Excluded, top_of_all

HEURISTICS = ("cn", "aa", "ra", "pa")
SIZES = (1, 5, 37, 400)


def setting(seed: int = 0) -> tuple[vgae.LinkSplit, Candidates]:
    """A graph with hubs, whose scores are tied more often than not, and the candidates for its test links."""
    graph = vgae.rmat(300, 900, seed=seed)
    split = vgae.split_links(graph, val=0.1, test=0.2, seed=1)
    known = np.concatenate([split.train.edges, canonical(split.val.links)])
    return split, Candidates(graph.num_nodes, known)


def heuristic(name: str, graph: vgae.Graph) -> NeighbourScorer | DegreeScorer:
    scorer = BASELINES[name](graph, 0)
    assert isinstance(scorer, NeighbourScorer | DegreeScorer)
    return scorer


@pytest.mark.parametrize("name", HEURISTICS)
@pytest.mark.parametrize("block", [50, 4_000_000])
def test_precision_by_counts_is_that_of_the_sweep(name: str, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "BLOCK", block)
    split, candidates = setting()
    scorer = heuristic(name, split.train)
    counts, links = count_scores(scorer, candidates, max(SIZES)), scorer.logits(split.test.links)
    found = sweep(scorer, candidates, split.test.links, max(SIZES))
    expected = top_metrics(found.best, found.marked, SIZES)
    for k in SIZES:
        assert counts.precision(k, links) == pytest.approx(expected[f"precision@{k}"], rel=1e-12)


@pytest.mark.parametrize("name", HEURISTICS)
def test_all_scores_are_those_of_the_census(name: str) -> None:
    split, candidates = setting()
    scorer = heuristic(name, split.train)
    counted, swept = count_all(scorer, candidates), census(scorer, candidates)
    np.testing.assert_array_equal(counted.bins, swept.bins)
    np.testing.assert_array_equal(counted.counts, swept.counts)


@pytest.mark.parametrize("name", HEURISTICS)
def test_of_two_kinds_of_nodes_only_pairs_across_are_counted(name: str) -> None:
    generator = np.random.default_rng(0)
    links = np.unique(np.stack([generator.integers(0, 20, 90), 20 + generator.integers(0, 15, 90)], axis=1), axis=0)
    graph = vgae.Graph.from_edges(links, num_nodes=35).with_parts(sides=(np.arange(35) >= 20).astype(np.uint8))
    candidates = Candidates(35, graph.edges, graph.sides)
    counted, swept = (way(heuristic(name, graph), candidates) for way in (count_all, census))
    np.testing.assert_array_equal(counted.bins, swept.bins)
    np.testing.assert_array_equal(counted.counts, swept.counts)
    assert counted.total == 20 * 15 - len(links)


def test_more_than_there_is_has_no_precision() -> None:
    graph = vgae.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    counts = count_scores(common_neighbours(graph), Candidates(4, graph.edges), 10)
    assert counts.precision(3, np.array([1.0])) == pytest.approx(1 / 3)
    assert counts.precision(4, np.array([1.0])) is None


@pytest.mark.parametrize("name", ["cn", "aa", "ra"])
@pytest.mark.parametrize("top", [1, 30, 700, 40_000])
@pytest.mark.parametrize("block", [50, 4_000_000])
def test_best_pairs_are_those_of_dense_rows(name: str, top: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "BLOCK", block)
    split, candidates = setting(seed=3)
    rows = BASELINES[name](split.train, 0).rows()
    assert not hasattr(rows, "q"), "these rows are no factors"
    excluded = Excluded.of(candidates.known, candidates.num_nodes, rows.device)
    expected = top_of_all(rows, top=top, symmetric=True, excluded=excluded).pairs.numpy()
    known = np.sort(to_ranks(candidates.known, candidates.num_nodes))
    np.testing.assert_array_equal(best_pairs(rows, top, known), expected)  # type: ignore[arg-type]


def test_rows_that_cannot_reach_the_list_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """All leaves of a star share its hub, which makes N² entries; the list is full after the first leaf."""
    star = vgae.Graph.from_edges([(0, leaf) for leaf in range(1, 3000)])
    seen = []
    entries = listing._entries

    def counting_entries(rows: object, start: int, stop: int) -> object:
        seen.append(stop - start)
        return entries(rows, start, stop)  # type: ignore[arg-type]

    monkeypatch.setattr(listing, "_entries", counting_entries)
    monkeypatch.setattr(listing, "BLOCK", 10_000)
    found = best_pairs(common_neighbours(star).rows(), 10, to_ranks(star.edges, star.num_nodes))
    np.testing.assert_array_equal(found, [(1, leaf) for leaf in range(2, 12)])
    assert sum(seen) < 10


def test_chunks_cover_all_and_stay_small() -> None:
    sizes = np.random.default_rng(0).integers(0, 50, 200)
    found = list(chunks(sizes, 100))
    assert [start for start, _ in found] == [0, *(stop for _, stop in found[:-1])]
    assert found[-1][1] == 200
    for start, stop in found:
        assert sizes[start:stop].sum() <= 100 or stop == start + 1
    assert list(chunks(sizes[:0], 100)) == []


def test_a_hub_costs_no_more_than_its_leaf() -> None:
    """Scored one by one, the pairs of a hub would take their number times its degree."""
    leaves = np.arange(1, 200_001)
    star = vgae.Graph.from_edges(np.stack([np.zeros_like(leaves), leaves], axis=1))
    scorer = common_neighbours(star)
    pairs = np.stack([np.zeros(100_000, dtype=np.int64), leaves[:100_000]], axis=1)
    assert scorer.neighbourhoods.num_lookups(pairs).sum() == 100_000
    assert not scorer.logits(pairs).any()
    assert (scorer.logits(pairs[:, [1, 1]] + [0, 1]) == 1).all()


def test_sums_over_common_neighbours_are_the_entries_of_the_product() -> None:
    split, _ = setting(seed=5)
    graph = split.train
    pairs = np.stack(np.triu_indices(graph.num_nodes, 1), axis=1)
    for name in ("cn", "aa", "ra"):
        scorer = heuristic(name, graph)
        assert isinstance(scorer, NeighbourScorer)
        dense = (graph.adjacency @ sp.diags_array(scorer.weights) @ graph.adjacency).toarray().astype(np.float32)
        np.testing.assert_array_equal(scorer.logits(pairs), dense[pairs[:, 0], pairs[:, 1]])
