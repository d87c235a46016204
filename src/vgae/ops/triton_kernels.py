"""The all-pairs op on a GPU, fused: a tile of logits lives in registers and is never written to memory.

A tile turns logits s into weights in one of two forms, and sums up their products with the factors.

`sigma` weighs by σ(s) = 1 / (1 + 2^(-s/ln 2)) itself, and for the value adds up

    softplus(s) = max(s, 0) + log(1 + e),   e = 2^(-|s|/ln 2)

with one logarithm for the product of many 1 + e, which is kept less its one: (1 + a)(1 + b) - 1 = a + b + ab. Nothing
in it cancels, so that it is as exact at logits of -30 as at 0.

`tanh` has one special-function evaluation per pair: with t = tanh(s/2),

    σ(s) = ½ + ½ t                  Σ_j σ(s_ij) k_j = ½ Σ_j k_j + ½ Σ_j t_ij k_j
    softplus(s) = ½ s + ½ |s| + log 2 - log(1 + |t|)

where the sums of k and of s have closed forms. Where most σ are small, ½ + ½ t has none of their digits left.

    precision   form    logits                    weights                      products   sums
    highest     sigma   tf32 in three parts       exp2 and a division          float32    64-bit integers
    high        sigma   float16, 11 bits (tf32)   ex2.approx and rcp.approx    float16    64-bit integers
    high        tanh    float16, 11 bits (tf32)   tanh.approx, 11 bits         float16    32-bit integers

`high` takes the form `tanh` where σ is `LARGE` or more on average, by a sample of the pairs, and the factors are within
float16's range as they are. Which it is the device decides: both kernels are launched, and the one that is not wanted
returns at once, so that nothing waits for an answer and a recorded step may take one form today and the other tomorrow.

Factors are padded with zeros to whole blocks, which adds nothing to their sums; what padding would add to the value and
to the sums of weights is masked. Each program holds a block of rows and walks along a stretch of columns. What a tile
gives to its columns is added to memory in fixed point: integers add up to the same sum in any order, so the result has
the same bits every time. The unit is the largest value that a sum can take, over 2³⁰ in 32 bits or 2⁶⁰ in 64; a sum
that overflows on its way comes back, because only its end has to fit. Symmetric logits are swept through their upper
half: the square of a block with itself serves its rows, every other tile its rows and its columns. Factors too wide for
that, where the sums over columns would be the greater part of the work, are swept once for the rows and once for the
columns.
"""

# Kernels are typed by their launch, and their arguments in capitals are compile-time constants.
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
# ruff: noqa: N803

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl
from torch import Tensor

from vgae.ops.sums import Sums

INTERPRETED = bool(triton.knobs.runtime.interpret)  # TRITON_INTERPRET=1: kernels run in Python, on any tensor
WIDEST_FUSED = 16  # beyond, rows and columns are swept one after the other
SIGMA, TANH = 0, 1
LARGE = 0.2  # mean σ from which on the errors of ½ + ½ t, up to 2·10⁻⁴, are small beside it
SAMPLED = 512  # rows and columns whose pairs are looked at to tell
LEAST, MOST = 2.0**-6, 2.0**14  # of the largest factor, for float16 to hold factors as they are
LOG2_E = 1 / math.log(2)
ROOT_HALF = math.sqrt(0.5)


@triton.jit
def _in_base_two(s, HIGHEST: tl.constexpr):
    """s·log₂ e: the power of two that is e to the power of s."""
    if HIGHEST:  # in two parts: rounded to float32 alone, the factor would be off by 4·10⁻⁷ at logits of 30
        return tl.fma(s, 1.4426950216293335, s * 1.9259629911266175e-08)
    return s * 1.4426950408889634


