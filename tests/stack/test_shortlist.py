"""The first stage against brute force: what is near, each base's favourites, nothing known, every pair once."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stacking import SMALL, all_candidates, bipartite_graph, codes, random_graph, stack_of

from helpers import small_graphs
from vgae.baselines import BASELINES
from vgae.baselines.paths import Paths
from vgae.evaluation.all_pairs import Candidates
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.stack import shortlist as module
from vgae.stack.bases import FittedBases, fit_bases
from vgae.stack.shortlist import favourites, free_ranks, numbered, shortlist, shortlist_of_nodes

MODELS = f"gae({SMALL}),gae({SMALL};decoder=source_target),networks({SMALL})"


def fitted(names: str, graph: Graph) -> FittedBases:
    return fit_bases(graph, stack_of(names).bases_for(graph), 1)


def best_by(values: np.ndarray, pairs: Pairs, top: int) -> set[tuple[int, int]]:
    """The best pairs, and those that are as good as the last of them up to rounding."""
    worst = np.sort(values)[::-1][min(top, len(values)) - 1]
    return {(i, j) for i, j in pairs[values >= worst - 1e-5].tolist()}


def as_set(pairs: Pairs) -> set[tuple[int, int]]:
    return {(min(i, j), max(i, j)) for i, j in pairs.tolist()}


def check(found: Pairs, graph: Graph) -> None:
    """Candidates, canonical, each once."""
    assert found.dtype == np.int64
    assert (found[:, 0] < found[:, 1]).all()
    assert len(as_set(found)) == len(found)
    assert as_set(found) <= as_set(all_candidates(graph))


@given(small_graphs(least_nodes=2), st.integers(1, 30))
@settings(max_examples=60)
def test_where_candidates_are_few_all_are_listed(graph: Graph, top: int) -> None:
    found = shortlist(fitted("degrees", graph), Candidates.of(graph), top)
    check(found, graph)
    assert as_set(found) == as_set(all_candidates(graph))


@given(small_graphs(least_nodes=2), st.integers(1, 30), st.integers(1, 30))
@settings(max_examples=60)
def test_pairs_that_share_a_neighbour_come_first(graph: Graph, top: int, sharing: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SHARING", sharing)
        found = shortlist(fitted("degrees", graph), Candidates.of(graph), top)
    check(found, graph)
    pairs = all_candidates(graph)
    assert len(found) >= min(top, len(pairs))  # filled up where nothing speaks for more of them
    if len(pairs) <= max(sharing, top):
        assert len(found) == len(pairs)
        return
    values, most = BASELINES["ra"](graph, 0).logits(pairs), max(sharing, top)
    shared = int((values > 0).sum())
    assert len(as_set(found) & as_set(pairs[values > 0])) >= min(shared, most)
    if shared:
        assert len(as_set(found) & best_by(values, pairs, min(shared, most))) >= min(shared, most)


def test_favourites_are_the_best_of_each_base() -> None:
    graph, top = random_graph(30, 60, 0, feature_dim=6), 15
    bases, pairs = fitted(f"{MODELS},cosines,dw", graph), all_candidates(graph)
    found = as_set(favourites(bases, Candidates.of(graph), top))
    evidence = dict(zip(bases.columns, bases.describe(pairs).T, strict=True))
    rankings = {name: evidence[name] for name in bases.columns if name.startswith("gae") or name in ("dw", "cosine_1")}
    rankings["ra"] = BASELINES["ra"](graph, 0).logits(pairs)
    assert len(rankings) == 5
    for name, values in rankings.items():
        assert len(best_by(values, pairs, top) & found) >= top, name
    assert found <= as_set(pairs)
    assert len(found) <= top * len(rankings)


def test_in_a_large_graph_the_favourites_are_the_best_of_some_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    graph, top = random_graph(30, 60, 0, feature_dim=6), 25
    bases, pairs = fitted("cosines", graph), all_candidates(graph)
    monkeypatch.setattr(module, "MOST_PAIRS", 300)
    monkeypatch.setattr(module, "BLOCK", 70)
    found = as_set(favourites(bases, Candidates.of(graph), top))
    chosen = np.random.default_rng(0).choice(30, size=10, replace=False)
    of_rows = pairs[np.isin(pairs, chosen).any(axis=1)]
    values = bases.describe(of_rows)[:, bases.columns.index("cosine_1")]
    best = best_by(values, of_rows, top)
    assert len(best) == top  # no ties
    assert best <= found


def test_of_a_large_graph_so_many_favourites_as_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = random_graph(60, 90, 0, feature_dim=6)
    monkeypatch.setattr(module, "MOST_PAIRS", 50 * 60)
    with_sharing = favourites(fitted("degrees", graph), Candidates.of(graph), 5)
    monkeypatch.setattr(module, "MOST_PAIRS", 29 * 60)
    assert len(favourites(fitted("cosines", graph), Candidates.of(graph), 5)) == len(with_sharing) + 5


def test_known_pairs_of_all_kinds_are_left_out() -> None:
    graph = random_graph(20, 30, 0, feature_dim=6)
    more = all_candidates(graph)[::3]
    known = np.concatenate([graph.edges, more[:, ::-1], graph.edges[:3], [[4, 4]]])
    candidates = Candidates.of(graph, known)
    bases = fitted("cosines,dw", graph)
    left = as_set(all_candidates(graph)) - as_set(more)
    assert as_set(shortlist(bases, candidates, 10)) == left
    assert as_set(favourites(bases, candidates, 10)) <= left
    assert as_set(shortlist_of_nodes(bases, candidates, list(range(20)), 10)) == left
    ordered = replace(candidates, ordered=True)  # a stack tells no directions apart
    assert np.array_equal(shortlist(bases, ordered, 10), shortlist(bases, candidates, 10))
    assert np.array_equal(favourites(bases, ordered, 10), favourites(bases, candidates, 10))


def test_the_shortlist_of_a_bipartite_graph_has_paths_of_three(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = bipartite_graph(share=0.17)
    pairs = all_candidates(graph)
    near = as_set(pairs[Paths.of(graph).logits(pairs) > 0])
    assert 10 < len(near) < len(pairs) - 10
    bases = fitted("degrees", graph)
    assert as_set(shortlist(bases, Candidates.of(graph), 5)) == as_set(pairs)
    monkeypatch.setattr(module, "SHARING", len(near))
    assert as_set(shortlist(bases, Candidates.of(graph), 5)) == near
    assert as_set(favourites(bases, Candidates.of(graph), 7)) <= near


@pytest.mark.parametrize(
    "edges", [[[0, i] for i in range(1, 9)], [[2 * i, 2 * i + 1] for i in range(5)]], ids=["star", "matching"]
)
def test_as_many_as_asked_for_even_where_little_is_near(
    monkeypatch: pytest.MonkeyPatch, edges: list[list[int]]
) -> None:
    graph = Graph.from_edges(edges)
    monkeypatch.setattr(module, "SHARING", 3)
    found = shortlist(fitted("degrees", graph), Candidates.of(graph), 12)
    check(found, graph)
    assert len(found) == 12


@pytest.mark.parametrize("kind", ["plain", "bipartite"])
def test_lists_of_nodes(monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    graph = random_graph(30, 60, 0, feature_dim=6) if kind == "plain" else bipartite_graph(sizes=(16, 14), share=0.15)
    bases, pairs, top = fitted(MODELS, graph), all_candidates(graph), 4
    monkeypatch.setattr(module, "PER_NODE", 3)
    nodes = [5, 2, 17]
    found = shortlist_of_nodes(bases, Candidates.of(graph), nodes, top)
    assert len(np.unique(found, axis=0)) == len(found)
    assert set(found[:, 0].tolist()) == set(nodes)
    assert as_set(found) <= as_set(pairs)
    evidence = dict(zip(bases.columns, bases.describe(pairs).T, strict=True))
    near = BASELINES["ra" if kind == "plain" else "l3"](graph, 0).logits(pairs)
    rankings = [evidence[name] for name in bases.columns if name.startswith("gae")] + [near]
    for node in nodes:
        own = (pairs == node).any(axis=1)
        mine = {tuple(sorted(pair)) for pair in found[found[:, 0] == node].tolist()}
        for values in rankings:
            assert len(mine & best_by(values[own], pairs[own], top)) >= min(top, int(own.sum()))
        assert len(mine) <= top * len(rankings)
    again = shortlist_of_nodes(bases, Candidates.of(graph), [*nodes[::-1], 5], top)
    assert np.array_equal(found, again)
    assert shortlist_of_nodes(bases, Candidates.of(graph), [], top).shape == (0, 2)


@given(st.lists(st.integers(0, 40), unique=True), st.integers(0, 50))
def test_free_ranks_are_those_not_taken(taken: list[int], num: int) -> None:
    left = np.setdiff1d(np.arange(41), taken)
    assert np.array_equal(free_ranks(np.sort(np.array(taken, dtype=np.int64)), 41), left)
    some = free_ranks(np.sort(np.array(taken, dtype=np.int64)), 41, num)
    assert len(np.unique(some)) == len(some) == min(num, len(left))
    assert np.isin(some, left).all()


@pytest.mark.parametrize("graph", [random_graph(9, 12, 0), bipartite_graph()], ids=["plain", "bipartite"])
def test_numbers_of_candidates(graph: Graph) -> None:
    numbering, known = numbered(Candidates.of(graph))
    assert numbering.size == graph.num_candidate_pairs
    assert np.array_equal(codes(numbering.pairs(known)), codes(graph.edges))
    assert np.array_equal(codes(numbering.pairs(free_ranks(known, numbering.size))), codes(all_candidates(graph)))
