"""The objectives against the loss written out over the dense N×N matrix."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.likelihood.positive_pairs import PositivePairs
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import NormalPosterior, Posterior
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import WEIGHTINGS, LossTerms, Weighting
from vgae.train.config import Config
from vgae.train.presets import PRESETS


@pytest.fixture(scope="module")
def graph() -> Graph:
    return stochastic_block_model(40, 4, seed=3)


def model_and_posterior(model: str, num_nodes: int = 40) -> tuple[AutoEncoder, Posterior]:
    generator = torch.Generator().manual_seed(11)
    composition = Config(model=model, hidden_dim=4, latent_dim=3).composition
    outputs = {
        head: torch.randn(num_nodes, width, generator=generator, dtype=torch.float64).mul(0.7).requires_grad_()
        for head, width in composition.heads.items()
    }
    return composition.build(num_nodes, generator), composition.posterior.build(outputs)


def inputs_of(graph: Graph) -> EncoderInputs:
    return EncoderInputs.from_graph(graph)


def generator_of(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def dense_terms(graph: Graph, weighting: str, posterior: Posterior) -> LossTerms:
    """The original's loss, from its own formulas: norm·mean of the weighted cross entropy, and KL / N²."""
    num_nodes = graph.num_nodes
    z = posterior.sample(generator_of())
    labels = torch.tensor(graph.adjacency.toarray(), dtype=torch.float64) + torch.eye(num_nodes, dtype=torch.float64)
    num_ones = float(graph.adjacency.sum())
    positive_weight = torch.tensor(
        (num_nodes**2 - num_ones) / num_ones if weighting == "paper" else 1.0, dtype=torch.float64
    )
    norm = num_nodes**2 / (2 * (num_nodes**2 - num_ones)) if weighting == "paper" else float(num_nodes**2)
    cross_entropy = binary_cross_entropy_with_logits(z @ z.T, labels, pos_weight=positive_weight)
    kl = torch.zeros((), dtype=torch.float64)
    if isinstance(posterior, NormalPosterior):
        inner = 1 + 2 * posterior.log_std - posterior.mean**2 - torch.exp(2 * posterior.log_std)
        kl = -0.5 * inner.sum(dim=1).mean()
        kl = kl / num_nodes if weighting == "paper" else kl * num_nodes
    return LossTerms(norm * cross_entropy, kl)


def gradient(terms: LossTerms, posterior: Posterior) -> list[Tensor]:
    return list(torch.autograd.grad(terms.total, list(posterior.parameters().values())))


