"""Probabilities that mean what they say, at the top of the list too.

p(s) is the share of links among all pairs of nodes that a model gives the logit s, were all links of the graph unseen.
Two things about the pairs outside the training graph are known: how often each logit occurs among them, exactly, by a
sweep over all of them; and how often it occurs among links, from the validation links, a random choice of v out of the
M links that training has not seen. In a bin of logits with n pairs, k of them validation links, the share of unseen
links is

    q = (M/v)·k / n,

and since only M of the graph's E links are unseen, odds among all pairs are E/M times as high:

    p/(1 - p) = (E/M)·q/(1 - q).

Bins have √v validation links at both ends and more between, and neighbours of which the lower has the higher share
are joined (the pool-adjacent-violators algorithm), so that p never falls as s grows. Log odds are then interpolated
between the bins, and raised or lowered until each bin has its share again.

The last bin is where links are proposed, and where luck and hope are closest: of all bins it is the one with a share so
high. So one standard error is taken off the links that it has, k - √k. Above its middle, where there is no evidence for
more, p stays what it is there; so it does below the middle of the first.

Without validation links there is only what the loss says. It counts every link w times, so that its best logits are
those of a world with w times the links: p = σ(s - log w). That is not calibrated, and says so.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from vgae.evaluation.histogram import Histogram, Values
from vgae.evaluation.metrics import Scores
from vgae.graph.pairs import IntArray

GROWTH = 1.2  # the next bin has so many times as many validation links, from √v in the outermost
FEW_LINKS = 50  # validation links; fewer make probabilities rough
ROUNDS, STEP = 30, 0.7


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of the pairs outside the training graph."""

    histogram: Histogram  # of the logits of all of them
    links: Scores  # logits of the validation links, which are among them
    num_unseen: int  # links outside the training graph: validation links, test links and what else there is
    num_links: int  # links of the whole graph


@dataclass(frozen=True)
class Calibration:
    """How logits become probabilities: by a shift, or by log odds at some logits, interpolated.

    With neither there are no probabilities: they are undefined (NaN).
    """

    shift: float | None = None
    logits: tuple[float, ...] = ()
    log_odds: tuple[float, ...] = ()
    num_links: int = 0  # validation links that it was fitted to

    @property
    def is_fitted(self) -> bool:
        """Whether there were validation links."""
        return bool(self.logits)

    @property
    def is_rough(self) -> bool:
        """Whether there were so few validation links that probabilities can be off by a factor of two."""
        return self.is_fitted and self.num_links < FEW_LINKS

    def probabilities(self, logits: Scores) -> Values:
        """Probabilities of a link, from logits."""
        result: Values = expit(self.log_odds_of(np.asarray(logits, dtype=np.float64)))
        return result

    def log_odds_of(self, logits: Values) -> Values:
        """Logarithms of the odds of a link, from logits."""
        if self.is_fitted:
            return np.interp(logits, self.logits, self.log_odds)
        return logits - (np.nan if self.shift is None else self.shift)

    @classmethod
    def fit(cls, evidence: Evidence, shift: float | None = None) -> Calibration:
        """The calibration by validation links; the shift alone where there are none."""
        num_links = len(evidence.links)
        if not num_links or not evidence.num_unseen:
            return cls(shift)
        bins = _Bins.of(evidence.histogram, evidence.histogram.nearest(evidence.links))
        links = bins.links.copy()
        if len(links) > 1:
            links[-1] -= min(np.sqrt(links[-1]), links[-1] / 2)
        shares = np.minimum(links * (evidence.num_unseen / num_links) / bins.pairs, 1 - 0.5 / (bins.pairs + 1))
        shares = np.maximum.accumulate(shares)
        knots, log_odds = bins.middles, _interpolated(evidence.histogram, bins, shares)
        unseen = evidence.num_unseen / max(evidence.num_links, evidence.num_unseen)
        return cls(shift, tuple(knots.tolist()), tuple((log_odds - np.log(unseen)).tolist()), num_links)

    def to_json(self) -> dict[str, Any]:
        """As config.json holds it."""
        return {"logits": list(self.logits), "log_odds": list(self.log_odds), "num_links": self.num_links}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Calibration:
        """Out of config.json; ValueError where it cannot be one."""
        knots, log_odds, num_links = (values[name] for name in ("logits", "log_odds", "num_links"))
        numbers = np.asarray([knots, log_odds], dtype=np.float64)
        if numbers.ndim != 2 or not np.isfinite(numbers).all() or type(num_links) is not int or num_links < 0:
            raise ValueError("the calibration is none")
        if (np.diff(numbers[0]) <= 0).any() or (np.diff(numbers[1]) < 0).any():
            raise ValueError("the calibration does not increase")
        return cls(None, tuple(numbers[0].tolist()), tuple(numbers[1].tolist()), num_links)


