"""Similarities against dense formulas in double precision, over graphs of many shapes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from vgae.baselines import cosines, paths, similarity
from vgae.baselines.similarities import SIMILARITIES
from vgae.graph.graph import Graph

Doubles = NDArray[np.float64]
ALPHA = 0.15


def random_graph(num_nodes: int, density: float, seed: int, *, sparse: bool = True, negative: bool = False) -> Graph:
    """Links with a probability, one at least, and counts as features, of which some nodes have none."""
    generator = np.random.default_rng(seed)
    pairs = np.array(list(combinations(range(num_nodes), 2)), dtype=np.int64).reshape(-1, 2)
    edges = pairs[np.append(True, generator.random(len(pairs) - 1) < density)]
    features = (generator.random((num_nodes, 12)) < 0.3) * generator.integers(1, 4, (num_nodes, 12)).astype(np.float32)
    if negative:
        features = features * generator.choice([-1.0, 1.0], features.shape)
    features = features.astype(np.float32)
    return Graph.from_edges(edges, num_nodes=num_nodes, features=sp.csr_array(features) if sparse else features)


def star_with_chains() -> Graph:
    """A hub with leaves, a chain, two nodes that have only each other, a triangle, and a node alone."""
    edges = [(0, leaf) for leaf in range(1, 8)] + [(7, 8), (8, 9), (9, 10), (11, 12), (13, 14), (14, 15), (13, 15)]
    return Graph.from_edges(edges, num_nodes=17, features=np.eye(17, 5, dtype=np.float32))


def graphs() -> dict[str, Graph]:
    shapes = {f"{size} nodes, {density}": (size, density) for size in (2, 3, 7, 60) for density in (0, 0.05, 0.3, 1)}
    found = {name: random_graph(*shape, seed=place) for place, (name, shape) in enumerate(shapes.items())}
    found["chains"] = star_with_chains()
    found["dense features"] = random_graph(40, 0.1, 7, sparse=False)
    found["negative features"] = random_graph(40, 0.1, 8, negative=True)
    edges = found["dense features"].edges
    weights = np.arange(1, len(edges) + 1)
    found["weights"] = Graph.from_edges(edges, num_nodes=40, weights=weights, features=np.eye(40, dtype=np.float32))
    flipped = np.where(np.arange(len(edges))[:, None] % 2, edges, edges[:, ::-1])
    found["directed"] = Graph.from_edges(flipped, num_nodes=40, directed=True, features=np.eye(40, dtype=np.float32))
    return found


GRAPHS = graphs()


def all_pairs(graph: Graph) -> NDArray[np.int64]:
    return np.array(list(combinations(range(graph.num_nodes), 2)), dtype=np.int64).reshape(-1, 2)


def dense(graph: Graph) -> tuple[Doubles, Doubles]:
    """A of ones, and the degrees."""
    adjacency = np.zeros((graph.num_nodes, graph.num_nodes))
    adjacency[graph.edges[:, 0], graph.edges[:, 1]] = 1
    adjacency += adjacency.T
    return adjacency, adjacency.sum(axis=1)


def dense_neighbours(graph: Graph) -> list[Doubles]:
    adjacency, degrees = dense(graph)
    weights = np.ones_like(degrees), 1 / np.log(np.maximum(degrees, 2)), 1 / np.maximum(degrees, 1)
    return [adjacency @ np.diag(weight) @ adjacency for weight in weights]


def dense_paths(graph: Graph) -> list[Doubles]:
    adjacency, degrees = dense(graph)
    scale = 1 / np.sqrt(np.maximum(degrees, 1))
    return [np.linalg.matrix_power(scale[:, None] * adjacency * scale, 3)]


def dense_pagerank(graph: Graph) -> list[Doubles]:
    adjacency, degrees = dense(graph)
    degrees[degrees == 0] = 1
    # π_i as row i: walks leave a node by each of its links equally often.
    system = np.eye(graph.num_nodes) - (1 - ALPHA) * adjacency / degrees[:, None]
    pagerank = np.asarray(ALPHA * np.linalg.inv(system), dtype=np.float64)
    both = pagerank + pagerank.T
    return [both, both / np.sqrt(np.outer(degrees, degrees))]


def unit(matrix: Doubles) -> Doubles:
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    found: Doubles = np.divide(matrix, lengths, out=np.zeros_like(matrix), where=lengths > 0)
    return found


def dense_cosines(graph: Graph) -> list[Doubles]:
    values = sp.csr_array(graph.features).toarray().astype(np.float64)
    if values.min(initial=0) >= 0:
        values = values * (np.log((1 + graph.num_nodes) / (1 + (values > 0).sum(axis=0))) + 1)
    looped = dense(graph)[0] + np.eye(graph.num_nodes)
    scale = 1 / np.sqrt(looped.sum(axis=1))
    step, own = scale[:, None] * looped * scale, unit(values)
    over = [unit(np.linalg.matrix_power(step, hops) @ own) for hops in (0, 1, 2, 4)]
    return [*(each @ each.T for each in over), (own @ over[1].T + over[1] @ own.T) / 2]


def dense_degrees(graph: Graph) -> list[Doubles]:
    logs = np.log(1 + dense(graph)[1])
    return [np.add.outer(logs, logs), np.abs(np.subtract.outer(logs, logs)), np.minimum.outer(logs, logs)]


DENSE: dict[str, Callable[[Graph], list[Doubles]]] = {
    "neighbours": dense_neighbours,
    "paths": dense_paths,
    "pagerank": dense_pagerank,
    "cosines": dense_cosines,
    "degrees": dense_degrees,
}


def check(name: str, graph: Graph, pairs: NDArray[np.int64] | None = None) -> None:
    pairs = all_pairs(graph) if pairs is None else pairs
    found = SIMILARITIES[name].of(graph).describe(pairs)
    expected = np.stack([column[pairs[:, 0], pairs[:, 1]] for column in DENSE[name](graph)], axis=1)
    assert found.dtype == np.float32
    assert found.shape == (len(pairs), len(SIMILARITIES[name].columns))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=2e-7)


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (paths, cosines):
        monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(similarity, "NARROW", 1)
    monkeypatch.setattr(similarity, "WIDE", 3)


# -------------------------------------------------------------------------------------------------------------- values


@pytest.mark.parametrize("shape", GRAPHS)
@pytest.mark.parametrize("name", SIMILARITIES)
def test_values_are_those_of_the_dense_formulas(name: str, shape: str) -> None:
    check(name, GRAPHS[shape])


@pytest.mark.usefixtures("tiny_blocks")
@pytest.mark.parametrize("shape", ["60 nodes, 0.3", "chains", "dense features"])
@pytest.mark.parametrize("name", SIMILARITIES)
def test_values_do_not_depend_on_the_borders_of_blocks(name: str, shape: str) -> None:
    graph = GRAPHS[shape]
    check(name, graph, np.random.default_rng(0).permutation(all_pairs(graph)))
    check(name, graph, all_pairs(graph)[:1])


@pytest.mark.parametrize("share", [0.0, 2.0])
def test_paths_are_the_same_in_both_ways_of_computing_them(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "DENSE_SHARE", share)
    for shape in ("60 nodes, 0.05", "60 nodes, 0.3", "chains", "7 nodes, 1"):
        check("paths", GRAPHS[shape])
