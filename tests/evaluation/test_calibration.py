"""Calibration against closed forms: worlds in which the right probabilities are known."""

import numpy as np
import pytest

from vgae.evaluation.calibration import Calibration, equal_counts, labels_and_weights, reliability, reliability_of


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
    curve = reliability(probabilities, labels, np.array([1.0, 3.0, 2.0, 2.0]), borders=np.array([0.5]))
    np.testing.assert_allclose(curve.promised, [(0.1 + 3 * 0.2) / 4, 0.95])
    np.testing.assert_allclose(curve.observed, [0.75, 1.0])
    np.testing.assert_allclose(curve.share, [0.5, 0.5])
    assert (curve.links.tolist(), curve.non_links.tolist()) == ([1, 2], [1, 0])
    assert curve.expected_calibration_error == pytest.approx(0.5 * (0.75 - 0.175) + 0.5 * 0.05)


def test_bins_of_equal_counts_hold_the_same_pairs_whatever_the_calibration() -> None:
    generator = np.random.default_rng(3)
    links, non_links = generator.normal(2, 1, 130), generator.normal(0, 1, 70)
    raw, calibrated = (
        reliability_of(way, links, non_links, 0.01, equal_counts) for way in (Calibration(0.0), Calibration(5.0, 1.3))
    )
    assert (raw.links + raw.non_links).tolist() == [19] + [20] * 8 + [21]
    np.testing.assert_array_equal(raw.links, calibrated.links)
    np.testing.assert_allclose(raw.observed, calibrated.observed)
    assert (raw.promised > calibrated.promised).all()
    few = reliability_of(Calibration(0.0), links[:10], non_links[:9], 0.01, equal_counts)
    assert few.links.tolist() == [10]
    np.testing.assert_allclose(few.observed, 0.01)


def test_intervals_hold_the_truth_as_often_as_they_promise() -> None:
    """Two bins that three links and eight non-links in ten fall below, held out again and again."""
    generator = np.random.default_rng(4)
    density, num_held_out, times = 0.002, 400, 3000
    links_in, non_links_in = density * np.array([0.3, 0.7]), (1 - density) * np.array([0.8, 0.2])
    truth = links_in / (links_in + non_links_in)
    held = np.zeros(2)
    for _ in range(times):
        links, non_links = (np.where(generator.random(num_held_out) < share, -1.0, 1.0) for share in (0.3, 0.8))
        low, high = reliability_of(Calibration(0.0), links, non_links, density).interval()
        held += (low <= truth) & (truth <= high)
    np.testing.assert_allclose(held / times, 0.95, atol=4 * (0.95 * 0.05 / times) ** 0.5)


def test_intervals_of_bins_that_lack_links_or_non_links_are_finite() -> None:
    curve = reliability_of(Calibration(0.0), np.full(30, 2.0), np.full(30, -2.0), 0.01)
    low, high = curve.interval()
    assert curve.observed.tolist() == [0, 1]
    assert ((low > 0) & (low < high) & (high < 1)).all()
    assert high[0] < 0.01 < low[1]
