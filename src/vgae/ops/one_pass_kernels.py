"""A step's sums for symmetric logits without biases, on the CPU: few passes over few numbers (imported only when used).

`describe` has what closed forms over all pairs are made of, in one pass over the rows. `sum_by_draw` has the loss and
its gradient: it draws zeros, each of which adds to the loss, to the gradient at both of its ends and to what the
control variate learns, and passes over the ones.

Threads share both (`vgae.ops.team`). Rows go in parts that depend on their number alone, and so do ones; a draw goes in
two parts, each with a gradient of its own, which join that of the ones at the end. So the bits are the same with any
number of threads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.ops.entry_kernels import add_parts, exponentials, join_parts, num_parts_of, sum_of_values
from vgae.ops.numba_tools import BLOCK_ROWS, LANES, add_scaled, block_product, compiled, index_at, product_of, zeros
from vgae.ops.pages import empty
from vgae.ops.product_kernels import add_product
from vgae.ops.team import call, first_part, new_counts, part_after, size_of_part, wait_for_all, with_helpers

Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[Any]

ROWS, MOST_PARTS = 512, 64  # rows of a part, more where there would be more parts
BLOCK = 256  # rows that are added up in single precision
HALF = 128  # pairs with even numbers, and as many with odd ones, that go through the loops together
PIECE = 2 * HALF
FEWEST_IN_PARTS = 8 * PIECE  # pairs, from which on a draw goes in two parts
SHORT = 32  # ones in a row that are looked at one by one

f32 = np.float32


def num_sums(width: int) -> int:
    """How many numbers `describe` finds."""
    return 2 * (1 + width + width * width) + 3


def describe(rows: Array) -> tuple[Array, Doubles]:
    """‖l_i‖² of each row, and sums over the rows: with u_i = ‖l_i‖², in this order,

    Σ u_i,  Σ u_i l_i,  Σ u_i l_i l_iᵀ,  N,  Σ l_i,  Σ l_i l_iᵀ,  and Σ w_i s_iⁿ for w_i = 2u_i, s_i = u_i, n = 0, 1, 2.
    """
    height, width = rows.shape
    size = size_of_part(height, ROWS, MOST_PARTS)
    squares, sums = np.empty(height, np.float32), np.zeros((max(1, -(-height // size)), num_sums(width)))
    call(_describe_together, (new_counts(1), rows, size, squares, sums), alone=len(sums) == 1)
    return squares, sums.sum(axis=0)


@compiled()
def _describe_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _describe, arguments)


@compiled("contract")
def _describe(counts: Any, rows: Array, size: int, squares: Array, sums: Doubles) -> None:
    num_parts, width = len(sums), rows.shape[1]
    numbers = 1 + width + width * width
    plain, weighted = np.empty((1 + width, width), np.float32), np.empty((1 + width, width), np.float32)
    scaled = np.empty((BLOCK, width), np.float32)
    part = first_part(counts, 0)
    while part < num_parts:
        found, end = sums[part], min((part + 1) * size, len(rows))
        for first in range(part * size, end, BLOCK):
            num = min(BLOCK, end - first)
            plain[:] = f32(0)
            weighted[:] = f32(0)
            scaled[:] = f32(0)
            for row in range(num):
                at = (first + row) * width
                square = f32(0)
                for c in range(0, width, LANES):
                    square += product_of(rows, at + c, rows, at + c)
                squares[first + row] = square
                for c in range(0, width, LANES):
                    add_scaled(scaled, row * width + c, square, rows, at + c)
                    add_scaled(plain, c, f32(1), rows, at + c)
                    add_scaled(weighted, c, square, rows, at + c)
                u = np.float64(square)
                found[0] += u
                found[2 * numbers] += 2 * u
                found[2 * numbers + 1] += 2 * u * u
                found[2 * numbers + 2] += 2 * u * u * u
            found[numbers] += num
            for f in range(0, width, BLOCK_ROWS):
                for c in range(0, width, LANES):
                    to, left, right = (1 + f) * width + c, first * width + f, first * width + c
                    block_product(plain, to, width, rows, left, 1, width, rows, right, width, num)
                    block_product(weighted, to, width, rows, left, 1, width, scaled, c, width, num)
            for row in range(1 + width):
                for f in range(width):
                    found[1 + row * width + f] += np.float64(weighted[row, f])
                    found[1 + numbers + row * width + f] += np.float64(plain[row, f])
        part = part_after(counts, 0)
    wait_for_all(counts, 0, num_parts)


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


@compiled()
def _row_of_zero(starts: Indices, num_nodes: int, zero: int) -> Any:
    """The row that a zero is in, by its number."""
    low, high = 0, num_nodes - 1
    while low < high:
        middle = (low + high) // 2
        if (middle + 1) * num_nodes - index_at(starts, middle + 1) > zero:
            high = middle
        else:
            low = middle + 1
    return low


@compiled()
def _column_of_zero(columns: Indices, first: int, end: int, rank: int) -> Any:
    """Where in a row the zero with so many zeros before it is: as many ones come before it as have at most so many."""
    if end - first <= SHORT:
        before = 0
        for one in range(first, end):
            before += index_at(columns, one) - (one - first) <= rank
        return rank + before
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if index_at(columns, middle) - (middle - first) <= rank:
            low = middle + 1
        else:
            high = middle
    return rank + (low - first)


@compiled("contract")
def _add_zeros(
    uniform: Doubles,  # one number from U(0, 1) for each part of the zeros
    num_zeros: int,
    pairs: tuple[int, int],  # the first of the draw that are taken, and the end
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
    num_nodes, width = rows.shape
    a, b, times = f32(numbers[0]), f32(numbers[1]), f32(numbers[2])
    i, j = np.zeros(PIECE, np.int64), np.zeros(PIECE, np.int64)
    s, e, w = np.zeros(PIECE, np.float32), np.empty(PIECE, np.float32), np.zeros(PIECE, np.float32)
    p, g = np.empty(PIECE, np.float32), np.empty(PIECE, np.float32)
    counted, line = np.ones((3, PIECE), np.float32), np.array([a, b])
    counted[0, :] = f32(0)
    ratio, total = num_zeros / len(uniform), 0.0 if value else np.nan
    row, until = -1, 0  # zeros in the rows up to this one
    for at in range(pairs[0], pairs[1], PIECE):
        num = min(PIECE, pairs[1] - at)
        if num < PIECE:
            s[:] = f32(0)
            w[:] = f32(0)  # of places that the last piece leaves empty
        for place in range(num):
            zero = min(int((uniform[at + place] + (at + place)) * ratio), num_zeros - 1)
            if row < 0:
                row = _row_of_zero(starts, num_nodes, zero)
                until = (row + 1) * num_nodes - index_at(starts, row + 1)
            while zero >= until:
                row += 1
                until = (row + 1) * num_nodes - index_at(starts, row + 1)
            first = index_at(starts, row)
            slot = place // 2 + (place % 2) * HALF
            i[slot] = row
            j[slot] = _column_of_zero(columns, first, index_at(starts, row + 1), zero - (row * num_nodes - first))
        for place in range(num):
            slot = place // 2 + (place % 2) * HALF
            source, target = i[slot], j[slot]
            logit = f32(0)
            for c in range(0, width, LANES):
                logit += product_of(rows, source * width + c, rows, target * width + c)
            s[slot] = logit
            w[slot] = squares[source] + squares[target]
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


@compiled("contract")
def _begin_rows(rows: Array, begin: int, end: int, line: tuple[Array, Array], gradient: Array) -> None:
    """constant + rows·slope, for some rows."""
    constant, slope = line
    for row in range(begin, end):
        for f in range(rows.shape[1]):
            gradient[row, f] = constant[f]
    add_product(rows, begin, slope, gradient, begin, end - begin)


@compiled("contract")
def _sum_by_draw(
    counts: Any,
    rows: Array,
    squares: Array,
    line: tuple[Array, Array],  # of the closed form's gradient: constant + rows·slope
    ones: tuple[Indices, Indices, Array],  # starts, columns, labels
    factors: tuple[Array, Array, Array, Array],
    numbers: Array,
    flags: tuple[bool, bool, bool],
    of_ones: tuple[Array, Doubles, Array, Doubles],  # sums by row, of which the first is the gradient
    totals: Doubles,
    drawn: tuple[Doubles, int, tuple[float, float, float]],  # the draw, N₀, and a, b, N₀/M
    of_zeros: Array,  # a gradient for each part of the draw
    residuals: Doubles,
    moments: Doubles,  # 2×6 for each part of the draw
) -> None:
    gradient, num_draws = of_ones[0], len(of_zeros)
    height, width = rows.shape
    size = size_of_part(height, ROWS, MOST_PARTS)
    num_parts, empty = -(-height // size), np.empty(0, np.float32)
    part = first_part(counts, 0)
    while part < num_parts:
        begin, end = part * size, min((part + 1) * size, height)
        _begin_rows(rows, begin, end, line, gradient)
        of_zeros[:, begin:end] = f32(0)
        part = part_after(counts, 0)
    wait_for_all(counts, 0, num_parts)
    uniform = drawn[0]
    share = -(-len(uniform) // (PIECE * num_draws)) * PIECE
    part = first_part(counts, 1)
    while part < num_draws + len(totals):
        if part < num_draws:
            pairs = part * share, min((part + 1) * share, len(uniform))
            residuals[part] = _add_zeros(
                uniform, drawn[1], pairs, ones[:2], rows, squares, drawn[2], flags[1], of_zeros[part], moments[part]
            )
        else:
            one = part - num_draws
            add_parts(ones, factors, numbers, flags, (one, one + 1), of_ones, totals, empty)
        part = part_after(counts, 1)
    wait_for_all(counts, 1, num_draws + len(totals))
    part = first_part(counts, 2)
    while part < num_parts:
        for draw in range(num_draws):
            for row in range(part * size, min((part + 1) * size, height)):
                for f in range(width):
                    gradient[row, f] += of_zeros[draw, row, f]
        part = part_after(counts, 2)
    wait_for_all(counts, 2, num_parts)


@compiled()
def _sum_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _sum_by_draw, arguments)


@dataclass(frozen=True, eq=False)
class ByDraw:
    """What `sum_by_draw` finds: Σ over the ones, the mean residual at the draw times N₀, the gradient, the moments."""

    at_ones: float
    at_zeros: float
    gradient: Array
    moments: Doubles


def sum_by_draw(
    rows: Array,
    squares: Array,
    line: tuple[Array, Array],
    ones: tuple[Indices, Indices, Array],
    counted: tuple[tuple[float, float, float], bool],  # as in `vgae.ops.ones`, and whether zeros count
    parabola: tuple[float, float],
    draw: tuple[Doubles, int],
    *,
    value: bool,
) -> ByDraw:
    """F(ones), N₀/M Σ_m (softplus - p), and the gradient of both and of the closed form, whose gradient is `line`."""
    height, width = rows.shape
    (uniform, num_zeros), nothing = draw, np.empty(0, np.float32)
    numbers = np.array([*parabola, *counted[0], 2], np.float32)
    flags = counted[1], value, True
    num_parts, num_draws = num_parts_of(len(ones[1])), 1 if len(uniform) < FEWEST_IN_PARTS else 2
    gradient, of_zeros = empty(height, width).numpy(), empty(num_draws, height, width).numpy()
    of_ones = gradient, np.zeros(0), zeros(num_parts, width), np.zeros(num_parts)
    totals, residuals, moments = np.zeros(num_parts), np.zeros(num_draws), np.zeros((num_draws, 2, 6))
    times = num_zeros / len(uniform)
    drawn = uniform, num_zeros, (*parabola, times)
    factors = rows, rows, nothing, nothing
    given = rows, squares, line, ones, factors, numbers, flags, of_ones, totals, drawn, of_zeros, residuals, moments
    call(_sum_together, (new_counts(3), *given))
    join_parts(ones[0], *of_ones[2:], gradient, of_ones[1])
    return ByDraw(float(totals.sum()), times * float(residuals.sum()), gradient, moments.sum(axis=0))
