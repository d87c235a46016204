from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_array_equal
from scipy import stats

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, from_ranks, num_pairs
from vgae.graph.synthetic import rmat, stochastic_block_model


def degrees(graph: Graph) -> AnyArray:
    return np.bincount(graph.edges.ravel(), minlength=graph.num_nodes)


def random_graph(num_nodes: int, num_edges: int, seed: int) -> Graph:
    """Erdős–Rényi: so many edges, all sets of them equally likely."""
    ranks = np.random.default_rng(seed).choice(num_pairs(num_nodes), size=num_edges, replace=False)
    return Graph.from_edges(from_ranks(ranks, num_nodes), num_nodes=num_nodes)


def dispersion_of_degrees(graph: Graph) -> float:
    """Σ (d - mean)²/mean, about χ² with N - 1 degrees of freedom when all pairs are equally likely; as a z-score."""
    degree = degrees(graph)
    freedom = graph.num_nodes - 1
    return float((((degree - degree.mean()) ** 2).sum() / degree.mean() - freedom) / np.sqrt(2 * freedom))


# ---------------------------------------------------------------------------------------------- stochastic block model


@pytest.mark.parametrize(
    ("num_nodes", "num_blocks", "within", "between"), [(4000, 4, 8.0, 2.0), (4001, 7, 3.0, 5.0), (3000, 30, 12.0, 0.5)]
)
def test_blocks_have_the_expected_numbers_of_links_within_and_between(
    num_nodes: int, num_blocks: int, within: float, between: float
) -> None:
    graph = stochastic_block_model(num_nodes, num_blocks, degree_within=within, degree_between=between, seed=2)
    assert graph.labels is not None
    sizes = np.bincount(graph.labels)
    ends = graph.labels[graph.edges]
    counts = np.zeros((num_blocks, num_blocks))
    np.add.at(counts, (ends[:, 0], ends[:, 1]), 1)

    probability = np.full((num_blocks, num_blocks), between / (num_nodes - num_nodes / num_blocks))
    np.fill_diagonal(probability, within / (sizes - 1))
    pairs = np.triu(np.outer(sizes, sizes), 1) + np.diag(sizes * (sizes - 1) // 2)
    cells = np.triu_indices(num_blocks)
    expected = (pairs * probability)[cells]
    scores = (counts[cells] - expected) / np.sqrt(expected * (1 - probability[cells]))
    assert abs((counts[cells] - expected).sum()) < 4 * np.sqrt(expected.sum())
    assert stats.chi2(len(scores)).sf((scores**2).sum()) > 1e-4

    inside = counts.trace()
    assert abs(2 * inside / num_nodes - within) < 4 * np.sqrt(2 * within / num_nodes)
    outside = graph.num_edges - inside
    assert abs(2 * outside / num_nodes - between) < 4 * np.sqrt(2 * between / num_nodes)


def test_within_and_between_every_node_is_equally_likely_to_be_linked() -> None:
    assert abs(dispersion_of_degrees(stochastic_block_model(4000, 4, degree_between=0, seed=1))) < 4
    assert abs(dispersion_of_degrees(stochastic_block_model(4000, 4, degree_within=0, seed=1))) < 4


@pytest.mark.parametrize(("num_nodes", "num_blocks"), [(12, 3), (13, 3), (7, 7), (100, 1)])
def test_labels_are_blocks_of_nearly_equal_size_in_order(num_nodes: int, num_blocks: int) -> None:
    graph = stochastic_block_model(num_nodes, num_blocks, degree_between=6, seed=0)
    assert graph.labels is not None
    assert graph.labels.tolist() == [node * num_blocks // num_nodes for node in range(num_nodes)]
    assert np.ptp(np.bincount(graph.labels)) <= 1


def test_saturated_blocks_are_complete() -> None:
    blocks = np.kron(np.eye(3), np.ones((4, 4)))
    everything = np.ones((12, 12))
    inside = stochastic_block_model(12, 3, degree_within=100, degree_between=0)
    outside = stochastic_block_model(12, 3, degree_within=0, degree_between=100)
    assert_array_equal(inside.adjacency.toarray(), blocks - np.eye(12))
    assert_array_equal(outside.adjacency.toarray(), everything - blocks)
    assert stochastic_block_model(12, 3, degree_within=100, degree_between=100).num_edges == 66


def test_features_concentrate_on_the_words_of_the_block() -> None:
    num_nodes, num_blocks, feature_dim = 6000, 5, 100
    graph = stochastic_block_model(num_nodes, num_blocks, feature_dim=feature_dim, seed=4)
    features: Any = graph.features
    assert sp.issparse(features)
    assert set(features.data.tolist()) == {1.0}
    assert features.sum(axis=1).max() <= 8
    share = feature_dim // num_blocks
    in_block = (features.toarray().reshape(num_nodes, num_blocks, share)).sum(axis=2)
    own = in_block[np.arange(num_nodes), graph.labels]
    other = in_block.sum(axis=1) - own
    # One of eight draws is a given own word with probability ½/share + ½/D, a given other word with ½/D.
    expected_own = share * (1 - (1 - 0.5 / share - 0.5 / feature_dim) ** 8)
    expected_other = (feature_dim - share) * (1 - (1 - 0.5 / feature_dim) ** 8)
    assert abs(own.mean() - expected_own) < 4 * own.std() / np.sqrt(num_nodes)
    assert abs(other.mean() - expected_other) < 4 * other.std() / np.sqrt(num_nodes)
    of_word = features.sum(axis=0).reshape(num_blocks, share)
    assert of_word.std() / of_word.mean() < 4 / np.sqrt(of_word.mean())


def test_without_a_vocabulary_there_are_no_features() -> None:
    assert stochastic_block_model(50, 2).features is None


# ---------------------------------------------------------------------------------------------------------------- R-MAT


@pytest.mark.parametrize(("num_nodes", "num_edges"), [(3, 1), (5, 5), (64, 1008), (1000, 5000), (4096, 100_000)])
def test_rmat_has_exactly_so_many_distinct_edges(num_nodes: int, num_edges: int) -> None:
    graph = rmat(num_nodes, num_edges, seed=1)
    assert graph.num_nodes == num_nodes
    assert graph.num_edges == num_edges == len({tuple(edge) for edge in graph.edges.tolist()})
    assert (graph.cleaning.self_loops_dropped, graph.cleaning.duplicates_merged) == (0, 0)


def test_rmat_has_a_heavy_tail() -> None:
    num_nodes, num_edges = 8192, 40_000
    heavy, light = degrees(rmat(num_nodes, num_edges, seed=0)), degrees(random_graph(num_nodes, num_edges, seed=0))
    assert heavy.sum() == light.sum() == 2 * num_edges
    assert heavy.max() > 10 * light.max()
    # The busiest hundredth of the nodes holds a large share of the links, several times an even graph's.
    top = num_nodes // 100
    share_heavy, share_light = (np.sort(degree)[-top:].sum() / degree.sum() for degree in (heavy, light))
    assert share_heavy > 0.15 > 5 * share_light


def test_rmat_with_equal_probabilities_is_an_even_graph() -> None:
    even = rmat(4096, 20_000, probabilities=(0.25, 0.25, 0.25, 0.25), seed=3)
    assert abs(dispersion_of_degrees(even)) < 4
    assert dispersion_of_degrees(rmat(4096, 20_000, seed=3)) > 100


def test_the_degrees_of_rmat_follow_the_quadrants() -> None:
    # Two nodes to a side and no duplicates to speak of: node k of 2^L has its share of endpoints ∏ (¾ or ¼).
    levels, num_edges = 14, 20_000
    graph = rmat(2**levels, num_edges, probabilities=(0.5625, 0.1875, 0.1875, 0.0625), seed=5)
    ones = np.array([node.bit_count() for node in range(2**levels)])
    share = 0.75 ** (levels - ones) * 0.25**ones
    expected = np.sort(2 * num_edges * share)
    found = np.sort(degrees(graph))
    rare = expected < 20  # where merging of duplicates hardly bites
    assert abs(found[rare].sum() - expected[rare].sum()) < 0.1 * expected[rare].sum()


def test_the_index_of_an_rmat_node_says_nothing_of_its_degree() -> None:
    graph = rmat(8192, 40_000, seed=0)
    assert stats.spearmanr(np.arange(8192), degrees(graph)).pvalue > 1e-3


# -------------------------------------------------------------------------------------------------------- both of them


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: stochastic_block_model(200, 4, feature_dim=16, seed=seed),
        lambda seed: rmat(200, 600, seed=seed),
    ],
    ids=["stochastic block model", "R-MAT"],
)
def test_the_seed_decides_the_graph(make: Callable[[int], Graph]) -> None:
    first, again, other = make(7), make(7), make(8)
    assert first.content_hash == again.content_hash
    assert not np.array_equal(first.edges, other.edges)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: stochastic_block_model(5, 0), ["num_blocks: a whole number from 1 to 5 is needed, got 0."]),
        (lambda: stochastic_block_model(5, 6), ["num_blocks: a whole number from 1 to 5 is needed, got 6."]),
        (lambda: stochastic_block_model(50, 8, feature_dim=7), ["feature_dim", "7 words", "8 blocks"]),
        (lambda: stochastic_block_model(50, 2, degree_within=0, degree_between=0), ["no links"]),
        (lambda: rmat(100, 0), ["num_edges: a whole number from 1 to", "is needed, got 0."]),
        (lambda: rmat(100, 2476), ["num_edges", "2,476 distinct edges", "at most 2,475"]),
        (lambda: rmat(2, 1), ["num_edges", "at most 0"]),
    ],
)
def test_impossible_wishes_are_refused(make: Callable[[], Graph], words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        make()
    assert all(word in str(caught.value) for word in words), caught.value
