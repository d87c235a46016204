"""Every registered posterior: its draws, density, entropy, moments and gradients tell one story."""

import numpy as np
import pytest
import torch
from densities import DIMS, POSTERIORS, WITH_DENSITY, generator, grid, make_posterior, outputs_of, repeated, spec_of
from scipy import special, stats
from torch import Tensor
from torch.distributions import Normal as TorchNormal

from helpers import message_of
from vgae.model.posteriors import SPHERE, NormalPosterior, PowerSphericalPosterior
from vgae.train.config import Config

NUM_DRAWS = 20_000
SPREADS = (1e-3, 1e-2, 1.0, 30.0, 1e3)
KAPPAS = (0.01, 1.0, 30.0, 1e3, 1e4)


def within(found: Tensor, draws: Tensor, errors: float = 4.5) -> bool:
    """Whether numbers are the means of draws (rows), as far as these can tell."""
    error = draws.std(dim=0) / len(draws) ** 0.5
    return bool(((draws.mean(dim=0) - found).abs() <= errors * error + 1e-12).all())


# ---------------------------------------------------------------------------------------------------------------- draws


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("dim", [2, 3, 16])
def test_every_posterior_has_the_expectation_and_variance_of_its_draws(name: str, dim: int) -> None:
    posterior, _ = repeated(name, outputs_of(name, dim=dim), NUM_DRAWS)
    draws = posterior.sample(generator(1)).detach()
    expectation, variance = posterior.expectation[0].detach(), posterior.variance[0].detach()
    assert within(expectation, draws)
    assert within(variance, (draws - expectation).square())


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_embedding_points_where_the_expectation_does(name: str) -> None:
    posterior = make_posterior(name)
    cosines = torch.nn.functional.cosine_similarity(posterior.mean, posterior.expectation)
    torch.testing.assert_close(cosines, torch.ones(5, dtype=torch.float64))
    lengths = posterior.mean.norm(dim=1)
    if spec_of(name).space == SPHERE:
        torch.testing.assert_close(lengths, torch.ones(5, dtype=torch.float64))
    else:
        assert torch.equal(posterior.mean, posterior.expectation)


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_posterior_repeats_itself_for_the_same_generator(name: str) -> None:
    posterior = make_posterior(name)
    assert torch.equal(posterior.sample(generator(3)), posterior.sample(generator(3)))


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_posterior_tells_whether_it_is_deterministic(name: str) -> None:
    posterior = make_posterior(name)
    assert spec_of(name).deterministic == torch.equal(posterior.sample(generator(3)), posterior.mean)


@pytest.mark.parametrize("name", POSTERIORS)
def test_every_posterior_is_made_of_what_the_encoder_said(name: str) -> None:
    outputs = outputs_of(name)
    found = spec_of(name).build(outputs).parameters()
    assert set(found) == set(outputs) == set(spec_of(name).heads(3))
    assert all(torch.equal(found[head], outputs[head]) for head in outputs)


@pytest.mark.parametrize("name", WITH_DENSITY)
@pytest.mark.parametrize("seed", [7, 8])
def test_draws_fit_the_density_along_every_axis(name: str, seed: int) -> None:
    """Kolmogorov-Smirnov, against the distribution function that the density integrates to on a grid."""
    space = spec_of(name).space
    for dim in DIMS[space]:
        posterior, _ = repeated(name, outputs_of(name, dim=dim, seed=seed), 4000)
        draws = posterior.sample(generator(1)).detach().numpy()
        points, weights = grid(space, dim, size=1201)
        one = make_posterior(name, num_nodes=5, dim=dim, seed=seed)
        mass = (one.log_prob(points[:, None])[:, 0].exp() * weights).numpy()
        for axis in range(dim):
            places = points[:, axis].numpy()
            order = np.argsort(places, kind="stable")
            ordered, first = np.unique(np.round(places[order], 9), return_index=True)
            levels = np.add.reduceat(mass[order], first)
            below = np.cumsum(levels) - levels / 2
            found = stats.kstest(draws[:, axis], lambda at, x=ordered, y=below: np.interp(at, x, y))
            assert found.pvalue > 1e-3, (dim, axis)


