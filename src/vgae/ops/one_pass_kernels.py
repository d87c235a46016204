"""A step's sums for symmetric logits without biases, on the CPU: few passes over few numbers (imported only when used).

`describe` has what closed forms over all pairs are made of, in one pass over the rows. `add_zeros` draws zeros, and has
their part of the loss, of its gradient at both ends, and of what the control variate learns, in one pass over the draw.

Rows are described in parts of PART, however many threads there are, so that the bits do not depend on them. A draw is
one thread's work: where it is used it is over before another has begun.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.machine import in_threads, num_threads
from vgae.ops.entry_kernels import exponentials, sum_of_values
from vgae.ops.numba_tools import LANES, add_scaled, compiled, index_at, product_of

Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[Any]

PART, BLOCK = 2**14, 256  # rows that a thread takes, and that are added up in single precision
HALF = 128  # pairs with even numbers, and as many with odd ones, that go through the loops together
PIECE = 2 * HALF

f32 = np.float32


def num_sums(width: int) -> int:
    """How many numbers `describe` finds."""
    return 2 * (1 + width + width * width) + 3


def describe(rows: Array) -> tuple[Array, Doubles]:
    """‖l_i‖² of each row, and sums over the rows: with u_i = ‖l_i‖², in this order,

    Σ u_i,  Σ u_i l_i,  Σ u_i l_i l_iᵀ,  N,  Σ l_i,  Σ l_i l_iᵀ,  and Σ w_i s_iⁿ for w_i = 2u_i, s_i = u_i, n = 0, 1, 2.
    """
    height, width = rows.shape
    squares, num_parts = np.empty(height, np.float32), max(1, -(-height // PART))
    sums = np.zeros((num_parts, num_sums(width)))
    parts = iter(range(num_parts))

    def work(_: int) -> None:
        for part in parts:
            _describe(rows, part * PART, min((part + 1) * PART, height), squares, sums[part])

    in_threads(work, min(num_threads(), num_parts))
    return squares, sums[0] if num_parts == 1 else sums.sum(axis=0)


@compiled("contract")
def _describe(rows: Array, begin: int, end: int, squares: Array, sums: Doubles) -> None:
    width = rows.shape[1]
    size = width + width * width
    plain, weighted = np.empty(size, np.float32), np.empty(size, np.float32)
    for first in range(begin, end, BLOCK):
        plain[:] = f32(0)
        weighted[:] = f32(0)
        for row in range(first, min(first + BLOCK, end)):
            at = row * width
            square = f32(0)
            for c in range(0, width, LANES):
                square += product_of(rows, at + c, rows, at + c)
            squares[row] = square
            for c in range(0, width, LANES):
                add_scaled(plain, c, f32(1), rows, at + c)
                add_scaled(weighted, c, square, rows, at + c)
            for f in range(width):
                number = rows[row, f]
                for c in range(0, width, LANES):
                    add_scaled(plain, (1 + f) * width + c, number, rows, at + c)
                    add_scaled(weighted, (1 + f) * width + c, square * number, rows, at + c)
            u = np.float64(square)
            sums[0] += u
            sums[1 + size] += 1
            sums[2 + 2 * size] += 2 * u
            sums[3 + 2 * size] += 2 * u * u
            sums[4 + 2 * size] += 2 * u * u * u
        for place in range(size):
            sums[1 + place] += np.float64(weighted[place])
            sums[2 + size + place] += np.float64(plain[place])


@compiled("contract")
def _slopes(s: Array, e: Array, a: Any, b: Any, probability: Array, slope: Array) -> None:
    """σ(s) and σ(s) - a - 2b·s, by e = exp(-|s|)."""
    for j in range(PIECE):
        rest = f32(1) / (f32(1) + e[j])
        p = rest if s[j] > f32(0) else e[j] * rest
        probability[j] = p
        slope[j] = p - a - f32(2) * b * s[j]


@compiled("contract", "reassoc", "nsz")
def _add_moments(weight: Array, s: Array, probability: Array, first: int, sums: Doubles) -> None:
    """Σ of w, w·s, w·s², w·σ, w·σ·s and w·σ² over one half of a piece."""
    w0, w1, w2, p0, p1, p2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for j in range(first, first + HALF):
        w, x, p = np.float64(weight[j]), np.float64(s[j]), np.float64(probability[j])
        w0 += w
        w1 += w * x
        w2 += w * x * x
        p0 += w * p
        p1 += w * p * x
        p2 += w * p * p
    sums[0] += w0
    sums[1] += w1
    sums[2] += w2
    sums[3] += p0
    sums[4] += p1
    sums[5] += p2


@compiled("contract")
def add_zeros(
    uniform: Doubles,  # one number from U(0, 1) for each part of the zeros
    num_zeros: int,
    pattern: tuple[Indices, Indices],  # starts and columns of the ones
    rows: Array,
    squares: Array,
    numbers: tuple[float, float, float],  # a, b, and by what gradients are multiplied
    value: bool,
    gradient: Array,  # to which is added
    moments: Doubles,  # 2×6, to which is added
) -> float:
    """Σ softplus(s) - a·s - b·s² over the zeros that are drawn, NaN without `value`."""
    starts, columns = pattern
    num_pairs, num_nodes, width = len(uniform), rows.shape[0], rows.shape[1]
    a, b, times = f32(numbers[0]), f32(numbers[1]), f32(numbers[2])
    i, j = np.zeros(PIECE, np.int64), np.zeros(PIECE, np.int64)
    s, e, w = np.zeros(PIECE, np.float32), np.empty(PIECE, np.float32), np.zeros(PIECE, np.float32)
    p, g = np.empty(PIECE, np.float32), np.empty(PIECE, np.float32)
    counted, line = np.ones((3, PIECE), np.float32), np.array([a, b])
    counted[0, :] = f32(0)
    ratio, total = num_zeros / num_pairs, 0.0 if value else np.nan
    row, until = -1, 0  # zeros in the rows up to this one
    for at in range(0, num_pairs, PIECE):
        num = min(PIECE, num_pairs - at)
        if num < PIECE:
            s[:] = f32(0)
            w[:] = f32(0)  # of places that the last piece leaves empty
        for place in range(num):
            zero = min(int((uniform[at + place] + (at + place)) * ratio), num_zeros - 1)
            while zero >= until:
                row += 1
                until = (row + 1) * num_nodes - index_at(starts, row + 1)
            first, high = index_at(starts, row), index_at(starts, row + 1)
            rank, low = zero - (row * num_nodes - first), first  # among the zeros of the row
            while low < high:
                middle = (low + high) // 2
                if index_at(columns, middle) - (middle - first) <= rank:
                    low = middle + 1
                else:
                    high = middle
            column = rank + (low - first)
            slot = place // 2 + (place % 2) * HALF
            i[slot], j[slot] = row, column
            logit = f32(0)
            for c in range(0, width, LANES):
                logit += product_of(rows, row * width + c, rows, column * width + c)
            s[slot] = logit
            w[slot] = squares[row] + squares[column]
        exponentials(s, PIECE, e)
        _slopes(s, e, a, b, p, g)
        for half in range(2):
            _add_moments(w, s, p, half * HALF, moments[half])
            if value:
                inside = (num + 1 - half) // 2
                of_half = slice(half * HALF, half * HALF + inside)
                total += sum_of_values(s[of_half], e[of_half], inside, counted, line)
        for place in range(num):
            slot = place // 2 + (place % 2) * HALF
            slope, source, target = times * g[slot], i[slot] * width, j[slot] * width
            for c in range(0, width, LANES):
                add_scaled(gradient, source + c, slope, rows, target + c)
                add_scaled(gradient, target + c, slope, rows, source + c)
    return total
