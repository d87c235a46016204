"""Sums over the entries of a sparse matrix fused for the CPU, row by row (imported only when used).

Entries are taken in parts of PART, however many threads there are and however long rows are, so that a hub is shared
by threads and the bits do not depend on them: a row that began in an earlier part is summed up apart, and joins the
rest in the order of the parts. A part goes in pieces of PIECE entries through three loops: logits, what becomes of
them, and the sums by row, while the factors that it needs are in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.machine import in_threads, num_threads
from vgae.ops.numba_tools import (
    LANES,
    add_scaled,
    compiled,
    fetch,
    index_at,
    product_of,
    two_to_the,
    zeros,
)

Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]
Indices = npt.NDArray[Any]

PART, PIECE = 4096, 256  # entries
AHEAD = 12  # entries by which factors are asked for before they are needed
LINE = 16  # numbers that come with one
ALONE = 2**19  # numbers that one thread moves before another could have begun

f32 = np.float32
LOG2_E = f32(1.4426950408889634)
POWERS = tuple(  # the polynomial nearest to 2ʳ, by its largest relative error for |r| ≤ ½, 2·10⁻⁹
    f32(coefficient)
    for coefficient in (1, 0.69314721, 0.24022647, 0.055503288, 0.0096184890, 0.0013399931, 0.00015345812)
)
LOWEST = f32(-126)  # two to the power of less is no normal number
THIRD, FIFTH, SEVENTH, NINTH, ELEVENTH, THIRTEENTH = (f32(1 / odd) for odd in range(3, 15, 2))


@compiled("contract")
def exponentials(s: Array, num: int, out: Array) -> None:
    """exp(-|s|), as 2ⁿ·2ʳ with n whole and |r| ≤ ½."""
    for j in range(num):
        y = -abs(s[j]) * LOG2_E
        y = LOWEST if y < LOWEST else y
        n = np.rint(y)
        r = y - n
        p = POWERS[6] * r + POWERS[5]
        p = p * r + POWERS[4]
        p = p * r + POWERS[3]
        p = p * r + POWERS[2]
        p = p * r + POWERS[1]
        p = p * r + POWERS[0]
        out[j] = p * two_to_the(n)


@compiled("contract")
def _slopes(s: Array, e: Array, num: int, counted: Array, ab: Array, out: Array) -> None:
    """The derivatives in the logits; `counted` has how often entries count as ones, as zeros, and in a·s + b·s²."""
    for j in range(num):
        rest = f32(1) / (f32(1) + e[j])
        small = e[j] * rest
        at_one = small if s[j] > f32(0) else rest  # σ(-s)
        at_zero = rest if s[j] > f32(0) else small
        line = ab[0] + f32(2) * ab[1] * s[j]
        out[j] = counted[1, j] * at_zero - counted[0, j] * at_one - counted[2, j] * line


@compiled("contract", "reassoc", "nsz")
def sum_of_values(s: Array, e: Array, num: int, counted: Array, ab: Array) -> float:
    """Σ of what entries add: softplus(s) = max(s, 0) + log(1 + e), and log(1 + e) = 2 artanh(e / (2 + e))."""
    total = 0.0
    for j in range(num):
        y = e[j] / (f32(2) + e[j])
        y2 = y * y
        p = THIRTEENTH * y2 + ELEVENTH
        p = p * y2 + NINTH
        p = p * y2 + SEVENTH
        p = p * y2 + FIFTH
        p = p * y2 + THIRD
        logarithm = f32(2) * (y + y * y2 * p)
        above, below = (s[j], f32(0)) if s[j] > f32(0) else (f32(0), -s[j])
        parabola = (ab[0] + ab[1] * s[j]) * s[j]
        total += np.float64(counted[0, j]) * np.float64(below + logarithm)
        total += np.float64(counted[1, j]) * np.float64(above + logarithm)
        total -= np.float64(counted[2, j]) * np.float64(parabola)
    return total


@compiled()
def _row_of(starts: Indices, entry: int) -> int:
    """The row that an entry is in."""
    low, high = 0, len(starts) - 1  # starts[low] ≤ entry < starts[high]
    while high - low > 1:
        middle = (low + high) // 2
        if starts[middle] <= entry:
            low = middle
        else:
            high = middle
    return low


@compiled("contract")
def add_parts(
    pattern: tuple[Indices, Indices, Array],  # starts, columns, labels; no labels: all the same
    factors: tuple[Array, Array, Array, Array],  # left, right, and their biases, if any
    numbers: Array,  # a, b, the weight of ones, that of the diagonal, the label where there are none, and how often
    # sums by row are added
    flags: tuple[bool, bool, bool],  # whether zeros count, and what is asked for: value, gradient
    parts: tuple[int, int],
    sums: tuple[Array, Doubles, Array, Doubles],  # by row, and of rows that began in an earlier part
    totals: Doubles,
    logits: Array,  # of every entry, where they are asked for
) -> None:
    """Value and sums by row of g_ij·right_j and g_ij for some parts; g is the derivative in the logit."""
    starts, columns, labels = pattern
    left, right, left_bias, right_bias = factors
    zeros_count, value, gradient = flags
    by_row, row_sums, carried, carried_sums = sums
    width, num_entries = left.shape[1], len(columns)
    s, e, g = np.empty(PIECE, np.float32), np.empty(PIECE, np.float32), np.empty(PIECE, np.float32)
    counted, here = np.empty((3, PIECE), np.float32), np.empty(width, np.float32)
    alike = not len(labels) and numbers[3] == numbers[4] * numbers[2]
    narrow = width == LANES and not len(left_bias) and not len(right_bias)
    for place in range(PIECE):
        counted[0, place] = numbers[4] * numbers[2]
        counted[1, place] = f32(1) - numbers[4] if zeros_count else f32(0)
        counted[2, place] = f32(1) if zeros_count else numbers[4]
    for part in range(parts[0], parts[1]):
        begin, end = part * PART, min((part + 1) * PART, num_entries)
        row = _row_of(starts, begin)
        first = row if starts[row] < begin else -1
        at, total = begin, 0.0
        while at < end:
            stop = min(at + PIECE, end)
            below, entry = row, at
            while entry < stop:
                until = min(int(starts[below + 1]), stop)
                if narrow:
                    for place in range(entry, until):
                        fetch(right, index_at(columns, min(place + AHEAD, num_entries - 1)) * LANES)
                        s[place - at] = product_of(left, below * LANES, right, index_at(columns, place) * LANES)
                else:
                    for place in range(entry, until):
                        ahead = index_at(columns, min(place + AHEAD, num_entries - 1)) * width
                        for line in range(0, width, LINE):
                            fetch(right, ahead + line)
                        column = index_at(columns, place)
                        logit = f32(0)
                        for f in range(0, width, LANES):
                            logit += product_of(left, below * width + f, right, column * width + f)
                        if len(left_bias):
                            logit += left_bias[below]
                        if len(right_bias):
                            logit += right_bias[column]
                        s[place - at] = logit
                if not alike:
                    for place in range(entry, until):
                        label = labels[place] if len(labels) else numbers[4]
                        diagonal = index_at(columns, place) == below
                        counted[0, place - at] = numbers[3] if diagonal else label * numbers[2]
                        counted[1, place - at] = f32(1) - label if zeros_count else f32(0)
                        counted[2, place - at] = f32(1) if zeros_count else label
                entry = until
                below += 1
            num = stop - at
            if len(logits):
                logits[at:stop] = s[:num]
            exponentials(s, num, e)
            if value:
                total += sum_of_values(s, e, num, counted, numbers)
            if gradient:
                _slopes(s, e, num, counted, numbers, g)
            entry = at
            while entry < stop:
                until = min(int(starts[row + 1]), stop)
                if gradient and until > entry:
                    for f in range(width):
                        here[f] = f32(0)
                    of_row = 0.0
                    if narrow:
                        for place in range(entry, until):
                            add_scaled(here, 0, g[place - at], right, index_at(columns, place) * LANES)
                    else:
                        for place in range(entry, until):
                            column, slope = index_at(columns, place), g[place - at]
                            of_row += np.float64(slope)
                            for f in range(0, width, LANES):
                                add_scaled(here, f, slope, right, column * width + f)
                    if row == first:
                        carried_sums[part] += of_row
                        for f in range(0, width, LANES):
                            add_scaled(carried, part * width + f, numbers[5], here, f)
                    else:
                        if len(row_sums):
                            row_sums[row] += of_row
                        for f in range(0, width, LANES):
                            add_scaled(by_row, row * width + f, numbers[5], here, f)
                entry = until
                if entry == starts[row + 1]:
                    row += 1
            at = stop
        totals[part] = total


# ------------------------------------------------------------------------------------------------------------- threads


@dataclass(frozen=True, eq=False)
class RowSums:
    """What one pass over the entries brings home."""

    total: float
    by_row: Array
    row_sums: Doubles


def sums_of(
    factors: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
    pattern: tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None],
    parabola: Tensor,
    numbers: list[float],
    asked: tuple[bool, bool, bool, bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One pass over the rows: the value, the sums by row of g_ij·right_j and of g_ij, and the logits."""
    left, right, left_bias, right_bias = factors
    as_zeros, value, gradient, with_logits = asked
    starts, columns, labels = pattern[0].numpy(), pattern[1].numpy(), or_empty(pattern[2])
    weight, diagonal_weight, label = numbers
    wide = padded(left)
    arrays = wide, wide if right is left else padded(right), or_empty(left_bias), or_empty(right_bias)
    given = np.array([*parabola.tolist(), weight, diagonal_weight, label, 1], f32)
    logits = zeros(len(columns) if with_logits else 0)
    found = sum_rows((starts, columns, labels), arrays, given, (as_zeros, value, gradient), logits)
    return (
        torch.tensor(found.total if value else np.nan, dtype=torch.float64),
        torch.from_numpy(found.by_row[:, : left.shape[1]]),
        torch.from_numpy(found.row_sums),
        torch.from_numpy(logits),
    )


