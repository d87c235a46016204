"""What one sweep over all pairs brings home."""

from __future__ import annotations

from dataclasses import dataclass

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
