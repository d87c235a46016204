"""Sums over the entries of a sparse matrix fused for a GPU, row by row (imported only when used).

A program takes R pieces of rows (vgae.ops.chunks) and BE entries of each at a time: a block of R×BE×BF factors is
gathered, from which come R×BE logits, what becomes of them, and what they add to R×BF sums. Rows have 10 to 20 entries
on average, so one row alone would leave most lanes idle; with several, all are busy, and neighbouring lanes read
neighbouring factors of a gathered row. Rows with more than LONGEST entries are divided among programs, and a second
kernel adds up their parts. Every number is written once, by one program, and everything is added up in an order that
depends on the pattern alone: no atomics, and the same bits every time. Nothing waits for the device, so that a recorded
step may hold it. Products are float32 and not rounded further; values and sums of slopes are added up in float64.

A sparse matrix times a dense one is the same with given weights in place of slopes.
"""

# Kernels are typed by their launch, and their arguments in capitals are compile-time constants.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
# ruff: noqa: N803

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor
from torch.nn.functional import pad

from vgae.ops.chunks import STEP, Chunks

INTERPRETED = bool(triton.knobs.runtime.interpret)  # TRITON_INTERPRET=1: kernels run in Python, on any tensor
WIDEST = 128  # columns of a product that a program takes
PARTS = 32  # of a divided row that are added at a time


@dataclass(frozen=True)
class Blocks:
    """Pieces that a program takes, entries of each at a time, and the warps that share them."""

    pieces: int
    entries: int
    num_warps: int = 4


# By the padded width. With fewer entries at a time than threads, the compiler lets each thread load the columns that it
# needs, and nothing passes through shared memory within the loop; on sm_90 that takes half the registers. They are not
# tuned at run time: other blocks add up in another order, and bits would change.
BLOCKS = {
    16: Blocks(8, STEP),
    32: Blocks(8, STEP),
    64: Blocks(4, STEP),
    128: Blocks(2, STEP),
    256: Blocks(2, STEP, 8),
}
SHORT = 2  # entries at a time of rows that are drawn, of which most have one or two


@triton.jit
def _pieces_of(table_ptr, num_pieces, R: tl.constexpr, WHOLE: tl.constexpr):
    """Rows, first entries, ends and places of the pieces of a program, and which of them there are."""
    at = tl.program_id(0).to(tl.int64) * R + tl.arange(0, R)
    inside = at < num_pieces
    if WHOLE:
        rows = at
        places = at
        first = tl.load(table_ptr + at, mask=inside, other=0)
        end = tl.load(table_ptr + at + 1, mask=inside, other=0)
    else:
        rows = tl.load(table_ptr + at, mask=inside, other=0).to(tl.int64)
        first = tl.load(table_ptr + num_pieces + at, mask=inside, other=0)
        end = tl.load(table_ptr + 2 * num_pieces + at, mask=inside, other=0)
        places = tl.load(table_ptr + 3 * num_pieces + at, mask=inside, other=0).to(tl.int64)
    return rows, first, end, places, inside


@triton.jit
def _exponential(s):
    """exp(-|s|); log₂ e in two parts, since rounded to float32 alone it would be off by 4·10⁻⁷ at logits of 30."""
    x = -tl.abs(s)
    return tl.exp2(tl.fma(x, 1.4426950216293335, x * 1.9259629911266175e-08))


@triton.jit
def _log_one_plus(e):
    """log(1 + e) = 2 artanh(e / (2 + e)) for 0 ≤ e ≤ 1, to the last digit however small e is."""
    y = e / (2.0 + e)
    y2 = y * y
    p = 0.07692307692307693 * y2 + 0.09090909090909091
    p = p * y2 + 0.1111111111111111
    p = p * y2 + 0.14285714285714285
    p = p * y2 + 0.2
    p = p * y2 + 0.3333333333333333
    return 2.0 * (y + y * y2 * p)


