"""The sampled objective of symmetric logits without biases, s_ij = q_i·q_j, in as few passes as there are sums.

    R = F(ones) + Σ_ij p(s_ij) + N₀/M Σ_{m ≤ M} (softplus - p)(s_{i_m j_m}),   p(s) = a·s + b·s²

with F as in `vgae.ops.ones`, the closed form of `vgae.ops.powers`, and M zeros drawn as in `vgae.ops.zeros`. All three
add to one gradient: first the closed form, 2a·Σ_j q_j + 4b·(Σ_j q_j q_jᵀ)·q_i, then the ones, then, at both ends of
each pair, the zeros, of which either half of a draw has sums of its own until then. R is a scalar, and its backward
pass only multiplies.

On a graph of some thousand nodes this is a third of what the same takes in separate operations, of which each has a
gradient of its own. It is for the CPU, and for graphs whose gradients are in its caches, where they are added to in any
order. The separate operations are what it is held against.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.ops.dispatch import kernels_of
from vgae.ops.entries import Counted, Ones
from vgae.ops.factors import Factors
from vgae.ops.ones import numba_suits
from vgae.ops.pages import scaled
from vgae.ops.powers import Side

Array = npt.NDArray[np.float32]

LARGEST = 2**20  # numbers in the factors: 4 MB, which a cache holds


@dataclass(frozen=True, eq=False)
class Draw:
    """M numbers from U(0, 1), one for each part of the N₀ zeros."""

    uniform: Tensor
    num_zeros: int


def is_plain(factors: Factors) -> bool:
    """Whether logits are products of rows with each other, in float32, for which there are kernels here."""
    biased = factors.row_bias is not None or factors.column_bias is not None
    return factors.k is None and not biased and factors.q.dtype == torch.float32 and numba_suits(factors.q)


def suits(factors: Factors) -> bool:
    """Whether one pass can be taken, and pays."""
    return is_plain(factors) and factors.q.numel() <= LARGEST and not torch.compiler.is_compiling()


def sum_by_draw(
    side: Side,
    squares: Tensor,
    ones: Ones,
    counted: Counted,
    parabola: tuple[float, float],
    draw: Draw,
    *,
    value: bool = True,
) -> tuple[Tensor, Tensor]:
    """R at a draw, differentiable in the rows, and the moments of the draw (2×6) that `weighted_moments` has.

    `squares` are ‖q_i‖². Without `value` R is NaN.
    """
    moments = torch.zeros(2, 6, dtype=torch.float64)
    given = side, squares, ones, counted, parabola, draw, value, moments
    total: Tensor = _SumByDraw.apply(side.rows, given)  # type: ignore[no-untyped-call]
    return total, moments


class _SumByDraw(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, q: Tensor, given: tuple[Any, ...]) -> Tensor:
        total, gradient = _passes(q.detach(), *given)
        ctx.save_for_backward(gradient)
        return q.new_tensor(total)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return scaled(gradient, upstream), None


def _passes(
    q: Tensor,
    side: Side,
    squares: Tensor,
    ones: Ones,
    counted: Counted,
    parabola: tuple[float, float],
    draw: Draw,
    value: bool,
    moments: Tensor,
) -> tuple[float, Tensor]:
    """R and its gradient."""
    entries, kernels = kernels_of("entry"), kernels_of("one_pass")
    (a, b), rows = parabola, entries.padded(q)
    line = _padded_line(rows.shape[1], (2 * a * side.total).numpy(), (4 * b * side.gram).numpy())
    found = kernels.sum_by_draw(
        rows,
        squares.numpy(),
        line,
        (ones.starts.numpy(), ones.columns.numpy(), entries.or_empty(ones.labels)),
        (counted.numbers, counted.as_zeros),
        parabola,
        (draw.uniform.numpy(), draw.num_zeros),
        value=value,
    )
    moments.numpy()[:] = found.moments
    everywhere = a * float(side.total @ side.total) + b * float(side.gram.square().sum()) if value else np.nan
    return everywhere + found.at_ones + found.at_zeros, torch.from_numpy(found.gradient)[:, : q.shape[1]]


def _padded_line(width: int, constant: Array, slope: Array) -> tuple[Array, Array]:
    """Both with zeros up to so many columns."""
    num = len(constant)
    if num == width:
        return constant, slope
    wide, square = np.zeros(width, np.float32), np.zeros((width, width), np.float32)
    wide[:num], square[:num, :num] = constant, slope
    return wide, square
