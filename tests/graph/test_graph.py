import hashlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import FrozenInstanceError
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import vgae
from helpers import message_of
from vgae.graph import graph as graph_module
from vgae.graph.checks import check_node_ids
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray

PATH = [(0, 1), (1, 2), (2, 3)]
FEATURES = np.array([[0.0, 1.5], [2.0, 0.0], [0.0, 0.0], [-1.0, 4.0]], dtype=np.float32)


def dense_adjacency(rows: Iterable[tuple[int, int]], num_nodes: int) -> AnyArray:
    matrix = np.zeros((num_nodes, num_nodes), dtype=np.float32)
    for source, target in rows:
        matrix[source, target] = matrix[target, source] = float(source != target)
    return matrix


# ------------------------------------------------------------------------------------------------------------- edges


def test_edges_are_symmetrised_merged_and_counted() -> None:
    rows = [(0, 1), (1, 0), (0, 1), (2, 2), (3, 1), (1, 3), (1, 3), (4, 4), (4, 4), (4, 2)]
    graph = Graph.from_edges(rows)
    assert graph.edges.tolist() == [[0, 1], [1, 3], [2, 4]]
    assert graph.cleaning == Cleaning(rows_given=10, self_loops_dropped=3, duplicates_merged=2, reversed_merged=2)
    assert str(graph.cleaning) == "10 rows read: 2 duplicates and 2 reversed links merged, 3 self-loops dropped"


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=60))
def test_any_rows_give_the_adjacency_and_the_counts_of_a_dense_reference(rows: list[tuple[int, int]]) -> None:
    proper = [row for row in rows if row[0] != row[1]]
    assume(proper)
    graph = Graph.from_edges(rows, num_nodes=8)
    links = {frozenset(row) for row in proper}
    assert_array_equal(graph.adjacency.toarray(), dense_adjacency(rows, 8))
    assert graph.edges.tolist() == sorted(sorted(link) for link in links)
    assert graph.num_edges == len(links)
    assert graph.cleaning == Cleaning(
        rows_given=len(rows),
        self_loops_dropped=len(rows) - len(proper),
        duplicates_merged=sum(Counter(proper).values()) - len(set(proper)),
        reversed_merged=len(set(proper)) - len(links),
    )


@pytest.mark.parametrize(
    ("cleaning", "words"),
    [
        (Cleaning(5), "5 rows read: nothing merged or dropped"),
        (Cleaning(1), "1 row read: nothing merged or dropped"),
        (Cleaning(5, 1, 1, 1), "5 rows read: 1 duplicate and 1 reversed link merged, 1 self-loop dropped"),
        (Cleaning(5429, reversed_merged=151), "5,429 rows read: 151 reversed links merged"),
        (Cleaning(9, 2, 3), "9 rows read: 3 duplicates merged, 2 self-loops dropped"),
        (Cleaning(9, reversed_kept=1), "9 rows read: 1 link in both directions"),
        (Cleaning(9, 0, 1, reversed_kept=2), "9 rows read: 1 duplicate merged, 2 links in both directions"),
    ],
)
def test_what_was_merged_and_dropped_is_said_with_the_right_plurals(cleaning: Cleaning, words: str) -> None:
    assert str(cleaning) == words


def test_the_adjacency_is_float32_csr_with_sorted_indices() -> None:
    adjacency = Graph.from_edges([(3, 0), (0, 2), (1, 0)]).adjacency
    assert adjacency.format == "csr"
    assert adjacency.dtype == np.float32
    assert adjacency.indices.tolist() == [1, 2, 3, 0, 0, 0]
    assert adjacency.indptr.tolist() == [0, 3, 4, 5, 6]


@pytest.mark.parametrize(
    "edges",
    [
        PATH,
        iter(PATH),
        {(0, 1), (1, 2), (2, 3)},
        np.array(PATH),
        np.array(PATH, dtype=np.uint8),
        np.asfortranarray(PATH),
        [list(row) for row in PATH],
    ],
)
def test_rows_of_any_integer_kind_are_node_indices(edges: Any) -> None:
    graph = Graph.from_edges(edges)
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    assert graph.num_nodes == 4
    assert graph.node_ids is None


def test_the_number_of_nodes_is_given_or_read_off_the_features_or_the_largest_index() -> None:
    assert Graph.from_edges([(0, 5)]).num_nodes == 6
    assert Graph.from_edges([(0, 5)], num_nodes=9).num_nodes == 9
    assert Graph.from_edges([(0, 5)], features=np.ones((7, 1))).num_nodes == 7
    isolated = Graph.from_edges([(0, 5)], num_nodes=9).adjacency.sum(axis=1)
    assert isolated.tolist() == [1, 0, 0, 0, 0, 1, 0, 0, 0]


def test_other_edges_keep_the_nodes_and_their_attributes() -> None:
    graph = Graph.from_edges(PATH, features=FEATURES, labels="abca", node_ids=[0, 1, 2, 3])
    other = graph.with_edges(np.array([[0, 3]]))
    assert other.edges.tolist() == [[0, 3]]
    assert other.adjacency.nnz == 2
    assert other.cleaning == Cleaning(rows_given=1)
    assert_array_equal(other.features, FEATURES)
    assert other.labels is not None
    assert other.labels.tolist() == ["a", "b", "c", "a"]
    assert_array_equal(other.ids_of([2]), [2])
    assert graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]


