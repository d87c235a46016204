"""The all-pairs op in tiles: memory grows with N, not with N².

    V = Σ_ij softplus(s_ij),         s_ij = q_i·k_j + r_i + c_j
    ∂V/∂q_i = Σ_j σ(s_ij) k_j,       ∂V/∂r_i = Σ_j σ(s_ij)
    ∂V/∂k_j = Σ_i σ(s_ij) q_i,       ∂V/∂c_j = Σ_i σ(s_ij)

One sweep computes each tile of logits once and takes from it everything that is wanted. Where q is k and r is c the
logits are symmetric: only tiles on and above the diagonal are visited, and each serves its mirror image too.
"""

import math

import torch
from torch import Tensor

from vgae.ops.sums import Sums

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
    q, k = q.contiguous(), k.contiguous()
    left, right = _with_biases(q, k, row_bias, column_bias)
    counted = gradient and (row_bias is not None or column_bias is not None)
    side = TILE_SIDE[q.device.type]
    total = q.new_full((), 0.0 if value else torch.nan, dtype=torch.float64)
    by_row = torch.zeros_like(q)
    by_column = by_row if symmetric else torch.zeros_like(k)
    row_sums = q.new_zeros(len(q), dtype=torch.float64)
    column_sums = row_sums if symmetric else k.new_zeros(len(k), dtype=torch.float64)
    transposed = right.T.contiguous()
    tile = q.new_empty(min(side, len(q)) * min(side, len(k)))
    spare = torch.empty_like(tile) if value else tile
    for top in range(0, len(q), side):
        rows = slice(top, min(top + side, len(q)))
        for start in range(top if symmetric else 0, len(k), side):
            columns = slice(start, min(start + side, len(k)))
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
                by_row[rows].addmm_(sigma, k[columns])
                if mirrored or not symmetric:
                    by_column[columns].addmm_(sigma.T, q[rows])
            if counted:  # not by a product with ones: σ that are all alike would round all the same way
                row_sums[rows] += sigma.sum(dim=1)
                if mirrored or not symmetric:
                    column_sums[columns] += sigma.sum(dim=0)
    return Sums(total, by_row, row_sums, by_column, column_sums)


def _with_biases(q: Tensor, k: Tensor, row_bias: Tensor | None, column_bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Factors whose products are the logits: biases ride along as columns, [q, r, 1] · [k, 1, c]."""
    if row_bias is None and column_bias is None:
        return q, k
    rows = q.new_zeros(len(q)) if row_bias is None else row_bias
    columns = k.new_zeros(len(k)) if column_bias is None else column_bias
    left = torch.cat([q, rows[:, None], q.new_ones(len(q), 1)], dim=1)
    right = torch.cat([k, k.new_ones(len(k), 1), columns[:, None]], dim=1)
    return left, right


def _sum_of_logs(sigma: Tensor, out: Tensor) -> Tensor:
    """Σ log max(σ, 1 - σ): softplus(s) is max(s, 0) less this.

    The factors are 1 - m with m = min(σ, 1 - σ) at most ½, and one logarithm serves up to eight of them. Their product
    is kept as what is missing to one, 1 - (1 - a)(1 - b) = a + b(1 - a), in which the smallest m keep their digits.
    """
    one = sigma.new_ones(())
    torch.sub(one, sigma, out=out)
    torch.minimum(out, sigma, out=out)
    height = len(out)
    for _ in range(3):
        if height == 1:
            break
        if height % 2:
            out[0].lerp_(one, out[height - 1])
        height //= 2
        out[:height].lerp_(one, out[height : 2 * height])
    return out[:height].neg_().log1p_().sum()
