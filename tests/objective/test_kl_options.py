"""β, warm-up and free bits against their formulas, in value and gradient; what counts as collapsed."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import NormalPosterior, PowerSphericalPosterior
from vgae.model.priors import Prior, PriorInputs
from vgae.objective.base import total_kl
from vgae.objective.collapse import Activity
from vgae.objective.exact import ExactObjective
from vgae.objective.weighting import LossTerms, Weighting
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.step import Step


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return stochastic_block_model(40, 4, feature_dim=12, seed=3)


def model_of(graph: Graph, config: Config) -> AutoEncoder:
    return config.composition.build(graph.num_features, generator(2))


def step_of(graph: Graph, config: Config) -> Step:
    """A step from the same weights each time."""
    model = model_of(graph, config)
    objective = ExactObjective(graph, model, config.weighting_for(graph), "cpu", options=config.loss_options)
    return Step(model, EncoderInputs.from_graph(graph), objective, generator(5), config)


def terms_of(graph: Graph, config: Config, warmth: float | None = None) -> tuple[LossTerms, dict[str, Tensor]]:
    """The loss at one draw and its gradients by the weights."""
    step = step_of(graph, config)
    given = None if warmth is None else torch.tensor(warmth)
    terms = step.objective(step.model, step.inputs, generator(7), warmth=given)
    terms.total.backward()  # type: ignore[no-untyped-call]
    weights = step.model.named_parameters()
    return terms, {name: weight.grad.clone() for name, weight in weights if weight.grad is not None}


def mixed(one: dict[str, Tensor], other: dict[str, Tensor], share: float) -> dict[str, Tensor]:
    """Gradients of (1 - share)·one + share·other."""
    return {name: (1 - share) * one[name] + share * other[name] for name in one}


@pytest.mark.parametrize("weighting", ["paper", "elbo"])
@pytest.mark.parametrize("beta", [0.0, 0.3, 4.0])
def test_beta_multiplies_the_kl_and_nothing_else(graph: Graph, weighting: str, beta: float) -> None:
    config = Config(weighting=weighting, hidden_dim=8, latent_dim=4)
    plain, of_plain = terms_of(graph, config)
    found, gradients = terms_of(graph, replace(config, beta=beta))
    _, without = terms_of(graph, replace(config, beta=0.0))
    torch.testing.assert_close(found.reconstruction, plain.reconstruction)
    torch.testing.assert_close(found.kl, beta * plain.kl)
    for name, expected in mixed(without, of_plain, beta).items():
        torch.testing.assert_close(gradients[name], expected, rtol=1e-3, atol=1e-5 * float(expected.abs().max()))


def test_the_kl_comes_in_evenly_over_the_warm_up(graph: Graph) -> None:
    """In iteration t it counts min(1, t / (warm_up + 1)): never nothing, and in full right after the warm-up."""
    config = Config(weighting="elbo", warm_up=4, hidden_dim=8, latent_dim=4, learning_rate=1e-12)
    plain = step_of(graph, replace(config, warm_up=0))
    step = step_of(graph, config)
    for iteration in range(1, 9):
        found, expected = (each(iteration, value=True) for each in (step, plain))
        torch.testing.assert_close(found.reconstruction, expected.reconstruction)
        torch.testing.assert_close(found.kl, min(1.0, iteration / 5) * expected.kl)


def test_warmth_scales_the_gradient_of_the_kl(graph: Graph) -> None:
    config = Config(weighting="elbo", hidden_dim=8, latent_dim=4)
    _, in_full = terms_of(graph, config)
    _, without = terms_of(graph, replace(config, beta=0.0))
    _, found = terms_of(graph, config, warmth=0.25)
    for name, expected in mixed(without, in_full, 0.25).items():
        torch.testing.assert_close(found[name], expected, rtol=1e-3, atol=1e-5 * float(expected.abs().max()))


def test_a_prior_begins_once_when_the_kl_first_counts_in_full(graph: Graph) -> None:
    class Counting(Prior):
        begun: list[tuple[int, int]]

        def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:  # noqa: ARG002
            return -0.5 * z.square().sum(dim=1)

        def begin(self, posterior: object, seen: PriorInputs, generator: torch.Generator) -> None:  # noqa: ARG002
            assert seen.inputs.num_nodes == 40
            self.begun.append((iteration, len(posterior.mean)))  # type: ignore[attr-defined]

    for warm_up, expected in ((0, 1), (3, 4)):
        step = step_of(graph, Config(warm_up=warm_up, hidden_dim=8, latent_dim=4))
        step.model.prior = prior = Counting()
        prior.begun = []
        for iteration in range(1, 7):
            step(iteration, value=False)
        assert prior.begun == [(expected, 40)]


# ------------------------------------------------------------------------------------------------------------ free bits


def test_free_bits_cost_nothing_below_and_everything_above() -> None:
    """N Σ_d max(λ, mean_i KL_id): dimensions below λ have no gradient, those above that of the KL itself."""
    kl = torch.tensor([[0.05, 1.0, 0.4], [0.01, 3.0, 0.2]], dtype=torch.float64, requires_grad=True)
    found = total_kl(kl, kl.shape, 0.35)
    assert float(found.detach()) == pytest.approx(2 * (0.35 + 2.0 + 0.35))
    (gradient,) = torch.autograd.grad(found, kl)
    torch.testing.assert_close(gradient, torch.tensor([[0.0, 1, 0], [0, 1, 0]], dtype=torch.float64))
    assert float(total_kl(kl.detach(), kl.shape, 0.0)) == pytest.approx(float(kl.detach().sum()))


def test_free_bits_of_a_kl_that_is_no_sum_over_dimensions() -> None:
    """N max(λd, mean_i KL_i)."""
    kl = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
    below, above = total_kl(kl, (len(kl), 4), 0.3), total_kl(kl, (len(kl), 4), 0.2)
    assert float(below.detach()) == pytest.approx(2 * 1.2)
    assert float(above.detach()) == pytest.approx(2.0)
    assert float(torch.autograd.grad(below, kl)[0].abs().max()) == 0
    torch.testing.assert_close(torch.autograd.grad(above, kl)[0], torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("options", [{}, {"posterior": "power_spherical"}])
def test_free_bits_are_nats_per_dimension_of_the_whole_model(graph: Graph, options: dict[str, str]) -> None:
    config = Config(weighting="elbo", hidden_dim=8, latent_dim=4, **options)  # type: ignore[arg-type]
    plain, _ = terms_of(graph, config)
    much, _ = terms_of(graph, replace(config, free_bits=50.0))
    assert float(much.kl.detach()) == pytest.approx(40 * 4 * 50.0)
    torch.testing.assert_close(much.reconstruction, plain.reconstruction)
    _, gradients = terms_of(graph, replace(config, free_bits=50.0))
    _, without = terms_of(graph, replace(config, beta=0.0))
    for name, expected in without.items():
        torch.testing.assert_close(gradients[name], expected)
    hardly, _ = terms_of(graph, replace(config, free_bits=1e-9))
    torch.testing.assert_close(hardly.kl, plain.kl)


def test_the_three_go_together(graph: Graph) -> None:
    """β·warmth·(KL with free bits), scaled as the weighting has it."""
    config = Config(weighting="paper", beta=0.5, free_bits=2.0, hidden_dim=8, latent_dim=4)
    found, _ = terms_of(graph, config, warmth=0.25)
    scale = Weighting.named("paper", graph).kl_scale
    step = step_of(graph, config)
    posterior = step.model.encode(step.inputs)
    each = step.model.kl(posterior, posterior.mean, step.inputs).detach()
    expected = 40 * each.mean(dim=0).clamp(min=2.0).sum()
    torch.testing.assert_close(found.kl.detach(), 0.5 * 0.25 * scale * expected)


# ------------------------------------------------------------------------------------------------------------- collapse


def test_dimensions_are_active_by_their_share_whatever_their_scale() -> None:
    noise = torch.randn(500, 4, generator=generator(), dtype=torch.float64)
    noise = (noise - noise.mean(dim=0)) / noise.std(dim=0, correction=0)
    scale = torch.tensor([1e-3, 1.0, 1.0, 1e3], dtype=torch.float64)
    means = scale * noise * torch.tensor([0.5, 0.5, 0.3, 0.3], dtype=torch.float64)
    posterior = NormalPosterior(means, scale.log().expand(500, 4))
    # Var of the means over that and σ²: 0.25/1.25 is above a tenth, 0.09/1.09 is not.
    assert Activity.of(posterior) == Activity(2, 4)
    assert Activity.of(NormalPosterior(torch.ones(500, 4), torch.zeros(500, 4))).active == 0


def test_a_direction_that_is_uncertain_is_not_active() -> None:
    direction = torch.randn(500, 8, generator=generator())
    certain, uncertain = (PowerSphericalPosterior(direction, torch.full((500, 1), raw)) for raw in (3.0, -4.0))
    assert Activity.of(certain) == Activity(8, 8)
    assert Activity.of(uncertain) == Activity(0, 8)


@pytest.mark.parametrize(("active", "dim", "collapsed"), [(0, 2, True), (1, 4, False), (1, 16, True), (2, 16, False)])
def test_none_or_hardly_any_active_dimension_is_a_collapse(active: int, dim: int, collapsed: bool) -> None:
    assert Activity(active, dim).is_collapsed == collapsed


def test_a_free_model_is_active_and_one_held_to_its_prior_is_not(graph: Graph) -> None:
    """A KL that outweighs all else leaves nothing of the embeddings; the history says so as it happens."""
    config = Config(hidden_dim=8, latent_dim=8, iterations=150, learning_rate=0.05, device="cpu")
    free, held = (train(Job.of(graph, replace(config, beta=beta))) for beta in (0.0, 1e4))
    assert free.history[-1].active is not None
    assert not Activity.of(free.posterior).is_collapsed
    assert held.history[-1].active == 0
    assert Activity.of(held.posterior).is_collapsed