@triton.jit
def sum_kernel(
    left_ptr, right_ptr, left_bias_ptr, right_bias_ptr, table_ptr, columns_ptr, labels_ptr, order_ptr,
    parabola_ptr, by_row_ptr, row_sums_ptr, values_ptr, logits_ptr, num_pieces, weight, diagonal_weight, given_label,
    R: tl.constexpr, BE: tl.constexpr, BF: tl.constexpr, DIM: tl.constexpr, WHOLE: tl.constexpr,
    LEFT_BIAS: tl.constexpr, RIGHT_BIAS: tl.constexpr, LABELS: tl.constexpr, AS_ZEROS: tl.constexpr,
    VALUE: tl.constexpr, GRADIENT: tl.constexpr, LOGITS: tl.constexpr,
):  # fmt: skip
    """Logits, value, Σ_j g_ij·right_j and Σ_j g_ij of R pieces, where g is the derivative in the logit."""
    rows, first, end, places, inside = _pieces_of(table_ptr, num_pieces, R, WHOLE)
    features = tl.arange(0, BF)
    wanted = inside[:, None] & (features < DIM)[None, :]
    left = tl.load(left_ptr + rows[:, None] * DIM + features[None, :], mask=wanted, other=0.0)
    a, b = tl.load(parabola_ptr), tl.load(parabola_ptr + 1)
    row_bias = tl.zeros([R], tl.float32)
    if LEFT_BIAS:
        row_bias = tl.load(left_bias_ptr + rows, mask=inside, other=0.0)
    by_row = tl.zeros([R, BE, BF], tl.float32)
    row_sums = tl.zeros([R, BE], tl.float64)
    values = tl.zeros([R, BE], tl.float64)
    longest = tl.max(end - first, 0).to(tl.int32)
    for step in range(0, longest, BE):
        entries = first[:, None] + (step + tl.arange(0, BE))[None, :]
        there = entries < end[:, None]
        columns = tl.load(columns_ptr + entries, mask=there, other=0).to(tl.int64)
        right = tl.load(
            right_ptr + columns[:, :, None] * DIM + features[None, None, :],
            mask=there[:, :, None] & (features < DIM)[None, None, :],
            other=0.0,
        )
        s = tl.sum(left[:, None, :] * right, 2) + row_bias[:, None]
        if RIGHT_BIAS:
            s += tl.load(right_bias_ptr + columns, mask=there, other=0.0)
        if LOGITS:
            pairs = tl.load(order_ptr + entries, mask=there, other=0) if WHOLE else entries
            tl.store(logits_ptr + pairs, s, mask=there)
        label = tl.zeros([R, BE], tl.float32) + given_label
        if LABELS:
            label = tl.load(labels_ptr + entries, mask=there, other=0.0)
        as_one = tl.where(columns == rows[:, None], diagonal_weight, weight * label)
        times = label
        as_zero = tl.zeros([R, BE], tl.float32)
        if AS_ZEROS:
            times = tl.zeros([R, BE], tl.float32) + 1.0
            as_zero = 1.0 - label
        e = _exponential(s)
        if VALUE:
            log = _log_one_plus(e)
            part = as_one * (tl.maximum(-s, 0.0) + log) + as_zero * (tl.maximum(s, 0.0) + log)
            part -= times * ((a + b * s) * s)
            values += tl.where(there, part, 0.0).to(tl.float64)
        if GRADIENT:
            large = 1.0 / (1.0 + e)
            small = e * large
            slope = as_zero * tl.where(s > 0.0, large, small) - as_one * tl.where(s > 0.0, small, large)
            slope = tl.where(there, slope - times * (a + 2.0 * b * s), 0.0)
            by_row += slope[:, :, None] * right
            if LEFT_BIAS or RIGHT_BIAS:
                row_sums += slope.to(tl.float64)
    if VALUE:
        tl.store(values_ptr + tl.program_id(0), tl.sum(tl.sum(values, 1), 0))
    if GRADIENT:
        tl.store(by_row_ptr + places[:, None] * DIM + features[None, :], tl.sum(by_row, 1), mask=wanted)
        if LEFT_BIAS or RIGHT_BIAS:
            tl.store(row_sums_ptr + places, tl.sum(row_sums, 1), mask=inside)


