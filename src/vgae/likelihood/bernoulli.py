"""Links as observations: L_ij = 1 with probability σ(s_ij), independently for each of the N² pairs.

    -log p(L_ij = 1) = softplus(-s_ij),   -log p(L_ij = 0) = softplus(s_ij)

A loss that counts every one w times has its minimum at s = log(w·p/(1 - p)) where a pair is linked with probability p:
its logits are shifted by log w, which whoever wants probabilities takes back.
"""

from __future__ import annotations

import math

from torch import Tensor
from torch.nn.functional import softplus


def loss_at_ones(logits: Tensor) -> Tensor:
    """-log σ(s)."""
    return softplus(-logits)


def loss_at_zeros(logits: Tensor) -> Tensor:
    """-log(1 - σ(s))."""
    return softplus(logits)


def correction_at_ones(logits: Tensor, positive_weight: float) -> Tensor:
    """What a one adds where it was counted as a zero: w·softplus(-s) - softplus(s) = (w - 1)·softplus(-s) - s."""
    return (positive_weight - 1) * softplus(-logits) - logits


def calibration_shift(positive_weight: float) -> float:
    """By how much logits are too large if every one counted so many times."""
    return math.log(positive_weight)