def test_leaving_the_features_out_leaves_the_rest() -> None:
    graph = Graph.from_edges(PATH, features=FEATURES, labels=[1, 1, 2, -1])
    bare = graph.without_features()
    assert bare.features is None
    assert (graph.num_features, bare.num_features) == (2, 0)
    assert_array_equal(bare.edges, graph.edges)
    assert repr(graph) == "Graph(4 nodes, 3 edges, 2 dense features, 2 classes)"
    assert repr(bare) == "Graph(4 nodes, 3 edges, 2 classes)"


# --------------------------------------------------------------------------------------------------------------- ids

ID_CASES: list[tuple[Any, list[Any]]] = [
    ([("b", "a"), ("a", "c")], ["b", "a", "c"]),
    (np.array([["b", "a"], ["a", "c"]]), ["b", "a", "c"]),
    (np.array([["b", 1], [1, ("c", 2)]], dtype=object), ["b", 1, ("c", 2)]),
    ([("b", 1), (1, 2.5)], ["b", 1, 2.5]),
    ([((1, 0), (0, 0)), ((0, 0), (0, 1))], [(1, 0), (0, 0), (0, 1)]),
    ([(b"y", b"x"), (b"x", b"z")], [b"y", b"x", b"z"]),
]


@pytest.mark.parametrize(("edges", "ids"), ID_CASES)
def test_ids_are_numbered_in_the_order_of_their_first_appearance(edges: Any, ids: list[Any]) -> None:
    graph = Graph.from_edges(edges)
    assert graph.edges.tolist() == [[0, 1], [1, 2]]
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == ids
    assert [type(node) for node in graph.node_ids.tolist()] == [type(node) for node in ids]
    assert graph.index_of(reversed(ids)).tolist() == [2, 1, 0]
    assert graph.ids_of(graph.index_of(ids)).tolist() == ids


@pytest.mark.parametrize(
    "ids", [[40, 10, 30, 20], np.array([40, 10, 30, 20]), ["d", "a", "c", "b"], [("x", 1), "y", 3, None]]
)
def test_given_ids_fix_the_order_of_the_nodes(ids: Any) -> None:
    edges = [(ids[2], ids[0]), (ids[1], ids[2])]
    graph = Graph.from_edges(edges, node_ids=ids)
    assert graph.num_nodes == 4
    assert graph.edges.tolist() == [[0, 2], [1, 2]]
    assert graph.ids_of([3, 0]).tolist() == [ids[3], ids[0]]
    assert graph.index_of([ids[3], ids[0]]).tolist() == [3, 0]


@given(
    st.lists(st.text(max_size=3), min_size=2, max_size=20, unique=True),
    st.randoms(use_true_random=False),
)
def test_index_of_and_ids_of_are_inverse_for_any_text(ids: list[str], random: Random) -> None:
    graph = Graph.from_edges(pairwise(ids), node_ids=ids)
    indices = np.array([random.randrange(len(ids)) for _ in range(12)]).reshape(3, 2, 2)
    found = graph.ids_of(indices)
    assert found.shape == (3, 2, 2)
    assert found.ravel().tolist() == [ids[index] for index in indices.ravel()]
    assert_array_equal(graph.index_of(found.ravel().tolist()), indices.ravel())


def test_all_ids_at_once_are_those_of_all_indices_and_gathered_once() -> None:
    for edges in ([("b", "a"), ("a", "c")], [(5, 2)], [(("x", 1), "y")], np.array([["b", "a"]])):
        graph = Graph.from_edges(edges)
        assert list(graph.ids) == graph.ids_of(np.arange(graph.num_nodes)).tolist()
        assert graph.ids is graph.ids
        assert graph.index_of(graph.ids).tolist() == list(range(graph.num_nodes))
        assert graph.with_parts(node_ids=None).ids == tuple(range(graph.num_nodes))


def test_without_ids_a_node_is_its_index() -> None:
    graph = Graph.from_edges(PATH)
    assert graph.index_of([3, 0]).tolist() == [3, 0]
    assert graph.ids_of(np.array([[3], [0]])).tolist() == [[3], [0]]


@pytest.mark.parametrize(("edges", "unknown"), [([("a", "b")], "c"), ([(0, 1)], 2), ([((0, 0), (0, 1))], (1, 1))])
def test_an_unknown_id_is_named(edges: Any, unknown: Any) -> None:
    graph = Graph.from_edges(edges)
    assert repr(unknown) in message_of(lambda: graph.index_of([unknown]))


# ---------------------------------------------------------------------------------------------------------- frozenness


def full_graph(features: Any) -> Graph:
    return Graph.from_edges(
        [(0, 1), (1, 2), (2, 3)],
        features=features,
        labels=np.array([0, 1, 0, 1]),
        node_ids=np.arange(4),
    )


