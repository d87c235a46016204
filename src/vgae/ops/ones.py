"""Sums over the ones of a sparse matrix, row by row: value and gradients in one pass, without a copy for each entry.

    F = Σ_e m_e·[w·softplus(-s_e) - a·s_e - b·s_e²] + z_e·[softplus(s_e) - a·s_e - b·s_e²],   s_ij = q_i·k_j + r_i + c_j

over the entries e = (i, j) of A + I. Its derivative g_e in a logit is known when the logit is, so that a pass over rows
has the value, ∂F/∂q_i = Σ_j g_ij k_j and ∂F/∂r_i = Σ_j g_ij; those in k and c come from a pass over the transpose.
Nothing is scattered. Where k is q and the pattern symmetric, row i gets twice its sum, and one pass is all.

As in `vgae.ops.dispatch`, the op is registered with PyTorch and its backward pass only multiplies.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag, softplus

from vgae.errors import InputError
from vgae.ops import reference
from vgae.ops.chunks import by_ends
from vgae.ops.dispatch import HAS_NUMBA, SHORTEST_FOR_NUMBA
from vgae.ops.entries import Counted, Ones, Pattern
from vgae.ops.factors import Factors
from vgae.ops.pages import scaled
from vgae.ops.suits import KERNELS, check_implementation, triton_suits

OP = "vgae::sum_at_entries"
BLOCK = 2**22  # entries whose factors are gathered at a time, where there is no kernel


def sum_at_ones(
    factors: Factors,
    ones: Ones,
    counted: Counted,
    parabola: tuple[Tensor, Tensor] | None = None,
    *,
    value: bool = True,
    implementation: str = "auto",
) -> Tensor:
    """F over the entries, differentiable in the factors; `parabola` is (a, b), without gradients, None: 0 and 0.

    With `value=False` the result is NaN and only its gradients are computed. `implementation` is `reference` (dense,
    float64), `torch` (on any device), `numba` (fused, on the CPU, float32 and bfloat16), `triton` (fused, on a GPU,
    the same with up to 256 columns), or `auto`: the fastest that can.
    """
    return _sums(factors, ones, counted, parabola, value=value, implementation=implementation)[0]


def sum_at_pairs(
    factors: Factors, pairs: Tensor, parabola: tuple[Tensor, Tensor], *, implementation: str = "auto"
) -> tuple[Tensor, Tensor]:
    """Σ softplus(s) - a·s - b·s² over M×2 pairs, and their logits, which have no gradient.

    `implementation` is `torch`, `numba` (for pairs in the order of their rows), `triton`, or `auto`.
    """
    sources, targets = pairs.unbind(dim=1)
    num_columns = len(factors.columns)
    wide = torch.promote_types(factors.q.dtype, torch.float32)
    implementation = _fastest(factors.q) if implementation == "auto" else implementation
    if implementation == "triton":
        starts, columns, order = by_ends(sources, targets, factors.num_nodes)
        starts_of_columns, rows, order_of_columns = by_ends(targets, sources, num_columns)
        transposed = Ones(starts_of_columns, rows, order=order_of_columns)
        entries = Ones(starts, columns, transposed=transposed, order=order, num_columns=num_columns)
        counted = Counted(0.0, as_zeros=True, label=0.0)
        return _sums(factors, entries, counted, parabola, logits=True, implementation="triton")
    if implementation == "numba":
        shape = factors.num_nodes, num_columns
        drawn = import_module("vgae.ops.draw_kernels").entries_of(sources, targets, shape)
        if drawn is not None:
            starts, columns, starts_of_columns, rows = drawn
            entries = Ones(starts, columns, transposed=Ones(starts_of_columns, rows), num_columns=num_columns)
            counted = Counted(0.0, as_zeros=True, label=0.0)
            return _sums(factors, entries, counted, parabola, logits=True, implementation="numba")
    logits = factors.logits(pairs)
    s, (a, b) = logits.to(wide), parabola
    return (softplus(s) - (a + b * s) * s).sum(), logits.detach()


def numba_suits(q: Tensor) -> bool:
    """Whether kernels for the CPU can be used, and pay."""
    suited = q.dtype in (torch.float32, torch.bfloat16) and q.device.type == "cpu"
    return HAS_NUMBA and suited and len(q) >= SHORTEST_FOR_NUMBA


def _fastest(q: Tensor) -> str:
    return "triton" if triton_suits(q) else "numba" if numba_suits(q) else "torch"


def _sums(
    factors: Factors,
    ones: Ones,
    counted: Counted,
    parabola: tuple[Tensor, Tensor] | None,
    *,
    value: bool = True,
    logits: bool = False,
    implementation: str = "auto",
) -> tuple[Tensor, Tensor]:
    q, k, row_bias, column_bias = factors.q, factors.k, factors.row_bias, factors.column_bias
    if (len(q), len(factors.columns)) != (ones.num_nodes, ones.width):
        expected = f"{ones.num_nodes} nodes" if ones.num_columns is None else f"{ones.num_nodes} and {ones.width} nodes"
        raise InputError(f"factors: expected those of {expected}, got {len(q)} and {len(factors.columns)}.")
    check_implementation(implementation, q)
    if implementation == "auto":
        implementation = _fastest(q)
    wide = torch.promote_types(q.dtype, torch.float32)
    line = q.new_zeros(2, dtype=wide) if parabola is None else torch.stack(parabola).to(wide)
    if implementation == "reference":
        entries = ones.rows, ones.columns
        total = reference.sum_at_entries(factors, entries, ones.labels, counted.numbers, counted.as_zeros, line)
        return total, q.new_empty(0)
    mirrored = k is None and row_bias is column_bias
    if not mirrored:
        k = q if k is None else k
    of_rows, of_columns = (
        torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in side)
        for side in ((q, row_bias), (k, column_bias))
    )
    # Outside of compiled code the detour by the registered op takes as long as the sums on a small graph.
    op: Any = torch.ops.vgae.sum_at_entries if torch.compiler.is_compiling() else _SumAtEntries.apply
    found = op(
        q,
        k,
        row_bias,
        None if mirrored else column_bias,
        *ones.pattern(implementation),
        *((None,) * 5 if ones.transposed is None else ones.transposed.pattern(implementation)),
        line,
        counted.numbers,
        [counted.as_zeros, value, of_rows or of_columns, logits, mirrored or of_columns],
        implementation,
    )
    return found[0], found[5]


# By `define` and `impl`, because what `custom_op` wraps around an implementation imports PyTorch's compiler.
torch.library.define(
    OP,
    "(Tensor q, Tensor? k, Tensor? row_bias, Tensor? column_bias, "
    "Tensor starts, Tensor columns, Tensor? labels, Tensor? rows, Tensor? divided, "
    "Tensor? starts_of_columns, Tensor? rows_by_column, Tensor? labels_by_column, Tensor? columns_by_column, "
    "Tensor? divided_by_column, "
    "Tensor parabola, float[] numbers, bool[] flags, str implementation) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
)


def _sum_at_entries(
    q: Tensor,
    k: Tensor | None,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    starts: Tensor,
    columns: Tensor,
    labels: Tensor | None,
    rows: Tensor | None,
    divided: Tensor | None,
    starts_of_columns: Tensor | None,
    rows_by_column: Tensor | None,
    labels_by_column: Tensor | None,
    columns_by_column: Tensor | None,
    divided_by_column: Tensor | None,
    parabola: Tensor,
    numbers: list[float],
    flags: list[bool],
    implementation: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The sum, its gradients in q, k, row_bias and column_bias, and the logits, empty where there are none.

    k=None means k = q and one bias for both ends. Without starts by column the pattern is symmetric. `flags` say
    whether zeros count, and what is asked for: the value, gradients, logits, and gradients in k and column_bias too.
    """
    pattern = starts, columns, labels, rows, divided
    transposed = None
    if starts_of_columns is not None and rows_by_column is not None:
        transposed = starts_of_columns, rows_by_column, labels_by_column, columns_by_column, divided_by_column
    dtype = q.dtype
    wide = torch.promote_types(dtype, torch.float32)
    left, right = q.to(wide), None if k is None else k.to(wide)
    biases = [None if bias is None else bias.to(wide) for bias in (row_bias, column_bias)]
    sums_of = import_module(KERNELS[implementation]).sums_of if implementation in KERNELS else _sums_of
    as_zeros, value, gradient, with_logits, of_columns = flags
    asked = as_zeros, value, gradient, with_logits
    nothing = q.new_empty(0)
    other, other_bias = (left, biases[0]) if right is None else (right, biases[1])
    total, by_row, row_sums, logits = sums_of((left, other, biases[0], other_bias), pattern, parabola, numbers, asked)
    if not gradient:
        return total.to(dtype), nothing, nothing.clone(), nothing.clone(), nothing.clone(), logits.to(dtype)
    by_column, column_sums = by_row, row_sums
    if of_columns and (right is not None or transposed is not None):
        swapped = (other, left, other_bias, biases[0])
        asked = as_zeros, False, True, False
        _, by_column, column_sums, _ = sums_of(swapped, transposed or pattern, parabola, numbers, asked)
    if k is None:
        by_row, row_sums = by_row.add_(by_column), row_sums.add_(column_sums)
    return (
        total.to(dtype),
        by_row.to(dtype),
        nothing if k is None or not of_columns else by_column.to(dtype),
        nothing.clone() if row_bias is None else row_sums.to(dtype),
        nothing.clone() if column_bias is None or not of_columns else column_sums.to(dtype),
        logits.to(dtype),
    )


