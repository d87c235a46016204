from collections.abc import Callable
from functools import partial
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp
import torch
from numpy.testing import assert_array_equal

from helpers import message_of, pyg
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph

# A house and a chimney without smoke: node 5 has no links.
NUM_NODES = 6
LINKS = [(0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 4)]
FEATURES = np.arange(12, dtype=np.float32).reshape(6, 2)
LABELS = [0, 0, 1, 1, 2, -1]

EXPECTED = Graph.from_edges(LINKS, num_nodes=NUM_NODES)


def both_directions() -> list[tuple[int, int]]:
    return LINKS + [(target, source) for source, target in LINKS]


def adjacency() -> Any:
    matrix = np.zeros((NUM_NODES, NUM_NODES))
    for source, target in both_directions():
        matrix[source, target] = 1
    return sp.csr_array(matrix)


def networkx_graph(kind: Callable[[], Any] = nx.Graph) -> Any:
    graph = kind()
    graph.add_nodes_from(range(NUM_NODES))
    graph.add_edges_from(LINKS)
    return graph


def edge_index(rows: list[tuple[int, int]]) -> torch.Tensor:
    return torch.tensor(rows).T.contiguous()


def assert_same_graph(graph: Graph) -> None:
    assert graph.num_nodes == EXPECTED.num_nodes
    assert_array_equal(graph.edges, EXPECTED.edges)
    assert graph.content_hash == EXPECTED.content_hash


class NamedGraph(nx.Graph):  # type: ignore[misc]
    """A user's own kind of NetworkX graph."""


@pytest.mark.parametrize(
    "data",
    [
        adjacency(),
        sp.coo_matrix(adjacency()),
        sp.csc_array(sp.triu(adjacency())),
        networkx_graph(),
        networkx_graph(nx.MultiGraph),
        networkx_graph(NamedGraph),
        partial(pyg, edge_index=edge_index(LINKS), num_nodes=NUM_NODES),
        partial(pyg, edge_index=edge_index(both_directions()), num_nodes=NUM_NODES),
    ],
    ids=["csr", "coo", "upper csc", "networkx", "multigraph", "own networkx", "pyg", "pyg both ways"],
)
def test_every_kind_of_graph_is_recognised_and_gives_the_same_graph(data: Any) -> None:
    assert_same_graph(Graph.of(data() if isinstance(data, partial) else data))


@pytest.mark.parametrize("rows", [LINKS, np.array(LINKS), torch.tensor(LINKS)], ids=["list", "array", "tensor"])
def test_rows_of_endpoints_are_recognised(rows: Any) -> None:
    graph = Graph.of(rows)
    assert graph.num_nodes == NUM_NODES - 1
    assert_array_equal(graph.edges, EXPECTED.edges)


def test_a_graph_is_returned_as_it_is() -> None:
    assert Graph.of(EXPECTED) is EXPECTED


# --------------------------------------------------------------------------------------------------------------- SciPy


def test_a_sparse_matrix_brings_its_links_whatever_their_weight_and_drops_stored_zeros() -> None:
    matrix = adjacency()
    matrix.data[:] = np.random.default_rng(0).uniform(0.1, 3, size=matrix.nnz)
    assert_same_graph(Graph.from_scipy(matrix))
    kept = matrix.copy()
    kept.data[:2] = 0  # (0, 1) and (0, 2), which are still stored from the other side
    assert_same_graph(Graph.from_scipy(kept))
    upper = sp.csr_array(sp.triu(adjacency()))
    upper.data[:2] = 0
    assert Graph.from_scipy(upper).edges.tolist() == [[1, 3], [2, 3], [2, 4], [3, 4]]


@pytest.mark.parametrize("kind", [bool, np.int8, np.uint64, np.float32, np.longdouble])
def test_every_kind_of_real_number_makes_a_link(kind: type) -> None:
    for weighted in (False, True):
        graph = Graph.from_scipy(adjacency().astype(kind), weighted=weighted)
        assert_array_equal(graph.edges, EXPECTED.edges)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("entry", [-1.0, np.nan, np.inf, -np.inf])
def test_an_entry_that_is_no_link_is_named_by_its_place(entry: float, weighted: bool) -> None:
    matrix = adjacency()
    matrix[2, 3] = entry
    for form in (sp.csr_array, sp.csc_matrix, sp.coo_array, sp.lil_array, sp.dok_matrix):
        message = message_of(lambda form=form: Graph.from_scipy(form(matrix), weighted=weighted))  # type: ignore[misc]
        assert message.startswith(f"adjacency: the entry (2, 3) is {entry}; a link is a finite number above 0")


