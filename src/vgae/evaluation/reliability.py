"""How far probabilities can be trusted, by the probability that was promised, over all candidate pairs.

Of the graph's E links, L are looked for among the candidates (the test links, say) and the rest are known. A pair that
is a link with probability p in a graph of which nothing is known is one of the L with odds (L/E)·p/(1 - p): that many
are expected in a bin. What was found, turned round in the same way, is the probability that should have been promised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from vgae.evaluation.calibration import Calibration
from vgae.evaluation.histogram import Histogram, Values
from vgae.evaluation.metrics import Scores
from vgae.graph.pairs import IntArray

BORDERS: Values = np.array([1e-4, 1e-3, 0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])  # inner ones, between 0 and 1
FEWEST = 10  # links expected or found in a bin; below, nothing can be said about it


@dataclass(frozen=True, eq=False)
class Reliability:
    """By bins of probability: what was promised, and what came."""

    low: Values  # borders of the bins
    high: Values
    pairs: Values  # candidates in it
    promised: Values  # their mean probability; undefined (NaN) of none
    expected: Values  # links that are looked for, as promised
    found: IntArray  # and as found
    share: float  # of the graph's links that are looked for

    @property
    def observed(self) -> Values:
        """The probability that should have been promised."""
        odds = self.found / np.maximum(self.pairs - self.found, 1e-9) / self.share
        return np.where(self.pairs > 0, odds / (1 + odds), np.nan)

    @property
    def is_judged(self) -> npt.NDArray[np.bool_]:
        """Whether there are enough links in a bin to say anything about it."""
        return np.maximum(self.expected, self.found) >= FEWEST

    @property
    def error(self) -> float:
        """Mean distance between promise and outcome where links are expected: each bin counts by its expected links."""
        judged = self.is_judged
        if not judged.any():
            return float("nan")
        return float(np.average(np.abs(self.promised - self.observed)[judged], weights=self.expected[judged]))

    def interval(self, errors: float = 1.96) -> tuple[Values, Values]:
        """Lower and upper end of what may have come, so many standard errors from the middle; 1.96 is 95%.

        By the normal approximation of the log odds, with half a link and half a non-link more for empty counts.
        """
        links, others = self.found + 0.5, np.maximum(self.pairs - self.found, 0) + 0.5
        middle, reach = np.log(links / others / self.share), errors * np.sqrt(1 / links + 1 / others)
        return expit(middle - reach), expit(middle + reach)


def reliability(calibration: Calibration, candidates: Histogram, links: Scores, num_links: int) -> Reliability:
    """The reliability of probabilities of candidates, of which those with the logits `links` are looked for."""
    share = len(links) / num_links
    log_odds = calibration.log_odds_of(candidates.values)
    probabilities, counts = expit(log_odds), candidates.counts
    bins = np.searchsorted(BORDERS, probabilities, side="right")
    num_bins = len(BORDERS) + 1
    pairs: Values = np.bincount(bins, counts, minlength=num_bins).astype(np.float64)
    promised = np.bincount(bins, counts * probabilities, minlength=num_bins)
    expected = np.bincount(bins, counts * expit(log_odds + np.log(share)), minlength=num_bins)
    of_links = np.searchsorted(BORDERS, calibration.probabilities(links), side="right")
    return Reliability(
        low=np.concatenate([[0.0], BORDERS]),
        high=np.concatenate([BORDERS, [1.0]]),
        pairs=pairs,
        promised=np.where(pairs > 0, promised / np.maximum(pairs, 1), np.nan),
        expected=expected.astype(np.float64),
        found=np.bincount(of_links, minlength=num_bins),
        share=share,
    )


def joined(first: Reliability, second: Reliability) -> Reliability:
    """Two halves of the links that are looked for, among the same candidates, taken together."""
    pairs = first.pairs + second.pairs
    promised = np.nansum([first.pairs * first.promised, second.pairs * second.promised], axis=0)
    return replace(
        first,
        pairs=pairs / 2,
        promised=np.where(pairs > 0, promised / np.maximum(pairs, 1), np.nan),
        expected=first.expected + second.expected,
        found=first.found + second.found,
        share=first.share + second.share,
    )