def arrays_of(graph: Graph) -> dict[str, AnyArray]:
    assert graph.labels is not None
    assert graph.node_ids is not None
    arrays: dict[str, Any] = {"edges": graph.edges, "labels": graph.labels, "node_ids": graph.node_ids}
    if sp.issparse(graph.features):
        arrays.update({name: getattr(graph.features, name) for name in ("data", "indices", "indptr")})
    elif graph.features is not None:
        arrays["features"] = graph.features
    return arrays


@pytest.mark.parametrize("features", [FEATURES, sp.csr_array(FEATURES)], ids=["dense", "sparse"])
def test_writing_to_any_array_raises(features: Any) -> None:
    graph = full_graph(features)
    for derived in (graph, graph.with_edges(np.array([[0, 2]])), graph.without_features()):
        for name, array in arrays_of(derived).items():
            with pytest.raises(ValueError, match="read-only"):
                array[0] = array[-1]
            assert not array.flags.writeable, name
    with pytest.raises(FrozenInstanceError):
        graph.num_nodes = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    "convert",
    [
        np.array,
        sp.csr_array,
        sp.csc_array,
        sp.coo_array,
        sp.csr_matrix,
        lambda values: np.asarray(values, dtype=np.float64),
    ],
    ids=["dense", "csr", "csc", "coo", "csr_matrix", "float64"],
)
def test_the_arrays_of_the_caller_stay_writable_and_apart(convert: Callable[[Any], Any]) -> None:
    edges, labels, ids = np.array(PATH), np.array([3, 1, 3, 1]), np.array([0, 1, 2, 3])
    features = convert(FEATURES)
    graph = Graph.from_edges(edges, features=features, labels=labels, node_ids=ids)
    before = graph.content_hash
    edges[:] = labels[:] = ids[:] = 0
    values = features.data if sp.issparse(features) else features
    values[:] = 7.0
    again = Graph(graph.num_nodes, graph.edges, graph.features, graph.labels, graph.node_ids)
    assert again.content_hash == before
    assert graph.edges.tolist() == [list(row) for row in PATH]
    assert graph.labels is not None
    assert graph.labels.tolist() == [3, 1, 3, 1]
    assert graph.ids_of([0, 1, 2, 3]).tolist() == [0, 1, 2, 3]
    assert_array_equal(sp.csr_array(graph.features).toarray(), FEATURES)


def test_the_bare_constructor_leaves_the_arrays_of_the_caller_alone() -> None:
    given = {
        "edges": np.array(PATH),
        "features": FEATURES.copy(),
        "labels": np.array([3, 1, 3, 1]),
        "node_ids": np.array(["a", "b", "c", "d"]),
        "weights": np.array([1, 2, 3], dtype=np.float32),
        "directions": np.array([1, 0, -1], dtype=np.int8),
    }
    whole = {name: np.concatenate([array, array]) for name, array in given.items()}
    views = {name: array[: len(given[name])] for name, array in whole.items()}
    expected = {name: array.tolist() for name, array in given.items()}
    for arrays in (given, views):
        options: dict[str, Any] = dict(arrays)
        graph = Graph(4, **options)
        for name, array in arrays.items():
            assert array.flags.writeable, name
            array[...] = array[0]
            assert getattr(graph, name).tolist() == expected[name]
            assert not getattr(graph, name).flags.writeable
    assert all(array.flags.writeable for array in whole.values())


def test_sparse_features_of_the_caller_stay_writable() -> None:
    features = sp.csr_array(FEATURES)
    graph = Graph(4, np.array(PATH), features)
    for array in (features.data, features.indices, features.indptr):
        assert array.flags.writeable
    features.data[:] = 9
    assert_array_equal(sp.csr_array(graph.features).toarray(), FEATURES)
    for part in ("data", "indices", "indptr"):
        getattr(features, part).flags.writeable = False
    features.indices[...].flags.writeable = False
    again = Graph(4, np.array(PATH), features)
    assert_array_equal(sp.csr_array(again.features).toarray(), np.where(FEATURES, 9, 0))


@pytest.mark.parametrize(
    "indices", [[1, 0, 1, 1, 1], [0, 0, 0, 0, 1], [0, 5, 0, 0, 1]], ids=["unsorted", "twice", "beyond"]
)
def test_frozen_sparse_features_are_taken_over_only_if_they_are_tidy(indices: list[int]) -> None:
    parts = (np.array([1, 2, 0, 4, 5], dtype=np.float32), np.array(indices), np.array([0, 2, 3, 3, 5]))
    for part in parts:
        part.flags.writeable = False
    features = sp.csr_array((4, 2), dtype=np.float32)
    features.data, features.indices, features.indptr = parts
    if max(indices) > 1:
        assert "not well formed" in message_of(lambda: Graph(4, np.array(PATH), features))
        return
    kept: Any = Graph(4, np.array(PATH), features).features
    assert kept.has_canonical_format
    assert np.all(kept.data)
    assert_array_equal(kept.toarray(), features.toarray())