def test_a_sparse_matrix_that_leads_out_of_itself_is_refused() -> None:
    csr, coo = adjacency(), sp.coo_array(adjacency())
    csr.indices[3] = 999
    coo.row[0] = -5
    for matrix in (csr, coo):
        assert "the sparse matrix is not well formed" in message_of(lambda matrix=matrix: Graph.from_scipy(matrix))  # type: ignore[misc]
        features = matrix
        assert "features: the sparse matrix is not well formed" in message_of(
            lambda features=features: Graph.from_edges(LINKS, num_nodes=6, features=features)  # type: ignore[misc]
        )


def test_what_a_sparse_matrix_stores_is_counted() -> None:
    assert Graph.from_scipy(adjacency()).cleaning == Cleaning(rows_given=12, reversed_merged=6)
    with_loops = adjacency() + sp.eye_array(NUM_NODES)
    assert Graph.from_scipy(with_loops).cleaning == Cleaning(18, self_loops_dropped=6, reversed_merged=6)
    twice = sp.coo_array((np.ones(3), (np.array([0, 0, 1]), np.array([1, 1, 2]))), shape=(3, 3))
    assert Graph.from_scipy(twice).cleaning == Cleaning(3, duplicates_merged=1)


def test_a_sparse_matrix_takes_ids_features_and_labels() -> None:
    ids = [("paper", index) for index in range(NUM_NODES)]
    graph = Graph.from_scipy(adjacency(), node_ids=ids, features=FEATURES, labels=LABELS)
    assert_array_equal(graph.edges, EXPECTED.edges)
    assert graph.ids_of([4]).tolist() == [("paper", 4)]
    assert_array_equal(graph.features, FEATURES)
    assert_array_equal(graph.labels, LABELS)
    assert graph.cleaning == Cleaning(rows_given=12, reversed_merged=6)


@pytest.mark.parametrize(
    ("matrix", "attributes", "words"),
    [
        (sp.csr_array(np.ones((2, 3))), {}, ["adjacency", "square", "(2, 3)"]),
        (sp.coo_array(np.ones(3)), {}, ["adjacency", "square", "(3,)"]),
        (adjacency().astype(complex), {}, ["adjacency", "real numbers", "complex128"]),
        (adjacency(), {"weighted": "yes"}, ["weighted", "True or False", "'yes'"]),
        (adjacency(), {"directed": np.array([True, False])}, ["directed", "True or False"]),
        (np.ones((3, 3)), {}, ["adjacency", "sparse", "(3, 3)"]),
        ("cora", {}, ["adjacency", "sparse", "str"]),
        (sp.csr_array((4, 4)), {}, ["no links"]),
        (adjacency(), {"features": FEATURES[:4]}, ["features", "4 rows", "6 nodes"]),
        (adjacency(), {"node_ids": "abcde"}, ["node_ids", "6 nodes", "(5,)"]),
        (adjacency(), {"node_ids": "abcdea"}, ["node_ids", "more than once"]),
    ],
)
def test_a_bad_matrix_is_refused(matrix: Any, attributes: dict[str, Any], words: list[str]) -> None:
    message = message_of(lambda: Graph.from_scipy(matrix, **attributes))
    assert all(word in message for word in words), message


# ------------------------------------------------------------------------------------------------------------ NetworkX


def test_networkx_nodes_become_ids_in_their_order() -> None:
    grid = nx.grid_2d_graph(3, 4)
    graph = Graph.from_networkx(grid)
    nodes = list(grid.nodes)
    assert graph.ids_of(np.arange(12)).tolist() == nodes
    links = {frozenset(map(tuple, link)) for link in (graph.ids_of(pair).tolist() for pair in graph.edges)}
    assert links == {frozenset(link) for link in grid.edges}
    assert_array_equal(graph.adjacency.toarray(), nx.to_numpy_array(grid, nodelist=nodes))


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_directions_and_multiplicities_of_networkx_are_merged_and_counted(kind: Callable[[], Any]) -> None:
    source = networkx_graph(kind)
    source.add_edge(4, 2, weight=3.0)  # back along a link
    source.add_edge(5, 5)
    cleaning = Graph.from_networkx(source).cleaning
    assert_array_equal(Graph.from_networkx(source).edges, EXPECTED.edges)
    assert cleaning.rows_given == 8
    assert cleaning.self_loops_dropped == 1
    assert cleaning.duplicates_merged + cleaning.reversed_merged + cleaning.reversed_kept == 1
    assert cleaning.reversed_kept == source.is_directed()