@triton.jit
def _weights(s, shrink, HIGHEST: tl.constexpr, APPROXIMATE: tl.constexpr):
    """σ(s) over `shrink`; what is too small for a number becomes zero or next to it."""
    x = _in_base_two(-s, HIGHEST)
    if APPROXIMATE:
        power = tl.inline_asm_elementwise("ex2.approx.ftz.f32 $0, $1;", "=f,f", [x], tl.float32, is_pure=True, pack=1)
        denominator = power * shrink + shrink
        return tl.inline_asm_elementwise(
            "rcp.approx.ftz.f32 $0, $1;", "=f,f", [denominator], tl.float32, is_pure=True, pack=1
        )
    return 1.0 / (tl.exp2(tl.minimum(x, 126.0)) * shrink + shrink)


@triton.jit
def _tanh(x, APPROXIMATE: tl.constexpr):
    if APPROXIMATE:
        return tl.inline_asm_elementwise("tanh.approx.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)
    return 1.0 - 2.0 / (1.0 + tl.exp2(tl.minimum(x * 2.8853900817779268, 126.0)))  # 2 log₂ e, kept below overflow


@triton.jit
def _add_fixed(pointers, values, unit, HIGHEST: tl.constexpr, FORM: tl.constexpr, APPROXIMATE: tl.constexpr):
    """Add values to integers that count units of 1/`unit`."""
    if HIGHEST:
        whole = tl.floor(values.to(tl.float64) * unit + 0.5).to(tl.int64)
    elif APPROXIMATE and FORM == 0:  # on a GPU the nearest integer is one instruction
        whole = tl.inline_asm_elementwise(
            "cvt.rni.s64.f32 $0, $1;", "=l,f", [values * unit], dtype=tl.int64, is_pure=True, pack=1
        )
    elif APPROXIMATE:
        whole = tl.inline_asm_elementwise(
            "cvt.rni.s32.f32 $0, $1;", "=r,f", [values * unit], dtype=tl.int32, is_pure=True, pack=1
        )
    else:
        whole = tl.floor(values * unit + 0.5).to(tl.int64 if FORM == 0 else tl.int32)
    tl.atomic_add(pointers, whole, sem="relaxed")


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _multiply_less_one(a, b):
    """(1 + a)(1 + b) - 1."""
    return a + b + a * b


@triton.jit
def _softplus_of(s, HIGHEST: tl.constexpr):
    """Σ softplus(s) along each row."""
    product = tl.reduce(tl.exp2(_in_base_two(-tl.abs(s), HIGHEST)), 1, _multiply_less_one)
    # log(1 + product) to the last digit: the rounding of 1 + product is divided out again.
    whole = 1.0 + product
    rounded = tl.where(whole == 1.0, 1.0, whole - 1.0)
    logs = tl.where(whole == 1.0, product, tl.log(whole) * (product / rounded))
    return tl.sum(tl.maximum(s, 0.0), 1) + logs


@triton.jit
def _value_of(half, t, BN: tl.constexpr):
    """Σ (½|s| - log(1 + |t|)) along each row, with one logarithm of a product.

    The factors are scaled into [√½, √2], so that 128 of them stay within float32.
    """
    factors = tl.abs(t) * 0.7071067811865476 + 0.7071067811865476
    logs = tl.log2(tl.reduce(factors, 1, _multiply)) + 0.5 * BN
    return tl.sum(tl.abs(half), 1) - logs * 0.6931471805599453


@triton.jit
def _bias_of(pointer, places, size, FORM: tl.constexpr):
    """Biases as a form adds them to its logits; that of padding makes σ vanish, where it would count."""
    bias = tl.load(pointer + places)
    if FORM == 1:
        return 0.5 * bias
    return tl.where(places < size, bias, -1e30)


@triton.jit
def _walk(
    first, last, q, rows, row_bias, by_row, row_sums,
    k_ptr, column_bias_ptr, by_column_ptr, column_sums_ptr, column_unit, count_unit, factor, shrink,
    num_rows, num_columns,
    BN: tl.constexpr, BF: tl.constexpr, COLUMNS: tl.constexpr, BIASED: tl.constexpr, VALUE: tl.constexpr,
    GRADIENT: tl.constexpr, HIGHEST: tl.constexpr, APPROXIMATE: tl.constexpr, FORM: tl.constexpr,
    LOGITS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """Tiles of a block of rows from column `first` to `last`; with COLUMNS, each serves its columns too."""
    features = tl.arange(0, BF)
    values = tl.zeros_like(row_sums)
    for start in range(first, last, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[:, None] * BF + features[None, :])
        logits = tl.dot(q, tl.trans(k), input_precision=LOGITS)
        if FORM == 0:
            logits *= factor
        if BIASED:
            logits += row_bias[:, None] + _bias_of(column_bias_ptr, columns, num_columns, FORM)[None, :]
            if FORM == 1:
                logits = tl.where((rows < num_rows)[:, None] & (columns < num_columns)[None, :], logits, 0.0)
        weights = _weights(logits, shrink, HIGHEST, APPROXIMATE) if FORM == 0 else _tanh(logits, APPROXIMATE)
        if VALUE:
            values += _softplus_of(logits, HIGHEST) if FORM == 0 else _value_of(logits, weights, BN)
        if GRADIENT:
            rounded = weights.to(k.dtype)
            by_row = tl.dot(rounded, k, by_row, input_precision=SUMS)
            if BIASED:
                row_sums += tl.sum(weights, 1)
            if COLUMNS:
                by_column = tl.dot(tl.trans(rounded), q, input_precision=SUMS)
                places = by_column_ptr + columns[:, None] * BF + features[None, :]
                _add_fixed(places, by_column, column_unit, HIGHEST, FORM, APPROXIMATE)
                if BIASED:
                    sums = tl.sum(weights, 0)
                    _add_fixed(column_sums_ptr + columns, sums, count_unit, HIGHEST, FORM, APPROXIMATE)
    return by_row, row_sums, values


@triton.jit
def _sweep(
    q_ptr, k_ptr, row_bias_ptr, column_bias_ptr,
    by_row_ptr, by_column_ptr, row_sums_ptr, column_sums_ptr, values_ptr, scalars_ptr, form_ptr,
    num_rows, num_columns, num_row_blocks, stretch,
    BM: tl.constexpr, BN: tl.constexpr, BF: tl.constexpr, SYMMETRIC: tl.constexpr, COLUMNS: tl.constexpr,
    BIASED: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, HIGHEST: tl.constexpr,
    APPROXIMATE: tl.constexpr, FORM: tl.constexpr, LOGITS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """A block of BM rows times a stretch of columns; SYMMETRIC takes only what lies on or above the diagonal."""
    if tl.load(form_ptr) != FORM:
        return
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
        row_bias = _bias_of(row_bias_ptr, rows, num_rows, FORM)
    row_unit, column_unit, count_unit = tl.load(scalars_ptr), tl.load(scalars_ptr + 1), tl.load(scalars_ptr + 2)
    factor, shrink = tl.load(scalars_ptr + 3).to(tl.float32), tl.load(scalars_ptr + 4).to(tl.float32)
    values = tl.zeros([BM], tl.float32)
    if SYMMETRIC:
        middle = tl.minimum(tl.maximum(first, top + BM), last)
        by_row, row_sums, values = _walk(
            first, middle, q, rows, row_bias, by_row, row_sums,
            k_ptr, column_bias_ptr, by_column_ptr, column_sums_ptr, column_unit, count_unit, factor, shrink,
            num_rows, num_columns,
            BN, BF, False, BIASED, VALUE, GRADIENT, HIGHEST, APPROXIMATE, FORM, LOGITS, SUMS,
        )  # fmt: skip
        first = middle
    by_row, row_sums, more = _walk(
        first, last, q, rows, row_bias, by_row, row_sums,
        k_ptr, column_bias_ptr, by_column_ptr, column_sums_ptr, column_unit, count_unit, factor, shrink,
        num_rows, num_columns,
        BN, BF, COLUMNS, BIASED, VALUE, GRADIENT, HIGHEST, APPROXIMATE, FORM, LOGITS, SUMS,
    )  # fmt: skip
    if VALUE:
        if SYMMETRIC:
            more *= 2.0
        tl.store(values_ptr + tl.program_id(0), tl.sum(values + more, 0))
    if GRADIENT:
        places = by_row_ptr + rows[:, None] * BF + features[None, :]
        _add_fixed(places, by_row, row_unit, HIGHEST, FORM, APPROXIMATE)
        if BIASED:
            _add_fixed(row_sums_ptr + rows, row_sums, count_unit, HIGHEST, FORM, APPROXIMATE)


@dataclass(frozen=True)
class Blocks:
    """The shape of a tile (rows a multiple of columns), and the warps that share it."""

    rows: int
    columns: int
    num_warps: int
    num_stages: int = 2


# The fastest by benchmarks/allpairs.py --tune on an NVIDIA H200, by precision, form and padded width of the factors.
# They are not tuned at run time: another tile adds up in another order, and the same seed is to give the same bits.
BLOCKS = {
    ("high", TANH): {
        16: Blocks(256, 64, 4, 3),
        32: Blocks(64, 64, 4, 3),
        64: Blocks(64, 64, 4, 3),
        128: Blocks(128, 64, 4, 3),
        256: Blocks(64, 64, 4, 2),
    },
    ("high", SIGMA): {
        16: Blocks(256, 64, 4, 3),
        32: Blocks(64, 64, 4, 3),
        64: Blocks(64, 64, 4, 3),
        128: Blocks(128, 64, 4, 3),
        256: Blocks(64, 64, 4, 2),
    },
    ("highest", SIGMA): {
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
    forms: tuple[int, ...] | None = None,
) -> Sums:
    """All sums of the op, in float32 or wider; symmetric ones are the same by row and by column.

    `blocks` is the shape of tiles and `forms` the forms to choose among, by default those that the precision has.
    """
    forms = forms or ((SIGMA,) if precision == "highest" else (SIGMA, TANH))
    width = max(16, triton.next_power_of_2(q.shape[1]))
    shapes = {form: blocks or BLOCKS[precision, form][width] for form in forms}
    padding = max(shape.rows for shape in shapes.values())
    left = _Side.of(q, row_bias, width, padding, precision)
    right = left if symmetric else _Side.of(k, column_bias, width, padding, precision)
    task = _Task(
        left,
        right,
        form=_choose_form(q, k, row_bias, column_bias, left, right, forms),
        biased=row_bias is not None or column_bias is not None,
        gradient=gradient,
        precision=precision,
    )
    fused = width <= WIDEST_FUSED
    with torch.cuda.device_of(q):  # streams and kernels are those of the current device
        totals = {
            form: task.launch(form, shapes[form], symmetric=symmetric and fused, columns=fused, value=value)
            for form in forms
        }
        if gradient and not fused and not symmetric:
            for form in forms:
                task.mirrored().launch(form, shapes[form], symmetric=False, columns=False, value=False)
    chosen = task.form == TANH
    pairs = len(q) * len(k)
    if not value:
        total = left.total.new_full((), torch.nan)
    elif TANH in forms:
        # What this form leaves out: ½ s and log 2 for every pair.
        closed = 0.5 * (left.total @ right.total) / (left.scale * right.scale)
        closed += 0.5 * (len(k) * left.bias_total + len(q) * right.bias_total) + pairs * math.log(2)
        total = torch.where(chosen, totals[TANH] + closed, totals.get(SIGMA, torch.nan))
    else:
        total = totals[SIGMA]
    return Sums(total, *task.sums_of(left, right, forms), *task.sums_of(right, left, forms))


def _choose_form(
    q: Tensor,
    k: Tensor,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    left: _Side,
    right: _Side,
    forms: tuple[int, ...],
) -> Tensor:
    """The form that suits these factors, as a number on their device."""
    if len(forms) == 1:
        return torch.full((), forms[0], dtype=torch.int32, device=q.device)
    rows, columns = (slice(None, None, -(-len(factor) // SAMPLED)) for factor in (q, k))
    logits = q[rows] @ k[columns].T
    if row_bias is not None:
        logits += row_bias[rows, None]
    if column_bias is not None:
        logits += column_bias[columns]
    large = logits.sigmoid().mean() >= LARGE
    return (large & left.as_it_is & right.as_it_is).int()  # TANH if it is


@dataclass(frozen=True, eq=False)
class _Side:
    """One side's factors, laid out and rounded for the kernel, and the integers that its sums are collected in.

    The closed forms are taken of the rounded factors too, so that what should cancel against the kernel's sums does.
    """

    size: int
    dim: int
    factors: Tensor  # times `scale`
    scale: Tensor  # √½, which makes a product half a logit, and more only where float16 needs it; 1 in float32
    as_it_is: Tensor  # whether √½ was enough
    bias: Tensor
    by_node: Tensor
    counts: Tensor
    total: Tensor
    bias_total: Tensor
    largest: Tensor  # sum that weights of 1 can give
    longest: Tensor  # of the factors' rows, for a bound on logits
    bias_most: Tensor

    @classmethod
    def of(cls, factors: Tensor, bias: Tensor | None, width: int, block: int, precision: str) -> _Side:
        size, dim = factors.shape
        padded = triton.cdiv(size, block) * block
        highest = precision == "highest"
        most = factors.abs().amax()
        as_it_is = (most >= LEAST) & (most <= MOST)
        if highest:
            scale = torch.ones_like(most)
        else:
            exponent = torch.frexp(most).exponent.clamp(-100, 100)
            scale = torch.where(as_it_is, ROOT_HALF, torch.ldexp(torch.full_like(most, ROOT_HALF), 8 - exponent))
        laid_out = factors.new_zeros(padded, width, dtype=torch.float32 if highest else torch.float16)
        laid_out[:size, :dim] = factors * scale
        biases = factors.new_zeros(padded, dtype=torch.float32)
        if bias is not None:
            biases[:size] = bias
        return cls(
            size=size,
            dim=dim,
            factors=laid_out,
            scale=scale.double(),
            as_it_is=as_it_is,
            bias=biases,
            by_node=factors.new_zeros(padded, width, dtype=torch.int64),
            counts=factors.new_zeros(padded, dtype=torch.int64),
            total=laid_out.sum(dim=0, dtype=torch.float64),
            bias_total=biases.sum(dtype=torch.float64),
            largest=torch.linalg.vector_norm(laid_out, 1, dim=0, dtype=torch.float64).max().clamp_min(1e-20),
            longest=torch.linalg.vector_norm(factors, dim=1, dtype=torch.float64).max(),
            bias_most=biases[:size].max().double(),
        )

    def integers(self, form: int) -> tuple[Tensor, Tensor]:
        """Where a form collects its sums: 64-bit integers, or the same memory as 32-bit ones."""
        if form == SIGMA:
            return self.by_node, self.counts
        by_node = self.by_node.view(torch.int32).view(2, *self.by_node.shape)[0]
        return by_node, self.counts.view(torch.int32)[: len(self.counts)]


@dataclass(frozen=True, eq=False)
class _Task:
    """Two sides and what is wanted of them: runs the kernels, and reads what they have collected."""

    left: _Side
    right: _Side
    form: Tensor
    biased: bool
    gradient: bool
    precision: str

    def mirrored(self) -> _Task:
        """The same with rows and columns exchanged."""
        return replace(self, left=self.right, right=self.left)

    @property
    def ceiling(self) -> Tensor:
        """A power of two that no σ exceeds: σ(s) ≤ exp(s), and s is at most what norms and biases allow."""
        left, right = self.left, self.right
        bound = left.longest * right.longest + left.bias_most + right.bias_most
        return torch.exp2((bound * LOG2_E).clamp(-100, 0).ceil())

    @property
    def shrink(self) -> Tensor:
        """What weights are divided by: in float16 the largest possible is to be 2¹⁵, and small ones not to vanish."""
        return torch.ones_like(self.ceiling) if self.precision == "highest" else self.ceiling * 2.0**-15

    def unit(self, side: _Side, form: int) -> Tensor:
        """Integers per unit of a sum of weights times this side's factors."""
        return self.count_unit(form) * max(self.left.size, self.right.size) / side.largest

    def count_unit(self, form: int) -> Tensor:
        """Integers per unit of a sum of weights."""
        span = 2.0**30 if form == TANH else 2.0**60 * self.shrink / self.ceiling
        return torch.ones_like(self.ceiling) * span / max(self.left.size, self.right.size)

    def launch(self, form: int, blocks: Blocks, *, symmetric: bool, columns: bool, value: bool) -> Tensor:
        """Run the kernel of a form, which does nothing unless it is the one chosen; its part of the value."""
        left, right = self.left, self.right
        num_row_blocks = len(left.factors) // blocks.rows
        tiles = num_row_blocks * (len(right.factors) // blocks.rows) // (2 if symmetric else 1)
        stretch = blocks.rows * max(1, min(tiles // PROGRAMS_WANTED, LONGEST_STRETCH // blocks.rows))
        num_programs = num_row_blocks * triton.cdiv(right.size, stretch)
        highest = self.precision == "highest"
        factor = 1 / (left.scale * right.scale)
        units = (self.unit(right, form), self.unit(left, form), self.count_unit(form))
        scalars = torch.stack([*units, factor, self.shrink])
        values = left.bias.new_zeros(num_programs if value else 1)
        by_row, row_sums = left.integers(form)
        by_column, column_sums = right.integers(form)
        _sweep[(num_programs,)](
            left.factors,
            right.factors,
            left.bias,
            right.bias,
            by_row,
            by_column,
            row_sums,
            column_sums,
            values,
            scalars if highest else scalars.float(),
            self.form,
            left.size,
            right.size,
            num_row_blocks,
            stretch,
            BM=blocks.rows,
            BN=blocks.columns,
            BF=left.factors.shape[1],
            SYMMETRIC=symmetric,
            COLUMNS=columns,
            BIASED=self.biased or (value and form == SIGMA),  # padding must not add to the value
            VALUE=value,
            GRADIENT=self.gradient,
            HIGHEST=highest,
            APPROXIMATE=not (highest or INTERPRETED),
            FORM=form,
            LOGITS="tf32x3" if highest else None,
            SUMS="ieee" if highest else None,
            num_warps=blocks.num_warps,
            num_stages=blocks.num_stages,
        )
        return values.sum(dtype=torch.float64)

    def sums_of(self, side: _Side, other: _Side, forms: tuple[int, ...]) -> tuple[Tensor, Tensor]:
        """Σ σ(s)·(the other side's factors) and Σ σ(s) for each node of a side."""
        found = {}
        for form in forms:
            by_node, counts = (part[: side.size] for part in side.integers(form))
            by_node = by_node[:, : side.dim] / self.unit(other, form)
            counts = counts / self.count_unit(form)
            if form == TANH:
                by_node, counts = 0.5 * (by_node + other.total[: side.dim]), 0.5 * (counts + other.size)
            else:
                by_node, counts = self.shrink * by_node, self.shrink * counts
            found[form] = by_node / other.scale, counts
        if len(forms) == 1:
            return found[forms[0]]
        pairs = zip(found[TANH], found[SIGMA], strict=True)
        by_node, counts = (torch.where(self.form == TANH, tanh, sigma) for tanh, sigma in pairs)
        return by_node, counts
