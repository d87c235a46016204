"""Two graph convolutions, forward and back, each in one call for the CPU (imported only when used).

Threads share the rows (`vgae.ops.team`). What is summed up over rows, the gradient of W, is summed up by parts and
then in their order, and parts depend on the number of rows alone: so the bits do not depend on the threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.ops.numba_tools import BLOCK_ROWS, LANES, block_product, compiled
from vgae.ops.pages import empty
from vgae.ops.product_kernels import add_product, multiply_rows
from vgae.ops.team import call, first_part, new_counts, part_after, size_of_part, wait_for_all, with_helpers

Array = npt.NDArray[np.float32]
Indices = npt.NDArray[Any]
Sparse = tuple[Indices, Indices, Array]  # starts, columns and values of a matrix by rows

ROWS, MOST_PARTS = 128, 256  # rows of a part, more where there would be more parts

f32 = np.float32


@compiled("contract")
def _add_outer(left: Array, at: int, right: Array, num_rows: int, out: Array, place: int) -> None:
    """leftᵀ·right over some rows, those of left from row `at` on, added to the numbers of `out` from a place on."""
    height, width = left.shape[1], right.shape[1]
    for f in range(0, height, BLOCK_ROWS):
        for c in range(0, width, LANES):
            to = place + f * width + c
            block_product(out, to, width, left, at * height + f, 1, height, right, c, width, num_rows)


@compiled("contract")
def _multiply_parts(counts: Any, phase: int, sparse: Sparse, dense: Array, out: Array) -> None:
    """A phase that is a product."""
    height = len(out)
    size = size_of_part(height, ROWS, MOST_PARTS)
    num_parts = -(-height // size)
    part = first_part(counts, phase)
    while part < num_parts:
        multiply_rows(*sparse, dense, out, part * size, min((part + 1) * size, height), False, False)
        part = part_after(counts, phase)
    wait_for_all(counts, phase, num_parts)


@compiled("contract")
def _forward(
    counts: Any,
    features: Sparse,
    propagation: Sparse,
    flags: tuple[bool, bool],  # whether there are features, and whether the first hop is still to be taken
    weights: tuple[Array, Array],
    projected: Array,
    hidden: Array,
    heads: Array,  # of the hidden layer, before the second hop
    out: Array,
) -> None:
    with_features, first_hop = flags
    height = len(out)
    size = size_of_part(height, ROWS, MOST_PARTS)
    num_parts = -(-height // size)
    if with_features:
        _multiply_parts(counts, 0, features, weights[0], projected)
    part = first_part(counts, 1)
    while part < num_parts:
        first, end = part * size, min((part + 1) * size, height)
        if first_hop:
            multiply_rows(*propagation, projected, hidden, first, end, False, False)
        else:
            hidden[first:end] = projected[first:end]
        for row in range(first, end):
            for f in range(hidden.shape[1]):
                number = hidden[row, f]
                hidden[row, f] = f32(0) if number < f32(0) else number  # what is no number stays that
        heads[first:end] = f32(0)
        add_product(hidden, first, weights[1], heads, first, end - first)
        part = part_after(counts, 1)
    wait_for_all(counts, 1, num_parts)
    _multiply_parts(counts, 2, propagation, heads, out)


@compiled("contract")
def _back(
    counts: Any,
    features: Sparse,  # by columns
    propagation: Sparse,  # by columns
    flags: tuple[bool, bool],
    of_out: Array,
    hidden: Array,
    transposed: Array,  # W by columns
    before_relu: Array,  # gradients
    of_projected: Array,
    of_weight: Array,
    of_heads: Array,  # by parts
) -> None:
    with_features, first_hop = flags
    height, width = hidden.shape
    size = size_of_part(height, ROWS, MOST_PARTS)
    num_parts = -(-height // size)
    returned = np.empty((size, of_out.shape[1]), np.float32)
    part = first_part(counts, 0)
    while part < num_parts:
        first, end = part * size, min((part + 1) * size, height)
        starts = propagation[0][first:]
        multiply_rows(starts, *propagation[1:], of_out, returned, 0, end - first, False, False)
        before_relu[first:end] = f32(0)
        add_product(returned, 0, transposed, before_relu, first, end - first)
        for row in range(first, end):
            for f in range(width):
                before_relu[row, f] = f32(0) if hidden[row, f] <= f32(0) else before_relu[row, f]
        _add_outer(hidden, first, returned, end - first, of_heads, part * width * returned.shape[1])
        part = part_after(counts, 0)
    wait_for_all(counts, 0, num_parts)
    if first_hop:
        _multiply_parts(counts, 1, propagation, before_relu, of_projected)
    if with_features:
        _multiply_parts(counts, 2, features, of_projected, of_weight)


@compiled()
def _forward_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _forward, arguments)


@compiled()
def _back_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _back, arguments)


def forward(
    features: Sparse | None, propagation: Sparse, weights: tuple[Tensor, Tensor], *, first_hop: bool
) -> tuple[Tensor, Tensor]:
    """ÃHW and H = ReLU(ÃXW₀), or ReLU(XW₀) without the first hop; without X, XW₀ is W₀."""
    given = tuple(weight.detach().contiguous().numpy() for weight in weights)
    height, width, outputs = len(propagation[0]) - 1, weights[0].shape[1], weights[1].shape[1]
    hidden, out, heads = (empty(height, columns) for columns in (width, outputs, outputs))
    projected = given[0] if features is None else empty(height, width).numpy()
    counts, arrays = new_counts(3), (projected, hidden.numpy(), heads.numpy(), out.numpy())
    flags, with_any = (features is not None, first_hop), features or propagation
    call(_forward_together, (counts, with_any, propagation, flags, given, *arrays))
    return out, hidden


def back(
    features: Sparse | None,
    propagation: Sparse,
    weight: Tensor,
    hidden: Tensor,
    of_out: Tensor,
    input_dim: int,
    *,
    first_hop: bool,
) -> tuple[Tensor, Tensor]:
    """The gradients of W₀ and W, by that of ÃHW; matrices by columns."""
    (height, width), outputs = hidden.shape, of_out.shape[1]
    before_relu, after_hop = (empty(height, width) if wanted else empty(0, width) for wanted in (True, first_hop))
    of_projected = after_hop if first_hop else before_relu
    of_weight = of_projected if features is None else empty(input_dim, width)
    num_parts = -(-height // size_of_part(height, ROWS, MOST_PARTS))
    of_heads = np.zeros((num_parts, width, outputs), np.float32)
    transposed = np.ascontiguousarray(weight.detach().numpy().T)
    arrays = [each.numpy() for each in (before_relu, of_projected, of_weight)]
    counts, flags, with_any = new_counts(3), (features is not None, first_hop), features or propagation
    given = of_out.contiguous().numpy(), hidden.numpy(), transposed, *arrays, of_heads.ravel()
    call(_back_together, (counts, with_any, propagation, flags, *given))
    return of_weight, torch.from_numpy(of_heads.sum(axis=0))
