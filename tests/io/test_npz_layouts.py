"""npz files by SciPy, the GNN benchmarks and with an edge_index: the graph comes back, and no pickle is read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import vgae
from helpers import message_of
from vgae.io.tables import read_any, read_graph


def original(seed: int = 0) -> vgae.Graph:
    """Twelve nodes, some of them isolated, with sparse features, labels and weights."""
    generator = np.random.default_rng(seed)
    features = sp.random_array((12, 40), density=0.05, rng=generator, dtype=np.float32, format="csr")
    edges = generator.integers(0, 10, size=(25, 2))
    edges = edges[edges[:, 0] != edges[:, 1]]
    weights = generator.integers(1, 5, size=len(edges))
    return vgae.Graph.from_edges(
        edges, num_nodes=12, features=features, labels=generator.integers(0, 3, 12), weights=weights
    )


def same(graph: vgae.Graph, other: vgae.Graph, *, weights: bool = False) -> None:
    assert graph.num_nodes == other.num_nodes
    np.testing.assert_array_equal(graph.edges, other.edges)
    if weights:
        np.testing.assert_array_equal(graph.weights, other.weights)
    else:
        assert graph.weights is None


def same_features(graph: vgae.Graph, other: vgae.Graph) -> None:
    np.testing.assert_array_equal(*(sp.csr_array(each.features).toarray() for each in (graph, other)))
    np.testing.assert_array_equal(graph.labels, other.labels)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("compressed", [True, False])
def test_an_adjacency_matrix_by_scipy(tmp_path: Path, kind: str, compressed: bool) -> None:
    graph = original()
    for matrix in (graph.weighted_adjacency, sp.csr_matrix(graph.weighted_adjacency)):
        sp.save_npz(tmp_path / "a.npz", matrix.asformat(kind), compressed=compressed)
        same(read_graph(tmp_path / "a.npz"), graph)
        same(read_graph(tmp_path / "a.npz", weight="value"), graph, weights=True)


def benchmark_arrays(graph: vgae.Graph) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for start, matrix in (("adj", graph.weighted_adjacency), ("attr", sp.csr_array(graph.features))):
        arrays |= {f"{start}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    return arrays | {"labels": graph.labels}


def test_the_layout_of_the_gnn_benchmarks_and_its_pickled_names_stay_unread(tmp_path: Path) -> None:
    graph = original()
    pickled: dict[str, Any] = {
        "node_names": np.array(["a", None], dtype=object),
        "metadata": np.array({"x": 1}, dtype=object),
    }
    np.savez(tmp_path / "b.npz", **benchmark_arrays(graph), **pickled)
    loaded = read_any(tmp_path / "b.npz")
    same(loaded.graph, graph)
    same_features(loaded.graph, graph)
    assert "not used: metadata, node_names" in loaded.notes
    same(read_graph(tmp_path / "b.npz", weight="value"), graph, weights=True)


def test_the_older_names_of_the_same_layout_and_dense_attributes(tmp_path: Path) -> None:
    graph = original()
    arrays = {name.replace("adj_", "adj_matrix."): value for name, value in benchmark_arrays(graph).items()}
    arrays = {name: value for name, value in arrays.items() if not name.startswith("attr")}
    np.savez(tmp_path / "b.npz", **arrays, attr_matrix=sp.csr_array(graph.features).toarray())
    found = read_graph(tmp_path / "b.npz")
    same(found, graph)
    same_features(found, graph)
    assert sp.issparse(found.features), "few entries are not 0"


@pytest.mark.parametrize(
    "names", [("edge_index", "x", "y"), ("edge_index", "features", "labels"), ("edges", "node_features", "node_labels")]
)
@pytest.mark.parametrize("columns", [True, False])
def test_an_edge_index_in_either_orientation(tmp_path: Path, names: tuple[str, str, str], columns: bool) -> None:
    graph = original()
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    values = (both if columns else both.T, sp.csr_array(graph.features).toarray(), graph.labels)
    np.savez_compressed(
        tmp_path / "e.npz", **dict(zip(names, values, strict=True)), train_mask=np.zeros(12, dtype=bool)
    )
    loaded = read_any(tmp_path / "e.npz")
    same(loaded.graph, graph)
    same_features(loaded.graph, graph)
    assert "not used: train_mask" in loaded.notes


def test_weights_and_directions_of_an_edge_index(tmp_path: Path) -> None:
    graph = original()
    weights: Any = graph.weights
    np.savez(tmp_path / "e.npz", edge_index=graph.edges.T, edge_weight=weights, num_nodes=12)
    same(read_graph(tmp_path / "e.npz", weight="edge_weight"), graph, weights=True)
    directed = read_graph(tmp_path / "e.npz", directed=True)
    assert directed.directions is not None
    assert (directed.directions == 1).all()
    assert "there is edge_weight" in message_of(lambda: read_graph(tmp_path / "e.npz", weight="size"))


def test_two_links_are_read_as_pytorch_geometric_has_them(tmp_path: Path) -> None:
    np.savez(tmp_path / "e.npz", edge_index=np.array([[0, 1], [2, 3]]))
    assert read_graph(tmp_path / "e.npz").edges.tolist() == [[0, 2], [1, 3]]


def test_features_by_scipy_belong_to_the_nodes_of_a_table_by_their_numbers(tmp_path: Path) -> None:
    graph = original()
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(graph.features))
    (tmp_path / "links.csv").write_text("a,b\n" + "".join(f"{i},{j}\n" for i, j in graph.edges.tolist()))
    found = read_graph(tmp_path / "links.csv", features=tmp_path / "x.npz")
    assert found.ids == tuple(range(12)), "isolated nodes are those that have features and no links"
    np.testing.assert_array_equal(*(sp.csr_array(each.features).toarray() for each in (found, graph)))
    (tmp_path / "links.csv").write_text("1,2\n2,99\n")
    assert "1 node" in message_of(lambda: read_graph(tmp_path / "links.csv", features=tmp_path / "x.npz"))
    (tmp_path / "links.csv").write_text("anna,bob\nbob,carl\n")
    message = message_of(lambda: read_graph(tmp_path / "links.csv", features=tmp_path / "x.npz"))
    assert "none of its ids occurs in" in message


def test_a_matrix_of_links_and_one_of_features_go_together(tmp_path: Path) -> None:
    graph = original()
    sp.save_npz(tmp_path / "a.npz", graph.adjacency)
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(graph.features))
    found = read_graph(tmp_path / "a.npz", features=tmp_path / "x.npz", normalize="columns")
    same(found, graph)
    expected = graph.normalized("columns").features
    np.testing.assert_array_equal(*(sp.csr_array(each).toarray() for each in (found.features, expected)))
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(graph.features)[:5])
    assert "7 nodes of" in message_of(lambda: read_graph(tmp_path / "a.npz", features=tmp_path / "x.npz"))
    sp.save_npz(tmp_path / "x.npz", sp.random_array((20, 3), density=0.5, format="csr"))
    message = message_of(lambda: read_graph(tmp_path / "a.npz", features=tmp_path / "x.npz"))
    assert "is about '12', which is not a node of" in message


def with_changes(**changes: Any) -> dict[str, Any]:
    arrays = benchmark_arrays(original()) | changes
    return {name: value for name, value in arrays.items() if value is not None}


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        (with_changes(adj_indices=None), "there is no array called adj_indices"),
        (with_changes(adj_indices=np.full(len(original().weighted_adjacency.data), 99)), "not well formed"),
        (with_changes(adj_shape=np.array([12, 13])), "expected a square sparse matrix"),
        (with_changes(adj_data=np.array([None], dtype=object)), "holds Python objects, which are not read"),
        (with_changes(adj_data=original().weighted_adjacency.data * 1j), "adj_data should be"),
        (with_changes(adj_indptr=np.array([0, 5])), "index pointer"),
        (with_changes(labels=np.zeros(5)), "labels: expected one entry for each of the 12 nodes"),
        (with_changes(attr_shape=np.array([3, 40])), ""),
        ({"edge_index": np.zeros((3, 5), dtype=int)}, "two rows of node indices are needed, got the shape (3, 5)"),
        ({"edge_index": np.zeros((2, 5))}, "edge_index should be two rows"),
        ({"edge_index": np.array([[0], [9]]), "x": np.ones((3, 2))}, "the edges name the node 9"),
        ({"adj_matrix": np.array({"a": 1}, dtype=object), "labels": np.zeros(3)}, "there is no array called edges"),
        ({"format": b"csr", "shape": (3, 3), "data": np.ones(2)}, "indices"),
        ({"format": b"xyz", "shape": (3, 3), "data": np.ones(2)}, "not a matrix that scipy.sparse.save_npz wrote"),
        ({"format": b"coo", "shape": (3, 3), "data": np.ones(1), "row": [7], "col": [0]}, "index 7 exceeds"),
        ({"format": b"csr", "shape": (3, 3), "data": np.array([None], dtype=object)}, "holds Python objects"),
        ({"format": b"coo", "shape": (10**12, 10**12), "data": [1.0], "row": [0], "col": [1]}, "larger than the"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    path = tmp_path / "wrong.npz"
    np.savez(path, **arrays)
    message = message_of(lambda: read_any(path))
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "b.npz"
    np.savez_compressed(path, **benchmark_arrays(original()))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert message_of(lambda: read_any(path)) == f"{path}: the file is damaged or not an npz file."
    for content in (b"", b"PK\x03\x04", b"edges"):
        path.write_bytes(content)
        assert "damaged or not an npz file" in message_of(lambda: read_any(path))


def test_features_are_needed_where_features_are_asked_for(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", edges=np.array([[0, 1]]))
    (tmp_path / "links.csv").write_text("1,2\n2,0\n")
    message = message_of(lambda: read_any(tmp_path / "links.csv", features=tmp_path / "x.npz"))
    assert "there are no features in it" in message
