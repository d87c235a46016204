"""Draws from normal distributions with their KL, and the gradients of both, on the CPU (imported only when used).

Threads share the rows (`vgae.ops.team`), in parts that depend on their number alone, and so do the bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.ops.numba_tools import LANES, add_scaled, compiled, copy, two_to_the
from vgae.ops.pages import empty
from vgae.ops.team import call, first_part, new_counts, part_after, size_of_part, wait_for_all, with_helpers

Array = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]

ROWS, MOST_PARTS = 512, 256  # rows of a part, more where there would be more parts
MANY = 16  # parts, from which on there is work for all threads
PIECE = 512  # numbers that go through the loops together

f32 = np.float32
LOG2_E = f32(1.4426950408889634)
LN2_HIGH, LN2_LOW = f32(0.693145751953125), f32(1.428606765330187e-06)  # the first times a whole number is exact
LARGEST, SMALLEST = f32(88.72283), f32(-87.33654)  # beyond, exp is infinite, or no normal number
MOST, INFINITE = f32(127), f32(np.inf)
TERMS = tuple(f32(1 / factorial) for factorial in (1, 1, 2, 6, 24, 120, 720))


@compiled("contract")
def _exponentials(x: Array, num: int, out: Array) -> None:
    """exp(x) = 2ⁿ·exp(r) with n whole and |r| ≤ ½ ln 2, where seven terms are enough."""
    for j in range(num):
        bounded = SMALLEST if x[j] < SMALLEST else x[j]
        bounded = LARGEST if bounded > LARGEST else bounded
        n = np.rint(bounded * LOG2_E)
        n = MOST if n > MOST else n
        r = (bounded - n * LN2_HIGH) - n * LN2_LOW
        p = TERMS[6] * r + TERMS[5]
        p = p * r + TERMS[4]
        p = p * r + TERMS[3]
        p = p * r + TERMS[2]
        p = p * r + TERMS[1]
        p = p * r + TERMS[0]
        p = p * two_to_the(n)
        out[j] = INFINITE if x[j] > LARGEST else p


@compiled()
def _take(source: Array, stride: int, first: int, num_rows: int, width: int, out: Array) -> None:
    """Some rows, one after the other."""
    whole = width - width % LANES
    for row in range(num_rows):
        to, at = row * width, (first + row) * stride
        for f in range(0, whole, LANES):
            copy(out, to + f, source, at + f)
        for f in range(whole, width):
            out[to + f] = source[at + f]


@compiled("contract")
def _drawn(m: Array, s: Array, e: Array, noise: Array, z: Array) -> None:
    """z of a piece, and μ² + σ² - 2 log σ in the place of μ."""
    for j in range(len(z)):
        z[j] = m[j] + e[j] * noise[j]
    for j in range(len(z)):
        m[j] = m[j] * m[j] + e[j] * e[j] - f32(2) * s[j]


@compiled()
def _add_columns(numbers: Array, num_rows: int, sums: Array) -> None:
    """The sums over the rows of a piece."""
    width = len(sums)
    whole = width - width % LANES
    sums[:] = f32(0)
    for row in range(num_rows):
        for f in range(0, whole, LANES):
            add_scaled(sums, f, f32(1), numbers, row * width + f)
        for f in range(whole, width):
            sums[f] += numbers[row * width + f]


@compiled("contract")
def _draw(
    given: tuple[Array, Array, Array],  # μ, log σ and noise, each in one row
    strides: tuple[int, int],
    rows: tuple[int, int],
    width: int,
    out: Array,
    sums: Doubles,
) -> None:
    """z of some rows, and by dimension the sums of μ² + σ² - 2 log σ."""
    means, log_stds, noise = given
    piece = max(1, PIECE // width)
    size = piece * width
    m, s, e = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.float32)
    column_sums = np.empty(width, np.float32)
    for first in range(rows[0], rows[1], piece):
        num_rows = min(piece, rows[1] - first)
        num, begin = num_rows * width, first * width
        _take(means, strides[0], first, num_rows, width, m)
        _take(log_stds, strides[1], first, num_rows, width, s)
        _exponentials(s, num, e)
        _drawn(m, s, e, noise[begin : begin + num], out[begin : begin + num])
        _add_columns(m, num_rows, column_sums)
        for f in range(width):
            sums[f] += np.float64(column_sums[f])


@compiled("contract")
def _returned(m: Array, e: Array, noise: Array, of_z: Array, of_kl: Array, of_mean: Array, of_log_std: Array) -> None:
    """The gradients of a piece in μ and log σ."""
    for j in range(len(of_z)):
        of_mean[j] = of_z[j] + of_kl[j] * m[j]
        of_log_std[j] = of_z[j] * (e[j] * noise[j]) + of_kl[j] * (e[j] * e[j] - f32(1))


@compiled("contract")
def _gradients(
    given: tuple[Array, Array, Array],  # μ, log σ and noise, each in one row
    strides: tuple[int, int],
    upstream: tuple[Array, Array],  # of z, in one row, and of the KL by dimension
    rows: tuple[int, int],
    of_mean: Array,
    of_log_std: Array,
) -> None:
    """Those of some rows."""
    means, log_stds, noise = given
    of_z, of_kl = upstream
    width = len(of_kl)
    piece = max(1, PIECE // width)
    size = piece * width
    m, s, e = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.float32)
    times = np.empty(size, np.float32)
    for row in range(piece):
        for f in range(width):
            times[row * width + f] = of_kl[f]
    for first in range(rows[0], rows[1], piece):
        num_rows = min(piece, rows[1] - first)
        num, begin = num_rows * width, first * width
        _take(means, strides[0], first, num_rows, width, m)
        _take(log_stds, strides[1], first, num_rows, width, s)
        _exponentials(s, num, e)
        part = slice(begin, begin + num)
        _returned(m, e, noise[part], of_z[part], times, of_mean[part], of_log_std[part])


@compiled("contract")
def _draw_parts(
    counts: Any, given: tuple[Array, Array, Array], strides: tuple[int, int], height: int, out: Array, sums: Doubles
) -> None:
    size, (num_parts, width) = size_of_part(height, ROWS, MOST_PARTS), sums.shape
    part = first_part(counts, 0)
    while part < num_parts:
        _draw(given, strides, (part * size, min((part + 1) * size, height)), width, out, sums[part])
        part = part_after(counts, 0)
    wait_for_all(counts, 0, num_parts)


@compiled("contract")
def _return_parts(
    counts: Any,
    given: tuple[Array, Array, Array],
    strides: tuple[int, int],
    height: int,
    upstream: tuple[Array, Array],
    of_mean: Array,
    of_log_std: Array,
) -> None:
    size = size_of_part(height, ROWS, MOST_PARTS)
    num_parts = -(-height // size)
    part = first_part(counts, 0)
    while part < num_parts:
        _gradients(given, strides, upstream, (part * size, min((part + 1) * size, height)), of_mean, of_log_std)
        part = part_after(counts, 0)
    wait_for_all(counts, 0, num_parts)


@compiled()
def _draw_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _draw_parts, arguments)


@compiled()
def _return_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _return_parts, arguments)


def draw(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """z, and the KL of each dimension."""
    height, width = mean.shape
    out, num_parts = empty(height, width), -(-height // size_of_part(height, ROWS, MOST_PARTS))
    given, strides = _flat(mean, log_std, noise)
    sums = np.zeros((num_parts, width))
    call(_draw_together, (new_counts(1), given, strides, height, out.view(-1).numpy(), sums), few=num_parts < MANY)
    return out, torch.from_numpy((0.5 * (sums.sum(axis=0) - height)).astype(np.float32))


def gradients(mean: Tensor, log_std: Tensor, noise: Tensor, of_z: Tensor, of_kl: Tensor) -> tuple[Tensor, Tensor]:
    """Of the loss in μ and log σ, by those in z and in the KL."""
    height, width = mean.shape
    found = empty(height, width), empty(height, width)
    given, strides = _flat(mean, log_std, noise)
    upstream = of_z.contiguous().view(-1).numpy(), of_kl.contiguous().numpy()
    arrays = found[0].view(-1).numpy(), found[1].view(-1).numpy()
    few = height < MANY * ROWS
    call(_return_together, (new_counts(1), given, strides, height, upstream, *arrays), few=few)
    return found


def _flat(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[tuple[Array, Array, Array], tuple[int, int]]:
    """Each as one row of numbers, and how far apart the rows of the first two begin: heads lie side by side."""
    (means, of_means), (stds, of_stds) = _strided(mean), _strided(log_std)
    return (means, stds, noise.contiguous().view(-1).numpy()), (of_means, of_stds)


def _strided(given: Tensor) -> tuple[Array, int]:
    rows = given.detach()
    rows = rows if rows.stride(1) == 1 else rows.contiguous()
    length = (len(rows) - 1) * rows.stride(0) + rows.shape[1]
    array: Array = rows.as_strided((length,), (1,)).numpy()
    return array, rows.stride(0)
