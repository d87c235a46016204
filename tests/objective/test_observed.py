"""What is observed of a graph, with or without the diagonal, by ones or by soft labels: against the dense loss."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import vgae
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.likelihood.positive_pairs import Observed
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.objective.base import LossOptions
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import WEIGHTINGS, Weighting
from vgae.ops import Factors
from vgae.train.config import Config

KINDS = [Observed(diagonal, soft) for diagonal, soft in product([True, False], repeat=2)]


class Turned(Decoder):
    """logit_ij = z_i·z_(j, turned by one dimension): not symmetric."""

    symmetric = False

    def factors(self, z: Tensor) -> Factors:
        return Factors(z, z.roll(1, dims=1))


@pytest.fixture(scope="module")
def graph() -> Graph:
    plain = stochastic_block_model(40, 4, seed=3)
    weights = np.random.default_rng(0).uniform(0.05, 1, plain.num_edges)
    weights[:5] = 1
    return Graph.from_edges(plain.edges, num_nodes=40, weights=weights)


def model_of(symmetric: bool) -> AutoEncoder:
    model = Config(model="gae", hidden_dim=4, latent_dim=3).composition.build(40, torch.Generator().manual_seed(0))
    if not symmetric:
        model.decoder = Turned()
    return model


def embeddings() -> Tensor:
    return torch.randn(40, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64).requires_grad_()


def dense_loss(graph: Graph, z: Tensor, observed: Observed, weighting: Weighting, model: AutoEncoder) -> Tensor:
    """The weighted cross entropy of every pair, the diagonal's left out where it is not observed."""
    links = graph.weighted_adjacency if observed.soft else graph.adjacency
    labels = torch.tensor(links.toarray(), dtype=torch.float64) + torch.eye(40, dtype=torch.float64)
    factors = model.decoder.require_factors(z)
    losses = binary_cross_entropy_with_logits(
        factors.q @ factors.columns.T,
        labels,
        pos_weight=torch.tensor(weighting.positive_weight, dtype=torch.float64),
        reduction="none",
    )
    counted = torch.ones(40, 40) if observed.diagonal else 1 - torch.eye(40)
    return (counted * losses).sum()


@pytest.mark.parametrize("observed", KINDS, ids=str)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("symmetric", [True, False])
def test_exact_objective_is_the_dense_loss(graph: Graph, observed: Observed, weighting: str, symmetric: bool) -> None:
    model, z = model_of(symmetric), embeddings()
    weights = Weighting.named(weighting, graph, num_ones=observed.num_ones(graph))
    objective = ExactObjective(graph, model, weights, "cpu", options=LossOptions(observed))
    found = objective.reconstruction(model.decoder, z, torch.Generator(), value=True)
    expected = dense_loss(graph, z, observed, weights, model)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=0)
    ours, theirs = (torch.autograd.grad(loss, z, retain_graph=True)[0] for loss in (found, expected))
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("observed", KINDS, ids=str)
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("control_variate", [True, False])
def test_sampled_objective_is_unbiased(
    graph: Graph, observed: Observed, symmetric: bool, control_variate: bool
) -> None:
    model, z = model_of(symmetric), embeddings()
    weights = Weighting.named("elbo", graph)
    sampled = SampledObjective(
        graph,
        model,
        weights,
        "cpu",
        options=LossOptions(observed),
        num_negatives=500,
        control_variate=control_variate,
    )
    source = torch.Generator().manual_seed(5)
    draws = torch.stack([sampled.reconstruction(model.decoder, z, source, value=True).detach() for _ in range(200)])
    expected = dense_loss(graph, z, observed, weights, model).detach()
    assert abs(float(draws.mean() - expected)) <= 4 * float(draws.std()) / 200**0.5


def test_soft_labels_of_one_are_the_ones(graph: Graph) -> None:
    ones = graph.with_parts(weights=np.ones(graph.num_edges, dtype=np.float32))
    model, z = model_of(True), embeddings()
    weights = Weighting.named("paper", graph)
    hard, soft = (
        ExactObjective(given, model, weights, "cpu", options=LossOptions(Observed(soft=soft))).reconstruction(
            model.decoder, z, torch.Generator(), value=True
        )
        for given, soft in ((graph, False), (ones, True))
    )
    assert torch.equal(hard, soft)


@pytest.mark.parametrize("weights", [None, [0.5, 0.2, 1.5], [0.5, 2.0, 1.0]])
def test_weights_that_are_no_labels_are_refused(weights: list[float] | None) -> None:
    graph = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d")], weights=weights)
    sentence = {
        None: "soft_labels: the links have no weights",
        1.5: "between c and d has the weight 1.5; as labels, weights have to be above 0 and at most 1",
        2.0: "between b and c has the weight 2;",
    }[None if weights is None else max(weights)]
    with pytest.raises(InputError, match=sentence):
        vgae.VGAE(iterations=2, soft_labels=True).fit(graph)


def test_soft_label_is_learned_as_a_probability() -> None:
    """Where the true loss of a single pair is smallest, its logit is log(y/(1 - y))."""
    label = 0.3
    graph = Graph.from_edges([(0, 1)], weights=[label])
    model, weights = model_of(True), Weighting.named("elbo", graph)
    objective = ExactObjective(graph, model, weights, "cpu", options=LossOptions(Observed(diagonal=False, soft=True)))
    logit = float(np.log(label / (1 - label)))
    z = torch.tensor([[1.0], [logit]], dtype=torch.float64, requires_grad=True)
    loss = objective.reconstruction(model.decoder, z, torch.Generator(), value=True)
    (gradient,) = torch.autograd.grad(loss, z)
    torch.testing.assert_close(gradient, torch.zeros_like(gradient), rtol=0, atol=1e-7)


def test_kl_weights_and_labels_reach_the_training(graph: Graph) -> None:
    """Each option is a number in the loss that training logs first: the same draw, another loss."""
    kinds: dict[str, dict[str, Any]] = {
        "plain": {},
        "soft": {"soft_labels": True},
        "bare": {"diagonal": False},
        "beta": {"beta": 3.0},
    }
    first = {
        name: vgae.VGAE(iterations=1, hidden_dim=4, latent_dim=2, **options).fit(graph).history_[0]
        for name, options in kinds.items()
    }
    plain = first["plain"]
    assert first["beta"].kl == pytest.approx(3 * plain.kl, rel=1e-6)
    assert first["beta"].reconstruction == plain.reconstruction
    assert first["soft"].reconstruction != plain.reconstruction
    assert first["bare"].reconstruction < plain.reconstruction
