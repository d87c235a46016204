from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy import stats

from helpers import small_graphs
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links, sample_non_links, take_non_links
from vgae.graph.pairs import contains, num_pairs, to_ranks
from vgae.graph.synthetic import rmat

Pair = tuple[int, int]


def complement(graph: Graph) -> list[Pair]:
    edges = {(i, j) for i, j in graph.edges.tolist()}
    return [pair for pair in combinations(range(graph.num_nodes), 2) if pair not in edges]


def complete_graph(num_nodes: int, *without: Pair) -> Graph:
    edges = [pair for pair in combinations(range(num_nodes), 2) if pair not in without]
    return Graph.from_edges(edges, num_nodes=num_nodes)


def as_tuples(pairs: np.typing.NDArray[np.int64]) -> list[Pair]:
    return [(i, j) for i, j in pairs.tolist()]


@given(small_graphs(2))
def test_all_positions_together_are_exactly_the_complement_of_the_edges(graph: Graph) -> None:
    expected = complement(graph)
    assert count_non_links(graph) == len(expected)
    assert as_tuples(take_non_links(graph, np.arange(len(expected)))) == expected


@given(small_graphs(2), st.randoms(use_true_random=False).map(lambda random: random.randrange(2**32)))
def test_drawing_all_non_links_gives_each_of_them_once(graph: Graph, seed: int) -> None:
    expected = complement(graph)
    drawn = sample_non_links(graph, len(expected), np.random.default_rng(seed))
    assert sorted(as_tuples(drawn)) == expected


def test_a_large_sparse_graph_gives_neither_edges_nor_self_pairs_nor_duplicates() -> None:
    graph = rmat(200_000, 400_000, seed=3)
    drawn = sample_non_links(graph, 100_000, np.random.default_rng(0))
    ranks = to_ranks(drawn, graph.num_nodes)
    assert np.all((drawn[:, 0] >= 0) & (drawn[:, 0] < drawn[:, 1]) & (drawn[:, 1] < graph.num_nodes))
    assert len(np.unique(ranks)) == 100_000
    assert not contains(to_ranks(graph.edges, graph.num_nodes), ranks).any()
    # Uniform ranks have mean (n - 1)/2 and variance n²/12.
    n = num_pairs(graph.num_nodes)
    assert abs(ranks.mean() - n / 2) < 4 * n / np.sqrt(12 * len(ranks))


def test_the_last_pairs_without_a_link_of_an_almost_complete_graph_are_found() -> None:
    missing = ((0, 1), (0, 59), (17, 30), (58, 59))
    graph = complete_graph(60, *missing)
    assert as_tuples(take_non_links(graph, np.array([3, 0, 2, 1]))) == [missing[k] for k in (3, 0, 2, 1)]
    drawn = sample_non_links(graph, 4, np.random.default_rng(0))
    assert sorted(as_tuples(drawn)) == list(missing)


def test_every_non_link_is_drawn_equally_often_and_in_every_place() -> None:
    graph = Graph.from_edges([(0, 1), (0, 2), (1, 5), (2, 3), (3, 4), (4, 9), (6, 7), (8, 9)], num_nodes=10)
    non_links = to_ranks(np.array(complement(graph)), 10)
    generator = np.random.default_rng(12)
    num, repeats, kinds = 7, 5000, len(non_links)
    draws = np.stack([to_ranks(sample_non_links(graph, num, generator), 10) for _ in range(repeats)])
    position = np.searchsorted(non_links, draws)
    assert_array_equal(non_links[position], draws)

    for place in range(num):
        assert stats.chisquare(np.bincount(position[:, place], minlength=kinds)).pvalue > 1e-4
    # Drawn without replacement, the counts over all places vary by the factor 1 - num/kinds less.
    counts = np.bincount(position.ravel(), minlength=kinds)
    expected = repeats * num / kinds
    variance = expected * (1 - num / kinds) * kinds / (kinds - 1)
    statistic = ((counts - expected) ** 2).sum() / variance
    assert 1e-4 < stats.chi2(kinds - 1).sf(statistic) < 1 - 1e-4


def test_the_generator_decides_what_is_drawn() -> None:
    graph = rmat(100, 200)
    first, again, other = (sample_non_links(graph, 50, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_complete_graph_has_no_negatives_to_give() -> None:
    graph = complete_graph(7)
    assert count_non_links(graph) == 0
    assert sample_non_links(graph, 0, np.random.default_rng(0)).shape == (0, 2)
    with pytest.raises(InputError, match="The graph is complete"):
        sample_non_links(graph, 1, np.random.default_rng(0))


def test_asking_for_more_non_links_than_there_are_names_both_numbers() -> None:
    graph = complete_graph(50, (1, 2), (3, 4), (5, 6))
    with pytest.raises(InputError, match=r"only 3 pairs without a link, but 1,200 are needed .*\(smaller val and test"):
        sample_non_links(graph, 1200, np.random.default_rng(0))