@triton.jit
def multiply_kernel(
    dense_ptr, table_ptr, columns_ptr, values_ptr, out_ptr, num_pieces,
    R: tl.constexpr, BE: tl.constexpr, BF: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Σ_j value_ij·dense_j of R pieces, for a block of the columns of `dense`."""
    _, first, end, places, inside = _pieces_of(table_ptr, num_pieces, R, False)
    features = tl.program_id(1) * BF + tl.arange(0, BF)
    out = tl.zeros([R, BE, BF], tl.float32)
    longest = tl.max(end - first, 0).to(tl.int32)
    for step in range(0, longest, BE):
        entries = first[:, None] + (step + tl.arange(0, BE))[None, :]
        there = entries < end[:, None]
        columns = tl.load(columns_ptr + entries, mask=there, other=0).to(tl.int64)
        values = tl.load(values_ptr + entries, mask=there, other=0.0).to(tl.float32)
        dense = tl.load(
            dense_ptr + columns[:, :, None] * DIM + features[None, None, :],
            mask=there[:, :, None] & (features < DIM)[None, None, :],
            other=0.0,
        )
        out += values[:, :, None] * dense.to(tl.float32)
    wanted = inside[:, None] & (features < DIM)[None, :]
    tl.store(out_ptr + places[:, None] * DIM + features[None, :], tl.sum(out, 1), mask=wanted)


@triton.jit
def join_kernel(
    divided_ptr, by_row_ptr, row_sums_ptr, num_divided,
    BP: tl.constexpr, BF: tl.constexpr, DIM: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Add up the parts of a row that was divided, in their order."""
    at = tl.program_id(0)
    row = tl.load(divided_ptr + at).to(tl.int64)
    first = tl.load(divided_ptr + num_divided + at).to(tl.int64)
    count = tl.load(divided_ptr + 2 * num_divided + at).to(tl.int32)
    features = tl.program_id(1) * BF + tl.arange(0, BF)
    total = tl.zeros([BP, BF], tl.float32)
    row_sums = tl.zeros([BP], tl.float64)
    for step in range(0, count, BP):
        parts = step + tl.arange(0, BP)
        there = parts < count
        places = first + parts
        wanted = there[:, None] & (features < DIM)[None, :]
        total += tl.load(by_row_ptr + places[:, None] * DIM + features[None, :], mask=wanted, other=0.0)
        if SUMS:
            row_sums += tl.load(row_sums_ptr + places, mask=there, other=0.0)
    tl.store(by_row_ptr + row * DIM + features, tl.sum(total, 0), mask=features < DIM)
    if SUMS:  # then there is one block of columns
        tl.store(row_sums_ptr + row, tl.sum(row_sums, 0))


# ------------------------------------------------------------------------------------------------------------ launches


def sums_of(
    factors: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
    pattern: tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None],
    parabola: Tensor,
    numbers: list[float],
    asked: tuple[bool, bool, bool, bool],
    blocks: Blocks | None = None,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One pass over the rows: the value, the sums by row of g_ij·right_j and of g_ij, and the logits.

    `pattern` has starts, columns, labels, and what `Chunks` has or, of pairs that were drawn, which one each entry is.
    """
    left, right, left_bias, right_bias = factors
    starts, columns, labels, pieces, divided = pattern
    chunks = None if pieces is None or divided is None else Chunks(pieces, divided)
    as_zeros, value, gradient, with_logits = asked
    weight, diagonal_weight, label = numbers
    num_columns = left.shape[1]
    aligned = _aligned(left)
    left, right = aligned, aligned if right is left else _aligned(right)
    num_nodes, dim = left.shape
    width = _padded(dim)
    blocks = blocks or _blocks(width, whole=chunks is None)
    num_pieces = num_nodes if chunks is None else chunks.pieces.shape[1]
    num_programs = triton.cdiv(num_pieces, blocks.pieces)
    counted = gradient and (left_bias is not None or right_bias is not None)
    places = num_nodes + (0 if chunks is None else _num_parts(chunks, num_nodes))
    by_row = left.new_empty(places if gradient else 0, dim)
    row_sums = left.new_empty(places if counted else 0, dtype=torch.float64)
    values = left.new_empty(num_programs if value else 0, dtype=torch.float64)
    logits = left.new_empty(len(columns) if with_logits else 0)
    with torch.cuda.device_of(left):  # streams and kernels are those of the current device
        sum_kernel[(num_programs,)](
            left,
            right,
            left if left_bias is None else left_bias.contiguous(),
            left if right_bias is None else right_bias.contiguous(),
            starts if chunks is None else chunks.pieces,
            columns,
            left if labels is None else labels,
            columns if pieces is None else pieces,
            parabola,
            by_row,
            row_sums,
            values,
            logits,
            num_pieces,
            weight,
            diagonal_weight,
            label,
            R=blocks.pieces,
            BE=blocks.entries,
            BF=width,
            DIM=dim,
            WHOLE=chunks is None,
            LEFT_BIAS=left_bias is not None,
            RIGHT_BIAS=right_bias is not None,
            LABELS=labels is not None,
            AS_ZEROS=as_zeros,
            VALUE=value,
            GRADIENT=gradient,
            LOGITS=with_logits,
            num_warps=blocks.num_warps,
        )
        if gradient and chunks is not None:
            _join(chunks, by_row, row_sums, width)
        total = values.sum() if value else left.new_full((), torch.nan, dtype=torch.float64)
    return total, by_row[:num_nodes, :num_columns], row_sums[:num_nodes], logits


def multiply(
    columns: Tensor, values: Tensor, chunks: Chunks, dense: Tensor, num_rows: int, blocks: Blocks | None = None
) -> Tensor:
    """The product of a sparse matrix and a dense one, float32 or bfloat16; sums are float32."""
    dim = dense.shape[1]
    width = min(_padded(dim), WIDEST)
    blocks = blocks or _blocks(width, whole=False)
    num_pieces = chunks.pieces.shape[1]
    out = dense.new_empty(num_rows + _num_parts(chunks, num_rows), dim, dtype=torch.float32)
    with torch.cuda.device_of(dense):
        multiply_kernel[(triton.cdiv(num_pieces, blocks.pieces), triton.cdiv(dim, width))](
            dense.contiguous(),
            chunks.pieces,
            columns,
            values.contiguous(),
            out,
            num_pieces,
            R=blocks.pieces,
            BE=blocks.entries,
            BF=width,
            DIM=dim,
            num_warps=blocks.num_warps,
        )
        _join(chunks, out, None, width)
    return out.resize_(num_rows, dim).to(dense.dtype)  # no view, so that what comes next may work in its memory


def _join(chunks: Chunks, by_row: Tensor, row_sums: Tensor | None, width: int) -> None:
    """Put the sums of divided rows in their places."""
    num_divided, dim = chunks.divided.shape[1], by_row.shape[1]
    if num_divided:
        with_sums = row_sums is not None and len(row_sums) > 0
        join_kernel[(num_divided, triton.cdiv(dim, width))](
            chunks.divided,
            by_row,
            row_sums if with_sums else by_row,
            num_divided,
            BP=max(1, min(PARTS, 2048 // width)),
            BF=width,
            DIM=dim,
            SUMS=with_sums,
            num_warps=2,
        )


def _aligned(factors: Tensor) -> Tensor:
    """Rows in one piece, with zeros up to whole loads of 16 bytes: single numbers would take many more."""
    missing = -factors.shape[1] % 4
    return pad(factors, (0, missing)) if missing else factors.contiguous()


def _padded(dim: int) -> int:
    return max(16, int(triton.next_power_of_2(dim)))


def _blocks(width: int, *, whole: bool) -> Blocks:
    blocks = BLOCKS[width]
    return Blocks(blocks.pieces * blocks.entries // SHORT, SHORT, blocks.num_warps) if whole else blocks


def _num_parts(chunks: Chunks, num_rows: int) -> int:
    """Places behind those of the rows: pieces less the rows that are one piece."""
    return chunks.pieces.shape[1] - (num_rows - chunks.divided.shape[1])