@dataclass(frozen=True, eq=False)
class _Bins:
    """Neighbouring bins of a histogram, joined: the first of each, its pairs and links, and its middle."""

    starts: IntArray  # places in the histogram
    pairs: Values
    links: Values
    middles: Values

    @classmethod
    def of(cls, histogram: Histogram, places: IntArray) -> _Bins:
        """Bins for validation links at these places of the histogram, their shares of links increasing."""
        places = np.sort(places)
        ranks = _borders(len(places))
        starts = np.unique(np.concatenate([[0], places[ranks]]))
        pairs = np.add.reduceat(histogram.counts, starts)
        links = np.add.reduceat(np.bincount(places, minlength=len(histogram.counts)).astype(np.float64), starts)
        links[0] = max(links[0], 0.5)  # below all validation links: fewer than one, but not none
        starts, pairs, links = _pooled(starts, pairs, links)
        values, counts = histogram.values, histogram.counts
        of_links = np.bincount(places, minlength=len(counts))
        mean_pair = np.add.reduceat(counts * values, starts) / pairs
        num_links = np.add.reduceat(of_links, starts)
        mean_link = np.add.reduceat(of_links * values, starts) / np.maximum(num_links, 1)
        # Where log odds are straight and pairs are exponentially distributed, the mean share is that at this place.
        middles = np.where(num_links > 0, (mean_pair + mean_link) / 2, mean_pair)
        return cls(starts, pairs, links, np.maximum.accumulate(middles))


def _borders(num_links: int) -> IntArray:
    """Ranks of the validation links, in ascending order, with which bins begin: small bins at both ends."""
    smallest = max(1, min(math.isqrt(num_links), num_links // 4))
    sizes = smallest * GROWTH ** np.arange(np.log(num_links) / np.log(GROWTH) + 1)
    reached = np.cumsum(sizes).astype(np.int64)
    half = reached[reached <= num_links / 2]
    return np.unique(np.concatenate([[0], half, num_links - half]))


def _pooled(starts: IntArray, pairs: Values, links: Values) -> tuple[IntArray, Values, Values]:
    """Bins joined with their neighbours until the share of links increases from each to the next."""
    joined: list[tuple[int, float, float]] = []
    for start, num_pairs, num_links in zip(starts.tolist(), pairs.tolist(), links.tolist(), strict=True):
        here = (start, num_pairs, num_links)
        while joined and joined[-1][2] * here[1] >= here[2] * joined[-1][1]:
            below = joined.pop()
            here = (below[0], below[1] + here[1], below[2] + here[2])
        joined.append(here)
    first, num_pairs, num_links = zip(*joined, strict=True)
    return np.array(first), np.array(num_pairs), np.array(num_links)


def _interpolated(histogram: Histogram, bins: _Bins, shares: Values) -> Values:
    """Log odds at the middles of bins such that, interpolated between them, each bin has its share of links."""
    log_odds = logit(shares)
    for _ in range(ROUNDS):
        found = np.add.reduceat(
            histogram.counts * expit(np.interp(histogram.values, bins.middles, log_odds)), bins.starts
        )
        log_odds = log_odds + STEP * (logit(shares) - logit(np.minimum(found / bins.pairs, 1 - 1e-12)))
        log_odds = np.maximum.accumulate(log_odds)
    return np.asarray(np.minimum(log_odds, logit(shares[-1])))  # nowhere more than the last bin has
