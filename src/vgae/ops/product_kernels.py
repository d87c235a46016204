"""Products of a sparse matrix with a dense one fused for the CPU, row by row (imported only when used).

Each row of the product is summed up in registers, entry by entry in their order, as PyTorch's weighted bags of rows
are: to the same bits, in two thirds of the time. Of a dense matrix that no cache holds, rows that come later are asked
for before they are needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.machine import in_threads, num_threads
from vgae.ops.numba_tools import (
    BLOCK_ROWS,
    LANES,
    add_scaled,
    block_product,
    compiled,
    fetch,
    index_at,
    weighted_sum_1,
    weighted_sum_2,
    weighted_sum_3,
    weighted_sum_4,
)
from vgae.ops.pages import empty

Array = npt.NDArray[np.float32]
Indices = npt.NDArray[Any]

WIDEST = 4 * LANES  # columns that are in registers together
PART = 2**14  # entries that a thread takes at a time, at least
AHEAD = 24  # entries by which rows are asked for before they are needed, of a dense matrix that no cache holds
ALONE = 2**22  # numbers that one thread moves before another could have begun


def suits(dense: Tensor) -> bool:
    """Whether there is a kernel for as many columns."""
    width = dense.shape[1]
    return dense.dtype == torch.float32 and dense.device.type == "cpu" and 0 < width <= WIDEST and width % LANES == 0


def multiply(
    starts: Tensor, columns: Tensor, values: Tensor, dense: Tensor, onto: Tensor | None = None, *, early: bool = False
) -> Tensor:
    """The product of a matrix by rows with a dense one that suits; with `onto`, added to what is there.

    `early` asks for rows before they are needed, which pays where no cache holds the dense matrix.
    """
    height, width = len(starts) - 1, dense.shape[1]
    out, add = empty(height, width) if onto is None else onto, onto is not None
    pattern = starts.numpy(), columns.numpy(), values.detach().numpy()
    rows, given = out.numpy(), dense.detach().contiguous().numpy()
    num_entries = len(columns)
    threads = min(num_threads(), 1 + width * (num_entries + height) // ALONE)
    if threads == 1:
        multiply_rows(*pattern, given, rows, 0, height, add, early)
        return out
    num_parts = max(1, min(num_entries // PART, height))
    ends = np.searchsorted(pattern[0], np.linspace(0, num_entries, num_parts + 1)[1:-1]).tolist()
    bounds = [0, *ends, height]
    parts = iter(range(num_parts))

    def work(_: int) -> None:
        for part in parts:
            multiply_rows(*pattern, given, rows, bounds[part], bounds[part + 1], add, early)

    in_threads(work, threads)
    return out


@compiled("contract")
def add_product(left: Array, at: int, right: Array, out: Array, first: int, num_rows: int) -> None:
    """Rows of left·right for a small matrix on the right, added to those of `out` from row `first` on.

    Those of left are from row `at` on.
    """
    inner, width = right.shape
    whole = num_rows - num_rows % BLOCK_ROWS
    for row in range(0, whole, BLOCK_ROWS):
        for c in range(0, width, LANES):
            to, source = (first + row) * width + c, (at + row) * inner
            block_product(out, to, width, left, source, inner, 1, right, c, width, inner)
    for row in range(whole, num_rows):
        for f in range(inner):
            for c in range(0, width, LANES):
                add_scaled(out, (first + row) * width + c, left[at + row, f], right, f * width + c)


@compiled("contract")
def multiply_rows(
    starts: Indices,
    columns: Indices,
    values: Array,
    dense: Array,
    out: Array,
    first: int,
    end: int,
    add: bool,
    early: bool,
) -> None:
    """Some rows of the product, in the place of what is there or added to it."""
    width, last = dense.shape[1], len(columns) - 1
    for row in range(first, end):
        begin, until = index_at(starts, row), index_at(starts, row + 1)
        for place in range(begin, until if early else begin):
            ahead = index_at(columns, min(place + AHEAD, last)) * width
            for line in range(0, width, LANES):
                fetch(dense, ahead + line)
        if width == LANES:
            weighted_sum_1(out, row * width, values, columns, begin, until, dense, add)
        elif width == 2 * LANES:
            weighted_sum_2(out, row * width, values, columns, begin, until, dense, add)
        elif width == 3 * LANES:
            weighted_sum_3(out, row * width, values, columns, begin, until, dense, add)
        else:
            weighted_sum_4(out, row * width, values, columns, begin, until, dense, add)
