"""Sums over all N² logits of the logits and of their squares, in closed form: N·d² steps, and no N×N matrix.

A logit is a product of two rows, s_ij = l_i·r_j with l_i = [q_i, row bias, 1] and r_j = [k_j, 1, column bias]. So

    Σ_ij s_ij  = (Σ_i l_i)·(Σ_j r_j)        Σ_ij s_ij² = ⟨Σ_i l_i l_iᵀ, Σ_j r_j r_jᵀ⟩

and with a weight u_i + v_j for each pair

    Σ_ij (u_i + v_j) s_ij² = ⟨Σ_i u_i l_i l_iᵀ, Σ_j r_j r_jᵀ⟩ + ⟨Σ_i l_i l_iᵀ, Σ_j v_j r_j r_jᵀ⟩.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.ops.dispatch import kernels_of
from vgae.ops.factors import Factors
from vgae.ops.pages import empty, is_large

Doubles = npt.NDArray[np.float64]
Weighted = tuple[Tensor, Tensor, Tensor]  # Σ u_i, Σ u_i l_i and Σ u_i l_i l_iᵀ, in double precision
BLOCK = 2**14  # rows that are scaled at a time on a CPU, so that they stay in its cache


@dataclass(frozen=True, eq=False)
class Side:
    """Rows of one side (N×d), their sum, and the sum of their outer products.

    The sums may be over more rows than there are here, where other processes have them.
    """

    rows: Tensor
    total: Tensor
    gram: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> Side:
        """Those of rows that are all here."""
        with torch.no_grad():
            return cls(rows, rows.sum(dim=0), rows.T @ rows)

    def weighted(self, weights: Tensor) -> Weighted:
        """The sum of the weights, and the two sums with them."""
        weights = weights.to(self.rows.dtype)
        size = BLOCK if weights.device.type == "cpu" else max(1, len(weights))
        gram = torch.zeros_like(self.gram, dtype=torch.float64)
        for first in range(0, len(weights), size):
            rows = self.rows[first : first + size]
            gram += (weights[first : first + size, None] * rows).T @ rows
        return weights.sum(dtype=torch.float64), (self.rows.T @ weights).double(), gram


@dataclass(frozen=True, eq=False)
class Described:
    """What a kernel for the CPU finds in one pass over rows l_i: u_i = ‖l_i‖², and sums with these weights and without.

    They are few numbers, for which PyTorch takes as long as for thousands: arrays of NumPy's. As those of a `Side`, the
    sums may be over more rows than there are here.
    """

    squares: Tensor  # u
    sums: Doubles  # as `vgae.ops.one_pass_kernels.describe` has them, of rows that may be padded
    width: int  # of the rows as they were

    @classmethod
    def of(cls, rows: Tensor) -> Described:
        """Of rows that are all here."""
        squares, sums = kernels_of("one_pass").describe(kernels_of("entry").padded(rows))
        return cls(torch.from_numpy(squares), sums, rows.shape[1])

    def side(self, rows: Tensor) -> Side:
        """The rows with their sums."""
        _, total, gram = self._plain
        return Side(rows, *(torch.from_numpy(each.astype(np.float32)) for each in (total, gram)))

    def over_all(self) -> Doubles:
        """Σ_ij w_ij s_ijⁿ for n = 0, 1, 2, w_ij = u_i + u_j and s_ij = l_i·l_j."""
        (weight, weighted_total, weighted_gram), (number, total, gram) = self._weighted, self._plain
        return 2 * np.array([number * weight, weighted_total @ total, np.vdot(weighted_gram, gram)])

    def of_nodes(self) -> Doubles:
        """The same over the pairs of a row with itself, in which w_i = 2u_i and s_i = u_i."""
        return self.sums[-3:]

    @cached_property
    def _weighted(self) -> tuple[float, Doubles, Doubles]:
        """The weights, the rows and their outer products, each summed up, with weights."""
        return self._from(0)

    @cached_property
    def _plain(self) -> tuple[float, Doubles, Doubles]:
        """The same without."""
        return self._from((len(self.sums) - 3) // 2)

    def _from(self, first: int) -> tuple[float, Doubles, Doubles]:
        size = math.isqrt(len(self.sums) // 2 - 2)  # columns with those that are padded
        gram = self.sums[first + 1 + size : first + 1 + size + size * size].reshape(size, size)
        return self.sums[first], self.sums[first + 1 : first + 1 + self.width], gram[: self.width, : self.width]


@dataclass(frozen=True, eq=False)
class PowerSums:
    """What the closed forms are made of; `left` is `right` where k = q and there are no biases."""

    left: Side
    right: Side

    @classmethod
    def of(cls, factors: Factors) -> PowerSums:
        """Those of factors, differentiable; bfloat16 is summed in float32."""
        q, k = factors.q, factors.columns
        if q.dtype == torch.bfloat16:
            q, k = q.float(), k.float()
        if factors.row_bias is None and factors.column_bias is None:
            left = Side.of(q)
            return cls(left, left if factors.k is None else Side.of(k))
        one = q.new_ones(len(q), 1)
        row, column = (
            torch.zeros_like(one) if bias is None else bias.to(q.dtype)[:, None]
            for bias in (factors.row_bias, factors.column_bias)
        )
        return cls(Side.of(torch.cat([q, row, one], dim=1)), Side.of(torch.cat([k, one, column], dim=1)))

    @property
    def total(self) -> Tensor:
        """Σ_ij s_ij."""
        one = self.left.total.new_ones(())
        return self.parabola(one, torch.zeros_like(one))

    @property
    def squares(self) -> Tensor:
        """Σ_ij s_ij²."""
        one = self.left.total.new_ones(())
        return self.parabola(torch.zeros_like(one), one)

    def parabola(self, a: Tensor, b: Tensor) -> Tensor:
        """a·Σ s_ij + b·Σ s_ij², differentiable in the rows: their gradient is one product."""
        right = None if self.right is self.left else self.right.rows
        result: Tensor = _Parabola.apply(self.left.rows, right, self, (a, b))  # type: ignore[no-untyped-call]
        return result

    @torch.no_grad()
    def weighted(self, of_rows: Weighted, of_columns: Weighted | None) -> Tensor:
        """Σ_ij w_ij s_ijⁿ for n = 0, 1, 2 and w_ij = u_i + v_j, three numbers in double precision without gradients.

        Given the weighted sums of either side; None where both sides are the same.
        """
        left, right = self.left, self.right
        numbers = [*of_rows, *(of_columns or of_rows), left.total.double(), left.gram, right.total.double(), right.gram]
        return weighted_sums(numbers, len(left.rows), len(right.rows))


def weighted_sums(numbers: list[Tensor], height: int, width: int) -> Tensor:
    """Σ_ij w_ij s_ijⁿ by the sums of either side, with weights and without, and how many rows each has."""
    if numbers[0].device.type == "cpu":  # few numbers, for which PyTorch takes as long as for thousands
        return torch.from_numpy(_weighted([each.numpy() for each in numbers], height, width, np))
    found: Tensor = _weighted(numbers, height, width, torch)
    return found


def _weighted(numbers: list[Any], height: int, width: int, library: Any) -> Any:
    """The three sums by those of either side, arrays of NumPy's or PyTorch's."""
    rows, rows_total, rows_gram, columns, columns_total, columns_gram, left, left_gram, right, right_gram = numbers
    return library.stack(
        [
            width * rows + height * columns,
            rows_total @ right + left @ columns_total,
            (rows_gram * right_gram).sum() + (left_gram * columns_gram).sum(),
        ]
    )


class _Parabola(torch.autograd.Function):
    """∂/∂l_i = a·Σ_j r_j + 2b·(Σ_j r_j r_jᵀ)·l_i, and the same the other way round; twice that where they are one."""

    @staticmethod
    def forward(
        ctx: Any, left: Tensor, right: Tensor | None, sums: PowerSums, coefficients: tuple[Tensor, Tensor]
    ) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.sums, ctx.coefficients = (sums.left.total, sums.left.gram, sums.right.total, sums.right.gram), coefficients
        a, b = coefficients
        return a * (sums.left.total @ sums.right.total) + b * (sums.left.gram * sums.right.gram).sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        left, right = ctx.saved_tensors
        left_total, left_gram, right_total, right_gram = ctx.sums
        a, b = (upstream * each for each in ctx.coefficients)
        if right is None:
            return _line(left, 2 * a * left_total, 4 * b * left_gram), None, None, None
        of_left = _line(left, a * right_total, 2 * b * right_gram)
        return of_left, _line(right, a * left_total, 2 * b * left_gram), None, None


def _line(rows: Tensor, constant: Tensor, slope: Tensor) -> Tensor:
    """constant + rows·slope, for each row."""
    if not is_large(rows):
        return torch.addmm(constant, rows, slope)
    return torch.addmm(constant, rows, slope, out=empty(*rows.shape, dtype=rows.dtype))
