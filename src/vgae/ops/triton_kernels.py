"""The all-pairs op on a GPU, fused: a tile of logits lives in registers and is never written to memory.

With t = tanh(s/2) both the gradient and the value come from one special-function evaluation per pair,

    σ(s) = ½ + ½ t                  Σ_j σ(s_ij) k_j = ½ Σ_j k_j + ½ Σ_j t_ij k_j
    softplus(s) = ½ s + ½ |s| + log 2 - log(1 + |t|)

where the sums of k and of s have closed forms. So the kernel adds up t·k and t·q and, for the value, |s| and the
logarithm of a product of many factors 1 + |t| at a time. A logit of zero adds nothing to any of these: factors are
padded with zeros to whole blocks, and borders need no masks.

Each program holds a block of rows and walks along a stretch of columns. What a tile gives to its columns is added to
memory in fixed point: integers add up to the same sum in any order, so the result has the same bits every time. The
unit is the largest value that a sum can take, over 2³⁰ in 32 bits or 2⁶⁰ in 64; a sum that overflows on its way comes
back, because only its end has to fit. Symmetric logits are swept through their upper half: the square of a block with
itself serves its rows, every other tile its rows and its columns. Factors too wide for that, where the sums over
columns would be the greater part of the work, are swept once for the rows and once for the columns.

    precision   logits                    t                      products with t   sums
    highest     tf32 in three parts       exp2 and a division    float32           64-bit integers
    high        float16, 11 bits (tf32)   tanh.approx, 11 bits   float16           32-bit integers
"""

# Kernels are typed by their launch, and their arguments in capitals are compile-time constants.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
# ruff: noqa: N803

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import torch
import triton
import triton.language as tl
from torch import Tensor

from vgae.ops.sums import Sums

INTERPRETED = bool(triton.knobs.runtime.interpret)  # TRITON_INTERPRET=1: kernels run in Python, on any tensor
WIDEST_FUSED = 16  # beyond, rows and columns are swept one after the other


@triton.jit
def _tanh(x, APPROXIMATE: tl.constexpr):
    if APPROXIMATE:
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    return 1.0 - 2.0 / (1.0 + tl.exp2(tl.minimum(x * 2.8853900817779268, 126.0)))  # 2 log₂ e, kept below overflow


@triton.jit
def _nearest(x, APPROXIMATE: tl.constexpr):
    """The nearest 32-bit integer."""
    if APPROXIMATE:  # on a GPU this is one instruction
        return tl.inline_asm_elementwise("cvt.rni.s32.f32 $0, $1;", "=r,f", [x], dtype=tl.int32, is_pure=True, pack=1)
    return tl.floor(x + 0.5).to(tl.int32)


@triton.jit
def _add_fixed(pointers, values, unit, HIGHEST: tl.constexpr, APPROXIMATE: tl.constexpr):
    """Add values to integers that count units of 1/`unit`."""
    if HIGHEST:
        tl.atomic_add(pointers, tl.floor(values.to(tl.float64) * unit + 0.5).to(tl.int64), sem="relaxed")
    else:
        tl.atomic_add(pointers, _nearest(values * unit, APPROXIMATE), sem="relaxed")


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _value_of(half, t, BN: tl.constexpr):
    """Σ (½|s| - log(1 + |t|)) along each row, with one logarithm of a product.

    The factors are scaled into [√½, √2], so that 128 of them stay within float32.
    """
    factors = tl.abs(t) * 0.7071067811865476 + 0.7071067811865476
    logs = tl.log2(tl.reduce(factors, 1, _multiply)) + 0.5 * BN
    return tl.sum(tl.abs(half), 1) - logs * 0.6931471805599453