def test_networkx_attributes_become_features_and_labels() -> None:
    source = networkx_graph()
    nx.set_node_attributes(source, {node: FEATURES[node].tolist() for node in source}, "words")
    nx.set_node_attributes(source, {node: float(node * node) for node in source}, "size")
    nx.set_node_attributes(source, {node: f"class {LABELS[node]}" for node in source}, "topic")
    graph = Graph.from_networkx(source, features="words", label="topic")
    assert_array_equal(graph.features, FEATURES)
    assert graph.labels is not None
    assert graph.labels.tolist() == [f"class {label}" for label in LABELS]
    assert_array_equal(Graph.from_networkx(source, features="size").features, [[0], [1], [4], [9], [16], [25]])
    sparse = Graph.from_networkx(source, features=sp.csr_array(FEATURES))
    assert_array_equal(sp.csr_array(sparse.features).toarray(), FEATURES)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda graph: Graph.from_networkx(graph, features="words"), ["node 3", "'words'"]),
        (lambda graph: Graph.from_networkx(graph, label="topic"), ["node 0", "'topic'"]),
        (lambda graph: Graph.from_networkx(graph, features="name"), ["features", "number"]),
        (lambda graph: Graph.from_networkx(graph, features=FEATURES[1:]), ["features", "5 rows", "6 nodes"]),
        (lambda _: Graph.from_networkx(nx.Graph()), ["empty", "no nodes"]),
        (lambda _: Graph.from_networkx(nx.empty_graph(3)), ["no links"]),
    ],
)
def test_a_networkx_graph_that_lacks_something_is_refused(make: Callable[[Any], Graph], words: list[str]) -> None:
    source = networkx_graph()
    nx.set_node_attributes(source, {node: [1.0] for node in source if node != 3}, "words")
    nx.set_node_attributes(source, {node: f"node {node}" for node in source}, "name")
    message = message_of(lambda: make(source))
    assert all(word in message for word in words), message


# --------------------------------------------------------------------------------------------------- PyTorch Geometric


def test_pyg_brings_features_and_labels() -> None:
    data = pyg(x=torch.from_numpy(FEATURES.copy()), edge_index=edge_index(LINKS), y=torch.tensor(LABELS))
    graph = Graph.from_pyg(data)
    assert_array_equal(graph.edges, EXPECTED.edges)
    assert_array_equal(graph.features, FEATURES)
    assert_array_equal(graph.labels, LABELS)
    assert graph.node_ids is None
    data.x.zero_()
    data.y.zero_()
    assert_array_equal(graph.features, FEATURES)
    assert_array_equal(graph.labels, LABELS)


def test_pyg_features_that_require_gradients_are_detached() -> None:
    features = torch.from_numpy(FEATURES.copy()).requires_grad_()
    assert_array_equal(Graph.from_pyg(pyg(x=features, edge_index=edge_index(LINKS))).features, FEATURES)


def test_pyg_features_that_are_not_finite_are_refused() -> None:
    features = torch.ones(NUM_NODES, 2)
    features[4, 1] = torch.nan
    data = pyg(x=features, edge_index=edge_index(LINKS))
    assert "row 4, column 1" in message_of(lambda: Graph.of(data))


# --------------------------------------------------------------------------------------------------------- odd corners


def test_a_subclass_of_pyg_data_is_recognised() -> None:
    own = type("OwnData", (type(pyg()),), {})  # a user's own kind of PyTorch Geometric graph
    assert_same_graph(Graph.of(own(edge_index=edge_index(LINKS), num_nodes=NUM_NODES)))


def test_pyg_data_without_links_is_refused() -> None:
    assert "edge_index" in message_of(lambda: Graph.from_pyg(pyg(x=torch.ones(3, 2))))


