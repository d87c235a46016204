"""Sums by row are those pair by pair that they replaced: for every decoder with factors, and whatever is observed."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.likelihood.bernoulli import correction_at_ones, loss_at_ones, loss_at_zeros
from vgae.likelihood.positive_pairs import Observed, PositivePairs, diagonal_of
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.spec import find, registered
from vgae.objective.base import LossOptions
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.variate import AllPairs, ControlVariate
from vgae.objective.weighting import Weighting
from vgae.ops import all_pairs_softplus, ones
from vgae.train.config import Config

SIZE, LATENT = 60, 6
OBSERVED = [Observed(diagonal, soft) for diagonal, soft in product([True, False], repeat=2)]
DECODERS = (
    "inner_product",
    "scaled",
    "scaled:node_bias=true",
    "distance",
    "bilinear",
    "bilinear:form=full",
    "source_target",
)


def test_all_decoders_with_factors_are_here() -> None:
    own = {name for name, spec in registered("decoder").items() if spec.__module__.startswith("vgae.")}
    parts: dict[str, Any] = {name: find("decoder", name) for name in own}
    assert {name for name, part in parts.items() if part.factorised} == {name.partition(":")[0] for name in DECODERS}


@pytest.fixture(params=[False, True], ids=["torch", "numba"], autouse=True)
def _kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """With kernels and without, which graphs of this size do not have by themselves."""
    if request.param:
        pytest.importorskip("numba")
        monkeypatch.setattr(ones, "SHORTEST_FOR_NUMBA", 1)


@pytest.fixture(scope="module", params=[False, True], ids=["undirected", "directed"])
def graph(request: pytest.FixtureRequest) -> Graph:
    plain, rng = stochastic_block_model(SIZE, 4, seed=3), np.random.default_rng(0)
    weights = rng.uniform(0.05, 1, plain.num_edges)
    turned = rng.random((plain.num_edges, 1)) < 0.5
    edges = np.where(turned, plain.edges[:, ::-1], plain.edges) if request.param else plain.edges
    return Graph.from_edges(edges, num_nodes=SIZE, weights=weights, directed=request.param)


def model_of(decoder: str) -> AutoEncoder:
    part: Any = find("decoder", decoder)
    composition = Config(model="gae", hidden_dim=4, latent_dim=LATENT, decoder=part).composition
    return composition.build(SIZE, torch.Generator().manual_seed(0))


def embeddings() -> Tensor:
    return torch.randn(SIZE, LATENT, generator=torch.Generator().manual_seed(1)).requires_grad_()


def exact_by_pairs(graph: Graph, decoder: Decoder, z: Tensor, observed: Observed, weight: float) -> Tensor:
    factors = decoder.require_factors(z)
    positives = PositivePairs.of(graph, symmetric=decoder.symmetric, device="cpu", observed=observed)
    everywhere = all_pairs_softplus(factors.q, factors.k, factors.row_bias, factors.column_bias)
    total = everywhere + positives.sum(correction_at_ones(factors.logits(positives.pairs), weight))
    if observed.diagonal:
        return total
    return total - loss_at_zeros(factors.logits(diagonal_of(graph, "cpu"))).sum()


def sampled_by_pairs(objective: SampledObjective, graph: Graph, decoder: Decoder, z: Tensor, pairs: Tensor) -> Tensor:
    """With the coefficients that the objective has, at pairs that it will draw."""
    observed, weight = objective.options.observed, objective.weighting.positive_weight
    positives = PositivePairs.of(graph, symmetric=decoder.symmetric, device="cpu", observed=observed)
    known = AllPairs.of(decoder.require_factors(z))
    logits = known.factors.logits(positives.pairs)
    times = positives.multiplicity if positives.zeros is None else positives.multiplicity + positives.zeros
    first, second = times @ logits, times @ logits**2
    if not observed.diagonal:
        diagonal = known.factors.diagonal()
        first, second = first + diagonal.sum(), second + diagonal.square().sum()
    variate: Any = objective.variate
    twin = ControlVariate(variate.num_zeros, variate.num_pairs, "cpu")
    twin.means.copy_(variate.means)
    total = twin.estimate(known, (first, second), pairs) + weight * positives.sum(loss_at_ones(logits))
    return total if positives.zeros is None else total + positives.zeros @ loss_at_zeros(logits)


def assert_same(ours: Tensor, theirs: Tensor, inputs: list[Tensor]) -> None:
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=0)
    for mine, expected in zip(*(torch.autograd.grad(each, inputs) for each in (ours, theirs)), strict=True):
        torch.testing.assert_close(mine, expected, rtol=1e-5, atol=1e-5 * float(expected.abs().max()))


@pytest.mark.parametrize("observed", OBSERVED, ids=str)
@pytest.mark.parametrize("decoder", DECODERS)
def test_exact_objective_is_what_it_was(graph: Graph, decoder: str, observed: Observed) -> None:
    model, z = model_of(decoder), embeddings()
    weighting = Weighting.named("paper", graph)
    objective = ExactObjective(graph, model, weighting, "cpu", options=LossOptions(observed))
    ours = objective.reconstruction(model.decoder, z, torch.Generator(), value=True)
    theirs = exact_by_pairs(graph, model.decoder, z, observed, weighting.positive_weight)
    assert_same(ours, theirs, [z, *model.decoder.parameters()])


@pytest.mark.parametrize("observed", OBSERVED, ids=str)
@pytest.mark.parametrize("decoder", DECODERS)
def test_sampled_objective_is_what_it_was(graph: Graph, decoder: str, observed: Observed) -> None:
    model, z = model_of(decoder), embeddings()
    given: Any = (graph, model, Weighting.named("paper", graph), "cpu")
    objective = SampledObjective(*given, options=LossOptions(observed), num_negatives=200)
    assert objective.variate is not None
    first = objective.sample_zeros(torch.Generator().manual_seed(2))
    objective.variate.learn(AllPairs.of(model.decoder.require_factors(z)), first)
    pairs = objective.sample_zeros(torch.Generator().manual_seed(3)).long()
    theirs = sampled_by_pairs(objective, graph, model.decoder, z, pairs)
    ours = objective.reconstruction(model.decoder, z, torch.Generator().manual_seed(3), value=True)
    assert_same(ours, theirs, [z, *model.decoder.parameters()])


def test_what_a_draw_teaches_does_not_depend_on_how_it_is_summed_up(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    model, z, means = model_of("scaled"), embeddings(), []
    objective = SampledObjective(graph, model, Weighting.named("paper", graph), "cpu", num_negatives=501)
    pairs = objective.sample_zeros(torch.Generator().manual_seed(2))
    known, variate = AllPairs.of(model.decoder.require_factors(z)), ControlVariate(1, 501, "cpu")
    for least in (1, 10**9):
        monkeypatch.setattr(ones, "SHORTEST_FOR_NUMBA", least)
        variate.learn(known, pairs)
        means.append(variate.means.clone())
    torch.testing.assert_close(*means, rtol=1e-6, atol=1e-9)
