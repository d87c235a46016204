"""The kernels of the all-pairs op on a GPU, fused: a tile of logits lives in registers and is never written to memory.

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
float16's range as they are. Which it is the device decides (`settle_kernel`): both kernels are launched, and the one
that is not wanted returns at once, so that nothing waits for an answer and a recorded step may take either.

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

import triton
import triton.language as tl

LARGE = tl.constexpr(0.2)  # mean σ from which on the errors of ½ + ½ t, up to 2·10⁻⁴, are small beside it


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
def sweep_kernel(
    q_ptr, k_ptr, row_bias_ptr, column_bias_ptr,
    by_row_ptr, by_column_ptr, row_sums_ptr, column_sums_ptr, values_ptr, settled_ptr,
    num_rows, num_columns, num_row_blocks, stretch,
    BM: tl.constexpr, BN: tl.constexpr, BF: tl.constexpr, SYMMETRIC: tl.constexpr, COLUMNS: tl.constexpr,
    BIASED: tl.constexpr, VALUE: tl.constexpr, GRADIENT: tl.constexpr, HIGHEST: tl.constexpr,
    APPROXIMATE: tl.constexpr, FORM: tl.constexpr, UNIT: tl.constexpr, LOGITS: tl.constexpr, SUMS: tl.constexpr,
):  # fmt: skip
    """A block of BM rows times a stretch of columns; SYMMETRIC takes only what lies on or above the diagonal."""
    if tl.load(settled_ptr) != FORM:
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
    units_ptr = settled_ptr + 5 + 3 * FORM
    row_unit, column_unit, count_unit = tl.load(units_ptr + UNIT), tl.load(units_ptr + 1 - UNIT), tl.load(units_ptr + 2)
    if not HIGHEST:
        row_unit, column_unit = row_unit.to(tl.float32), column_unit.to(tl.float32)
        count_unit = count_unit.to(tl.float32)
    factor, shrink = tl.load(settled_ptr + 3).to(tl.float32), tl.load(settled_ptr + 4).to(tl.float32)
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


@triton.jit
def settle_kernel(left_ptr, right_ptr, sigma_ptr, settled_ptr, most_nodes, BIASED: tl.constexpr, HIGHEST: tl.constexpr):
    """What depends on the size of factors and biases, for both forms: see `Task.settle` in vgae.ops.triton_sweep.

    Either side has its largest factor, its longest row, its largest column (as sums of absolute values) and its largest
    bias.
    """
    left_most, right_most = tl.load(left_ptr).to(tl.float64), tl.load(right_ptr).to(tl.float64)
    bound = tl.load(left_ptr + 1).to(tl.float64) * tl.load(right_ptr + 1).to(tl.float64)
    if BIASED:
        bound += tl.load(left_ptr + 3).to(tl.float64) + tl.load(right_ptr + 3).to(tl.float64)
    # A power of two that no σ exceeds: σ(s) ≤ exp(s), and s is at most what norms and biases allow.
    ceiling = tl.exp2(tl.ceil(tl.minimum(tl.maximum(bound * 1.4426950408889634, -100.0), 0.0)))
    if HIGHEST:
        form, left_scale, right_scale = 0.0, left_most * 0.0 + 1.0, right_most * 0.0 + 1.0
        shrink = ceiling * 0.0 + 1.0
    else:
        left_fits = (left_most >= 0.015625) & (left_most <= 16384.0)
        right_fits = (right_most >= 0.015625) & (right_most <= 16384.0)
        left_scale = tl.where(left_fits, 0.7071067811865476, _into_range(left_most))
        right_scale = tl.where(right_fits, 0.7071067811865476, _into_range(right_most))
        form = tl.where(left_fits & right_fits & (tl.load(sigma_ptr) >= LARGE), 1.0, 0.0)
        shrink = ceiling * 0.000030517578125  # 2⁻¹⁵
    left_column, right_column = tl.load(left_ptr + 2).to(tl.float64), tl.load(right_ptr + 2).to(tl.float64)
    left_column = tl.where(left_column < 1e-20, 1e-20, left_column) * left_scale * 1.01  # rounding included
    right_column = tl.where(right_column < 1e-20, 1e-20, right_column) * right_scale * 1.01
    tl.store(settled_ptr, form)
    tl.store(settled_ptr + 1, left_scale)
    tl.store(settled_ptr + 2, right_scale)
    tl.store(settled_ptr + 3, 1.0 / (left_scale * right_scale))
    tl.store(settled_ptr + 4, shrink)
    units = 1152921504606846976.0 * shrink / ceiling  # 2⁶⁰ for the largest sum of weights
    tl.store(settled_ptr + 5, units / right_column)
    tl.store(settled_ptr + 6, units / left_column)
    tl.store(settled_ptr + 7, units / most_nodes)
    tl.store(settled_ptr + 8, 1073741824.0 / right_column)  # 2³⁰
    tl.store(settled_ptr + 9, 1073741824.0 / left_column)
    tl.store(settled_ptr + 10, 1073741824.0 / most_nodes)


@triton.jit
def _into_range(most):
    """What brings the largest factor to between 2⁷ and 2⁸, times √½; beyond 10¹⁸ even float32 has no logits."""
    exponent = tl.floor(tl.log2(tl.minimum(tl.maximum(most, 1e-30), 1e18)))
    return 0.7071067811865476 * tl.exp2(7.0 - exponent)


@triton.jit
def collect_kernel(
    wide_ptr, narrow_ptr, wide_counts_ptr, narrow_counts_ptr, totals_ptr, settled_ptr, by_node_ptr, counts_ptr,
    size, other_size, dim,
    UNIT: tl.constexpr, SCALE: tl.constexpr, BIASED: tl.constexpr, BM: tl.constexpr, BF: tl.constexpr,
):  # fmt: skip
    """Σ σ(s)·(the other side's factors) and Σ σ(s) for each node of a side, out of the integers of either form."""
    rows, features = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BF)
    places = rows[:, None] * BF + features[None, :]
    scale = tl.load(settled_ptr + SCALE)
    if tl.load(settled_ptr) == 0.0:
        shrink = tl.load(settled_ptr + 4)
        by_node = tl.load(wide_ptr + places).to(tl.float64) * (shrink / scale / tl.load(settled_ptr + 5 + UNIT))
        counts = tl.load(wide_counts_ptr + rows).to(tl.float64) * (shrink / tl.load(settled_ptr + 7))
    else:
        totals = tl.load(totals_ptr + features)[None, :]
        by_node = tl.load(narrow_ptr + places).to(tl.float64) / tl.load(settled_ptr + 8 + UNIT)
        by_node = 0.5 / scale * (by_node + totals)
        counts = tl.load(narrow_counts_ptr + rows).to(tl.float64) / tl.load(settled_ptr + 10)
        counts = 0.5 * (counts + other_size)
    inside = (rows < size)[:, None] & (features < dim)[None, :]
    tl.store(by_node_ptr + rows[:, None] * dim + features[None, :], by_node.to(tl.float32), mask=inside)
    if BIASED:
        tl.store(counts_ptr + rows, counts.to(tl.float32), mask=rows < size)
