"""Probabilities that mean what they say.

The loss counts every link w times, so its best logits are those of a world with w times the links,

    s = log(w·p/(1 - p)).

Taking log w back gives the probability in this world. Where there are validation pairs, a scale is fitted to them too:

    p = σ(a·(s - log w)),   a = argmin of the log loss on validation pairs, weighted to the graph's density

A held-out set has as many non-links as links, which no graph has; weighted to the density δ, its links count for δ and
its non-links for 1 - δ of the whole.

What probabilities are judged by must not be what they were fitted to. Where there are no test pairs, the validation
pairs are halved: each half is judged by the scale that is fitted to the other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from vgae.evaluation.metrics import Scores

Weights = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]
NUM_BINS = 15
EQUAL_WIDTH: Weights = np.arange(1, NUM_BINS) / NUM_BINS  # inner borders
LEAST_SCALE, LARGEST_SCALE = 0.01, 100.0


@dataclass(frozen=True)
class Calibration:
    """The two numbers that turn logits into probabilities."""

    shift: float
    scale: float = 1.0

    def probabilities(self, logits: Scores) -> npt.NDArray[np.float64]:
        """σ(scale·(logit - shift))."""
        result: npt.NDArray[np.float64] = expit(self.scale * (np.asarray(logits, dtype=np.float64) - self.shift))
        return result

    @classmethod
    def fit(cls, links: Scores, non_links: Scores, *, density: float, shift: float) -> Calibration:
        """The scale of least log loss on held-out logits; 1 where there are none of links or none of non-links."""
        if not len(links) or not len(non_links):
            return cls(shift)
        logits = np.concatenate([links, non_links]).astype(np.float64) - shift
        labels, weights = labels_and_weights(len(links), len(non_links), density)

        def log_loss(log_scale: float) -> float:
            margins = np.where(labels, 1.0, -1.0) * np.exp(log_scale) * logits
            return float(weights @ np.logaddexp(0.0, -margins))

        optimize = import_module("scipy.optimize")  # takes a quarter of a second to load, which training does not need
        best = optimize.minimize_scalar(log_loss, bounds=(np.log(LEAST_SCALE), np.log(LARGEST_SCALE)), method="bounded")
        return cls(shift, float(np.exp(best.x)))


@dataclass(frozen=True, eq=False)
class Reliability:
    """Probabilities by bins: what was promised, what came, the share of all pairs, and how many held-out pairs it was.

    `interval` is that of the log odds of what came, by the normal approximation: of the A links of a held-out set a are
    in a bin and of its B non-links b, so that the odds are a/b up to a factor that all bins share, and their logarithm
    has the variance 1/a - 1/A + 1/b - 1/B. Half a pair more inside and outside the bin keeps empty counts finite.
    """

    promised: Weights
    observed: Weights
    share: Weights
    links: Counts
    non_links: Counts

    @property
    def expected_calibration_error(self) -> float:
        """Mean distance between promise and outcome."""
        return float(self.share @ np.abs(self.promised - self.observed))

    def interval(self, errors: float = 1.96) -> tuple[Weights, Weights]:
        """Lower and upper end of what may have come, so many standard errors apart from the middle; 1.96 is 95%."""
        density = self.share @ self.observed
        factor = density / (1 - density) * self.non_links.sum() / self.links.sum()
        links, non_links = self.links + 0.5, self.non_links + 0.5
        variance = 1 / links - 1 / (self.links.sum() + 1) + 1 / non_links - 1 / (self.non_links.sum() + 1)
        middle, reach = np.log(factor * links / non_links), errors * np.sqrt(variance)
        return expit(middle - reach), expit(middle + reach)


def reliability(
    probabilities: Weights, labels: npt.NDArray[np.bool_], weights: Weights, borders: Weights = EQUAL_WIDTH
) -> Reliability:
    """The reliability curve in bins between inner borders, by default of equal width; empty bins are left out."""
    bins = np.searchsorted(borders, probabilities, side="right")
    num_bins = len(borders) + 1
    share = np.bincount(bins, weights, minlength=num_bins)
    filled = share > 0
    promised = np.bincount(bins, weights * probabilities, minlength=num_bins)[filled] / share[filled]
    observed = np.bincount(bins, weights * labels, minlength=num_bins)[filled] / share[filled]
    links, non_links = (np.bincount(bins[chosen], minlength=num_bins)[filled] for chosen in (labels, ~labels))
    return Reliability(promised, observed, share[filled] / weights.sum(), links, non_links)


def equal_counts(probabilities: Weights) -> Weights:
    """Inner borders, taken from the probabilities, of up to ten bins with equally many pairs, at least twenty in each.

    Borders that occur are the same pairs however probabilities are calibrated, and so are the bins.
    """
    num_bins = int(np.clip(len(probabilities) // 20, 1, 10))
    return np.unique(np.quantile(probabilities, np.arange(1, num_bins) / num_bins, method="inverted_cdf"))


def labels_and_weights(num_links: int, num_non_links: int, density: float) -> tuple[npt.NDArray[np.bool_], Weights]:
    """Of links and then non-links, weighted to a density; the weights add up to 1."""
    labels = np.arange(num_links + num_non_links) < num_links
    weights = np.where(labels, density / max(num_links, 1), (1 - density) / max(num_non_links, 1))
    return labels, weights


def reliability_of(
    calibration: Calibration,
    links: Scores,
    non_links: Scores,
    density: float,
    borders_of: Callable[[Weights], Weights] = lambda _: EQUAL_WIDTH,
) -> Reliability:
    """The reliability of calibrated logits of held-out pairs, weighted to a density; by default bins of equal width."""
    found = (calibration.probabilities(links), calibration.probabilities(non_links))
    return _reliability(*found, density, borders_of)


def reliability_by_halves(
    links: Scores,
    non_links: Scores,
    density: float,
    shift: float,
    borders_of: Callable[[Weights], Weights] = lambda _: EQUAL_WIDTH,
) -> Reliability:
    """The reliability of held-out pairs that there are no others to fit a scale to: each half by the other's scale."""
    found = np.empty(len(links)), np.empty(len(non_links))
    for half in (0, 1):
        fitted = Calibration.fit(links[1 - half :: 2], non_links[1 - half :: 2], density=density, shift=shift)
        for probabilities, logits in zip(found, (links, non_links), strict=True):
            probabilities[half::2] = fitted.probabilities(logits[half::2])
    return _reliability(*found, density, borders_of)


def _reliability(
    links: Weights, non_links: Weights, density: float, borders_of: Callable[[Weights], Weights]
) -> Reliability:
    labels, weights = labels_and_weights(len(links), len(non_links), density)
    probabilities = np.concatenate([links, non_links])
    return reliability(probabilities, labels, weights, borders_of(probabilities))
