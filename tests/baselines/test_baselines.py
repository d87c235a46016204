"""Baselines: a contract for each, and values worked out by hand."""

from collections.abc import Callable
from functools import cache

import networkx as nx
import numpy as np
import pytest
import torch

import vgae
from vgae.baselines import (
    BASELINES,
    adamic_adar,
    common_neighbours,
    deepwalk,
    preferential_attachment,
    resource_allocation,
    spectral_embedding,
)
from vgae.baselines.deepwalk import random_walks
from vgae.baselines.spectral import LINK_TO_HUB
from vgae.errors import InputError
from vgae.evaluation.evaluate import RowScorer, Scorer


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    """Many small blocks, cut into components and isolated nodes by a low degree and by holding links out."""
    graph = vgae.stochastic_block_model(900, 75, degree_within=4, degree_between=0.2, feature_dim=150, seed=4)
    return vgae.split_links(graph, seed=0)


@pytest.fixture(scope="module")
def fitted(split: vgae.LinkSplit) -> Callable[[str], RowScorer]:
    """A baseline of the split by its name, fitted once for all tests."""
    return cache(lambda name: BASELINES[name](split.train, 3))


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_copes_with_a_graph_in_pieces_and_repeats_itself(
    name: str, split: vgae.LinkSplit, fitted: Callable[[str], RowScorer]
) -> None:
    degrees = np.diff(split.train.adjacency.indptr)
    assert (degrees == 0).any(), "the graph should have isolated nodes"
    first, second = fitted(name), BASELINES[name](split.train, 3)
    logits = first.logits(split.test.pairs)
    assert np.isfinite(logits).all()
    np.testing.assert_array_equal(logits, second.logits(split.test.pairs))
    auc = vgae.evaluate(first, split.test)["auc"]
    assert name == "pa" or auc > 0.7  # degrees say nothing in a block model


@pytest.mark.parametrize("name", BASELINES)
def test_every_baseline_is_symmetric(name: str, split: vgae.LinkSplit, fitted: Callable[[str], RowScorer]) -> None:
    scorer = fitted(name)
    pairs = split.test.pairs
    np.testing.assert_allclose(scorer.logits(pairs), scorer.logits(pairs[:, ::-1]), rtol=1e-6)


@pytest.mark.parametrize("name", BASELINES)
def test_rows_of_every_baseline_have_the_scores_of_its_pairs(
    name: str, split: vgae.LinkSplit, fitted: Callable[[str], RowScorer]
) -> None:
    scorer, size = fitted(name), split.train.num_nodes
    rows = scorer.rows()
    assert scorer.symmetric
    assert rows.num_nodes == size
    chosen = torch.tensor([0, 17, size - 1])
    for first in (0, 200):
        block = rows.block(chosen, first)
        assert (block.dtype, tuple(block.shape)) == (torch.float32, (3, size - first))
        pairs = torch.cartesian_prod(chosen, torch.arange(first, size)).numpy()
        np.testing.assert_allclose(block.ravel().numpy(), scorer.logits(pairs), rtol=1e-5, atol=1e-6)
        block.fill_(7.0)  # the caller may overwrite it
        assert not (rows.block(chosen, first) == 7.0).all()


def test_heuristics_are_networkxs() -> None:
    karate = nx.karate_club_graph()
    graph = vgae.Graph.from_networkx(karate)
    pairs = np.array(list(nx.non_edges(karate)))
    references: dict[Callable[[vgae.Graph], Scorer], list[float]] = {
        common_neighbours: [len(list(nx.common_neighbors(karate, i, j))) for i, j in pairs.tolist()],
        adamic_adar: [score for _, _, score in nx.adamic_adar_index(karate, pairs.tolist())],
        resource_allocation: [score for _, _, score in nx.resource_allocation_index(karate, pairs.tolist())],
        preferential_attachment: [score for _, _, score in nx.preferential_attachment(karate, pairs.tolist())],
    }
    for heuristic, expected in references.items():
        np.testing.assert_allclose(heuristic(graph).logits(pairs), expected, rtol=1e-6)


def test_walks_follow_links_and_start_equally_often_everywhere() -> None:
    graph = vgae.Graph.from_edges([(0, 1), (1, 2), (2, 0), (2, 3)], num_nodes=5)
    walks = random_walks(graph, num_walks=6, walk_length=30, seed=0)
    assert np.bincount(walks[:, 0], minlength=5).tolist() == [6] * 5
    allowed = graph.adjacency.toarray() + np.diag([0, 0, 0, 0, 1])  # a node without links stays where it is
    assert (allowed[walks[:, :-1], walks[:, 1:]] > 0).all()


def test_walks_choose_among_neighbours_uniformly() -> None:
    star = vgae.Graph.from_edges([(0, leaf) for leaf in range(1, 6)])
    walks = random_walks(star, num_walks=2000, walk_length=3, seed=1)
    chosen = np.bincount(walks[walks[:, 0] == 0][:, 1], minlength=6)[1:]
    expected = chosen.sum() / 5
    assert ((chosen - expected) ** 2 / expected).sum() < 18.5  # 99.9th percentile of χ² at 4 degrees of freedom


def test_spectral_embedding_separates_two_cliques_that_hardly_touch() -> None:
    cliques = nx.disjoint_union(nx.complete_graph(12), nx.complete_graph(12))
    cliques.add_edge(0, 12)
    z = spectral_embedding(vgae.Graph.from_networkx(cliques), dim=1).embedding
    similarity = z @ z.T
    assert similarity[:12, :12].min() > similarity[:12, 12:].max()


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("num_nodes", "dim"), [(30, 4), (200, 20), (400, 128)])
def test_spectral_embedding_is_that_of_a_dense_decomposition(num_nodes: int, dim: int, seed: int) -> None:
    """Where no eigenvalue comes twice, whatever the seed; products do not depend on the signs of eigenvectors."""
    graph = vgae.stochastic_block_model(num_nodes, 3, seed=num_nodes)
    dense = np.full((num_nodes + 1, num_nodes + 1), LINK_TO_HUB)
    dense[:-1, :-1], dense[-1, -1] = graph.adjacency.toarray(), 0
    scale = 1 / np.sqrt(dense.sum(axis=1))
    values, vectors = np.linalg.eigh(np.eye(num_nodes + 1) - scale[:, None] * dense * scale)
    assert np.diff(values[: dim + 2]).min() > 1e-6
    expected = (vectors[:, 1 : dim + 1] * scale[:, None])[:-1]
    z = spectral_embedding(graph, dim=dim, seed=seed).embedding
    products = expected @ expected.T
    np.testing.assert_allclose(z @ z.T, products, atol=1e-5 * np.abs(products).max())


def test_spectral_embedding_needs_more_nodes_than_dimensions() -> None:
    with pytest.raises(InputError, match="128 dimensions"):
        spectral_embedding(vgae.Graph.from_networkx(nx.karate_club_graph()))


def test_deepwalk_puts_neighbours_together() -> None:
    graph = vgae.Graph.from_networkx(nx.connected_caveman_graph(6, 8))
    scorer = deepwalk(graph, dim=16, seed=0)
    pairs = np.array([(i, j) for i in range(48) for j in range(i)])
    same = pairs[:, 0] // 8 == pairs[:, 1] // 8
    z = scorer.embedding / np.linalg.norm(scorer.embedding, axis=1, keepdims=True)
    cosine = (z[pairs[:, 0]] * z[pairs[:, 1]]).sum(axis=1)
    assert cosine[same].mean() > cosine[~same].mean() + 0.3