@triton.jit
def _walk(
    first, last, q, rows, row_bias, by_row, row_sums,
    k_ptr, column_bias_ptr, by_column_ptr, column_sums_ptr, column_unit, count_unit, num_rows, num_columns,
    BN: tl.constexpr, BF: tl.constexpr, COLUMNS: tl.constexpr, BIASED: tl.constexpr, VALUE: tl.constexpr,
    GRADIENT: tl.constexpr, HIGHEST: tl.constexpr, APPROXIMATE: tl.constexpr, LOGITS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Tiles of a block of rows from column `first` to `last`; with COLUMNS, each serves its columns too."""
    features = tl.arange(0, BF)
    values = tl.zeros_like(row_sums)
    for start in range(first, last, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[:, None] * BF + features[None, :])
        half = tl.dot(q, tl.trans(k), input_precision=LOGITS)
        if HIGHEST:
            half *= 0.5
        if BIASED:
            half += row_bias[:, None] + tl.load(column_bias_ptr + columns)[None, :]
            half = tl.where((rows < num_rows)[:, None] & (columns < num_columns)[None, :], half, 0.0)
        t = _tanh(half, APPROXIMATE)
        if VALUE:
            values += _value_of(half, t, BN)
        if GRADIENT:
            weights = t.to(k.dtype)
            by_row = tl.dot(weights, k, by_row, input_precision=SUMS)
            if BIASED:
                row_sums += tl.sum(t, 1)
            if COLUMNS:
                by_column = tl.dot(tl.trans(weights), q, input_precision=SUMS)
                places = by_column_ptr + columns[:, None] * BF + features[None, :]
                _add_fixed(places, by_column, column_unit, HIGHEST, APPROXIMATE)
                if BIASED:
                    _add_fixed(column_sums_ptr + columns, tl.sum(t, 0), count_unit, HIGHEST, APPROXIMATE)
    return by_row, row_sums, values


@triton.jit
def _sweep(
    q_ptr, k_ptr, row_bias_ptr, column_bias_ptr,
    by_row_ptr, by_column_ptr, row_sums_ptr, column_sums_ptr, values_ptr, units_ptr,
    num_rows, num_columns, num_row_blocks, stretch,
    BM: tl.constexpr, BN: tl.constexpr, BF: tl.constexpr, SYMMETRIC: tl.constexpr, COLUMNS: tl.constexpr,
    BIASED: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, HIGHEST: tl.constexpr,
    APPROXIMATE: tl.constexpr, LOGITS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """A block of BM rows times a stretch of columns; SYMMETRIC takes only what lies on or above the diagonal."""
    row_block = tl.program_id(0) % num_row_blocks
    first = (tl.program_id(0) // num_row_blocks) * stretch
    last = tl.minimum(first + stretch, num_columns)
    top = row_block * BM
    if SYMMETRIC:
        first = tl.maximum(first, top)
        if first >= last:
            return
    rows = top + tl.arange(0, BM)
    features = tl.arange(0, BF)
    q = tl.load(q_ptr + rows[:, None] * BF + features[None, :])
    by_row = tl.zeros([BM, BF], tl.float32)
    row_sums = tl.zeros([BM], tl.float32)
    row_bias = row_sums
    if BIASED:
        row_bias = tl.load(row_bias_ptr + rows)
    row_unit, column_unit, count_unit = tl.load(units_ptr), tl.load(units_ptr + 1), tl.load(units_ptr + 2)
    values = tl.zeros([BM], tl.float32)
    if SYMMETRIC:
        middle = tl.minimum(tl.maximum(first, top + BM), last)
        by_row, row_sums, values = _walk(
            first, middle, q, rows, row_bias, by_row, row_sums,
            k_ptr, column_bias_ptr, by_column_ptr, column_sums_ptr, column_unit, count_unit, num_rows, num_columns,
            BN, BF, False, BIASED, VALUE, GRADIENT, HIGHEST, APPROXIMATE, LOGITS, SUMS,
        )  # fmt: skip
        first = middle
    by_row, row_sums, more = _walk(
        first, last, q, rows, row_bias, by_row, row_sums,
        k_ptr, column_bias_ptr, by_column_ptr, column_sums_ptr, column_unit, count_unit, num_rows, num_columns,
        BN, BF, COLUMNS, BIASED, VALUE, GRADIENT, HIGHEST, APPROXIMATE, LOGITS, SUMS,
    )  # fmt: skip
    if VALUE:
        if SYMMETRIC:
            more *= 2.0
        tl.store(values_ptr + tl.program_id(0), tl.sum(values + more, 0))
    if GRADIENT:
        _add_fixed(by_row_ptr + rows[:, None] * BF + features[None, :], by_row, row_unit, HIGHEST, APPROXIMATE)
        if BIASED:
            _add_fixed(row_sums_ptr + rows, row_sums, count_unit, HIGHEST, APPROXIMATE)


@dataclass(frozen=True)
class Blocks:
    """The shape of a tile (rows a multiple of columns), and the warps that share it."""

    rows: int
    columns: int
    num_warps: int
    num_stages: int = 2


# The fastest by benchmarks/allpairs.py --tune on an NVIDIA H200, by precision and padded width of the factors. They
# are not tuned at run time: another tile adds up in another order, and the same seed is to give the same bits.
BLOCKS = {
    "high": {
        16: Blocks(256, 64, 4, 3),
        32: Blocks(64, 64, 4, 3),
        64: Blocks(64, 64, 4, 3),
        128: Blocks(128, 64, 4, 3),
        256: Blocks(64, 64, 4, 2),
    },
    "highest": {
        16: Blocks(64, 64, 4, 2),
        32: Blocks(64, 64, 4, 2),
        64: Blocks(64, 64, 4, 2),
        128: Blocks(64, 32, 4, 2),
        256: Blocks(32, 32, 4, 2),
    },
}
# Columns that a program walks along: few enough to keep all processors busy, many enough to earn its start.
PROGRAMS_WANTED, LONGEST_STRETCH = 132 * 16, 32768


def sweep(
    q: Tensor,
    k: Tensor,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    *,
    symmetric: bool,
    value: bool,
    gradient: bool,
    precision: str,
    blocks: Blocks | None = None,
) -> Sums:
    """All sums of the op, in float32 or wider; symmetric ones are the same by row and by column."""
    width = max(16, triton.next_power_of_2(q.shape[1]))
    blocks = blocks or BLOCKS[precision][width]
    left = _Side.of(q, row_bias, width, blocks.rows, precision)
    right = left if symmetric else _Side.of(k, column_bias, width, blocks.rows, precision)
    biased = row_bias is not None or column_bias is not None
    fused = width <= WIDEST_FUSED
    launch = partial(_launch, biased=biased, gradient=gradient, precision=precision, blocks=blocks)
    total = launch(left, right, symmetric=symmetric and fused, columns=fused, value=value)
    if gradient and not fused and not symmetric:
        launch(right, left, symmetric=False, columns=False, value=False)
    if value:
        # What the kernel leaves out: ½ s and log 2 for every pair.
        total += 0.5 / left.scale**2 * (left.total @ right.total)
        total += len(k) * left.bias_total + len(q) * right.bias_total
        total += len(q) * len(k) * math.log(2)
    else:
        total = total.new_full((), torch.nan)
    return Sums(total, *left.sums(right), *right.sums(left))


@dataclass(frozen=True, eq=False)
class _Side:
    """One side's factors, laid out and rounded for the kernel, and the integers that its sums are collected in.

    The closed forms are taken of the rounded factors too, so that what should cancel against the kernel's sums does.
    """

    size: int
    dim: int
    factors: Tensor  # times `scale`
    bias: Tensor  # times ½
    by_node: Tensor
    counts: Tensor
    total: Tensor
    bias_total: Tensor
    largest: Tensor
    precision: str

    @property
    def scale(self) -> float:
        """√½ makes a product half a logit at once; where rounding counts, the product is halved afterwards."""
        return 1.0 if self.precision == "highest" else math.sqrt(0.5)

    @classmethod
    def of(cls, factors: Tensor, bias: Tensor | None, width: int, block: int, precision: str) -> _Side:
        size, dim = factors.shape
        padded = triton.cdiv(size, block) * block
        highest = precision == "highest"
        laid_out = factors.new_zeros(padded, width, dtype=torch.float32 if highest else torch.float16)
        laid_out[:size, :dim] = factors if highest else factors * math.sqrt(0.5)
        half_bias = factors.new_zeros(padded, dtype=torch.float32)
        if bias is not None:
            half_bias[:size] = 0.5 * bias
        whole = torch.int64 if highest else torch.int32
        return cls(
            size=size,
            dim=dim,
            factors=laid_out,
            bias=half_bias,
            by_node=factors.new_zeros(padded, width, dtype=whole),
            counts=factors.new_zeros(padded, dtype=whole),
            total=laid_out.sum(dim=0, dtype=torch.float64),
            bias_total=half_bias.sum(dtype=torch.float64),
            largest=torch.linalg.vector_norm(laid_out, 1, dim=0, dtype=torch.float64).max().clamp_min(1e-20),
            precision=precision,
        )

    def unit(self) -> Tensor:
        """Integers per unit of what the other side collects: the sums of t times these factors."""
        return (2.0**60 if self.precision == "highest" else 2.0**30) / self.largest

    def count_unit(self, other: _Side) -> float:
        return (2.0**60 if self.precision == "highest" else 2.0**30) / max(self.size, other.size)

    def sums(self, other: _Side) -> tuple[Tensor, Tensor]:
        """Σ σ(s)·(the other side's factors) and Σ σ(s) for each node of this side."""
        by_node = self.by_node[: self.size, : self.dim] / other.unit() + other.total[: self.dim]
        counts = self.counts[: self.size] / self.count_unit(other) + other.size
        return 0.5 / self.scale * by_node, 0.5 * counts


def _launch(
    left: _Side,
    right: _Side,
    *,
    symmetric: bool,
    columns: bool,
    biased: bool,
    value: bool,
    gradient: bool,
    precision: str,
    blocks: Blocks,
) -> Tensor:
    """Run the kernel; Σ (½|s| - log(1 + |t|)) if the value is wanted."""
    num_row_blocks = len(left.factors) // blocks.rows
    tiles = num_row_blocks * (len(right.factors) // blocks.rows) // (2 if symmetric else 1)
    stretch = blocks.rows * max(1, min(tiles // PROGRAMS_WANTED, LONGEST_STRETCH // blocks.rows))
    num_programs = num_row_blocks * triton.cdiv(right.size, stretch)
    highest = precision == "highest"
    units = torch.stack([right.unit(), left.unit(), left.total.new_full((), left.count_unit(right))])
    values = left.bias.new_zeros(num_programs if value else 1)
    _sweep[(num_programs,)](
        left.factors,
        right.factors,
        left.bias,
        right.bias,
        left.by_node,
        right.by_node,
        left.counts,
        right.counts,
        values,
        units if highest else units.float(),
        left.size,
        right.size,
        num_row_blocks,
        stretch,
        BM=blocks.rows,
        BN=blocks.columns,
        BF=left.factors.shape[1],
        SYMMETRIC=symmetric,
        COLUMNS=columns,
        BIASED=biased,
        VALUE=value,
        GRADIENT=gradient,
        HIGHEST=highest,
        APPROXIMATE=not (highest or INTERPRETED),
        LOGITS="tf32x3" if highest else None,
        SUMS="ieee" if highest else None,
        num_warps=blocks.num_warps,
        num_stages=blocks.num_stages,
    )
    return values.sum(dtype=torch.float64)