def test_a_draw_on_the_sphere_turns_around_its_mean_evenly() -> None:
    """Chi-square of the direction of z - (μᵀz)μ around μ, and the distribution of (1 + μᵀz)/2, which is a Beta."""
    outputs = {"direction": torch.tensor([[0.3, -0.4, 0.2]]).double(), "concentration": torch.tensor([[1.5]]).double()}
    posterior, _ = repeated("power_spherical", outputs, NUM_DRAWS)
    assert isinstance(posterior, PowerSphericalPosterior)
    z, mean = posterior.sample(generator(2)).detach(), posterior.mean[0].detach()
    torch.testing.assert_close(z.norm(dim=1), torch.ones(NUM_DRAWS, dtype=torch.float64))
    cosine = z @ mean
    kappa = float(posterior.kappa[0].detach())
    assert stats.kstest((1 + cosine.numpy()) / 2, stats.beta(1 + kappa, 1).cdf).pvalue > 1e-3
    one = torch.linalg.cross(mean, torch.tensor([1.0, 0, 0]).double())
    other = torch.linalg.cross(mean, one)
    angles = torch.atan2(z @ (other / other.norm()), z @ (one / one.norm()))
    counts = torch.histc(angles, 40, -np.pi, np.pi).numpy()
    assert stats.chisquare(counts).pvalue > 1e-3
    assert stats.spearmanr(angles, cosine).pvalue > 1e-3


def test_normal_samples_spread_by_exp_log_std() -> None:
    posterior = NormalPosterior(torch.zeros(2, 3), torch.log(torch.tensor([[0.1, 1.0, 3.0], [0.5, 2.0, 0.01]])))
    source = generator()
    draws = torch.stack([posterior.sample(source) for _ in range(8000)])
    torch.testing.assert_close(draws.std(dim=0), posterior.log_std.exp(), rtol=0.05, atol=0)


