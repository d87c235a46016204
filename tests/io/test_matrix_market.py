"""Matrix Market files as SciPy writes them, as graphs and as features."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import vgae
from helpers import message_of
from vgae.io.tables import read_any, read_graph


def graph_of(size: int = 15) -> vgae.Graph:
    generator = np.random.default_rng(1)
    edges = generator.integers(0, size - 2, size=(30, 2))
    return vgae.Graph.from_edges(edges, num_nodes=size, weights=generator.integers(1, 9, len(edges)))


@pytest.mark.parametrize("field", ["real", "integer", "pattern"])
@pytest.mark.parametrize("symmetry", ["general", "symmetric"])
@pytest.mark.parametrize("packed", [False, True])
def test_an_adjacency_matrix_comes_back(tmp_path: Path, field: str, symmetry: str, packed: bool) -> None:
    graph = graph_of()
    path = tmp_path / "a.mtx"
    scipy.io.mmwrite(path, graph.weighted_adjacency.tocoo(), field=field, symmetry=symmetry)
    if packed:
        content, path = path.read_bytes(), tmp_path / "a.mtx.gz"
        path.write_bytes(gzip.compress(content))
    found = read_graph(path)
    assert found.num_nodes == graph.num_nodes
    np.testing.assert_array_equal(found.edges, graph.edges)
    assert found.weights is None
    if field != "pattern":
        np.testing.assert_array_equal(read_graph(path, weight="value").weights, graph.weights)


def test_a_dense_matrix_and_directions(tmp_path: Path) -> None:
    matrix = np.triu(np.arange(25).reshape(5, 5) % 3, 1)
    scipy.io.mmwrite(tmp_path / "a.mtx", matrix)
    found = read_graph(tmp_path / "a.mtx", directed=True)
    np.testing.assert_array_equal(found.edges, np.argwhere(matrix))
    assert found.directions is not None
    assert (found.directions == 1).all()


def test_features_have_a_row_for_each_node(tmp_path: Path) -> None:
    features = sp.random_array((15, 30), density=0.05, rng=np.random.default_rng(0), dtype=np.float32)
    scipy.io.mmwrite(tmp_path / "x.mtx", features)
    scipy.io.mmwrite(tmp_path / "a.mtx", graph_of().adjacency.tocoo())
    found = read_graph(tmp_path / "a.mtx", features=tmp_path / "x.mtx")
    np.testing.assert_allclose(sp.csr_array(found.features).toarray(), features.toarray(), rtol=1e-6)


HEADER = "%%MatrixMarket matrix coordinate real general\n"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "not a Matrix Market file"),
        ("a,b\n1,2\n", "not a Matrix Market file"),
        ("%%MatrixMarket vector\n3\n", "not a Matrix Market file"),
        (HEADER, "the line of its sizes is missing or odd"),
        (HEADER + "3 3 x\n", "the line of its sizes is missing or odd"),
        (HEADER + "3 3 1000000000000\n1 2 1\n", "for which it is too short"),
        (HEADER + "3 3 2\n1 2 1.0\n", "not a readable Matrix Market file"),
        (HEADER + "3 3 1\n1 9 1.0\n", "not a readable Matrix Market file"),
        (HEADER + "3 3 1\n1 x 1.0\n", "not a readable Matrix Market file"),
        (HEADER + "3 4 1\n1 2 1.0\n", "expected a square sparse matrix"),
        (HEADER + "3 3 1\n1 2 -1.0\n", "a link is a finite number above 0"),
        (HEADER + "900000000 900000000 1\n1 2 1.0\n", "is larger than the 100,000,000 supported"),
        ("%%MatrixMarket matrix coordinate complex general\n3 3 1\n1 2 1.0 1.0\n", "should be real numbers"),
        ("%%MatrixMarket matrix array real general\n30000 30000\n1.0\n", "for which it is too short"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "wrong.mtx"
    path.write_text(content)
    message = message_of(lambda: read_any(path))
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


def test_the_weights_of_a_matrix_are_called_value(tmp_path: Path) -> None:
    scipy.io.mmwrite(tmp_path / "a.mtx", graph_of().adjacency.tocoo())
    assert "ask for value, not 'data'" in message_of(lambda: read_graph(tmp_path / "a.mtx", weight="data"))
    assert "source: this option is for tables" in message_of(lambda: read_graph(tmp_path / "a.mtx", source="x"))
