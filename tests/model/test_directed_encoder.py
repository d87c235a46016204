"""The encoder that knows in and out, and the propagation along directed links, against dense matrices."""

from collections.abc import Mapping

import numpy as np
import pytest
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.model.encoders import Directed, DirectedEncoder
from vgae.model.inputs import EncoderInputs
from vgae.ops import SparseMatrix

SIZE = 12
HEADS: Mapping[str, int] = {"mean": 3, "log_std": 2}


def graph_of(weighted: bool, features: bool = True) -> Graph:
    generator = np.random.default_rng(1)
    rows = np.unique(generator.integers(SIZE, size=(40, 2)), axis=0)
    weights = generator.uniform(0.5, 3, len(rows)) if weighted else None
    values = generator.normal(size=(SIZE, 5)) if features else None
    return Graph.from_edges(rows, num_nodes=SIZE, directed=True, weights=weights, features=values)


def dense(matrix: SparseMatrix) -> np.ndarray:
    return (matrix @ torch.eye(matrix.shape[1])).numpy()


def normalised(graph: Graph, keep: np.ndarray | None = None) -> np.ndarray:
    """D_out^-½ (A + I) D_in^-½ from the arcs, one by one; `keep` says which edges are not hidden."""
    matrix = np.eye(SIZE)
    edges = {tuple(edge): place for place, edge in enumerate(graph.edges.tolist())}
    weights = np.ones(graph.num_arcs) if graph.arc_weights is None else graph.arc_weights
    for (i, j), weight in zip(graph.arcs.tolist(), weights.tolist(), strict=True):
        if keep is None or keep[edges[min(i, j), max(i, j)]]:
            matrix[i, j] = weight
    out, into = matrix.sum(axis=1), matrix.sum(axis=0)
    scaled: np.ndarray = matrix / np.sqrt(out)[:, None] / np.sqrt(into)
    return scaled


@pytest.mark.parametrize("weighted", [False, True])
def test_outgoing_and_incoming_are_normalised_by_both_degrees(weighted: bool) -> None:
    graph = graph_of(weighted)
    inputs = EncoderInputs.from_graph(graph)
    np.testing.assert_allclose(dense(inputs.outgoing), normalised(graph), rtol=1e-6)
    np.testing.assert_array_equal(dense(inputs.incoming), dense(inputs.outgoing).T)


def test_of_an_undirected_graph_both_are_the_paper_s_propagation() -> None:
    inputs = EncoderInputs.from_graph(graph_of(weighted=True).without_directions())
    np.testing.assert_allclose(dense(inputs.outgoing), dense(inputs.propagation), rtol=1e-6)
    np.testing.assert_allclose(dense(inputs.incoming), dense(inputs.propagation), rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
def test_hidden_links_are_hidden_both_along_and_against(weighted: bool) -> None:
    graph = graph_of(weighted)
    inputs = EncoderInputs.from_graph(graph)
    seen = set()
    for seed in range(5):
        step = inputs.in_step(torch.Generator().manual_seed(seed), mask_links=0.5)
        assert step.kept is not None
        keep = step.kept.numpy()
        assert keep[-1]
        seen.add(int(keep.sum()))
        np.testing.assert_allclose(dense(step.outgoing), normalised(graph, keep), rtol=1e-5)
        np.testing.assert_array_equal(dense(step.incoming), dense(step.outgoing).T)
        x, upstream = torch.ones(SIZE, SIZE, requires_grad=True), torch.eye(SIZE)
        (gradient,) = torch.autograd.grad(step.outgoing @ x, x, upstream)
        np.testing.assert_allclose(gradient.numpy(), dense(step.outgoing).T, rtol=1e-6)
    assert len(seen) > 1
    np.testing.assert_array_equal(dense(inputs.outgoing), dense(EncoderInputs.from_graph(graph).outgoing))


def by_hand(encoder: DirectedEncoder, graph: Graph) -> dict[str, Tensor]:
    """The two layers as they are written, with dense matrices."""
    along = torch.tensor(normalised(graph), dtype=torch.float32)
    x = torch.eye(SIZE) if graph.features is None else torch.tensor(graph.features)
    first = encoder.input_weights
    hidden = torch.relu(along @ x @ first["out"] + along.T @ x @ first["in"] + x @ first["own"])
    return {
        head: along @ hidden @ encoder.out_weights[head]
        + along.T @ hidden @ encoder.in_weights[head]
        + hidden @ encoder.own_weights[head]
        for head in HEADS
    }


@pytest.mark.parametrize("features", [True, False])
def test_the_encoder_is_its_equation(features: bool) -> None:
    graph = graph_of(weighted=False, features=features)
    encoder = Directed().build(5 if features else SIZE, 4, HEADS, torch.Generator().manual_seed(2))
    found = encoder(EncoderInputs.from_graph(graph))
    for head, expected in by_hand(encoder, graph).items():
        torch.testing.assert_close(found[head], expected)


def test_the_other_way_round_is_another_embedding() -> None:
    graph = graph_of(weighted=False)
    turned = Graph.from_edges(graph.arcs[:, ::-1], num_nodes=SIZE, directed=True, features=graph.features)
    encoder = Directed().build(5, 4, HEADS, torch.Generator().manual_seed(2))
    here, there = (encoder(EncoderInputs.from_graph(each))["mean"] for each in (graph, turned))
    assert not torch.allclose(here, there)
    encoder.input_weights["in"], encoder.input_weights["out"] = (
        encoder.input_weights["out"],
        encoder.input_weights["in"],
    )
    encoder.in_weights, encoder.out_weights = encoder.out_weights, encoder.in_weights
    torch.testing.assert_close(encoder(EncoderInputs.from_graph(turned))["mean"], here)
