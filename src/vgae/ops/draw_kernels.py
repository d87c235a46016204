"""Zeros of a sparse matrix drawn, laid out by both ends and described, on the CPU (imported only when used)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.machine import in_threads, num_threads
from vgae.ops.numba_tools import compiled

Indices = npt.NDArray[Any]
Doubles = npt.NDArray[np.float64]

PART = 2**14  # pairs that are found or described together, however many threads there are


def entries_of(
    sources: Tensor, targets: Tensor, shape: tuple[int, int]
) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """Starts and columns of pairs that are in the order of their rows, and of the transpose; None of others."""
    rows, columns = (ends.to(torch.int32).contiguous().numpy() for ends in (sources, targets))
    starts, other_starts, sorted_rows = (np.empty(size, np.int32) for size in (shape[0] + 1, shape[1] + 1, len(rows)))
    if not _lay_out(rows, columns, starts, other_starts, sorted_rows):
        return None
    found = (torch.from_numpy(each) for each in (starts, columns, other_starts, sorted_rows))
    return next(found), next(found), next(found), next(found)


@compiled()
def _lay_out(rows: Indices, columns: Indices, starts: Indices, other_starts: Indices, sorted_rows: Indices) -> bool:
    """By counting; False where rows are not in order."""
    starts[:] = 0
    other_starts[:] = 0
    for place in range(len(rows)):
        if place and rows[place] < rows[place - 1]:
            return False
        starts[rows[place] + 1] += 1
        other_starts[columns[place] + 1] += 1
    for node in range(len(starts) - 1):
        starts[node + 1] += starts[node]
    for node in range(len(other_starts) - 1):
        other_starts[node + 1] += other_starts[node]
    free = other_starts[:-1].copy()
    for place in range(len(rows)):
        column = columns[place]
        sorted_rows[free[column]] = rows[place]
        free[column] += 1
    return True


def zeros_at(chosen: Tensor, starts: Tensor, columns: Tensor, width: int) -> Tensor:
    """The pairs (M×2) of zeros, given by their numbers row by row, in order, where a matrix has these entries.

    `width` is how many columns it has.
    """
    pairs = np.empty((2, len(chosen)), columns.numpy().dtype)
    given = chosen.numpy(), starts.numpy(), columns.numpy(), width
    num_parts = max(1, -(-len(chosen) // PART))
    parts = iter(range(num_parts))

    def work(_: int) -> None:
        for part in parts:
            _find_zeros(*given, part * PART, min((part + 1) * PART, len(chosen)), pairs)

    in_threads(work, min(num_threads(), num_parts))
    return torch.from_numpy(pairs).T


@compiled()
def _row_of_zero(starts: Indices, width: int, zero: int) -> Any:
    """The row that a zero is in, by its number."""
    low, high = np.int64(0), np.int64(len(starts) - 2)
    while low < high:
        middle = (low + high) // 2
        if (middle + 1) * width - np.int64(starts[middle + 1]) > zero:
            high = middle
        else:
            low = middle + 1
    return low


@compiled()
def _find_zeros(
    chosen: Indices, starts: Indices, columns: Indices, width: int, begin: int, end: int, pairs: Indices
) -> None:
    """Rows are passed in order; within one, as many entries come before zero u as have at most u zeros before them."""
    if begin == end:
        return
    row = _row_of_zero(starts, width, chosen[begin])
    until = (row + 1) * width - np.int64(starts[row + 1])  # zeros in the rows up to this one
    for place in range(begin, end):
        while chosen[place] >= until:
            row += 1
            until = (row + 1) * width - np.int64(starts[row + 1])
        first, last = np.int64(starts[row]), np.int64(starts[row + 1])
        rank = chosen[place] - (np.int64(row) * width - first)  # among the zeros of the row
        low, high = first, last
        while low < high:
            middle = (low + high) // 2
            if np.int64(columns[middle]) - (middle - first) <= rank:
                low = middle + 1
            else:
                high = middle
        pairs[0, place] = row
        pairs[1, place] = rank + (low - first)


def weighted_moments(pairs: Tensor, logits: Tensor, weights: tuple[Tensor, Tensor], first: int = 0) -> Tensor:
    """Sums of w, w·s, w·s², w·σ, w·σ·s and w·σ² over each half of some pairs, every other one, in double precision.

    `first` is the number of the first pair: those with an even one are the first half.
    """
    sources, targets = (ends.contiguous().numpy() for ends in pairs.unbind(dim=1))
    s = logits.detach().to(weights[0].dtype).numpy()
    rows, columns = (weight.detach().numpy() for weight in weights)
    num_parts = max(1, -(-len(s) // PART))
    sums = np.zeros((num_parts, 2, 6))
    threads = min(num_threads(), num_parts)
    parts = iter(range(num_parts))

    def work(_: int) -> None:
        for part in parts:
            _add_moments(sources, targets, s, rows, columns, part * PART, min((part + 1) * PART, len(s)), sums[part])

    in_threads(work, threads)
    total: Doubles = sums.sum(axis=0)
    return torch.from_numpy(total[::-1].copy() if first % 2 else total)


@compiled()
def _add_moments(
    sources: Indices,
    targets: Indices,
    s: Any,
    rows: Any,
    columns: Any,
    first: int,
    last: int,
    sums: Doubles,
) -> None:
    """What pairs from the first to the last add to the sums of their halves."""
    for place in range(first, last):
        weight = np.float64(rows[sources[place]]) + np.float64(columns[targets[place]])
        logit = np.float64(s[place])
        probability = 1.0 / (1.0 + np.exp(-logit))
        half = place % 2
        sums[half, 0] += weight
        sums[half, 1] += weight * logit
        sums[half, 2] += weight * logit * logit
        sums[half, 3] += weight * probability
        sums[half, 4] += weight * probability * logit
        sums[half, 5] += weight * probability * probability


def weighted_sums(rows: Tensor, columns: Tensor, s: Tensor) -> Tensor:
    """Σ w, Σ w·s and Σ w·s² over nodes, w the sum of two weights, in double precision."""
    sums = np.zeros(3)
    of_rows, of_columns, logits = (each.detach().contiguous().numpy() for each in (rows, columns, s))
    _add_weighted(of_rows, of_columns, logits, sums)
    return torch.from_numpy(sums)


@compiled()
def _add_weighted(rows: Any, columns: Any, s: Any, sums: Doubles) -> None:
    for node in range(len(s)):
        weight, logit = np.float64(rows[node]) + np.float64(columns[node]), np.float64(s[node])
        sums[0] += weight
        sums[1] += weight * logit
        sums[2] += weight * logit * logit
