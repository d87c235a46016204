"""Links that are hidden from the encoder in a step of training: Ã is that of the graph without them."""

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.stats import chisquare

from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.inputs import EncoderInputs, normalized_adjacency
from vgae.objective.base import LossOptions, Objective
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.ops import SparseMatrix
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def make_graph(*, weighted: bool, num_nodes: int = 50) -> Graph:
    graph = stochastic_block_model(num_nodes, 2, feature_dim=8, seed=2)
    weights = np.random.default_rng(1).uniform(0.1, 9, graph.num_edges) if weighted else None
    return Graph.from_edges(graph.edges, num_nodes=num_nodes, weights=weights, features=graph.features)


def dense(matrix: SparseMatrix) -> npt.NDArray[np.float64]:
    found: npt.NDArray[np.float64] = (matrix @ torch.eye(matrix.shape[0], dtype=torch.float64)).numpy()
    return found


def hidden_in(graph: Graph, matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Of each link, whether it is hidden."""
    found: npt.NDArray[np.bool_] = matrix[graph.edges[:, 0], graph.edges[:, 1]] == 0
    return found


@pytest.mark.parametrize("share", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("weighted", [False, True])
def test_masked_propagation_is_that_of_the_graph_without_the_hidden_links(weighted: bool, share: float) -> None:
    graph = make_graph(weighted=weighted)
    inputs = EncoderInputs.from_graph(graph)
    for seed in range(5):
        found = dense(inputs.in_step(generator(seed), share).propagation)
        hidden = hidden_in(graph, found)
        assert 0 < hidden.sum() < graph.num_edges
        weights = None if graph.weights is None else graph.weights[~hidden]
        others = Graph.from_edges(graph.edges[~hidden], num_nodes=graph.num_nodes, weights=weights)
        np.testing.assert_allclose(found, normalized_adjacency(others).toarray(), rtol=2e-6)
        np.testing.assert_array_equal(found, found.T)


def test_backward_product_hides_the_same_links() -> None:
    inputs = EncoderInputs.from_graph(make_graph(weighted=True)).in_step(generator(3), 0.5)
    values = torch.randn(50, 4, generator=generator(1), dtype=torch.float64, requires_grad=True)
    upstream = torch.randn(50, 4, generator=generator(2), dtype=torch.float64)
    (gradient,) = torch.autograd.grad(inputs.propagation @ values, values, upstream)
    torch.testing.assert_close(gradient, torch.tensor(dense(inputs.propagation)).T @ upstream)
    assert torch.autograd.gradcheck(lambda given: inputs.propagation @ given, (values,))


def test_each_link_is_hidden_by_itself_with_the_same_probability() -> None:
    graph, share, repeats = make_graph(weighted=False), 0.3, 2000
    inputs, source = EncoderInputs.from_graph(graph), generator(7)
    mask = inputs.of_graph.mask
    places = torch.argsort(mask.places, stable=True)[: 2 * graph.num_edges : 2]  # one entry of each link
    drawn = [mask.propagation_of(mask.drawn(share, source)).rows.values[places] == 0 for _ in range(repeats)]
    hidden = torch.stack(drawn).double().numpy()
    counts = hidden.sum(axis=0)
    # of each link over all draws
    expected = np.array([share, 1 - share]) * repeats
    table = np.stack([counts, repeats - counts])
    statistic = ((table - expected[:, None]) ** 2 / expected[:, None]).sum()
    assert statistic == pytest.approx(graph.num_edges, abs=4.5 * (2 * graph.num_edges) ** 0.5)
    # of all links in each draw: binomial, so that one does not depend on another
    sizes = hidden.sum(axis=1)
    variance = graph.num_edges * share * (1 - share)
    assert sizes.mean() == pytest.approx(graph.num_edges * share, abs=4.5 * (variance / repeats) ** 0.5)
    assert sizes.var() == pytest.approx(variance, rel=4.5 * (2 / repeats) ** 0.5)
    # and of neighbouring draws
    both = chisquare(
        [(hidden[1:] * hidden[:-1]).sum(), (1 - hidden[1:] * hidden[:-1]).sum()],
        np.array([share**2, 1 - share**2]) * (repeats - 1) * graph.num_edges,
    )
    assert both.pvalue > 1e-4


def test_nodes_never_lose_themselves() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2)], num_nodes=4, weights=[2.0, 3.0])
    inputs = EncoderInputs.from_graph(graph)
    for seed in range(20):
        found = dense(inputs.in_step(generator(seed), 0.95).propagation)
        assert (np.diag(found) > 0).all()
        assert found[3, 3] == 1


def test_a_step_that_hides_nothing_draws_nothing() -> None:
    inputs, source = EncoderInputs.from_graph(make_graph(weighted=False)), generator(1)
    before = source.get_state()
    step = inputs.in_step(source, 0.0)
    assert step.propagation is inputs.propagation
    assert torch.equal(source.get_state(), before)
    assert step.features is inputs.features


def test_training_with_a_share_of_zero_has_the_bits_of_one_without() -> None:
    graph = make_graph(weighted=False)
    options: dict[str, Any] = {"iterations": 5, "latent_dim": 3, "hidden_dim": 4, "device": "cpu"}
    plain = train(Job.of(graph, Config(**options)))
    zero, half = (train(Job.of(graph, Config(**options, mask_links=share))) for share in (0.0, 0.5))
    assert torch.equal(plain.embeddings, zero.embeddings)
    assert not torch.equal(plain.embeddings, half.embeddings)


@pytest.mark.parametrize("kind", [ExactObjective, SampledObjective])
def test_hidden_links_are_predicted_all_the_same(kind: type[ExactObjective] | type[SampledObjective]) -> None:
    """The loss is that over all links, at what the encoder makes of the others; the KL is that of this posterior."""
    graph, config = make_graph(weighted=False), Config(latent_dim=3, hidden_dim=4)
    inputs = EncoderInputs.from_graph(graph)
    model = config.composition.build(graph.num_features, generator())
    given = graph, model, config.weighting_for(graph), "cpu"
    masked: Objective = kind(*given, options=LossOptions(mask_links=0.6))
    plain: Objective = kind(*given)
    source = generator(9)
    step = inputs.in_step(source, 0.6)
    expected = plain.at(model, model.encode(step), inputs, source)
    found = masked(model, inputs, generator(9))
    assert torch.equal(found.total, expected.total)
    assert torch.equal(found.kl, expected.kl)
    assert not torch.equal(found.total, plain(model, inputs, generator(9)).total)


def test_embeddings_are_those_of_all_links() -> None:
    graph = make_graph(weighted=True)
    trained = train(Job.of(graph, Config(iterations=3, mask_links=0.7, hidden_dim=4, latent_dim=3, device="cpu")))
    with torch.no_grad():
        expected = trained.model.encode(EncoderInputs.from_graph(graph)).mean
    assert torch.equal(trained.embeddings, expected)