def test_pyg_data_of_several_types_is_refused() -> None:
    data = pyg("HeteroData")
    data["paper"].x = torch.ones(5, 2)
    data["paper", "cites", "paper"].edge_index = edge_index(LINKS)
    for make in (Graph.of, Graph.from_pyg):
        assert "several types (HeteroData)" in message_of(lambda make=make: make(data))  # type: ignore[misc]
    assert_array_equal(Graph.of(data.to_homogeneous()).edges, EXPECTED.edges)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (partial(pyg, edge_index=torch.zeros(2, 3)), ["edge_index", "float32", "(2, 3)"]),
        (partial(pyg, edge_index=torch.zeros(2, 3, dtype=torch.complex64)), ["edge_index", "complex64"]),
        (partial(pyg, edge_index=torch.zeros(3, 2, dtype=torch.int64)), ["edge_index", "(3, 2)"]),
        (partial(pyg, edge_index=torch.zeros(3, dtype=torch.int64), num_nodes=3), ["edge_index", "(3,)"]),
        (partial(pyg, edge_index=edge_index(LINKS), x=torch.ones(5, 2).to_sparse()), ["features", "Tensor"]),
        (partial(pyg, edge_index=edge_index(LINKS), x=torch.ones(5, 2).bfloat16()), ["features", "Tensor"]),
        (partial(pyg, edge_index=edge_index(LINKS), x=torch.ones(5, 2) * 1j), ["features", "number"]),
        (5, ["data", "PyTorch Geometric", "5"]),
        (None, ["data", "PyTorch Geometric", "None"]),
    ],
)
def test_bad_pyg_data_is_refused(data: Any, words: list[str]) -> None:
    message = message_of(lambda: Graph.from_pyg(data() if isinstance(data, partial) else data))
    assert all(word in message for word in words), message


def test_a_tensor_that_cannot_be_an_array_is_refused() -> None:
    assert "edges: this Tensor cannot" in message_of(lambda: Graph.of(torch.ones(3, 3).to_sparse()))
    assert "graph: expected a NetworkX graph" in message_of(lambda: Graph.from_networkx("graph"))
    for option in ({"label": 5}, {"weight": ["w"]}):
        message = message_of(lambda option=option: Graph.from_networkx(networkx_graph(), **option))  # type: ignore[misc]
        assert "the name of an attribute is needed" in message


@pytest.mark.parametrize("columns", [["source", "target"], ["id", "to"]])
def test_a_data_frame_of_two_columns_is_rows_of_endpoints(columns: list[str]) -> None:
    frame = pd.DataFrame(LINKS, columns=columns)
    assert_array_equal(Graph.of(frame).edges, EXPECTED.edges)


def test_networkx_vectors_of_different_lengths_are_refused() -> None:
    source = networkx_graph()
    nx.set_node_attributes(source, {node: [1.0] * (1 + node % 2) for node in source}, "words")
    message = message_of(lambda: Graph.from_networkx(source, features="words"))
    assert message == "The node attribute 'words' does not have the same length for every node."


# ---------------------------------------------------------------------------------------------- weights and directions

WEIGHTS = [0.5, 1.0, 2.0, 3.0, 4.0, 8.0]


def weighted(kind: Callable[[], Any]) -> Any:
    graph = kind()
    graph.add_nodes_from(range(NUM_NODES))
    graph.add_weighted_edges_from([(*link, weight) for link, weight in zip(LINKS, WEIGHTS, strict=True)])
    return graph


def test_a_symmetric_input_counts_each_weight_once_and_any_other_adds_up() -> None:
    matrix = nx.to_scipy_sparse_array(weighted(nx.Graph), nodelist=range(NUM_NODES))
    once = [
        Graph.from_scipy(matrix, weighted=True),
        Graph.from_scipy(sp.triu(matrix), weighted=True),
        Graph.from_networkx(weighted(nx.Graph), weight="weight"),
        Graph.from_pyg(
            pyg(edge_index=edge_index(both_directions()), edge_attr=torch.tensor(WEIGHTS * 2)[:, None], num_nodes=6),
            weight="edge_attr",
        ),
        Graph.from_pyg(
            pyg(edge_index=edge_index(LINKS), edge_weight=torch.tensor(WEIGHTS), num_nodes=6), weight="edge_weight"
        ),
        Graph.from_edges(both_directions(), weights=WEIGHTS * 2),
        Graph.from_frame(pd.DataFrame(LINKS).assign(w=WEIGHTS), weight="w"),
        Graph.from_frame(pl.DataFrame(LINKS, orient="row").with_columns(w=pl.Series(WEIGHTS)), weight="w"),
    ]
    for graph in once:
        assert graph.weights is not None
        assert graph.weights.tolist() == WEIGHTS
    uneven = [*WEIGHTS, *WEIGHTS]
    uneven[6] = 0.25  # the way back of the first link
    added = Graph.from_edges(both_directions(), weights=uneven).weights
    assert added is not None
    assert added.tolist() == [0.75, *(2 * weight for weight in WEIGHTS[1:])]
    assert Graph.from_scipy(matrix).weights is None
    assert Graph.of(weighted(nx.Graph)).weights is None


