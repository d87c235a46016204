"""Arcs, and splits and non-links by direction, for any directed graph."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links, sample_non_links, take_non_links
from vgae.graph.numbering import AllPairs, PairsAcross
from vgae.graph.split import DIRECTION_TASKS, HeldOut, LeakError, LinkSplit, split_links

Pair = tuple[int, int]


def as_set(pairs: np.ndarray) -> set[Pair]:
    return {(int(i), int(j)) for i, j in pairs.tolist()}


def reversed_set(pairs: set[Pair]) -> set[Pair]:
    return {(j, i) for i, j in pairs}


@st.composite
def arcs_of_some_graph(draw: st.DrawFn, fewest: int = 1) -> tuple[int, list[Pair]]:
    size = draw(st.integers(3, 9))
    pairs = list(permutations(range(size), 2))
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=fewest, max_size=len(pairs) - 1, unique=True))
    return size, chosen


@given(made=arcs_of_some_graph())
def test_arcs_are_the_rows_that_were_given(made: tuple[int, list[Pair]]) -> None:
    size, arcs = made
    graph = Graph.from_edges(arcs, num_nodes=size, directed=True)
    assert graph.arcs.tolist() == [list(pair) for pair in sorted(arcs)]
    assert graph.num_arcs == graph.num_links == len(arcs)
    dense = np.zeros((size, size))
    dense[tuple(np.array(arcs).T)] = 1
    assert_array_equal(graph.directed_adjacency.toarray(), dense)
    assert_array_equal(graph.adjacency.toarray(), (dense + dense.T > 0).astype(float))
    assert graph.num_candidate_pairs == size * (size - 1)
    assert graph.density == len(arcs) / (size * (size - 1))
    undirected = graph.without_directions()
    assert as_set(undirected.arcs) == set(arcs) | reversed_set(set(arcs))
    assert undirected.num_arcs == 2 * undirected.num_edges == len(undirected.arcs)
    assert_array_equal(undirected.links, undirected.edges)
    assert_array_equal(undirected.directed_adjacency.toarray(), undirected.adjacency.toarray())


@given(made=arcs_of_some_graph(), data=st.data())
def test_some_of_the_arcs_make_a_graph_of_those(made: tuple[int, list[Pair]], data: st.DataObject) -> None:
    size, arcs = made
    weights = data.draw(st.lists(st.integers(1, 9), min_size=len(arcs), max_size=len(arcs)))
    graph = Graph.from_edges(arcs, num_nodes=size, directed=True, weights=weights, labels=np.arange(size))
    some = data.draw(st.lists(st.sampled_from(arcs), min_size=1, unique=True))
    part = graph.with_arcs(np.array(some))
    assert as_set(part.arcs) == set(some)
    assert part.arc_weights is not None
    assert graph.arc_weights is not None
    of_arc = dict(zip(map(tuple, graph.arcs.tolist()), graph.arc_weights.tolist(), strict=True))
    assert part.arc_weights.tolist() == [of_arc[i, j] for i, j in part.arcs.tolist()]
    assert graph.arc_weights.sum() == sum(weights)
    assert_array_equal(part.labels, graph.labels)
    assert_array_equal(graph.with_arcs(graph.arcs).directions, graph.directions)
    missing = next(pair for pair in permutations(range(size), 2) if pair not in set(arcs))
    with pytest.raises(InputError, match="not all of them are links of this graph, in this direction"):
        graph.with_arcs(np.array([*some, missing]))


def test_arcs_of_an_undirected_graph_cannot_be_left_out() -> None:
    with pytest.raises(InputError, match="the links of this graph have no directions; use with_edges"):
        Graph.from_edges([(0, 1), (1, 2)]).with_arcs(np.array([[0, 1]]))


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_ordered_pairs_are_numbered_from_0(ordered: bool, size: int) -> None:
    numbering = AllPairs(size, ordered=ordered)
    pairs = [(i, j) for i in range(size) for j in range(size) if i < j or (ordered and i != j)]
    assert numbering.size == len(pairs)
    assert_array_equal(numbering.pairs(np.arange(len(pairs))), np.array(pairs).reshape(-1, 2))
    assert_array_equal(numbering.ranks(np.array(pairs).reshape(-1, 2)), np.arange(len(pairs)))
    back = numbering.ranks(np.array(pairs).reshape(-1, 2)[:, ::-1])
    assert (back == np.arange(len(pairs))).all() != (ordered and size > 1)


@given(sides=st.lists(st.integers(0, 1), min_size=2, max_size=8), ordered=st.booleans())
def test_pairs_across_are_numbered_from_0(sides: list[int], ordered: bool) -> None:
    numbering = PairsAcross(np.array(sides, dtype=np.uint8), ordered=ordered)
    pairs = numbering.pairs(np.arange(numbering.size))
    everywhere = permutations(range(len(sides)), 2)
    expected = {(i, j) for i, j in everywhere if sides[i] != sides[j] and (ordered or i < j)}
    assert as_set(pairs) == expected
    assert len(pairs) == len(expected)
    assert_array_equal(numbering.ranks(pairs), np.arange(numbering.size))


@given(made=arcs_of_some_graph())
def test_non_links_are_all_ordered_pairs_that_are_no_arc(made: tuple[int, list[Pair]]) -> None:
    size, arcs = made
    graph = Graph.from_edges(arcs, num_nodes=size, directed=True)
    others = take_non_links(graph, np.arange(count_non_links(graph)))
    assert as_set(others) == set(permutations(range(size), 2)) - set(arcs)
    assert len(others) == size * (size - 1) - len(arcs)
    drawn = sample_non_links(graph, len(others), np.random.default_rng(0))
    assert as_set(drawn) == as_set(others)


@given(made=arcs_of_some_graph(fewest=5), task=st.sampled_from(DIRECTION_TASKS), seed=st.integers(0, 5))
def test_splits_are_disjoint_cover_the_arcs_and_leak_nothing(
    made: tuple[int, list[Pair]], task: str, seed: int
) -> None:
    size, arcs = made
    graph = Graph.from_edges(arcs, num_nodes=size, directed=True)
    try:
        split = split_links(graph, val=0.2, test=0.4, seed=seed, direction_task=task)
    except InputError:  # too few links of the kind that is asked for, or too few non-links
        return
    split.audit()
    sets = [as_set(split.train.arcs), as_set(split.val.links), as_set(split.test.links)]
    assert set.union(*sets) == set(arcs)
    assert sum(len(each) for each in sets) == len(arcs) == split.num_graph_links
    assert split.is_of(graph)
    non_links = [as_set(split.val.non_links), as_set(split.test.non_links)]
    assert not non_links[0] & non_links[1]
    assert not set.union(*non_links) & set(arcs)
    for held_out in (split.val, split.test):
        assert len(held_out.links) == len(held_out.non_links)
    if task == "reversed":
        assert non_links == [reversed_set(each) for each in sets[1:]]
    if task == "mutual":
        hidden = sets[1] | sets[2]
        assert reversed_set(hidden) <= sets[0]
        assert {pair for pair in arcs if (pair[1], pair[0]) in arcs} == hidden | reversed_set(hidden)
        assert all(reversed_set(each) <= sets[0] for each in non_links)


@given(made=arcs_of_some_graph(fewest=5), seed=st.integers(0, 5))
def test_to_a_model_that_cannot_tell_directions_a_split_is_one_of_undirected_links(
    made: tuple[int, list[Pair]], seed: int
) -> None:
    size, arcs = made
    graph = Graph.from_edges(arcs, num_nodes=size, directed=True)
    try:
        split = split_links(graph, val=0.2, test=0.3, seed=seed)
    except InputError:
        return
    told = split.without_directions()
    told.audit()
    assert told.train.directions is None
    assert told.is_of(graph.without_directions())
    assert told.num_graph_links == graph.num_edges
    assert split.as_scored(symmetric=False) is split


def test_leaks_are_found_by_direction() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 0), (1, 0)], directed=True)
    split = split_links(graph, val=0.2, test=0.2, direction_task="any", seed=1)
    seen = HeldOut(split.train.arcs[:1], split.val.non_links)
    with pytest.raises(LeakError, match="in val_links is also in train"):
        LinkSplit(split.train, seen, split.test, 0).audit()
    one_way = next(pair for pair in split.train.arcs.tolist() if pair[::-1] not in graph.arcs.tolist())
    other_way = HeldOut(split.val.links, np.array([one_way[::-1]]))
    LinkSplit(split.train, other_way, HeldOut.none(), 0).audit()


def test_tasks_of_directions_need_directions() -> None:
    with pytest.raises(InputError, match="direction_task: reversed asks for the directions of links"):
        split_links(Graph.from_edges([(0, 1), (1, 2)]), direction_task="reversed")
    with pytest.raises(InputError, match="direction_task: 'up' is not one of any, reversed, mutual"):
        split_links(Graph.from_edges([(0, 1), (1, 2)]), direction_task="up")
    ring = Graph.from_edges([(i, (i + 1) % 9) for i in range(9)], directed=True)
    with pytest.raises(InputError, match="there are 0 such links"):
        split_links(ring, direction_task="mutual")


def test_own_splits_go_by_direction() -> None:
    arcs = [(0, 1), (1, 0), (1, 2), (2, 3), (3, 0), (4, 0)]
    graph = Graph.from_edges(arcs, directed=True)
    split = LinkSplit.from_links(graph, test=[(1, 0)], non_links={"test": [(2, 1)]})
    assert as_set(split.train.arcs) == set(arcs) - {(1, 0)}
    assert as_set(split.test.non_links) == {(2, 1)}
    with pytest.raises(LeakError, match="1 of its 1 non-link is a link of the graph, such as 1 to 2"):
        LinkSplit.from_links(graph, test=[(1, 0)], non_links={"test": [(1, 2)]})


@pytest.mark.parametrize("with_graph", [False, True])
def test_a_split_of_a_directed_graph_comes_back_from_its_file(tmp_path: Path, with_graph: bool) -> None:
    generator = np.random.default_rng(1)
    rows = np.unique(generator.integers(20, size=(90, 2)), axis=0)
    graph = Graph.from_edges(rows, directed=True, weights=np.arange(1, 1 + len(rows)))
    split = split_links(graph, val=0.1, test=0.3)
    split.save(tmp_path / "split.npz")
    again = LinkSplit.load(tmp_path / "split.npz", graph if with_graph else None)
    assert again.ordered
    assert again.content_hash == split.content_hash
    assert_array_equal(again.train.arcs, split.train.arcs)
    assert_array_equal(again.train.weights, split.train.weights)
    assert_array_equal(again.test.links, split.test.links)
    assert again.num_graph_links == graph.num_arcs


def test_a_split_that_was_saved_before_directions_counted_has_canonical_pairs(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    rows = np.unique(generator.integers(20, size=(90, 2)), axis=0)
    graph = Graph.from_edges(rows, directed=True)
    plain = split_links(graph.without_directions(), val=0.1, test=0.3)
    earlier = LinkSplit(graph.with_edges(plain.train.edges), plain.val, plain.test, 0, ordered=False)
    earlier.audit()
    earlier.save(tmp_path / "split.npz")
    assert "ordered" not in np.load(tmp_path / "split.npz")
    for again in (LinkSplit.load(tmp_path / "split.npz"), LinkSplit.load(tmp_path / "split.npz", graph)):
        assert not again.ordered
        assert again.train.directed
        assert again.num_graph_links == graph.num_edges
        assert_array_equal(again.as_scored(symmetric=False).train.edges, plain.train.edges)
        assert not again.as_scored(symmetric=False).train.directed
