"""Products of embeddings with weights between them.

    diagonal   logit_ij = Σ_d w_d z_id z_jd + b   symmetric; a negative w_d links nodes that are unlike in dimension d
    full       logit_ij = z_iᵀ W z_j + b          tells i → j from j → i

The first is DistMult (Yang et al., ICLR 2015) with one relation, the second RESCAL (Nickel et al., ICML 2011) with one.
Both start as the inner product, w = 1 and W = I.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vgae.model.decoders.base import BiasedDecoder, DecoderSpec, bias_option
from vgae.model.spec import register
from vgae.ops import Factors
from vgae.options import option

FORMS = ("diagonal", "full")


class DiagonalDecoder(BiasedDecoder):
    """Σ_d w_d z_id z_jd + b."""

    mirrored = False  # weights may be negative, so that q = k = √w·z would not do

    def __init__(self, latent_dim: int, bias: float | None) -> None:
        super().__init__(bias)
        self.weight = nn.Parameter(torch.ones(latent_dim))

    def factors(self, z: Tensor) -> Factors:
        """q = w∘z, k = z."""
        return Factors(z * self.weight, z, self.bias_of_rows(z))


class FullDecoder(BiasedDecoder):
    """z_iᵀ W z_j + b."""

    symmetric = False
    mirrored = False

    def __init__(self, latent_dim: int, bias: float | None) -> None:
        super().__init__(bias)
        identity = torch.zeros(latent_dim, latent_dim)
        self.weight = nn.Parameter(identity if identity.is_meta else identity.fill_diagonal_(1))  # as `glorot` does

    def factors(self, z: Tensor) -> Factors:
        """q = zW, k = z."""
        return Factors(z @ self.weight, z, self.bias_of_rows(z))

    def bound(self, reach: Tensor) -> Tensor:
        """|z|ᵀ|W||z|, or an entry of |z|ᵀ|W|, whichever is larger."""
        columns = reach @ self.weight.abs()
        return torch.maximum((columns * reach).sum(), columns.max()) + self.bias.abs()


@register("decoder", "bilinear")
@dataclass(frozen=True)
class Bilinear(DecoderSpec):
    """logit_ij = z_iᵀ W z_j + b, with W and b learned; W diagonal or, not symmetric, full."""

    form: str = option("diagonal", choices=FORMS, help="Of the matrix: diagonal, or full, which is for directions.")
    bias: float | None = bias_option()

    def build(self, latent_dim: int, generator: torch.Generator) -> DiagonalDecoder | FullDecoder:  # noqa: ARG002
        """The decoder as it starts, as the inner product."""
        kind = DiagonalDecoder if self.form == "diagonal" else FullDecoder
        return kind(latent_dim, self.bias)
