"""The all-pairs op in tiles: memory grows with N, not with N².

    V = Σ_ij softplus(s_ij),         s_ij = q_i·k_j + r_i + c_j
    ∂V/∂q_i = Σ_j σ(s_ij) k_j,       ∂V/∂r_i = Σ_j σ(s_ij)
    ∂V/∂k_j = Σ_i σ(s_ij) q_i,       ∂V/∂c_j = Σ_i σ(s_ij)

One sweep computes each tile of logits once and takes from it everything that is wanted. Every step of a tile is one
matrix product, since biases ride along as columns. Where q is k and r is c the logits are symmetric: only tiles on and
above the diagonal are visited, and each serves its mirror image too.
"""

import math

import torch
from torch import Tensor

from vgae.ops.sums import Sums, biases_as_columns

# Rows and columns of a tile. On a CPU a tile should stay in the second-level cache and must not have a power of two
# as its stride; on a GPU it should be large enough to fill the device. Measured by benchmarks/allpairs.py --tune.
TILE_SIDE = {"cpu": 1000, "cuda": 8192}


def sweep(
    q: Tensor,
    k: Tensor,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    *,
    symmetric: bool,
    value: bool,
    gradient: bool,
) -> Sums:
    """All sums of the op, in the factors' own precision."""
    left, right = biases_as_columns(q, k, row_bias, column_bias)
    found = _sweep(left, right, symmetric=symmetric, value=value, gradient=gradient)
    return Sums.from_columns(*found, dim=q.shape[1], symmetric=symmetric)


def _sweep(
    left: Tensor, right: Tensor, *, symmetric: bool, value: bool, gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """One pass over the tiles of S = left·rightᵀ: Σ softplus(S), σ(S)·right and σ(S)ᵀ·left.

    A symmetric S is swept through its upper half, and σ(S)·right is returned for both.
    """
    side = TILE_SIDE[left.device.type]
    total = left.new_full((), 0.0 if value else torch.nan, dtype=torch.float64)
    by_row = torch.zeros_like(left)
    by_column = by_row if symmetric else torch.zeros_like(right)
    transposed = right.T.contiguous()
    tile = left.new_empty(min(side, len(left)) * min(side, len(right)))
    spare = torch.empty_like(tile) if value else tile
    for top in range(0, len(left), side):
        rows = slice(top, min(top + side, len(left)))
        for start in range(top if symmetric else 0, len(right), side):
            columns = slice(start, min(start + side, len(right)))
            shape = rows.stop - rows.start, columns.stop - columns.start
            logits, free = (buffer[: math.prod(shape)].view(shape) for buffer in (tile, spare))
            torch.mm(left[rows], transposed[:, columns], out=logits)
            positive = torch.clamp_min(logits, 0, out=free).sum() if value else 0.0
            sigma = logits.sigmoid_()
            mirrored = symmetric and start > top
            if value:
                part = positive - _sum_of_logs(sigma, out=free)
                total += 2 * part if mirrored else part
            if gradient:
                by_row[rows].addmm_(sigma, right[columns])
                if mirrored:
                    by_row[columns].addmm_(sigma.T, right[rows])
                elif not symmetric:
                    by_column[columns].addmm_(sigma.T, left[rows])
    return total, by_row, by_column


def _sum_of_logs(sigma: Tensor, out: Tensor) -> Tensor:
    """Σ log max(σ, 1 - σ): softplus(s) is max(s, 0) less this. One logarithm serves up to 64 of these factors ≥ ½."""
    torch.sub(sigma.new_ones(()), sigma, out=out)
    torch.maximum(out, sigma, out=out)
    height = len(out)
    for _ in range(5):
        if height == 1:
            break
        if height % 2:
            out[0].mul_(out[height - 1])
        height //= 2
        out[:height].mul_(out[height : 2 * height])
    return out[:height].log_().sum()
