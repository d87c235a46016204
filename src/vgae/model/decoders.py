"""Decoders p(A | Z): the logit of a link between two nodes, given their embeddings.

A decoder that can, declares its factors,

    logit_ij = q_i·k_j + r_i + c_j   with q, k, r, c functions of Z,

and thereby trains with the exact objective over all pairs. The inner product of the paper has q = k = Z and no biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Factors:
    """Factors of all N² logits; k=None means k = q, a missing bias is zero."""

    q: Tensor
    k: Tensor | None = None
    row_bias: Tensor | None = None
    column_bias: Tensor | None = None

    def logits(self, pairs: Tensor) -> Tensor:
        """Logits of M×2 pairs."""
        tails, heads = pairs.unbind(dim=1)
        other = self.q if self.k is None else self.k
        logits = (self.q.index_select(0, tails) * other.index_select(0, heads)).sum(dim=1)
        if self.row_bias is not None:
            logits = logits + self.row_bias.index_select(0, tails)
        if self.column_bias is not None:
            logits = logits + self.column_bias.index_select(0, heads)
        return logits


class Decoder(Protocol):
    """What every decoder offers; `symmetric` promises logit_ij = logit_ji."""

    symmetric: bool

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Logits of M×2 pairs."""


class FactorisedDecoder(Decoder, Protocol):
    """A decoder whose logits have factors."""

    def factors(self, z: Tensor) -> Factors:
        """The factors at these embeddings."""


class InnerProduct(nn.Module):
    """logit_ij = z_i·z_j, the paper's decoder."""

    symmetric = True

    def factors(self, z: Tensor) -> Factors:
        """q = k = z."""
        return Factors(z)

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """z_i·z_j for each pair."""
        return self.factors(z).logits(pairs)


DECODERS = {"inner_product": InnerProduct}
