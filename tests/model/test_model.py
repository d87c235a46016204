"""Posteriors and priors: a contract for every registered member, and the paper's equations."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.distributions import Normal as TorchNormal
from torch.distributions import kl_divergence as torch_kl

from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.inputs import normalized_adjacency
from vgae.model.kl import kl_divergence
from vgae.model.posteriors import DeltaPosterior, NormalPosterior, Posterior, PosteriorSpec
from vgae.model.priors import Prior, PriorSpec, StandardNormalPrior
from vgae.model.spec import registered

POSTERIORS, PRIORS = (registered(family) for family in ("posterior", "prior"))


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


# ----------------------------------------------------------------------------------------------------------- posteriors


def spec_of(name: str) -> PosteriorSpec:
    spec = POSTERIORS[name]()
    assert isinstance(spec, PosteriorSpec)
    return spec


def make_posterior(name: str, num_nodes: int = 5, dim: int = 3) -> Posterior:
    spec = spec_of(name)
    shapes = {head: (num_nodes, width) for head, width in spec.heads(dim).items()}
    return spec.build(
        {head: torch.randn(shape, generator=generator(7), dtype=torch.float64) / 2 for head, shape in shapes.items()}
    )


def make_prior(name: str) -> Prior:
    spec = PRIORS[name]()
    assert isinstance(spec, PriorSpec)
    return spec.build(1, generator(), 30)


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_posterior_has_its_mean_as_the_mean_of_its_samples(name: str) -> None:
    posterior = make_posterior(name)
    source = generator(1)
    draws = torch.stack([posterior.sample(source) for _ in range(4000)])
    error = draws.std(dim=0) / 4000**0.5
    assert bool(((draws.mean(dim=0) - posterior.mean).abs() <= 4.5 * error + 1e-12).all())


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_posterior_repeats_itself_for_the_same_generator(name: str) -> None:
    posterior = make_posterior(name)
    assert torch.equal(posterior.sample(generator(3)), posterior.sample(generator(3)))


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_posterior_tells_whether_it_is_deterministic(name: str) -> None:
    posterior = make_posterior(name)
    assert spec_of(name).deterministic == torch.equal(posterior.sample(generator(3)), posterior.mean)


def test_normal_samples_spread_by_exp_log_std() -> None:
    posterior = NormalPosterior(torch.zeros(2, 3), torch.log(torch.tensor([[0.1, 1.0, 3.0], [0.5, 2.0, 0.01]])))
    source = generator()
    draws = torch.stack([posterior.sample(source) for _ in range(8000)])
    torch.testing.assert_close(draws.std(dim=0), posterior.log_std.exp(), rtol=0.05, atol=0)


def test_gradients_pass_through_a_normal_sample() -> None:
    mean = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    log_std = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda m, s: NormalPosterior(m, s).sample(generator(5)), (mean, log_std))


# ------------------------------------------------------------------------------------------------------- priors and KL


@pytest.mark.parametrize("name", PRIORS)
def test_every_prior_density_integrates_to_one(name: str) -> None:
    grid = torch.linspace(-10, 10, 20001, dtype=torch.float64)[:, None]
    density = make_prior(name).log_prob(grid).exp()
    assert float(torch.trapezoid(density, grid[:, 0])) == pytest.approx(1, abs=1e-6)


def test_kl_of_normal_and_standard_normal_is_torchs() -> None:
    posterior = make_posterior("normal")
    assert isinstance(posterior, NormalPosterior)
    expected = torch_kl(TorchNormal(posterior.mean, posterior.log_std.exp()), TorchNormal(0.0, 1.0)).sum(dim=1)
    torch.testing.assert_close(kl_divergence(posterior, StandardNormalPrior(), posterior.mean).sum(dim=1), expected)


def test_kl_vanishes_at_the_prior_and_for_a_point() -> None:
    at_prior = NormalPosterior(torch.zeros(3, 2), torch.zeros(3, 2))
    assert torch.equal(kl_divergence(at_prior, StandardNormalPrior(), at_prior.mean), torch.zeros(3, 2))
    point = DeltaPosterior(torch.ones(3, 2))
    assert torch.equal(kl_divergence(point, StandardNormalPrior(), point.mean), torch.zeros(3))


LOG_DENSITIES: dict[str, Any] = {  # of each posterior with a spread, by torch
    "normal": lambda given, z: TorchNormal(given.mean, given.log_std.exp()).log_prob(z).sum(dim=1),  # type: ignore[no-untyped-call]
}


@pytest.mark.parametrize("prior", PRIORS)
@pytest.mark.parametrize("posterior", POSTERIORS)
def test_every_pair_of_posterior_and_prior_has_the_kl_that_draws_estimate(posterior: str, prior: str) -> None:
    """KL = E_q[log q(z) - log p(z)], within standard errors; a point has none by convention."""
    given, density = make_posterior(posterior), make_prior(prior)
    found = kl_divergence(given, density, given.mean)
    found = found if found.dim() == 1 else found.sum(dim=1)
    if spec_of(posterior).deterministic:
        assert torch.equal(found, torch.zeros(5, dtype=torch.float64))
        return
    source = generator(1)
    draws = [given.sample(source) for _ in range(4000)]
    differences = torch.stack([LOG_DENSITIES[posterior](given, z) - density.log_prob(z) for z in draws])
    error = differences.std(dim=0) / 4000**0.5
    assert bool(((differences.mean(dim=0) - found).abs() <= 4.5 * error).all())
    assert bool((found > 20 * error).all())  # else anything near 0 would do