def test_what_is_derived_is_checked_where_it_differs_and_shared_where_not(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "c")], node_ids="abc", labels=[1, 2, 3], features=np.eye(3))
    monkeypatch.setitem(graph_module._CHECKS, "node_ids", lambda *_: pytest.fail("the ids were checked again"))
    for derived in (graph.with_edges(np.array([[0, 2]])), graph.without_features()):
        assert derived.node_ids is graph.node_ids
        assert derived.labels is graph.labels
        assert derived.adjacency.nnz == 2 * derived.num_edges
    assert "canonical" in message_of(lambda: graph.with_edges(np.array([[2, 0]])))
    assert "edges: row 0 is (0, 3)" in message_of(lambda: graph.with_edges(np.array([[0, 3]])))


PART_CASES: dict[str, Any] = {
    "features": np.ones((4, 3), dtype=np.float32),
    "labels": np.array([4, 3, 2, 1]),
    "node_ids": np.array(["w", "x", "y", "z"]),
    "weights": np.array([3.0, 2.0, 1.0], dtype=np.float32),
    "directions": np.array([1, -1, 0], dtype=np.int8),
    "cleaning": Cleaning(rows_given=9),
    "sides": np.array([0, 1, 0, 1], dtype=np.uint8),
}


@pytest.mark.parametrize("name", PART_CASES)
def test_a_part_is_replaced_or_left_out_and_the_others_are_shared(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.from_edges(PATH, features=FEATURES, labels="abca", weights=[1, 2, 3], directed=True)
    graph = graph.with_parts(node_ids=np.array(["a", "b", "c", "d"]))
    assert tuple(PART_CASES) == graph_module.PARTS
    for other in PART_CASES:
        if other != name:
            monkeypatch.setitem(graph_module._CHECKS, other, lambda *_: pytest.fail("checked although it is the same"))
    given = PART_CASES[name]
    changed = graph.with_parts(**{name: given})
    if isinstance(given, Cleaning):
        assert changed.cleaning == given
    else:
        assert_array_equal(getattr(changed, name), given)
        assert getattr(graph.with_parts(**{name: None}), name) is None
    assert all(getattr(changed, other) is getattr(graph, other) for other in PART_CASES if other != name)
    assert changed.edges is graph.edges
    assert getattr(graph, name) is not getattr(changed, name)


def test_parts_that_are_given_are_checked() -> None:
    graph = Graph.from_edges(PATH, features=FEATURES)
    for parts, words in (
        ({"features": np.ones((3, 1))}, "3 rows for 4 nodes"),
        ({"features": np.full((4, 1), np.nan)}, "row 0, column 0 is nan"),
        ({"labels": [1, 2]}, "labels: expected one entry for each of the 4 nodes"),
        ({"node_ids": list("abca")}, "an id occurs more than once"),
        ({"weights": [1.0, -1.0, 1.0]}, "weights: row 1 is -1.0"),
        ({"directions": [1, 2, 0]}, "directions: 1, -1 or 0"),
        ({"cleaning": None}, "cleaning: a Cleaning"),
        ({"sides": [0, 1]}, "sides: 0 or 1 is needed for every node, 4 in all"),
        ({"sides": [0, 1, 2, 1]}, "sides: 0 or 1 is needed"),
        ({"sides": [0, 1, 1, 0]}, "sides: the link between the nodes 1 and 2 stays on one side"),
    ):
        assert words in message_of(lambda parts=parts: graph.with_parts(**parts))  # type: ignore[misc]
    for name in ("edges", "num_nodes", "colours"):
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{name}'"):
            graph.with_parts(**{name: 1})


@pytest.mark.parametrize("source", ["edges", "networkx", "table", "npz"])
def test_ids_are_checked_when_a_graph_is_made_and_when_it_is_loaded(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To compare a million texts takes a second: it is done when a graph is made, and when it is loaded again."""
    rows = [(f"n{i}", f"n{j}") for i, j in vgae.stochastic_block_model(60, 3, seed=1).edges.tolist()]
    (tmp_path / "links.csv").write_text("source,target\n" + "".join(f"{a},{b}\n" for a, b in rows))
    nodes = sorted({end for row in rows for end in row})
    (tmp_path / "nodes.csv").write_text("id,size\n" + "".join(f"{name},{len(name)}\n" for name in nodes))
    vgae.write_graph(tmp_path / "graph.npz", vgae.read_graph(tmp_path / "links.csv"))
    checked: list[int] = []

    def counted(ids: Any, num_nodes: int) -> AnyArray:
        checked.append(num_nodes)
        return check_node_ids(ids, num_nodes)

    monkeypatch.setattr(graph_module, "check_node_ids", counted)
    makers: dict[str, Callable[[], Graph]] = {
        "edges": lambda: Graph.from_edges(rows),
        "networkx": lambda: Graph.from_networkx(nx.Graph(rows)),
        "table": lambda: vgae.read_graph(tmp_path / "links.csv", features=tmp_path / "nodes.csv"),
        "npz": lambda: vgae.read_graph(tmp_path / "graph.npz"),
    }
    graph = makers[source]()
    assert checked == [len(nodes)]
    split = vgae.split_links(graph)
    vgae.VGAE(iterations=2).fit(split.train, validation=split.val).save(tmp_path / "run", split=split)
    assert len(checked) == 1
    loaded = vgae.load(tmp_path / "run")
    assert len(checked) == 2
    assert loaded.graph_.ids == graph.ids


def test_edges_that_the_library_made_are_not_copied() -> None:
    edges = np.array(PATH)
    edges.flags.writeable = False
    assert Graph(4, edges).edges is edges


def test_features_are_shared_between_the_graphs_derived_from_one() -> None:
    for features in (FEATURES, sp.csr_array(FEATURES)):
        graph = full_graph(features)
        derived = graph.with_edges(np.array([[0, 2]]))
        pairs = zip(arrays_of(graph).items(), arrays_of(derived).values(), strict=True)
        assert all(np.shares_memory(mine, other) for (name, mine), other in pairs if name != "edges")


# ------------------------------------------------------------------------------------------------------------ features


@pytest.mark.parametrize(
    "features",
    [
        FEATURES,
        FEATURES.astype(np.float64),
        np.asfortranarray(FEATURES),
        sp.csr_array(FEATURES),
        sp.csc_matrix(FEATURES),
        sp.coo_array(FEATURES.astype(np.float64)),
    ],
)
def test_features_of_every_layout_hold_the_same_numbers(features: Any) -> None:
    graph = Graph.from_edges(PATH, features=features)
    kept: Any = graph.features
    assert kept.dtype == np.float32
    assert sp.issparse(kept) == sp.issparse(features)
    assert_array_equal(sp.csr_array(kept).toarray(), FEATURES)
    assert graph.content_hash == Graph.from_edges(PATH, features=FEATURES).content_hash


def test_a_single_column_may_be_given_as_a_vector() -> None:
    graph = Graph.from_edges(PATH, features=np.array([1, 2, 3, 4]))
    assert_array_equal(graph.features, [[1], [2], [3], [4]])


def test_sparse_entries_given_twice_are_summed_and_sorted() -> None:
    rows, columns = np.array([0, 0, 0, 3]), np.array([2, 0, 2, 1])
    features = sp.csr_array((np.array([1.0, 5.0, 2.0, 4.0]), columns, np.array([0, 3, 3, 3, 4])), shape=(4, 3))
    kept: Any = Graph.from_edges(PATH, features=features).features
    expected = np.zeros((4, 3))
    np.add.at(expected, (rows, columns), [1.0, 5.0, 2.0, 4.0])
    assert_array_equal(kept.toarray(), expected)
    assert kept.indices.tolist() == [0, 2, 1]


# ---------------------------------------------------------------------------------------------------------- bad inputs


def with_entry(value: float, row: int, column: int) -> AnyArray:
    features = np.ones((4, 3))
    features[row, column] = value
    return features


def sparse_with_entry(value: float, row: int, column: int) -> Any:
    features = np.eye(4, 3) * 2
    features[row, column] = value
    return sp.csr_array(features)


BAD_GRAPHS: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "nothing": ([], {}, ["empty", "no nodes"]),
    "an empty array": (np.empty((0, 2)), {}, ["empty", "no nodes"]),
    "nodes without links": ([], {"num_nodes": 3}, ["no links", "0 rows"]),
    "ids without links": ([], {"node_ids": ["a", "b"]}, ["no links", "0 rows"]),
    "only self-loops": ([(0, 0), (2, 2)], {}, ["no links", "2 rows", "2 self-loops"]),
    "an index too large": ([(0, 1), (1, 4)], {"num_nodes": 4}, ["edges", "row 1", "(1, 4)", "0 to 3"]),
    "a negative index": ([(0, 1), (1, 2), (-1, 2)], {}, ["edges", "row 2", "(-1, 2)", "0 to 2"]),
    "ragged rows": ([(0, 1), (1,), (1, 2)], {}, ["edges", "row 1", "1 entry"]),
    "rows of three": ([(0, 1), (0, 1, 2)], {}, ["edges", "row 1", "3 entries"]),
    "an edge_index": (np.zeros((2, 5), dtype=int), {}, ["edges", "(2, 5)"]),
    "a vector": (np.array([0, 1]), {}, ["edges", "(2,)"]),
    "numbers instead of rows": ([0, 1], {}, ["edges", "two endpoints"]),
    "a number": (5, {}, ["edges", "5"]),
    "text that reads as numbers": (PATH, {"features": [["1"], ["2"], ["3"], ["4"]]}, ["features", "number"]),
    "complex features": (PATH, {"features": np.ones((4, 1)) * 1j}, ["features", "number"]),
    "dates for features": (PATH, {"features": np.zeros((4, 1), dtype="M8[D]")}, ["features", "number"]),
    "one number for features": (PATH, {"features": 5.0}, ["features", "()"]),
    "complex weights": (PATH, {"weights": [1j, 1, 1]}, ["weights", "number"]),
    "text for weights": (PATH, {"weights": ["1", "2", "3"]}, ["weights", "number"]),
    "weights in a matrix": (PATH, {"weights": np.ones((3, 1))}, ["weights", "(3, 1)"]),
    "masked weights": (PATH, {"weights": np.ma.masked_equal([1, 2, 3], 2)}, ["weights", "masked"]),
    "a number for labels": (PATH, {"labels": 5}, ["labels", "5"]),
    "unhashable labels": (PATH, {"labels": [[1], [2], [3], [4]]}, ["labels", "entry 0", "[1]"]),
    "float indices": ([(0.0, 1.0)], {}, ["edges", "integers"]),
    "float index arrays": (np.array([[0.0, 1.0], [1.0, np.nan]]), {}, ["edges", "integers"]),
    "an endpoint that is no id": (
        [("a", "b"), ("b", "z")],
        {"node_ids": ["a", "b"]},
        ["edges", "row 1", "'z'", "node_ids"],
    ),
    "an id twice": ([("a", "b")], {"node_ids": ["a", "b", "a"]}, ["node_ids", "more than once"]),
    "a missing feature": (PATH, {"features": with_entry(np.nan, 2, 1)}, ["features", "row 2, column 1", "nan"]),
    "an infinite feature": (PATH, {"features": with_entry(-np.inf, 3, 2)}, ["features", "row 3, column 2", "-inf"]),
    "a missing sparse feature": (
        PATH,
        {"features": sparse_with_entry(np.nan, 3, 1)},
        ["features", "row 3, column 1", "nan"],
    ),
    "an infinite sparse feature": (
        PATH,
        {"features": sparse_with_entry(np.inf, 1, 2)},
        ["features", "row 1, column 2", "inf"],
    ),
    "a feature that is None": (
        PATH,
        {"features": np.array([[1], [2], [None], [4]])},
        ["features", "row 2, column 0", "nan"],
    ),
    "too few feature rows": (PATH, {"num_nodes": 4, "features": np.ones((3, 2))}, ["features", "3 rows", "4 nodes"]),
    "too many feature rows": (
        [("a", "b")],
        {"features": sp.csr_array(np.ones((3, 2))), "node_ids": ["a", "b"]},
        ["features", "3 rows", "2 nodes"],
    ),
    "words for features": (PATH, {"features": np.array([["a"], ["b"], ["c"], ["d"]])}, ["features", "number"]),
    "no feature columns": (PATH, {"features": np.ones((4, 0))}, ["features", "(4, 0)"]),
    "features in a cube": (PATH, {"features": np.ones((4, 2, 2))}, ["features", "(4, 2, 2)"]),
    "too few labels": (PATH, {"labels": [0, 1, 0]}, ["labels", "4 nodes", "(3,)"]),
    "labels in a matrix": (PATH, {"labels": np.eye(4)}, ["labels", "4 nodes", "(4, 4)"]),
}


@pytest.mark.parametrize(("edges", "attributes", "words"), BAD_GRAPHS.values(), ids=BAD_GRAPHS.keys())
def test_bad_input_is_refused_in_words_that_name_it(edges: Any, attributes: dict[str, Any], words: list[str]) -> None:
    message = message_of(lambda: Graph.from_edges(edges, **attributes))
    assert all(word in message for word in words), message
    assert "\n" not in message


@pytest.mark.parametrize(
    "edges", [[(1, 0)], [(0, 0)], [(0, 1), (0, 1)], [(1, 2), (0, 1)], [(0, 2), (0, 1)], [(0, 4)], [(-1, 1)]]
)
def test_the_bare_constructor_refuses_edges_that_are_not_canonical(edges: list[tuple[int, int]]) -> None:
    assert "canonical" in message_of(lambda: Graph(num_nodes=4, edges=np.array(edges)))


# ---------------------------------------------------------------------------------------------------------------- hash


def test_the_hash_is_the_sha256_of_counts_edges_and_sparse_features() -> None:
    graph = Graph.from_edges([(2, 0), (1, 2)], features=np.array([[0, 2.5], [0, 0], [1, 0]]))
    content = b"3,2,2" + struct.pack("<4q", 0, 2, 1, 2)
    content += struct.pack("<4q", 0, 1, 1, 2) + struct.pack("<2q", 1, 0) + struct.pack("<2f", 2.5, 1)
    assert graph.content_hash == hashlib.sha256(content).hexdigest()


def test_equal_graphs_have_equal_hashes() -> None:
    one = Graph.from_edges([(0, 1), (2, 1), (2, 3)], features=FEATURES)
    others = [
        Graph.from_edges([(3, 2), (1, 0), (0, 1), (1, 2), (3, 3)], features=sp.csr_array(FEATURES)),
        Graph.from_edges([("p", "q"), ("q", "r"), ("s", "r")], node_ids="pqrs", features=FEATURES.astype(float)),
        one.with_edges(np.array(PATH)),
    ]
    assert [other.content_hash for other in others] == [one.content_hash] * 3


@given(st.data())
def test_dense_and_sparse_features_hash_alike(data: st.DataObject) -> None:
    values = st.sampled_from([0.0, -0.0, 1.0, -2.5, 1e-30])
    features = np.array(data.draw(st.lists(values, min_size=8, max_size=8))).reshape(4, 2)
    dense, sparse = Graph.from_edges(PATH, features=features), Graph.from_edges(PATH, features=sp.coo_array(features))
    assert dense.content_hash == sparse.content_hash


def test_every_change_changes_the_hash() -> None:
    moved, altered = FEATURES.copy(), FEATURES.copy()
    moved[0] = moved[0, ::-1]
    altered[3, 1] = np.nextafter(altered[3, 1], np.float32(9))
    graphs = {
        "as it is": Graph.from_edges(PATH, features=FEATURES),
        "an edge less": Graph.from_edges(PATH[:2], features=FEATURES),
        "an edge more": Graph.from_edges([*PATH, (0, 3)], features=FEATURES),
        "another edge": Graph.from_edges([(0, 1), (1, 2), (1, 3)], features=FEATURES),
        "a value altered by one bit": Graph.from_edges(PATH, features=altered),
        "a value in another column": Graph.from_edges(PATH, features=moved),
        "a value in another row": Graph.from_edges(PATH, features=FEATURES[[0, 2, 1, 3]]),
        "a column of zeros more": Graph.from_edges(PATH, features=np.pad(FEATURES, ((0, 0), (0, 1)))),
        "a node more": Graph.from_edges(PATH, features=np.pad(FEATURES, ((0, 1), (0, 0)))),
        "no features": Graph.from_edges(PATH),
        "no features and a node more": Graph.from_edges(PATH, num_nodes=5),
    }
    assert len({graph.content_hash for graph in graphs.values()}) == len(graphs)


# --------------------------------------------------------------------------------------------------------- odd corners


@pytest.mark.parametrize(
    "edges", [list(np.array([[3, 0], [0, 1]])), [(np.int64(3), np.int32(0)), (0, 1)]], ids=["rows", "scalars"]
)
def test_numpy_integers_in_rows_are_node_indices(edges: Any) -> None:
    graph = Graph.from_edges(edges)
    assert graph.node_ids is None
    assert graph.edges.tolist() == [[0, 1], [0, 3]]


def test_features_may_be_a_list_of_rows() -> None:
    assert_array_equal(Graph.from_edges(PATH, features=FEATURES.tolist()).features, FEATURES)


def test_features_may_be_a_tensor() -> None:
    assert_array_equal(Graph.from_edges(PATH, features=torch.from_numpy(FEATURES.copy())).features, FEATURES)


@pytest.mark.parametrize("largest", [4 * 10**9, 10**12])
def test_integers_too_large_for_indices_are_refused(largest: int) -> None:
    message = message_of(lambda: Graph.from_edges([(largest, 5), (3, largest)]))
    assert f"{largest + 1:,} nodes" in message
    assert "node_ids" in message


def test_zeros_stored_in_sparse_features_do_not_change_the_hash() -> None:
    stored = sp.csr_array(np.ones((4, 2)))
    stored.data[:] = FEATURES.ravel()
    assert_array_equal(stored.toarray(), FEATURES)
    hashes = {Graph.from_edges(PATH, features=features).content_hash for features in (stored, FEATURES)}
    assert len(hashes) == 1


@pytest.mark.parametrize("column", [9, -5])
def test_sparse_features_with_columns_out_of_range_are_refused(column: int) -> None:
    features = sp.csr_array((np.ones(4), np.array([0, 1, 0, column]), np.arange(5)), shape=(4, 2))
    message = message_of(lambda: Graph.from_edges(PATH, features=features))
    assert message.startswith("features: the sparse matrix is not well formed")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_read_only_sparse_features_are_sorted_in_a_copy(kind: type[np.floating[Any]]) -> None:
    columns = np.array([1, 0])
    features = sp.csr_array((np.array([2, 1], dtype=kind), columns, np.array([0, 2, 2, 2, 2])), shape=(4, 2))
    features.data.flags.writeable = False
    graph = Graph.from_edges(PATH, features=features)
    assert_array_equal(sp.csr_array(graph.features).toarray()[0], [1, 2])
    assert features.indices.tolist() == [1, 0]


def test_a_read_only_view_of_the_callers_features_is_copied() -> None:
    features = FEATURES.copy()
    view = features[:]
    view.flags.writeable = False
    graph = Graph.from_edges(PATH, features=view)
    features[:] = 0
    assert_array_equal(graph.features, FEATURES)


def test_the_adjacency_cannot_be_written_to() -> None:
    adjacency = Graph.from_edges(PATH).adjacency
    with pytest.raises(ValueError, match="read-only"):
        adjacency.data[0] = 7


def test_a_feature_too_large_for_float32_is_named() -> None:
    message = message_of(lambda: Graph.from_edges(PATH, features=with_entry(1e300, 2, 1)))
    assert "row 2, column 1" in message


def test_features_cannot_be_matched_to_ids_that_only_edges_name() -> None:
    message = message_of(lambda: Graph.from_edges([("b", "a"), ("c", "b")], features=[[1], [2], [3]]))
    assert message.startswith("node_ids: give the list of ids")


def test_too_few_feature_rows_are_blamed_on_the_features() -> None:
    message = message_of(lambda: Graph.from_edges([(0, 1), (1, 4)], features=np.ones((4, 2))))
    assert message == "features: 4 rows given, but the edges name the node 4; give exactly one row per node."


def test_integer_ids_beyond_64_bits_stay_integers() -> None:
    ids = [2**63 + 1, 2**63 + 3, 5]
    graph = Graph.from_edges([(ids[0], ids[1]), (ids[1], ids[2])], node_ids=ids)
    assert graph.ids_of([0, 1, 2]).tolist() == ids


# ---------------------------------------------------------------------------------------------- weights and directions

WEIGHTED_ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.integers(0, 5), st.sampled_from([0.25, 1.0, 1.5, 8.0])), min_size=1, max_size=30
).filter(lambda rows: any(i != j for i, j, _ in rows))


@given(WEIGHTED_ROWS, st.booleans())
def test_weights_add_up_unless_every_link_is_given_twice(rows: list[tuple[int, int, float]], directed: bool) -> None:
    edges, weights = [row[:2] for row in rows], [row[2] for row in rows]
    graph = Graph.from_edges(edges, num_nodes=6, weights=weights, directed=directed)
    dense = np.zeros((6, 6))
    for i, j, weight in rows:
        if i != j:
            dense[i, j] += weight
    symmetric = np.array_equal(dense, dense.T) and not directed
    expected = dense if symmetric else dense + dense.T
    assert_array_equal(graph.weighted_adjacency.toarray(), expected)
    assert_array_equal(graph.adjacency.toarray(), dense_adjacency(edges, 6))


@given(WEIGHTED_ROWS)
def test_directions_say_which_ways_links_go(rows: list[tuple[int, int, float]]) -> None:
    graph = Graph.from_edges([row[:2] for row in rows], num_nodes=6, directed=True)
    arcs = {row[:2] for row in rows if row[0] != row[1]}
    assert graph.directions is not None
    for (i, j), way in zip(graph.edges.tolist(), graph.directions.tolist(), strict=True):
        assert ((i, j) in arcs, (j, i) in arcs) == {1: (True, False), -1: (False, True), 0: (True, True)}[way]
    assert graph.cleaning.reversed_kept == np.count_nonzero(graph.directions == 0)
    assert graph.cleaning.reversed_merged == 0


def test_some_of_the_edges_keep_their_weights_and_directions() -> None:
    graph = Graph.from_edges([(1, 0), (1, 2), (2, 3), (3, 2)], weights=[1, 2, 3, 4], directed=True)
    some = graph.with_edges(np.array([[0, 1], [2, 3]]))
    assert some.weights is not None
    assert some.directions is not None
    assert some.weights.tolist() == [1, 7]
    assert some.directions.tolist() == [-1, 0]
    assert repr(some) == "Graph(4 nodes, 2 directed weighted edges)"
    assert "not all of them are edges" in message_of(lambda: graph.with_edges(np.array([[0, 3]])))
    with pytest.raises(ValueError, match="read-only"):
        some.weights[0] = 2


def test_weights_and_directions_change_the_hash() -> None:
    graphs = [
        Graph.from_edges(PATH),
        Graph.from_edges(PATH, weights=[1, 1, 1]),
        Graph.from_edges(PATH, weights=[1, 2, 1]),
        Graph.from_edges(PATH, directed=True),
        Graph.from_edges([PATH[0][::-1], *PATH[1:]], directed=True),
        Graph.from_edges(PATH, weights=[1, 1, 1], directed=True),
    ]
    assert len({graph.content_hash for graph in graphs}) == len(graphs)


@pytest.mark.parametrize("wrong", [0, -1, np.nan, np.inf, 1e39, 1e-50])
def test_a_weight_that_is_none_is_named_by_its_row(wrong: float) -> None:
    message = message_of(lambda: Graph.from_edges(PATH, weights=[1, wrong, 1]))
    assert message.startswith(f"weights: row 1 is {float(wrong)}; a weight is a number above 0")


def test_weights_that_do_not_fit_are_refused() -> None:
    assert "expected one per row, 3 in all, got the shape (2,)" in message_of(
        lambda: Graph.from_edges(PATH, weights=[1, 2])
    )
    assert "must be a number" in message_of(lambda: Graph.from_edges(PATH, weights=["a", "b", "c"]))
    assert "add up to too large" in message_of(lambda: Graph.from_edges([(0, 1), (0, 1)], weights=[3e38, 3e38]))


@pytest.mark.parametrize("kind", [np.int64, np.int8, np.uint8, object, str])
def test_endpoints_are_found_among_ids_of_any_kind_and_order(kind: type) -> None:
    lowest = 5 if kind is np.uint8 else -50
    ids = lowest + np.random.default_rng(0).permutation(100)
    ends = np.random.default_rng(1).integers(100, size=(300, 2))
    graph = Graph.from_edges(ids[ends].astype(kind), node_ids=ids.astype(kind))
    assert np.array_equal(graph.edges, Graph.from_edges(ends, num_nodes=100).edges)
    for wrong in (lowest - 1, lowest + 100):
        edges: AnyArray = np.array([ids[:2], [ids[5], wrong], ids[5:7]]).astype(kind)
        message = message_of(partial(Graph.from_edges, edges, node_ids=ids.astype(kind)))
        assert "row 1 names the node" in message
        assert str(wrong) in message
    with_rows = partial(Graph.from_edges, ids[ends].astype(kind), node_ids=ids.astype(kind).reshape(50, 2))
    assert "A node id must be" in message_of(with_rows)
