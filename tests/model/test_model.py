"""Posteriors, priors and decoders: a contract for every registered member, and the paper's equations."""

import numpy as np
import pytest
import torch

from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.decoders import DecoderSpec, InnerProduct
from vgae.model.inputs import normalized_adjacency
from vgae.model.spec import registered
from vgae.ops import Factors

DECODERS = registered("decoder")


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


# ------------------------------------------------------------------------------------------------------------- decoders


@pytest.mark.parametrize("name", DECODERS)
def test_every_decoder_scores_pairs_like_the_dense_matrix_of_its_factors(name: str) -> None:
    spec = DECODERS[name]()
    assert isinstance(spec, DecoderSpec)
    decoder = spec.build(4, generator())
    z = torch.randn(9, 4, generator=generator(2), dtype=torch.float64)
    pairs = torch.cartesian_prod(torch.arange(9), torch.arange(9))
    scored = decoder.logits(z, pairs).reshape(9, 9)
    factors = decoder.factors(z)
    assert decoder.factorised == (factors is not None)
    if factors is not None:
        other = factors.q if factors.k is None else factors.k
        dense = factors.q @ other.T
        if factors.row_bias is not None:
            dense = dense + factors.row_bias[:, None]
        if factors.column_bias is not None:
            dense = dense + factors.column_bias[None, :]
        torch.testing.assert_close(scored, dense)
    if decoder.symmetric:
        torch.testing.assert_close(scored, scored.T)


def test_inner_product_is_the_inner_product() -> None:
    z = torch.tensor([[1.0, 2.0], [-3.0, 0.5]])
    pairs = torch.tensor([[0, 1], [1, 1]])
    torch.testing.assert_close(InnerProduct().build(2, generator()).logits(z, pairs), torch.tensor([-2.0, 9.25]))


def test_factors_add_their_biases() -> None:
    factors = Factors(
        q=torch.tensor([[1.0], [2.0]]),
        k=torch.tensor([[3.0], [5.0]]),
        row_bias=torch.tensor([10.0, 20.0]),
        column_bias=torch.tensor([100.0, 200.0]),
    )
    found = factors.logits(torch.tensor([[0, 1], [1, 0]]))
    torch.testing.assert_close(found, torch.tensor([1 * 5 + 10 + 200.0, 2 * 3 + 20 + 100.0]))