@pytest.mark.parametrize("model", PRESETS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_exact_objective_is_the_originals_loss(graph: Graph, weighting: str, model: str) -> None:
    module, posterior = model_and_posterior(model)
    objective = ExactObjective(graph, module, Weighting.named(weighting, graph), "cpu")
    found = objective.at(module, posterior, inputs_of(graph), generator_of())
    expected = dense_terms(graph, weighting, posterior)
    torch.testing.assert_close(found.reconstruction, expected.reconstruction, rtol=1e-9, atol=1e-12)
    torch.testing.assert_close(found.kl, expected.kl, rtol=1e-9, atol=1e-12)
    for ours, theirs in zip(gradient(found, posterior), gradient(expected, posterior), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-11)


def test_exact_objective_without_value_has_the_same_gradient(graph: Graph) -> None:
    module, posterior = model_and_posterior("vgae")
    objective = ExactObjective(graph, module, Weighting.named("paper", graph), "cpu")
    bare = objective.at(module, posterior, inputs_of(graph), generator_of(), value=False)
    assert torch.isnan(bare.reconstruction)
    full = objective.at(module, posterior, inputs_of(graph), generator_of())
    for without, with_value in zip(gradient(bare, posterior), gradient(full, posterior), strict=True):
        assert torch.equal(without, with_value)


@pytest.mark.parametrize("num_nodes", [2, 40, 300])
def test_paper_weights_balance_ones_and_zeros(num_nodes: int) -> None:
    """By entries of A that are counted: w ones weigh what the zeros do, and both together have weight 1."""
    graph = (
        stochastic_block_model(num_nodes, 2, degree_within=5, seed=3) if num_nodes > 2 else Graph.from_edges([(0, 1)])
    )
    labels = graph.adjacency.toarray()
    ones, zeros = int((labels == 1).sum()), int((labels == 0).sum())
    weighting = Weighting.named("paper", graph)
    assert weighting.positive_weight * ones == pytest.approx(zeros)
    assert weighting.reconstruction_scale * (weighting.positive_weight * ones + zeros) == pytest.approx(1)
    assert weighting.kl_scale * labels.size == pytest.approx(1)


@pytest.mark.parametrize("symmetric", [True, False])
def test_ones_are_those_of_adjacency_plus_identity(graph: Graph, symmetric: bool) -> None:
    ones = PositivePairs.of(graph, symmetric=symmetric, device="cpu")
    found = torch.zeros(40, 40)
    found.index_put_(tuple(ones.pairs.T), ones.multiplicity, accumulate=True)
    expected = torch.tensor(graph.adjacency.toarray()) + torch.eye(40)
    assert torch.equal((found + found.T) / 2, expected)
    assert float(ones.sum(torch.ones(len(ones.pairs)))) == 2 * graph.num_edges + 40


@pytest.mark.parametrize("control_variate", [True, False])
@pytest.mark.parametrize("model", PRESETS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_sampled_objective_and_its_gradient_are_unbiased(
    graph: Graph, weighting: str, model: str, control_variate: bool
) -> None:
    module, posterior = model_and_posterior(model)
    heads = posterior.parameters()
    if "log_std" in heads:  # a narrow posterior, so that what varies is the sample of zeros
        heads["log_std"] = torch.full_like(heads["mean"], -30.0, requires_grad=True)
    posterior = module.posterior.build(heads)
    weights = Weighting.named(weighting, graph)
    exact = ExactObjective(graph, module, weights, "cpu").at(module, posterior, inputs_of(graph), generator_of())
    # 100,000 zeros in all; that a control variate has no bias by few zeros at a time is tested in test_variate.py.
    sampled = SampledObjective(graph, module, weights, "cpu", num_negatives=500, control_variate=control_variate)
    source = generator_of(5)
    draws = [sampled.at(module, posterior, inputs_of(graph), source) for _ in range(200)]
    values = torch.stack([terms.total.detach() for terms in draws])
    assert abs(float(values.mean() - exact.total.detach())) <= 4 * float(values.std()) / 200**0.5
    gradients = torch.stack([torch.autograd.grad(terms.total, heads["mean"])[0] for terms in draws])
    (expected,) = torch.autograd.grad(exact.total, heads["mean"])
    deviation = (gradients.mean(dim=0) - expected) / (gradients.std(dim=0) / 200**0.5)
    # 120 standard normal deviations: their largest, and the mean of their squares.
    assert float(deviation.abs().max()) <= 4.5
    assert float(deviation.square().mean()) == pytest.approx(1, abs=0.5)


def test_sampled_zeros_are_uniform_over_exactly_the_zeros() -> None:
    graph = Graph.from_edges([(0, 1), (1, 2), (2, 3), (0, 5), (4, 5)], num_nodes=6)
    module, _ = model_and_posterior("gae", 6)
    weights = Weighting.named("paper", graph)
    sampled = SampledObjective(graph, module, weights, "cpu", num_negatives=40_000, control_variate=False)
    pairs = sampled.sample_zeros(generator_of())
    counts = torch.zeros(6, 6).index_put_(tuple(pairs.T), torch.ones(len(pairs)), accumulate=True)
    zeros = (torch.tensor(graph.adjacency.toarray()) + torch.eye(6)) == 0
    assert torch.equal(counts > 0, zeros)
    expected = 40_000 / int(zeros.sum())
    chi_square = float(((counts[zeros] - expected) ** 2 / expected).sum())
    assert chi_square < 45.3  # the 99.9th percentile at 19 degrees of freedom is 43.8


def test_sampled_objective_draws_a_fixed_number_of_zeros(graph: Graph) -> None:
    module, _ = model_and_posterior("gae")
    default = SampledObjective(graph, module, Weighting.named("paper", graph), "cpu", control_variate=False)
    assert {len(default.sample_zeros(generator_of(seed))) for seed in range(5)} == {2 * graph.num_edges}


def test_complete_graph_has_no_zeros_to_sample() -> None:
    complete = Graph.from_edges([(0, 1), (0, 2), (1, 2)])
    module, _ = model_and_posterior("gae", 3)
    with pytest.raises(InputError, match="no zeros to sample"):
        SampledObjective(complete, module, Weighting.named("elbo", complete), "cpu", control_variate=False)


def test_unknown_weighting_lists_the_known(graph: Graph) -> None:
    with pytest.raises(InputError, match="paper, elbo"):
        Weighting.named("magic", graph)