# -------------------------------------------------------------------------------------------------- density and entropy


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_every_density_integrates_to_one_and_has_the_entropy_that_it_says(name: str) -> None:
    space = spec_of(name).space
    for dim in DIMS[space]:
        posterior = make_posterior(name, dim=dim)
        points, weights = grid(space, dim, size=801)
        log_density = posterior.log_prob(points[:, None])  # M×5
        mass = log_density.exp() * weights[:, None]
        torch.testing.assert_close(mass.sum(dim=0), torch.ones(5, dtype=torch.float64), rtol=1e-6, atol=0)
        torch.testing.assert_close(-(mass * log_density).sum(dim=0), posterior.entropy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", WITH_DENSITY)
@pytest.mark.parametrize("dim", [2, 16])
def test_every_entropy_is_that_of_a_long_run(name: str, dim: int) -> None:
    posterior, _ = repeated(name, outputs_of(name, dim=dim), NUM_DRAWS)
    log_density = posterior.log_prob(posterior.sample(generator(4))).detach()
    assert within(-posterior.entropy()[0].detach(), log_density)


@pytest.mark.parametrize("name", WITH_DENSITY)
def test_every_density_of_many_at_many_is_that_of_each_at_each(name: str) -> None:
    posterior, z = make_posterior(name), make_posterior(name, num_nodes=4, seed=9).sample(generator())
    table = posterior.log_prob(z[:, None])
    assert table.shape == (4, 5)
    for row in range(4):
        torch.testing.assert_close(table[row], posterior.log_prob(z[row].expand(5, 3)))


def test_a_point_has_neither_density_nor_entropy() -> None:
    point = make_posterior("delta")
    with pytest.raises(TypeError, match="no entropy"):
        point.entropy()
    with pytest.raises(TypeError, match="no density"):
        point.log_prob(point.mean)


def test_normal_density_and_entropy_are_torchs() -> None:
    posterior = make_posterior("normal")
    assert isinstance(posterior, NormalPosterior)
    expected = TorchNormal(posterior.mean, posterior.log_std.exp())
    z = posterior.sample(generator())
    torch.testing.assert_close(posterior.log_prob(z), expected.log_prob(z).sum(dim=1))  # type: ignore[no-untyped-call]
    torch.testing.assert_close(posterior.entropy(), expected.entropy().sum(dim=1))  # type: ignore[no-untyped-call]


# ------------------------------------------------------------------------------------------------------------ gradients


@pytest.mark.parametrize("name", WITH_DENSITY)
@pytest.mark.parametrize("dim", [2, 4])
def test_density_and_entropy_pass_gradcheck(name: str, dim: int) -> None:
    outputs = {head: value.requires_grad_() for head, value in outputs_of(name, dim=dim).items()}
    z = make_posterior(name, dim=dim).sample(generator()).requires_grad_()

    def values(z: Tensor, *given: Tensor) -> tuple[Tensor, Tensor]:
        posterior = spec_of(name).build(dict(zip(outputs, given, strict=True)))
        return posterior.log_prob(z), posterior.entropy()

    assert torch.autograd.gradcheck(values, (z, *outputs.values()))


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("dim", [2, 4])
def test_draws_pass_gradcheck_by_where_they_are(name: str, dim: int) -> None:
    """By the first head. The others' noise may depend on them, as that of a Beta variable does: see below."""
    first, *others = outputs_of(name, dim=dim).items()

    def draw(where: Tensor) -> Tensor:
        return spec_of(name).build({first[0]: where} | dict(others)).sample(generator(5))

    assert torch.autograd.gradcheck(draw, first[1].requires_grad_())


@pytest.mark.parametrize("name", POSTERIORS)
@pytest.mark.parametrize("dim", [2, 3, 16])
def test_gradients_through_draws_are_those_of_the_moments(name: str, dim: int) -> None:
    """E ∂f(z) = ∂E f(z) for f = z_d and z_d², by every parameter, within standard errors."""
    outputs = outputs_of(name, dim=dim)
    posterior, leaves = repeated(name, outputs, NUM_DRAWS)
    exact, exact_leaves = repeated(name, outputs, 1)
    z, expectation = posterior.sample(generator(6)), exact.expectation
    seconds = exact.variance + expectation.square()
    for axis in range(min(dim, 3)):
        for drawn, known in ((z, expectation), (z.square(), seconds)):
            found = torch.autograd.grad(
                drawn[:, axis].sum(), list(leaves.values()), retain_graph=True, materialize_grads=True
            )
            expected = torch.autograd.grad(
                known[0, axis], list(exact_leaves.values()), retain_graph=True, materialize_grads=True
            )
            for ours, theirs in zip(found, expected, strict=True):
                assert within(theirs[0], ours, errors=5)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [0.5, 1.5, 7.5, 107.5, 1e4])
def test_gamma_variables_have_the_implicit_gradient(kind: torch.dtype, shape: float) -> None:
    """∂g/∂a = -(∂F/∂a)/p, by SciPy: what torch gives, and what a draw on the sphere rests on."""
    shapes = torch.full((500,), shape, dtype=kind, requires_grad=True)
    draws = torch._standard_gamma(shapes, generator(1))
    (found,) = torch.autograd.grad(draws.sum(), shapes)
    at = draws.detach().double().numpy()
    step = 1e-5 * shape
    slope = (special.gammainc(shape + step, at) - special.gammainc(shape - step, at)) / (2 * step)
    expected = -slope / np.exp((shape - 1) * np.log(at) - at - special.gammaln(shape))
    np.testing.assert_allclose(found.double().numpy(), expected, rtol=1e-3, atol=1e-5)


