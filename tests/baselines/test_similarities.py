"""Similarities against dense formulas in double precision, over graphs of many shapes."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from itertools import combinations

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

import vgae
from vgae.baselines import BASELINES, compare, cosines, paths, similarity
from vgae.baselines.compare import score_baselines
from vgae.baselines.cosines import Cosines
from vgae.baselines.pagerank import Walks
from vgae.baselines.paths import Paths
from vgae.baselines.similarities import SIMILARITIES, names_for
from vgae.baselines.similarity import groups, starts_first
from vgae.errors import InputError
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


def check(name: str, graph: Graph, pairs: NDArray[np.int64] | None = None, atol: float = 2e-7) -> None:
    pairs = all_pairs(graph) if pairs is None else pairs
    found = SIMILARITIES[name].of(graph).describe(pairs)
    expected = np.stack([column[pairs[:, 0], pairs[:, 1]] for column in DENSE[name](graph)], axis=1)
    assert found.dtype == np.float32
    assert found.shape == (len(pairs), len(SIMILARITIES[name].columns))
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=atol)


@pytest.fixture
def tiny_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (paths, cosines):
        monkeypatch.setattr(module, "CHUNK", 7)
    monkeypatch.setattr(similarity, "NARROW", 1)
    monkeypatch.setattr(similarity, "WIDE", 3)


# --------------------------------------------------------------------------------------------------------------- values


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


def test_pagerank_is_networkxs() -> None:
    karate = nx.karate_club_graph()
    graph = Graph.from_networkx(karate)
    from_each = [nx.pagerank(karate, 1 - ALPHA, {node: 1}, tol=1e-12, max_iter=500, weight=None) for node in karate]
    pairs = all_pairs(graph)
    expected = [from_each[i][j] + from_each[j][i] for i, j in pairs.tolist()]
    np.testing.assert_allclose(Walks.of(graph).logits(pairs), expected, rtol=1e-5)


def test_paths_between_nodes_without_a_link_are_simple_paths() -> None:
    graph = GRAPHS["60 nodes, 0.05"]
    linked, degrees = nx.Graph(graph.edges.tolist()), dense(graph)[1]
    pairs = np.array([(i, j) for i, j in combinations(sorted(linked), 2) if not linked.has_edge(i, j)])
    expected = np.zeros(len(pairs))
    for row, (i, j) in enumerate(pairs.tolist()):
        for path in nx.all_simple_paths(linked, i, j, cutoff=3):
            if len(path) == 4:
                expected[row] += np.prod(degrees[path[1:3]]) ** -1.0 * np.prod(degrees[[i, j]]) ** -0.5
    assert expected.any()
    np.testing.assert_allclose(Paths.of(graph).logits(pairs), expected, rtol=1e-6)


@pytest.mark.parametrize("sparse", [True, False])
def test_more_features_than_the_budget_are_reduced(sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = vgae.stochastic_block_model(100, 5, degree_within=8, degree_between=1, feature_dim=80, seed=0)
    features = drawn.features if sparse else sp.csr_array(drawn.features).toarray()
    graph, pairs = drawn.with_parts(features=features), all_pairs(drawn)
    exact = Cosines.of(graph).describe(pairs)
    monkeypatch.setattr(cosines, "BUDGET", 1000)
    check("cosines", graph, atol=2e-6)  # with as many dimensions as there are features nothing is lost
    monkeypatch.setattr(cosines, "DIMENSIONS", 60)
    reduced = Cosines.of(graph)
    assert [each.shape[1] for each in reduced.propagated] == [60, 60, 60]
    found = reduced.describe(pairs)
    np.testing.assert_array_equal(found[:, 0], exact[:, 0])
    np.testing.assert_array_equal(found, Cosines.of(graph).describe(pairs))
    errors = np.sqrt(((found - exact) ** 2).mean(axis=0))
    assert (errors < 0.25 * exact.std(axis=0)).all()


# ------------------------------------------------------------------------------------------------------------- contract


@pytest.mark.parametrize("name", SIMILARITIES)
def test_every_similarity_says_what_it_is(name: str) -> None:
    kind = SIMILARITIES[name]
    assert kind.title
    assert len(kind.columns) == len(kind.titles) == len(set(kind.columns)) == len(set(kind.titles))
    every = [column for each in SIMILARITIES.values() for column in each.columns]
    assert len(every) == len(set(every))


@pytest.mark.parametrize("name", SIMILARITIES)
def test_both_orders_of_a_pair_have_the_same_bits(name: str) -> None:
    generator = np.random.default_rng(0)
    for graph in (GRAPHS["60 nodes, 0.05"], GRAPHS["60 nodes, 0.3"], GRAPHS["chains"], GRAPHS["dense features"]):
        pairs = all_pairs(graph)
        of_graph = SIMILARITIES[name].of(graph)
        found = of_graph.describe(pairs)
        np.testing.assert_array_equal(found, of_graph.describe(pairs[:, ::-1]))
        mixed = np.where(generator.random((len(pairs), 1)) < 0.5, pairs, pairs[:, ::-1])
        np.testing.assert_array_equal(found, SIMILARITIES[name].of(graph).describe(mixed))


@pytest.mark.parametrize("name", SIMILARITIES)
def test_no_pairs_repeated_pairs_and_pairs_of_no_nodes(name: str) -> None:
    graph = GRAPHS["dense features"]
    of_graph = SIMILARITIES[name].of(graph)
    assert of_graph.describe([]).shape == (0, len(of_graph.columns))
    assert of_graph.describe(np.empty((0, 2), dtype=np.int64)).shape == (0, len(of_graph.columns))
    repeated = of_graph.describe([(3, 5), (5, 3), (1, 2), (3, 5)])
    np.testing.assert_array_equal(repeated[[0, 0]], repeated[[1, 3]])
    with pytest.raises(InputError, match=r"row 1 is \(2, 40\)"):
        of_graph.describe([(0, 1), (2, 40)])


@pytest.mark.parametrize("name", SIMILARITIES)
def test_pairs_are_described_alike_alone_and_among_others(name: str) -> None:
    graph = GRAPHS["60 nodes, 0.3"]
    of_graph, pairs = SIMILARITIES[name].of(graph), all_pairs(graph)[::97]
    alone = np.concatenate([of_graph.describe(pair[None]) for pair in pairs])
    np.testing.assert_allclose(alone, of_graph.describe(pairs), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", SIMILARITIES)
def test_a_graph_with_two_sides_and_one_with_more_nodes_are_described(name: str) -> None:
    across = np.array([(i, j) for i in range(6) for j in range(6, 14) if (i * j) % 3 == 1])
    graph = Graph.from_edges(across, num_nodes=14, features=np.eye(14, 4, dtype=np.float32) + 1)
    check(name, graph.with_parts(sides=(np.arange(14) >= 6).astype(np.int8)))
    larger = np.concatenate([across, [(14, 0), (14, 7)]])
    check(name, Graph.from_edges(larger, num_nodes=16, features=np.eye(16, 4, dtype=np.float32) + 1))


def test_similarities_of_features_need_features() -> None:
    graph = GRAPHS["dense features"].without_features()
    assert names_for(GRAPHS["dense features"]) == tuple(SIMILARITIES)
    assert set(SIMILARITIES) - set(names_for(graph)) == {"cosines"}
    with pytest.raises(InputError, match="feature cosines: the graph has no features"):
        Cosines.of(graph)


# ----------------------------------------------------------------------------------------------------------------- work


def test_few_starts_serve_pairs_that_share_an_end() -> None:
    pairs = np.array([(node, 50) if node % 2 else (50, node) for node in range(40)] + [(60, 61)])
    starts, ends = starts_first(pairs, np.ones(100), np.zeros(100))
    assert set(starts.tolist()) == {50, 60}
    np.testing.assert_array_equal(np.sort(np.stack([starts, ends], axis=1)), np.sort(pairs))


def test_a_start_is_the_end_that_makes_less_work() -> None:
    of_start, of_end = np.array([10.0, 4.0, 30.0, 30.0]), np.array([1.0, 9.0, 1.0, 2.0])
    # 0 is in two pairs, so that each takes half of its work: 5 + 9 against 4 + 1, and 5 + 1 against 30 + 1.
    starts, _ = starts_first(np.array([(0, 1), (0, 2), (3, 2)]), of_start, of_end)
    assert starts.tolist() == [1, 0, 2]  # and 30 + 1 against 15 + 2


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_groups_hold_every_pair_once_under_its_start(size: int) -> None:
    starts = np.random.default_rng(1).integers(0, 9, 50)
    seen = []
    for nodes, places, columns in groups(starts, size):
        assert len(nodes) <= size
        np.testing.assert_array_equal(nodes[columns], starts[places])
        seen += places.tolist()
    assert sorted(seen) == list(range(50))


def test_blocks_stay_small_however_many_nodes_there_are() -> None:
    for num_nodes in (1, 100, 10_000, 62_500, 10**6):
        width = similarity.block_width(num_nodes)
        assert similarity.NARROW <= width <= similarity.WIDE
        assert width == similarity.NARROW or width * num_nodes <= similarity.BLOCK


def test_paths_in_a_graph_of_hubs_take_little_memory() -> None:
    hubs, leaves = 3, 4_000
    edges = np.array([(hub, hubs + leaf) for hub in range(hubs) for leaf in range(leaves)])
    graph = Graph.from_edges(edges)  # S² has N² entries
    of_graph = Paths.of(graph)
    pairs = np.stack([np.arange(hubs, hubs + 3_000), np.arange(hubs + 1, hubs + 3_001)], axis=1)
    pairs = np.concatenate([pairs, [(0, hubs + 5)] * 3])
    tracemalloc.start()
    found = of_graph.logits(pairs)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6 < 8 * graph.num_nodes**2
    assert not found[:-3].any()  # between leaves there are only walks of even length
    # From a hub over any leaf to any hub to the leaf: 12,000 walks, each 1 / (√4000 · 3 · 4000 · √3).
    np.testing.assert_allclose(found[-3:], 1 / np.sqrt(3 * leaves), rtol=1e-4)


@pytest.mark.parametrize("name", ["l3", "ppr"])
def test_what_takes_too_long_is_left_out_of_a_comparison(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    split = vgae.split_links(vgae.stochastic_block_model(200, 4, degree_within=8, degree_between=1, seed=0), seed=0)
    scorers = {name: BASELINES[name](split.train, 0), "cn": BASELINES["cn"](split.train, 0)}
    assert set(score_baselines(scorers, split).scores) == {name, "cn"}
    monkeypatch.setattr(compare, "MOST_PASSES", 1000)
    found = score_baselines(scorers, split)
    assert set(found.scores) == {"cn"}
    assert f"{name} is left out: it takes too long here; vgae baseline {name} computes it." in found.notes
