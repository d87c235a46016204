"""Sums over all N² logits of the logits and of their squares, in closed form: N·d² steps, and no N×N matrix.

A logit is a product of two rows, s_ij = l_i·r_j with l_i = [q_i, row bias, 1] and r_j = [k_j, 1, column bias]. So

    Σ_ij s_ij  = (Σ_i l_i)·(Σ_j r_j)        Σ_ij s_ij² = ⟨Σ_i l_i l_iᵀ, Σ_j r_j r_jᵀ⟩

and with a weight u_i + v_j for each pair

    Σ_ij (u_i + v_j) s_ij² = ⟨Σ_i u_i l_i l_iᵀ, Σ_j r_j r_jᵀ⟩ + ⟨Σ_i l_i l_iᵀ, Σ_j v_j r_j r_jᵀ⟩.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.ops.factors import Factors


@dataclass(frozen=True, eq=False)
class _Side:
    """Rows of one side (N×d), their sum, and the sum of their outer products."""

    rows: Tensor
    total: Tensor
    gram: Tensor

    @classmethod
    def of(cls, rows: Tensor) -> _Side:
        return cls(rows, rows.sum(dim=0), rows.T @ rows)

    def weighted(self, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """The sum of the weights, and the two sums with them, in double precision."""
        scaled = weights[:, None] * self.rows
        return weights.sum(dtype=torch.float64), scaled.sum(dim=0).double(), (scaled.T @ self.rows).double()


@dataclass(frozen=True, eq=False)
class PowerSums:
    """What the closed forms are made of; `left` is `right` where k = q and there are no biases."""

    left: _Side
    right: _Side

    @classmethod
    def of(cls, factors: Factors) -> PowerSums:
        """Those of factors, differentiable; bfloat16 is summed in float32."""
        q, k = factors.q, factors.columns
        if q.dtype == torch.bfloat16:
            q, k = q.float(), k.float()
        if factors.row_bias is None and factors.column_bias is None:
            left = _Side.of(q)
            return cls(left, left if factors.k is None else _Side.of(k))
        one = q.new_ones(len(q), 1)
        row, column = (
            torch.zeros_like(one) if bias is None else bias.to(q.dtype)[:, None]
            for bias in (factors.row_bias, factors.column_bias)
        )
        return cls(_Side.of(torch.cat([q, row, one], dim=1)), _Side.of(torch.cat([k, one, column], dim=1)))

    @property
    def total(self) -> Tensor:
        """Σ_ij s_ij."""
        return self.left.total @ self.right.total

    @property
    def squares(self) -> Tensor:
        """Σ_ij s_ij²."""
        return (self.left.gram * self.right.gram).sum()

    @torch.no_grad()
    def weighted(self, row_weights: Tensor, column_weights: Tensor) -> Tensor:
        """Σ_ij w_ij s_ijⁿ for n = 0, 1, 2 and w_ij = u_i + v_j, three numbers in double precision without gradients."""
        of_rows = self.left.weighted(row_weights)
        mirrored = self.left is self.right and row_weights is column_weights
        of_columns = of_rows if mirrored else self.right.weighted(column_weights)
        left, right = self.left, self.right
        return torch.stack(
            [
                len(right.rows) * of_rows[0] + len(left.rows) * of_columns[0],
                of_rows[1] @ right.total.double() + left.total.double() @ of_columns[1],
                (of_rows[2] * right.gram).sum() + (left.gram * of_columns[2]).sum(),
            ]
        )
