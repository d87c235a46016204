"""Factors of all N² logits, logit_ij = q_i·k_j + r_i + c_j."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Factors:
    """q (N×d), k (N×d; None means k = q) and a bias for each row and column; a missing bias is zero."""

    q: Tensor
    k: Tensor | None = None
    row_bias: Tensor | None = None
    column_bias: Tensor | None = None

    @property
    def columns(self) -> Tensor:
        """k, or q where they are the same."""
        return self.q if self.k is None else self.k

    @property
    def weight_of_biases(self) -> float:
        """What biases add to the weight of a node in a pair: one for each that there is, half on either side."""
        return sum(bias is not None for bias in (self.row_bias, self.column_bias)) / 2

    @property
    def num_nodes(self) -> int:
        """N, of rows as of columns."""
        return len(self.q)

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.q.device

    @torch.no_grad()
    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        """Logits of these rows and all columns from the first on."""
        logits = self.q[rows] @ self.columns[first:].T
        if self.row_bias is not None:
            logits += self.row_bias[rows, None]
        if self.column_bias is not None:
            logits += self.column_bias[first:]
        return logits

    def diagonal(self) -> Tensor:
        """The logit of each node with itself (N)."""
        logits = (self.q * self.columns).sum(dim=1)
        for bias in (self.row_bias, self.column_bias):
            logits = logits if bias is None else logits + bias
        return logits

    def logits(self, pairs: Tensor) -> Tensor:
        """Logits of M×2 pairs."""
        sources, targets = pairs.unbind(dim=1)
        logits = (self.q.index_select(0, sources) * self.columns.index_select(0, targets)).sum(dim=1)
        if self.row_bias is not None:
            logits = logits + self.row_bias.index_select(0, sources)
        if self.column_bias is not None:
            logits = logits + self.column_bias.index_select(0, targets)
        return logits
