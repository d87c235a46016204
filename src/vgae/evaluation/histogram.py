"""A histogram of logits whose range nobody knows beforehand.

A float32 whose bits are read as an integer keeps its order, if those of negative numbers are turned round. Bins are
such integers without their last bits: for every size of a number its own width, 2⁻⁹ of the number itself, and small
counts as a heuristic gives them each in a bin of their own. One sweep is enough, whatever comes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.graph.pairs import IntArray

DROPPED_BITS = 14
HALF = 2 ** (31 - DROPPED_BITS)
NUM_BINS = 2 * HALF
SIGN = 2**31 - 1

Values = npt.NDArray[np.float64]


class Counter:
    """Counts logits by bins, a block at a time; those at minus infinity are left out."""

    def __init__(self, device: torch.device) -> None:
        self.counts = torch.zeros(NUM_BINS, dtype=torch.int64, device=device)

    def add(self, logits: Tensor) -> None:
        """Count a block of float32 logits."""
        self.counts += torch.bincount(bins_of(logits.reshape(-1)).long(), minlength=NUM_BINS)

    def histogram(self, factor: float = 1.0) -> Histogram:
        """What was counted, each logit as so many."""
        counts = self.counts.cpu().numpy().copy()
        counts[int(bins_of(torch.tensor([-torch.inf])))] = 0
        filled = np.flatnonzero(counts)
        return Histogram(filled, counts[filled] * factor)


def bins_of(logits: Tensor) -> Tensor:
    """The number of the bin of each logit."""
    bits = (logits + 0.0).view(torch.int32)  # minus zero is zero
    turned = torch.bitwise_right_shift(bits, 31)
    turned &= SIGN
    turned ^= bits
    turned >>= DROPPED_BITS
    turned += HALF
    return turned


@dataclass(frozen=True, eq=False)
class Histogram:
    """How many logits are in each bin that is not empty, in ascending order."""

    bins: IntArray
    counts: Values

    @classmethod
    def weighted(cls, parts: Sequence[tuple[npt.NDArray[np.float32], float]]) -> Histogram:
        """The histogram of several sets of logits, each logit of a set as so many."""
        counts = np.zeros(NUM_BINS)
        for logits, weight in parts:
            bins = bins_of(torch.from_numpy(np.ascontiguousarray(logits, dtype=np.float32))).numpy()
            counts += weight * np.bincount(bins, minlength=NUM_BINS)
        filled = np.flatnonzero(counts)
        return cls(filled, counts[filled])

    @property
    def total(self) -> float:
        """All of them."""
        return float(self.counts.sum())

    @cached_property
    def values(self) -> Values:
        """The middle of each bin."""
        low, high = (_number(self.bins + step) for step in (0, 1))
        return np.asarray((low + np.where(np.isfinite(high), high, low)) / 2)

    def nearest(self, logits: npt.ArrayLike) -> IntArray:
        """For each logit the place of its bin or, where that is empty, of the next above it or the last."""
        wanted = bins_of(torch.from_numpy(np.ascontiguousarray(logits, dtype=np.float32)))
        return np.minimum(np.searchsorted(self.bins, wanted.numpy()), len(self.bins) - 1)


def _number(bins: IntArray) -> Values:
    """The lowest number of a bin, by magnitude in the case of negative numbers the highest."""
    turned = ((bins - HALF) << DROPPED_BITS).astype(np.int64)
    bits = np.where(turned < 0, turned ^ SIGN, turned).astype(np.int32)
    with np.errstate(invalid="ignore"):
        numbers: Values = bits.view(np.float32).astype(np.float64)
    return numbers
