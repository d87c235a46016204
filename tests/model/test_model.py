"""The propagation matrix, as the paper has it."""

import numpy as np
import pytest
import torch

from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.inputs import normalized_adjacency


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return stochastic_block_model(60, 3, feature_dim=30, seed=1)


def dense_propagation(graph: Graph) -> torch.Tensor:
    """Ã as the paper writes it, in float64."""
    with_loops = graph.adjacency.toarray().astype(np.float64) + np.eye(graph.num_nodes)
    scale = np.diag(with_loops.sum(axis=1) ** -0.5)
    return torch.tensor(scale @ with_loops @ scale)


# ---------------------------------------------------------------------------------------------------------- propagation


def test_normalized_adjacency_is_the_papers(graph: Graph) -> None:
    found = normalized_adjacency(graph)
    np.testing.assert_allclose(found.toarray(), dense_propagation(graph).numpy(), rtol=1e-6)
    assert (found != found.T).nnz == 0


def test_weights_enter_the_propagation_and_leave_the_labels_alone(graph: Graph) -> None:
    weights = np.random.default_rng(0).uniform(0.1, 9, graph.num_edges)
    weighted = Graph.from_edges(graph.edges, num_nodes=graph.num_nodes, weights=weights)
    dense = np.eye(graph.num_nodes)
    for (i, j), weight in zip(graph.edges.tolist(), weights.tolist(), strict=True):
        dense[i, j] = dense[j, i] = weight
    degrees = dense.sum(axis=1)
    found = normalized_adjacency(weighted)
    np.testing.assert_allclose(found.toarray(), dense / np.sqrt(np.outer(degrees, degrees)), rtol=1e-6)
    assert (found != found.T).nnz == 0
    assert (weighted.adjacency != graph.adjacency).nnz == 0
    ones = Graph.from_edges(graph.edges, num_nodes=graph.num_nodes, weights=np.ones(graph.num_edges))
    np.testing.assert_allclose(normalized_adjacency(ones).toarray(), normalized_adjacency(graph).toarray(), rtol=1e-6)
    huge = Graph.from_edges([(0, 1), (1, 2)], weights=[3e38, 3e38])
    np.testing.assert_allclose(normalized_adjacency(huge).toarray()[1], [0.5**0.5, 0, 0.5**0.5], atol=1e-6)


def test_isolated_node_keeps_only_itself() -> None:
    lonely = normalized_adjacency(Graph.from_edges([(0, 1)], num_nodes=3)).toarray()
    np.testing.assert_allclose(lonely, np.array([[0.5, 0.5, 0], [0.5, 0.5, 0], [0, 0, 1]]))
