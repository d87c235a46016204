import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal

from helpers import message_of
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.io.atomic import atomic_write
from vgae.io.graphs import read_npz_graph, write_graph
from vgae.io.json_files import read_json
from vgae.io.npz import write_npz
from vgae.visible import visible

EDGES = np.array([[0, 1], [1, 2], [0, 2]])


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


# ------------------------------------------------------------------------------------------------------- atomic writing


def test_a_file_appears_complete_with_its_folder_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.bin"
    with atomic_write(path) as file:
        file.write(b"one")
        assert not path.exists()
        file.write(b" two")
    assert path.read_bytes() == b"one two"
    assert names_in(path.parent) == ["file.bin"]


def test_a_reader_sees_the_old_file_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names_in(tmp_path) == ["file.bin"]


def write_half(path: Path, error: type[BaseException]) -> None:
    with atomic_write(path) as file:
        file.write(b"half of")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, b"old"], ids=["no file before", "a file before"])
def test_a_write_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, old: bytes | None, error: type[BaseException]
) -> None:
    path = tmp_path / "file.bin"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(error):
        write_half(path, error)
    assert names_in(tmp_path) == ([] if old is None else ["file.bin"])
    assert old is None or path.read_bytes() == old


def test_a_name_taken_by_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"), atomic_write(tmp_path / "taken") as file:
        file.write(b"content")
    assert names_in(tmp_path) == ["taken"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_file_gets_the_permissions_of_any_other_file(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "plain").write_bytes(b"")
        with atomic_write(tmp_path / "atomic"):
            pass
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


# ------------------------------------------------------------------------------------------------------------------ npz


def test_objects_are_not_written_to_an_npz(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="ids holds objects"):
        write_npz(tmp_path / "arrays.npz", ids=np.array([("a", 1), 2], dtype=object))
    assert names_in(tmp_path) == []


@pytest.mark.parametrize("read", [read_npz_graph, read_json])
def test_a_missing_file_is_named(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    path = tmp_path / "absent"
    assert message_of(lambda: read(path)) == f"{path}: there is no such file."


@pytest.mark.parametrize("read", [read_npz_graph, read_json])
def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path, read: Callable[[Path], Any]) -> None:
    assert message_of(lambda: read(tmp_path)).startswith(f"{tmp_path}: ")


# --------------------------------------------------------------------------------------------------------------- graphs

ID_KINDS: list[list[Any]] = [
    ["c", "a", "ü"],
    [30, 10, 20],
    [("x", 1), ("y", (2, 3)), ("x", 2)],
    ["a", 1, 2.5],
    [None, True, "None"],
    ["json:1", "json:", "b"],
    [1.5, -0.25, 1e300],
]


@pytest.mark.parametrize("ids", ID_KINDS, ids=str)
def test_ids_and_labels_of_every_kind_come_back(tmp_path: Path, ids: list[Any]) -> None:
    path = tmp_path / "graph.npz"
    edges = [(ids[2], ids[0]), (ids[0], ids[1]), (ids[1], ids[0])]
    write_graph(path, Graph.from_edges(edges, node_ids=ids, labels=ids[::-1]))
    graph = read_npz_graph(path)
    assert graph.edges.tolist() == [[0, 1], [0, 2]]
    assert graph.node_ids is not None
    assert graph.labels is not None
    assert graph.node_ids.tolist() == ids
    assert graph.labels.tolist() == ids[::-1]
    assert [type(node) for node in graph.node_ids.tolist()] == [type(node) for node in ids]
    assert graph.cleaning == Cleaning(rows_given=3, reversed_merged=1)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
def test_features_come_back_in_their_layout(tmp_path: Path, convert: Callable[[Any], Any]) -> None:
    features = np.array([[0, 1.5], [0, 0], [-2, 0], [0, 0]])
    graph = Graph.from_edges(EDGES, features=convert(features))
    write_graph(tmp_path / "graph.npz", graph)
    again = read_npz_graph(tmp_path / "graph.npz")
    assert sp.issparse(again.features) == sp.issparse(graph.features)
    assert_array_equal(sp.csr_array(again.features).toarray(), features)
    assert again.content_hash == graph.content_hash
    assert again.labels is None
    assert again.node_ids is None


def test_a_graph_with_everything_comes_back(tmp_path: Path) -> None:
    graph = stochastic_block_model(300, 4, feature_dim=20, seed=1)
    write_graph(tmp_path / "graph.npz", graph)
    again = read_npz_graph(tmp_path / "graph.npz")
    assert again.content_hash == graph.content_hash
    assert again.cleaning == graph.cleaning
    assert_array_equal(again.labels, graph.labels)


def test_an_npz_made_elsewhere_needs_only_edges(tmp_path: Path) -> None:
    np.savez(tmp_path / "graph.npz", edges=np.array([[3, 0], [0, 3], [1, 1], [2, 0]], dtype=np.int32))
    graph = read_npz_graph(tmp_path / "graph.npz")
    assert graph.edges.tolist() == [[0, 2], [0, 3]]
    assert graph.cleaning == Cleaning(4, self_loops_dropped=1, reversed_merged=1)


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"links": EDGES}, ["no array called edges", "links"]),
        ({"edges": EDGES, "mask": np.ones(3)}, ["it holds 'mask'", "only edges, num_nodes,"]),
        ({"edges": np.array([[0, 1, 2]])}, ["edges", "(1, 3)"]),
        ({"edges": np.arange(4)}, ["edges should be rows of two", "(4,)"]),
        ({"edges": np.arange(4), "directions": np.ones(4)}, ["edges should be rows of two", "(4,)"]),
        ({"edges": EDGES[:, :1], "directions": np.ones(3)}, ["edges", "(3, 1)"]),
        ({"edges": EDGES, "directions": np.ones((3, 1))}, ["directions should be 1, -1 or 0 for each link", "(3, 1)"]),
        ({"edges": EDGES, "directions": np.array(["a", "b", "c"])}, ["directions should be 1, -1 or 0 for each link"]),
        ({"edges": EDGES, "num_nodes": 2}, ["edges", "row 1", "(1, 2)"]),
        ({"edges": EDGES, "num_nodes": 10**15}, ["more than the 100,000,000 that are supported"]),
        ({"edges": EDGES, "num_nodes": -5}, ["num_nodes", "at least 0", "-5"]),
        ({"edges": EDGES, "num_nodes": 3.0}, ["num_nodes should be a whole number", "float64"]),
        ({"edges": EDGES, "num_nodes": np.array([3, 4])}, ["num_nodes should be a whole number", "(2,)"]),
        ({"edges": EDGES.astype(float)}, ["edges", "integers", "float64"]),
        ({"edges": EDGES.astype(complex)}, ["edges", "integers", "complex128"]),
        ({"edges": EDGES.astype("datetime64[D]")}, ["edges", "integers", "datetime64[D]"]),
        ({"edges": EDGES, "features": np.ones((3, 2, 2))}, ["features should be a matrix of numbers", "(3, 2, 2)"]),
        ({"edges": EDGES, "features": np.array([["1"], ["2"], ["3"]])}, ["features should be a matrix of numbers"]),
        ({"edges": EDGES, "weights": np.array([1j, 1, 1])}, ["weights should be a number for each link"]),
        ({"edges": EDGES, "labels": np.array(["2020-01-01"] * 3, dtype="datetime64[D]")}, ["labels should be a text"]),
        ({"edges": EDGES, "labels": np.array(["json:" + "[" * 99_999] * 3)}, []),
        ({"edges": EDGES, "labels": np.array(["json:" + "9" * 9_999] * 3)}, []),
        ({"edges": EDGES, "labels": np.array(['json:{"a": 1}'] * 3)}, ["label"]),
        ({"edges": EDGES, "cleaning": np.array([-1, 0])}, ["cleaning", "at least 0"]),
        ({"edges": EDGES, "features": np.full((3, 1), np.nan)}, ["features", "row 0, column 0"]),
        ({"edges": EDGES, "labels": np.array([1, 2])}, ["labels", "3 nodes"]),
        ({"edges": EDGES, "node_ids": np.array(["a", "b", "a"])}, ["node_ids", "more than once"]),
        ({"edges": EDGES, "node_ids": np.array(["json:{", "json:1", "json:2"])}, ["not a graph"]),
        ({"edges": EDGES, "cleaning": np.arange(9)}, ["not a graph"]),
    ],
)
def test_an_npz_that_holds_no_valid_graph_is_named(tmp_path: Path, arrays: dict[str, Any], words: list[str]) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, **arrays)
    message = message_of(lambda: read_npz_graph(path))
    assert message.startswith(f"{path}: ")
    assert all(word in message for word in words), message