def test_weights_that_are_missing_or_wrong_are_named() -> None:
    source = weighted(nx.Graph)
    source.add_edge(0, 5)
    assert "from 0 to 5 has no attribute 'weight'" in message_of(lambda: Graph.from_networkx(source, weight="weight"))
    matrix = adjacency()
    matrix[2, 3] = -1
    assert "the entry (2, 3) is -1.0" in message_of(lambda: Graph.from_scipy(matrix, weighted=True))
    data = pyg(edge_index=edge_index(LINKS), num_nodes=NUM_NODES)
    assert "has no edge_weight" in message_of(lambda: Graph.from_pyg(data, weight="edge_weight"))


def test_a_digraph_keeps_its_directions() -> None:
    source = networkx_graph(nx.DiGraph)
    source.remove_edge(1, 3)
    source.add_edges_from([(3, 1), (4, 2)])
    graph = Graph.of(source)
    assert graph.directed
    assert graph.directions is not None
    assert dict(zip(map(tuple, graph.edges.tolist()), graph.directions.tolist(), strict=True)) == {
        (0, 1): 1,
        (0, 2): 1,
        (1, 3): -1,
        (2, 3): 1,
        (2, 4): 0,
        (3, 4): 1,
    }
    assert not Graph.of(networkx_graph()).directed
    assert str(graph.cleaning).endswith("1 link in both directions")


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_links_and_nodes_are_read_like_files(kind: Callable[[dict[str, Any]], Any]) -> None:
    links = kind({"when": [1, 2, 3], "a": ["x", "y", "x"], "b": ["y", "z", "z"]})
    nodes = kind({"name": ["z", "x", "y", "w"], "size": [3.0, 1.0, 2.0, 4.0], "good": [True, False, True, True]})
    graph = Graph.from_frame(links, source="a", target="b", nodes=nodes, id="name")
    assert graph.ids_of(range(4)).tolist() == ["x", "y", "z", "w"]
    assert graph.edges.tolist() == [[0, 1], [0, 2], [1, 2]]
    assert_array_equal(graph.features, [[1, 0], [2, 1], [3, 1], [4, 1]])
    pairs = kind({"a": [10, 30], "b": [30, 20]})
    assert Graph.of(pairs).ids_of(Graph.of(pairs).edges).tolist() == [[10, 30], [20, 30]]
    missing = kind({"name": ["x", "y", "z"], "size": [1.0, None, 2.0]})
    message = message_of(lambda: Graph.from_frame(links, source="a", target="b", nodes=missing))
    assert message.startswith("nodes: row 1 has no value in the column 'size'")
    assert "links: rows with two columns or more" in message_of(lambda: Graph.of(kind({"a": [1, 2]})))
    assert "label: this is about the columns of a node table" in message_of(
        lambda: Graph.from_frame(links, label="size")
    )


def test_a_lazy_frame_is_collected() -> None:
    lazy = pl.DataFrame(LINKS, orient="row").lazy()
    assert_array_equal(Graph.of(lazy).edges, EXPECTED.edges)


def test_a_frame_of_mixed_objects_is_named() -> None:
    mixed = pd.DataFrame({"a": ["x", 1], "b": ["y", "z"]}, dtype=object)
    assert message_of(lambda: Graph.of(mixed)).startswith("links: not a data frame of plain columns")


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
@pytest.mark.parametrize("change", ["ends in 0", "ends below 0", "falls", "is too short"])
def test_a_matrix_whose_index_pointer_is_damaged_is_never_followed(kind: str, change: str) -> None:
    """SciPy's own check looks at nothing where the last pointer, the number of entries, is not above 0."""
    matrix = sp.random_array((8, 8), density=0.5, rng=np.random.default_rng(0), format="csr").asformat(kind)
    if change == "is too short":
        matrix.indptr = matrix.indptr[:-2]
    elif change == "falls":
        matrix.indptr[3] = 10_000
    else:
        matrix.indptr[-1] = 0 if change == "ends in 0" else -1
    for make in (
        lambda: Graph.from_edges([(0, 1)], features=matrix, num_nodes=8),
        lambda: Graph.from_scipy(matrix),
    ):
        assert "the sparse matrix is not well formed" in message_of(make)


@pytest.mark.parametrize("offset", [-8, 8, 10**15])
def test_diagonals_outside_of_a_matrix_are_refused(offset: int) -> None:
    matrix = sp.dia_array((np.ones((1, 8)), [0]), shape=(8, 8))
    matrix.offsets = np.array([offset])
    assert "the sparse matrix is not well formed" in message_of(lambda: Graph.from_scipy(matrix))
