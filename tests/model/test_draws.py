"""Moments over draws, against closed forms and quadrature; tolerances are standard errors."""

import numpy as np
import numpy.typing as npt
import pytest
import torch
from scipy.special import expit

from vgae.model.decoders import InnerProduct
from vgae.model.draws import Moments, Values, moments_of_draws
from vgae.model.posteriors import NormalPosterior

NUM_DRAWS = 10_000
DECODER = InnerProduct().build(1, torch.Generator())
CORNERS = torch.tensor([[0, 1], [1, 2], [0, 2], [3, 0]])


def posterior(dim: int) -> NormalPosterior:
    generator = torch.Generator().manual_seed(dim)
    mean, log_std = (torch.randn(4, dim, generator=generator, dtype=torch.float64) for _ in range(2))
    return NormalPosterior(mean, log_std / 2 - 0.5)


def as_it_is(logits: npt.NDArray[np.float32]) -> Values:
    return logits.astype(np.float64)


def draw(given: NormalPosterior, function: object = as_it_is, *, seed: int = 0, **options: int) -> Moments:
    settings = {"num_draws": NUM_DRAWS, **options}
    generator = torch.Generator().manual_seed(seed)
    return moments_of_draws(given, DECODER, CORNERS, function, generator=generator, **settings)  # type: ignore[arg-type]


def assert_within_errors(found: Moments, mean: Values, variance: Values, fourth: Values) -> None:
    """Within 4.5 standard errors, of the mean and of the variance; `fourth` is the fourth central moment."""
    assert (np.abs(found.mean - mean) <= 4.5 * np.sqrt(variance / NUM_DRAWS)).all()
    error = np.sqrt((fourth - variance**2) / NUM_DRAWS)
    assert (np.abs(found.std**2 - variance) <= 4.5 * error).all()


@pytest.mark.parametrize("dim", [1, 5])
def test_moments_of_logits_are_those_of_products_of_normals(dim: int) -> None:
    given = posterior(dim)
    mean, variance = given.mean.numpy(), np.exp(2 * given.log_std.numpy())
    (mean_i, mean_j), (var_i, var_j) = mean[CORNERS.T], variance[CORNERS.T]
    expected = (mean_i * mean_j).sum(axis=1)
    spread = (mean_i**2 * var_j + mean_j**2 * var_i + var_i * var_j).sum(axis=1)
    generator = np.random.default_rng(1)
    z = mean + np.sqrt(variance) * generator.standard_normal((100_000, *mean.shape))
    logits = (z[:, CORNERS[:, 0]] * z[:, CORNERS[:, 1]]).sum(axis=2)
    fourth = ((logits - expected) ** 4).mean(axis=0)
    assert_within_errors(draw(given), expected, spread, fourth)


def test_moments_of_probabilities_are_those_of_quadrature() -> None:
    given = posterior(1)
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights = weights / weights.sum()
    z = given.mean.numpy() + np.exp(given.log_std.numpy()) * nodes
    central = []
    for i, j in CORNERS.tolist():
        p = expit(1.3 * (np.outer(z[i], z[j]) - 0.5))
        mean = weights @ p @ weights
        central.append((mean, weights @ (p - mean) ** 2 @ weights, weights @ (p - mean) ** 4 @ weights))
    found = draw(given, lambda logits: expit(1.3 * (logits.astype(np.float64) - 0.5)))
    assert_within_errors(found, *np.array(central).T)


def test_a_node_is_drawn_once_for_both_ends_of_a_pair_with_itself() -> None:
    given = posterior(3)
    pairs = torch.tensor([[2, 2]])
    generator = torch.Generator().manual_seed(0)
    found = moments_of_draws(given, DECODER, pairs, as_it_is, num_draws=NUM_DRAWS, generator=generator)
    mean, variance = given.mean[2].numpy(), np.exp(2 * given.log_std[2].numpy())
    error = found.std / NUM_DRAWS**0.5
    assert found.mean == pytest.approx(float((mean**2 + variance).sum()), abs=4.5 * float(error[0]))


def test_without_spread_every_draw_is_the_mean() -> None:
    given = NormalPosterior(posterior(3).mean, torch.full((4, 3), -torch.inf, dtype=torch.float64))
    found = draw(given, num_draws=7)
    np.testing.assert_array_equal(found.mean, DECODER.logits(given.mean, CORNERS).numpy())
    np.testing.assert_array_equal(found.std, 0)


def test_moments_are_numpys_and_do_not_depend_on_blocks() -> None:
    given = posterior(2)
    generator = torch.Generator().manual_seed(5)
    draws = np.stack([DECODER.logits(given.sample(generator), CORNERS).numpy() for _ in range(30)])
    found = draw(given, seed=5, num_draws=30)
    np.testing.assert_allclose(found.mean, draws.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(found.std, draws.std(axis=0, ddof=1), rtol=1e-12)
    for block_size in (1, 3):
        blocked = draw(given, seed=5, num_draws=30, block_size=block_size)
        np.testing.assert_array_equal(blocked.mean, found.mean)
        np.testing.assert_array_equal(blocked.std, found.std)