def _sums_of(
    factors: tuple[Tensor, Tensor, Tensor | None, Tensor | None],
    pattern: Pattern,
    parabola: Tensor,
    numbers: list[float],
    asked: tuple[bool, bool, bool, bool],
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One pass over the rows by PyTorch's own kernels, with factors gathered for a block of entries at a time."""
    left, right, left_bias, right_bias = factors
    _, columns, labels, rows, _ = pattern
    as_zeros, value, gradient, with_logits = asked
    total = left.new_full((), 0.0 if value else torch.nan, dtype=torch.float64)
    slopes = left.new_empty(len(columns) if gradient else 0)
    logits = left.new_empty(len(columns) if with_logits else 0)
    weight, diagonal_weight, given = numbers
    if rows is None:
        raise TypeError("Without a kernel the row of each entry is needed.")
    for first in range(0, len(columns), BLOCK):
        block = slice(first, first + BLOCK)
        i, j = rows[block], columns[block]
        s = (left.index_select(0, i) * right.index_select(0, j)).sum(dim=1)
        for bias, ends in ((left_bias, i), (right_bias, j)):
            if bias is not None:
                s = s + bias.index_select(0, ends)
        label = s.new_full((), given) if labels is None else labels[block].to(s.dtype)
        as_one = torch.where(i == j, diagonal_weight, weight * label)
        as_zero = 1 - label if as_zeros else s.new_zeros(())
        times = s.new_ones(()) if as_zeros else label
        if value:
            positive = softplus(s)
            part = as_one * softplus(-s) + as_zero * positive - times * (parabola[0] + parabola[1] * s) * s
            total += part.sum(dtype=torch.float64)
        if gradient:
            line = times * (parabola[0] + 2 * parabola[1] * s)
            slopes[block] = as_zero * torch.sigmoid(s) - as_one * torch.sigmoid(-s) - line
        if with_logits:
            logits[block] = s
    if not gradient:
        return total, slopes, slopes.clone(), logits
    by_row = _bags(pattern, right, slopes)
    counted = left_bias is not None or right_bias is not None
    ones = right.new_ones(len(right), 1, dtype=torch.float64)
    row_sums = _bags(pattern, ones, slopes.double())[:, 0] if counted else slopes.new_empty(0)
    return total, by_row, row_sums, logits


def _bags(pattern: Pattern, dense: Tensor, weights: Tensor) -> Tensor:
    return embedding_bag(
        pattern[1], dense.contiguous(), pattern[0], mode="sum", per_sample_weights=weights, include_last_offset=True
    )


def _shapes(
    q: Tensor,
    k: Tensor | None,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    starts: Tensor,  # noqa: ARG001 - the registered signature
    columns: Tensor,
    labels: Tensor | None,  # noqa: ARG001
    rows: Tensor | None,  # noqa: ARG001
    divided: Tensor | None,  # noqa: ARG001
    starts_of_columns: Tensor | None,  # noqa: ARG001
    rows_by_column: Tensor | None,  # noqa: ARG001
    labels_by_column: Tensor | None,  # noqa: ARG001
    columns_by_column: Tensor | None,  # noqa: ARG001
    divided_by_column: Tensor | None,  # noqa: ARG001
    parabola: Tensor,  # noqa: ARG001
    numbers: list[float],  # noqa: ARG001
    flags: list[bool],
    implementation: str,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    gradients = [
        torch.empty_like(tensor, memory_format=torch.contiguous_format)
        if flags[2] and asked and tensor is not None
        else q.new_empty(0)
        for tensor, asked in ((q, True), (k, flags[4]), (row_bias, True), (column_bias, flags[4]))
    ]
    logits = q.new_empty(len(columns) if flags[3] else 0)
    return q.new_empty(()), gradients[0], gradients[1], gradients[2], gradients[3], logits


def _keep_gradients(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[1:5])
    ctx.given = [tensor is not None for tensor in inputs[:4]]
    ctx.mark_non_differentiable(*output[1:])  # there is no second derivative


def _backward(ctx: Any, upstream: Tensor, *_: Tensor | None) -> tuple[Any, ...]:
    gradients = [
        scaled(gradient, upstream) if given else None
        for given, gradient in zip(ctx.given, ctx.saved_tensors, strict=True)
    ]
    return (*gradients, *[None] * 14)


class _SumAtEntries(torch.autograd.Function):
    """The op without its registration."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, ...]:
        output = _sum_at_entries(*inputs)
        _keep_gradients(ctx, inputs, output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor, *_: Tensor | None) -> tuple[Any, ...]:
        return _backward(ctx, upstream)


torch.library.impl(OP, "default", _sum_at_entries)
torch.library.register_fake(OP, _shapes)
torch.library.register_autograd(OP, _backward, setup_context=_keep_gradients)
