"""Reliability over all pairs: promises that hold, promises that do not, and bins that say nothing."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logit

from vgae.evaluation.calibration import Calibration
from vgae.evaluation.histogram import Counter, Histogram
from vgae.evaluation.reliability import BORDERS, joined, reliability


def histogram_of(logits: np.ndarray) -> Histogram:
    counter = Counter(torch.device("cpu"))
    counter.add(torch.tensor(logits, dtype=torch.float32))
    return counter.histogram()


@pytest.mark.parametrize("share", [0.05, 0.1, 0.5, 1.0])
def test_honest_promises_come_true_whatever_share_of_links_is_looked_for(share: float) -> None:
    generator = np.random.default_rng(0)
    log_odds = generator.uniform(-12, 7, 500_000)
    labels = generator.random(len(log_odds)) < expit(log_odds)
    hidden = labels & (generator.random(len(log_odds)) < share)
    candidates, links = log_odds[~labels | hidden], log_odds[hidden]
    found = reliability(Calibration(0.0), histogram_of(candidates), links, labels.sum())
    assert found.share == pytest.approx(share, rel=0.05)
    assert found.pairs.sum() == len(candidates)
    assert found.found.sum() == len(links)
    assert (np.abs(found.found - found.expected) <= 4 * np.sqrt(found.expected) + 1).all()
    judged = found.is_judged
    np.testing.assert_allclose(logit(found.observed[judged][1:]), logit(found.promised[judged][1:]), atol=0.5)
    low, high = found.interval(4)
    odds = found.expected / (found.pairs - found.expected) / found.share  # a mean of odds, not of probabilities
    assert ((low < odds / (1 + odds)) & (odds / (1 + odds) < high))[judged].all()
    too_sure = reliability(Calibration(-2.0), histogram_of(candidates), links, labels.sum())
    assert too_sure.error > 0.1 > 4 * found.error


def test_bins_by_hand() -> None:
    logits = logit(np.array([0.2] * 40 + [0.95] * 10))
    found = reliability(Calibration(0.0), histogram_of(logits), logits[[0, 1, 45, 46, 47]], num_links=50)
    at = {float(low): place for place, low in enumerate(found.low)}
    assert found.share == 0.1
    assert (found.pairs[at[0.1]], found.pairs[at[0.9]], found.pairs.sum()) == (40, 10, 50)
    assert (found.found[at[0.1]], found.found[at[0.9]]) == (2, 3)
    assert found.promised[at[0.1]] == pytest.approx(0.2, rel=0.01)
    assert found.expected[at[0.1]] == pytest.approx(40 * 0.1 * 0.25 / (1 + 0.1 * 0.25), rel=0.02)
    assert found.observed[at[0.9]] == pytest.approx((3 / 7 / 0.1) / (1 + 3 / 7 / 0.1))
    assert not found.is_judged.any()
    assert np.isnan(found.promised[at[0.5]])
    assert np.isnan(found.error)


def test_halves_add_up() -> None:
    logits = np.linspace(-10, 5, 1000)
    links = logits[::7]
    halves = [reliability(Calibration(0.0), histogram_of(logits), part, 1000) for part in (links[::2], links[1::2])]
    both, whole = joined(*halves), reliability(Calibration(0.0), histogram_of(logits), links, 1000)
    np.testing.assert_array_equal(both.found, whole.found)
    np.testing.assert_allclose(both.pairs, whole.pairs)
    np.testing.assert_allclose(both.promised, whole.promised)
    assert both.share == pytest.approx(whole.share)
    assert len(both.found) == len(BORDERS) + 1
