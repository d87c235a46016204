"""Probabilities that mean what they say.

The loss counts every link w times, so its best logits are those of a world with w times the links,

    s = log(w·p/(1 - p)).

Taking log w back gives the probability in this world. Where there are validation pairs, a scale is fitted to them too:

    p = σ(a·(s - log w)),   a = argmin of the log loss on validation pairs, weighted to the graph's density

A held-out set has as many non-links as links, which no graph has; weighted to the density δ, its links count for δ and
its non-links for 1 - δ of the whole.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize_scalar
from scipy.special import expit

from vgae.evaluation.metrics import Scores

Weights = npt.NDArray[np.float64]
NUM_BINS = 15
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
        """The scale of least log loss on held-out logits."""
        logits = np.concatenate([links, non_links]).astype(np.float64) - shift
        labels, weights = labels_and_weights(len(links), len(non_links), density)

        def log_loss(log_scale: float) -> float:
            margins = np.where(labels, 1.0, -1.0) * np.exp(log_scale) * logits
            return float(weights @ np.logaddexp(0.0, -margins))

        best = minimize_scalar(log_loss, bounds=(np.log(LEAST_SCALE), np.log(LARGEST_SCALE)), method="bounded")
        return cls(shift, float(np.exp(best.x)))


@dataclass(frozen=True, eq=False)
class Reliability:
    """Probabilities by bins: what was promised, what came, and the share of all pairs."""

    promised: Weights
    observed: Weights
    share: Weights

    @property
    def expected_calibration_error(self) -> float:
        """Mean distance between promise and outcome."""
        return float(self.share @ np.abs(self.promised - self.observed))


def reliability(
    probabilities: Weights, labels: npt.NDArray[np.bool_], weights: Weights, num_bins: int = NUM_BINS
) -> Reliability:
    """The reliability curve in bins of equal width; empty bins are left out."""
    bins = np.minimum((probabilities * num_bins).astype(np.int64), num_bins - 1)
    share = np.bincount(bins, weights, minlength=num_bins)
    filled = share > 0
    promised = np.bincount(bins, weights * probabilities, minlength=num_bins)[filled] / share[filled]
    observed = np.bincount(bins, weights * labels, minlength=num_bins)[filled] / share[filled]
    return Reliability(promised, observed, share[filled] / weights.sum())


def labels_and_weights(num_links: int, num_non_links: int, density: float) -> tuple[npt.NDArray[np.bool_], Weights]:
    """Of links and then non-links, weighted to a density; the weights add up to 1."""
    labels = np.arange(num_links + num_non_links) < num_links
    weights = np.where(labels, density / max(num_links, 1), (1 - density) / max(num_non_links, 1))
    return labels, weights


def reliability_of(calibration: Calibration, links: Scores, non_links: Scores, density: float) -> Reliability:
    """The reliability of calibrated logits of held-out pairs, weighted to a density."""
    labels, weights = labels_and_weights(len(links), len(non_links), density)
    return reliability(calibration.probabilities(np.concatenate([links, non_links])), labels, weights)
