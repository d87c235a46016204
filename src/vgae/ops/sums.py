"""What one sweep over all pairs brings home, and how biases ride along in it.

As two more columns of the factors,

    s_ij = q_i·k_j + r_i + c_j = [q_i, r_i, 1] · [k_j, 1, c_j],

biases need no steps of their own: the sums of σ, which are their gradients, are the products with the columns of ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums over all pairs of s_ij = q_i·k_j + r_i + c_j; of symmetric logits those by row are those by column.

    `by_row`, `row_sums` and their like by column are the gradients of `total` in q, r, k and c.
    """

    total: Tensor  # Σ_ij softplus(s_ij)
    by_row: Tensor  # Σ_j σ(s_ij) k_j
    row_sums: Tensor  # Σ_j σ(s_ij)
    by_column: Tensor  # Σ_i σ(s_ij) q_i
    column_sums: Tensor  # Σ_i σ(s_ij)

    @classmethod
    def from_columns(cls, total: Tensor, by_row: Tensor, by_column: Tensor, *, dim: int, symmetric: bool) -> Sums:
        """Out of σ(S)·right and σ(S)ᵀ·left, whose columns from `dim` on belong to the biases, if there are any.

        Of a symmetric S both are σ(S)·right, which differs from σ(S)ᵀ·left in the order of those two columns.
        """
        if by_row.shape[1] == dim:
            return cls(total, by_row, by_row[:, 0], by_column, by_column[:, 0])
        ones = dim if symmetric else dim + 1
        return cls(total, by_row[:, :dim], by_row[:, dim], by_column[:, :dim], by_column[:, ones])


def biases_as_columns(
    q: Tensor, k: Tensor, row_bias: Tensor | None, column_bias: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Factors with [r, 1] and [1, c] as additional columns, or as they are where there is no bias."""
    if row_bias is None and column_bias is None:
        return q.contiguous(), k.contiguous()
    rows = q.new_zeros(len(q)) if row_bias is None else row_bias
    columns = k.new_zeros(len(k)) if column_bias is None else column_bias
    left = torch.cat([q, rows[:, None], q.new_ones(len(q), 1)], dim=1)
    right = torch.cat([k, k.new_ones(len(k), 1), columns[:, None]], dim=1)
    return left, right
