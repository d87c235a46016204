"""Calibration against closed forms: worlds in which the right probabilities are known."""

import numpy as np
import pytest

from vgae.evaluation.calibration import Calibration, labels_and_weights, reliability, reliability_of


def test_the_weight_of_the_loss_is_taken_back_exactly() -> None:
    p = np.array([0.001, 0.2, 0.5, 0.9])
    for weight in (1.0, 816.0):
        logits = np.log(weight * p / (1 - p))
        np.testing.assert_allclose(Calibration(np.log(weight)).probabilities(logits), p, rtol=1e-12)


@pytest.mark.parametrize("scale", [0.25, 1.0, 3.0])
def test_the_scale_of_a_world_is_found(scale: float) -> None:
    generator = np.random.default_rng(0)
    margins = generator.normal(-1.0, 2.0, size=200_000)
    labels = generator.random(len(margins)) < 1 / (1 + np.exp(-margins))
    logits = margins / scale + 5.0
    found = Calibration.fit(logits[labels], logits[~labels], density=labels.mean(), shift=5.0)
    assert found.scale == pytest.approx(scale, rel=0.03)
    curve = reliability_of(found, logits[labels], logits[~labels], density=labels.mean())
    assert curve.expected_calibration_error < 0.005
    np.testing.assert_allclose(curve.promised, curve.observed, atol=0.05)


def test_density_weights_links_and_non_links() -> None:
    labels, weights = labels_and_weights(2, 4, density=0.1)
    assert labels.tolist() == [True] * 2 + [False] * 4
    np.testing.assert_allclose(weights, [0.05, 0.05, 0.225, 0.225, 0.225, 0.225])


def test_reliability_by_hand() -> None:
    probabilities = np.array([0.1, 0.2, 0.9, 1.0])
    labels = np.array([False, True, True, True])
    curve = reliability(probabilities, labels, np.array([1.0, 3.0, 2.0, 2.0]), num_bins=2)
    np.testing.assert_allclose(curve.promised, [(0.1 + 3 * 0.2) / 4, 0.95])
    np.testing.assert_allclose(curve.observed, [0.75, 1.0])
    np.testing.assert_allclose(curve.share, [0.5, 0.5])
    assert curve.expected_calibration_error == pytest.approx(0.5 * (0.75 - 0.175) + 0.5 * 0.05)
