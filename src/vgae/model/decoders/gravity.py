"""Nodes fall towards heavy ones that are near: the gravity-inspired decoder of Salha et al. (CIKM 2019).

    logit_ij = m_j - λ·log(‖z_i - z_j‖² + ε) + b

with the mass m the last dimension of z and distances over the others, λ > 0 learned from a starting value. Not
symmetric: i links to j, not j to i, where j has more mass. It has no factors, because of the logarithm.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vgae.model.decoders.base import (
    BiasedDecoder,
    DecoderSpec,
    RowsOfEmbeddings,
    bias_option,
    distances,
    learned,
)
from vgae.model.spec import register
from vgae.ops import LogitRows
from vgae.options import option


class GravityDecoder(BiasedDecoder):
    """m_j - λ·log(‖z_i - z_j‖² + ε) + b."""

    symmetric = False
    factorised = False
    mirrored = False
    by_ends = True
    likeness = "nearness"

    def __init__(self, scale: float, epsilon: float, bias: float | None) -> None:
        super().__init__(bias)
        self.log_scale = learned(math.log(scale))
        self.epsilon = epsilon

    def position(self, z: Tensor) -> Tensor:
        """All but the mass."""
        return z[:, :-1]

    def factors(self, z: Tensor) -> None:  # noqa: ARG002 - as others have it
        """There are none."""
        return

    def between(self, left: Tensor, right: Tensor) -> Tensor:
        """Of embeddings at both ends, by differences."""
        squares = (self.position(left) - self.position(right)).square().sum(dim=1)
        return right[:, -1] - self.log_scale.exp() * torch.log(squares + self.epsilon) + self.bias

    def rows(self, z: Tensor) -> LogitRows:
        """All pairs, a block of distances at a time."""
        return _GravityRows(z, self)

    def bound(self, reach: Tensor) -> Tensor:
        """Of the largest mass, the farthest distance and, for the logarithm, the nearest."""
        farthest = 4 * self.position(reach).square().sum() + self.epsilon
        logarithm = farthest.log().abs() + abs(math.log(self.epsilon))
        scale = self.log_scale.exp()
        return torch.maximum(farthest, reach[:, -1].abs().max() + scale * (1 + logarithm) + self.bias.abs())


@dataclass(frozen=True, eq=False)
class _GravityRows(RowsOfEmbeddings):
    decoder: GravityDecoder

    @torch.no_grad()
    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        decoder, at = self.decoder, self.decoder.position(self.z)
        fall = (distances(at[rows], at[first:]).square_() + decoder.epsilon).log_()
        return fall.mul_(-decoder.log_scale.exp()).add_(self.z[first:, -1] + decoder.bias)


@register("decoder", "gravity")
@dataclass(frozen=True)
class Gravity(DecoderSpec):
    """logit_ij = m_j - λ·log(‖z_i - z_j‖² + ε) + b, m the last dimension of z, λ and b learned; for directed links."""

    symmetric: ClassVar[bool] = False
    factorised: ClassVar[bool] = False

    scale: float = option(1.0, above=0, most=1e6, help="What the learned λ starts from.", search=(0.1, 10.0))
    epsilon: float = option(0.01, least=1e-12, most=1e6, help="What is added to squared distances.")
    bias: float | None = bias_option()

    def build(self, latent_dim: int, generator: torch.Generator) -> GravityDecoder:  # noqa: ARG002 - nothing is drawn
        """The decoder at its start."""
        return GravityDecoder(self.scale, self.epsilon, self.bias)

    def check(self, latent_dim: int) -> None:
        """The mass takes a dimension."""
        self.require_dimensions(latent_dim, 2, "one of which is the mass of each node")