# -------------------------------------------------------------------------------------------------- ranges and refusals


@pytest.mark.parametrize("spread", SPREADS)
def test_a_normal_posterior_holds_over_its_range(spread: float) -> None:
    log_std = torch.full((1000, 4), float(np.log(spread)), requires_grad=True)
    mean = torch.ones(1000, 4, requires_grad=True)
    posterior = NormalPosterior(mean, log_std)
    z = posterior.sample(generator())
    assert float((z - 1).detach().std()) == pytest.approx(spread, rel=0.05)
    total = posterior.log_prob(z).sum() + posterior.entropy().sum()
    total.backward()  # type: ignore[no-untyped-call]
    assert all(bool(torch.isfinite(value).all()) for value in (z, total, mean.grad, log_std.grad) if value is not None)


@pytest.mark.parametrize("dim", [2, 16, 256])
@pytest.mark.parametrize("kappa", KAPPAS)
def test_a_power_spherical_posterior_holds_over_its_range(dim: int, kappa: float) -> None:
    """In float32: unit length, E μᵀz = κ/(κ + d - 1), entropy and density as in float64, finite gradients."""
    raw = float(np.log(np.expm1(kappa / (dim - 1)))) if kappa / (dim - 1) < 30 else kappa / (dim - 1)
    direction = torch.randn(2000, dim, generator=generator(3)).requires_grad_()
    concentration = torch.full((2000, 1), raw, requires_grad=True)
    posterior = PowerSphericalPosterior(direction, concentration)
    torch.testing.assert_close(posterior.kappa, torch.full((2000,), kappa), rtol=1e-4, atol=0)
    z = posterior.sample(generator())
    torch.testing.assert_close(z.norm(dim=1), torch.ones(2000), rtol=0, atol=1e-5)
    cosines = (z * posterior.mean).sum(dim=1).detach()
    assert within(torch.tensor(kappa / (kappa + dim - 1)), cosines[:, None].double(), errors=5) or (
        float((1 - cosines).mean()) == pytest.approx((dim - 1) / (kappa + dim - 1), rel=0.1)
    )
    precise = PowerSphericalPosterior(direction.detach().double(), concentration.detach().double())
    torch.testing.assert_close(posterior.entropy().double(), precise.entropy(), rtol=1e-5, atol=1e-4)
    total = posterior.log_prob(z).sum() + posterior.entropy().sum() + (z * torch.arange(dim)).sum()
    total.backward()  # type: ignore[no-untyped-call]
    for gradient in (direction.grad, concentration.grad):
        assert gradient is not None
        assert bool(torch.isfinite(gradient).all())


def test_poles_are_no_exception() -> None:
    """μ at either pole, or a direction of zero length, which has no mean direction but finite numbers."""
    direction = torch.tensor([[1.0, 0, 0], [-1.0, 0, 0], [0, 0, 0], [1e-30, 0, 0]], requires_grad=True)
    posterior = PowerSphericalPosterior(direction, torch.full((4, 1), 5.0))
    z = posterior.sample(generator())
    assert float(z[0, 0].detach()) > 0 > float(z[1, 0].detach())
    (z.sum() + posterior.log_prob(z).sum()).backward()  # type: ignore[no-untyped-call]
    assert direction.grad is not None
    assert bool(torch.isfinite(direction.grad).all())
    assert bool(torch.isfinite(z).all())


def test_a_sphere_needs_two_dimensions() -> None:
    assert message_of(lambda: Config(posterior="power_spherical", latent_dim=1)) == (  # type: ignore[arg-type]
        "latent_dim: the posterior power_spherical needs at least 2 dimensions, because the unit sphere in one is two "
        "points."
    )
    assert Config(posterior="power_spherical", latent_dim=2).value_of("prior").name == "uniform_sphere"  # type: ignore[arg-type]