def test_incomplete_sparse_features_are_named(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    np.savez(path, edges=EDGES, feature_data=np.ones(3), feature_indptr=np.arange(4))
    assert message_of(lambda: read_npz_graph(path)).startswith(f"{path}: ")


def test_a_graph_is_not_written_where_that_is_impossible(tmp_path: Path) -> None:
    graph = Graph.from_edges(EDGES)
    (tmp_path / "file").write_bytes(b"")
    for path in (tmp_path, tmp_path / "file" / "graph.npz", f"{tmp_path}/a\0b.npz", tmp_path / ("x" * 300)):
        message = message_of(lambda path=path: write_graph(path, graph))  # type: ignore[misc]
        assert message.startswith(visible(f"{path}: the graph cannot be written there ("))
    assert names_in(tmp_path) == ["file"]
    assert "edges: expected rows" in message_of(lambda: write_graph(tmp_path / "graph.npz", 5))  # type: ignore[arg-type]


def test_text_edges_in_an_npz_are_looked_up_among_its_ids(tmp_path: Path) -> None:
    path = tmp_path / "graph.npz"
    links = [["b", "a"], ["c", "b"], ["d", "a"]]
    np.savez(path, edges=np.array(links), node_ids=np.array(["a", "b", "c", "d"]))
    graph = read_npz_graph(str(path))
    assert sorted(sorted(pair) for pair in graph.ids_of(graph.edges).tolist()) == sorted(sorted(link) for link in links)


@pytest.mark.parametrize("directed", [False, True])
def test_weights_and_directions_come_back(tmp_path: Path, directed: bool) -> None:
    rows, weights = [(1, 0), (1, 2), (2, 1), (3, 2)], [0.1, 2.0, 3.0, 1e-40]
    graph = Graph.from_edges(rows, weights=weights, directed=directed)
    write_graph(tmp_path / "graph.npz", graph)
    again = read_npz_graph(tmp_path / "graph.npz")
    assert again.content_hash == graph.content_hash
    assert_array_equal(again.weights, graph.weights)
    assert_array_equal(again.directions, graph.directions)
    assert again.cleaning == graph.cleaning
    parts = dict(np.load(tmp_path / "graph.npz"))
    for name, values in (("weights", [1.0]), ("directions", [5, 5, 5])):
        np.savez(tmp_path / "bad.npz", **(parts | {name: np.array(values)}))
        assert name in message_of(lambda: read_npz_graph(tmp_path / "bad.npz"))