def or_empty(given: Tensor | None) -> Array:
    """An array of what is given, empty where nothing is."""
    return np.empty(0, f32) if given is None else np.ascontiguousarray(given.detach().numpy())


def sum_rows(
    pattern: tuple[Indices, Indices, Array],
    factors: tuple[Array, Array, Array, Array],
    numbers: Array,
    flags: tuple[bool, bool, bool],
    logits: Array,
) -> RowSums:
    """One pass over all entries, as `add_parts` has them, with padded factors."""
    height, width = factors[0].shape
    num_parts = num_parts_of(len(pattern[1]))
    counted = height if len(factors[2]) or len(factors[3]) else 0  # where a bias wants to know
    sums = zeros(height, width), np.zeros(counted), zeros(num_parts, width), np.zeros(num_parts)
    totals = np.zeros(num_parts)
    _share_parts(
        lambda parts: add_parts(pattern, factors, numbers, flags, parts, sums, totals, logits),
        num_parts,
        2 * width * len(pattern[1]),
    )
    by_row, row_sums, carried, carried_sums = sums
    join_parts(pattern[0], carried, carried_sums, by_row, row_sums)
    return RowSums(float(totals.sum()), by_row, row_sums)


def padded(given: Tensor) -> Array:
    """Rows as the kernels need them: contiguous, with zeros up to a multiple of LANES columns."""
    array: Array = given.detach().numpy()
    width = -(-array.shape[1] // LANES) * LANES
    if width == array.shape[1]:
        return np.ascontiguousarray(array)
    wide = zeros(len(array), width)
    wide[:, : array.shape[1]] = array
    return wide


def num_parts_of(num_entries: int) -> int:
    """In how many parts so many entries go."""
    return -(-num_entries // PART)


@compiled()
def join_parts(starts: Indices, carried: Array, carried_sums: Doubles, by_row: Array, row_sums: Doubles) -> None:
    """Add what parts summed up of rows that began in an earlier one, in their order."""
    for part in range(len(carried)):
        row = _row_of(starts, part * PART)
        for f in range(by_row.shape[1]):
            by_row[row, f] += carried[part, f]
        if len(row_sums):
            row_sums[row] += carried_sums[part]


def _share_parts(work: Callable[[tuple[int, int]], None], num_parts: int, num_moved: int) -> None:
    """All parts, a few at a time, by whichever thread is free: which one it is has no say in the result."""
    threads = min(num_threads(), max(1, num_moved // ALONE), num_parts)
    if threads <= 1:
        work((0, num_parts))
        return
    batch = max(1, num_parts // (8 * threads))
    batches = iter(range(0, num_parts, batch))

    def take(_: int) -> None:
        for first in batches:
            work((first, min(first + batch, num_parts)))

    in_threads(take, threads)
