"""The all-pairs op in tiles: memory grows with N, not with N².

    V = Σ_ij softplus(s_ij),         s_ij = q_i·k_j + r_i + c_j
    ∂V/∂q_i = Σ_j σ(s_ij) k_j,       ∂V/∂r_i = Σ_j σ(s_ij)
    ∂V/∂k_j = Σ_i σ(s_ij) q_i,       ∂V/∂c_j = Σ_i σ(s_ij)

One sweep computes each tile of logits once and takes from it everything that is wanted. The biases ride along as two
more columns,

    s_ij = [q_i, r_i, 1] · [k_j, 1, c_j]

so that every step of a tile is one matrix product. Where q is k and r is c the logits are symmetric: only tiles on and
above the diagonal are visited, and each serves its mirror image too.
"""

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial

import torch
from torch import Tensor

from vgae.ops.sums import Sums

# Rows and columns of a tile. On a CPU a tile should stay in the second-level cache and must not have a power of two
# as its stride; on a GPU it should be large enough to fill the device. Measured by benchmarks/allpairs.py --tune.
TILE_SIDE = {"cpu": 1000, "cuda": 8192}
SMALLEST_SIDE = 300  # smaller tiles cost more in calls than a second thread saves


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
    biased = row_bias is not None or column_bias is not None
    left, right = _with_biases(q, k, row_bias, column_bias) if biased else (q.contiguous(), k.contiguous())
    total, by_row, by_column = _sweep(left, right, symmetric=symmetric, value=value, gradient=gradient)
    dim = q.shape[1]
    if not biased:
        return Sums(total, by_row, by_row[:, 0], by_column, by_column[:, 0])
    # The column of ones, whose products are the sums of σ: the last but one in `right`, the last in `left`.
    return Sums(total, by_row[:, :dim], by_row[:, dim], by_column[:, :dim], by_column[:, dim if symmetric else dim + 1])


def _with_biases(q: Tensor, k: Tensor, row_bias: Tensor | None, column_bias: Tensor | None) -> tuple[Tensor, Tensor]:
    """Factors with [r, 1] and [1, c] as additional columns."""
    rows = q.new_zeros(len(q)) if row_bias is None else row_bias
    columns = k.new_zeros(len(k)) if column_bias is None else column_bias
    left = torch.cat([q, rows[:, None], q.new_ones(len(q), 1)], dim=1)
    right = torch.cat([k, k.new_ones(len(k), 1), columns[:, None]], dim=1)
    return left, right


def _sweep(
    left: Tensor, right: Tensor, *, symmetric: bool, value: bool, gradient: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """One pass over the tiles of S = left·rightᵀ: Σ softplus(S), σ(S)·right and σ(S)ᵀ·left.

    A symmetric S is swept through its upper half, and σ(S)·right is returned for both: σ(S)ᵀ·left is the same but for
    the order of the two bias columns. On a CPU every thread sweeps tiles of its own and their sums are added in order:
    the threads meet once, not at every step of a tile.
    """
    side = _tile_side(left, right)
    tiles = [
        (top, start) for top in range(0, len(left), side) for start in range(top if symmetric else 0, len(right), side)
    ]
    workers = min(torch.get_num_threads(), len(tiles)) if left.device.type == "cpu" else 1
    left, right = left.detach(), right.detach()
    share = partial(_sweep_tiles, left, right, right.T.contiguous(), side, symmetric, value, gradient)
    if workers == 1:
        return share(tiles)
    parts = list(_pool(workers).map(share, [tiles[worker::workers] for worker in range(workers)]))
    total, by_row, by_column = parts[0]
    for more_total, more_by_row, more_by_column in parts[1:]:
        total += more_total
        by_row += more_by_row
        if not symmetric:
            by_column += more_by_column
    return total, by_row, by_column


def _sweep_tiles(
    left: Tensor,
    right: Tensor,
    transposed: Tensor,
    side: int,
    symmetric: bool,
    value: bool,
    gradient: bool,
    tiles: Sequence[tuple[int, int]],
) -> tuple[Tensor, Tensor, Tensor]:
    """What some of the tiles, given by their corners, add to the sums; `transposed` is rightᵀ, laid out by rows."""
    total = left.new_full((), 0.0 if value else torch.nan, dtype=torch.float64)
    by_row = torch.zeros_like(left)
    by_column = by_row if symmetric else torch.zeros_like(right)
    tile = left.new_empty(min(side, len(left)) * min(side, len(right)))
    spare = torch.empty_like(tile) if value else tile
    for top, start in tiles:
        rows, columns = slice(top, min(top + side, len(left))), slice(start, min(start + side, len(right)))
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


def _tile_side(left: Tensor, right: Tensor) -> int:
    """The usual side, or a smaller one where there would be too few tiles to share out among the threads."""
    side = TILE_SIDE[left.device.type]
    if left.device.type != "cpu" or torch.get_num_threads() == 1:
        return side
    fewest = min(len(left), len(right))
    return min(side, max(SMALLEST_SIDE, -(-fewest // 6)))


@cache
def _pool(workers: int) -> ThreadPoolExecutor:
    """Threads that sweep tiles, each alone: their own operations are not to be shared out once more."""
    pool = ThreadPoolExecutor(
        workers, thread_name_prefix="vgae-tiles", initializer=torch.set_num_threads, initargs=(1,)
    )
    list(pool.map(lambda _: None, range(workers)))
    torch.set_num_threads(torch.get_num_threads())  # what a thread sets is also the default of threads to come
    return pool


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # threads do not survive a fork


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
