"""Whether a scorer tells pairs apart at all.

A model has collapsed where its logits have no spread: training has put all nodes into one place, or all but a few, and
then the order of the pairs is that of their numbers. What counts is the range from the 5th to the 95th percentile of
the logits over random pairs, in comparison with their size: no scale of the logits makes it small. A count of common
neighbours has no such spread either, and ranks well: so a model counts as collapsed only if it does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vgae.evaluation.metrics import Scores

SMALLEST = 1e-5  # of the size of the logits: a hundred times what float32 rounds off


@dataclass(frozen=True)
class Spread:
    """Percentiles of logits over pairs."""

    low: float
    middle: float
    high: float

    @classmethod
    def of(cls, logits: Scores) -> Spread:
        """Of a sample of pairs."""
        low, middle, high = np.quantile(np.asarray(logits, dtype=np.float64), [0.05, 0.5, 0.95])
        return cls(float(low), float(middle), float(high))

    @property
    def is_none(self) -> bool:
        """Whether nine pairs in ten have all but the same logit."""
        return self.high - self.low <= SMALLEST * max(abs(self.low), abs(self.high))
