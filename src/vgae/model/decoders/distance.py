"""Nodes that are near are linked: the latent space model of Hoff, Raftery and Handcock (JASA 2002), distances squared.

    logit_ij = b - s·‖z_i - z_j‖²,   s > 0

Its factors are q = k = √(2s)·z and r = c = ½ (b - ‖q‖²). What they give is a small difference of large numbers where
nodes are near and far from the origin; z is therefore centred first, which no distance depends on. Logits of pairs are
computed from differences, in which nothing cancels. docs/parts.md has the errors of both.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.model.decoders.base import BiasedDecoder, DecoderSpec, bias_option, learned, squared_distances
from vgae.model.spec import register
from vgae.ops import Factors
from vgae.options import option


class DistanceDecoder(BiasedDecoder):
    """b - s·‖z_i - z_j‖²."""

    likeness = "nearness"

    def __init__(self, scale: float, bias: float | None) -> None:
        super().__init__(bias)
        self.log_scale = learned(math.log(scale))

    def factors(self, z: Tensor) -> Factors:
        """q = k = √(2s)·(z - its mean over the nodes), r = c = ½ (b - ‖q‖²)."""
        centre = z.detach().mean(dim=0)  # whose gradient is zero, as no logit depends on it
        q = (2**0.5 * (self.log_scale / 2).exp()) * (z - centre)
        bias = (self.bias - q.square().sum(dim=1)) / 2
        return Factors(q, None, bias, bias)

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Of M×2 pairs, by differences."""
        return self.bias - self.log_scale.exp() * squared_distances(z, pairs)

    def bound(self, reach: Tensor) -> Tensor:
        """Two nodes are 2·reach apart at most, and so is one from the mean."""
        scale = self.log_scale.exp()
        return self.bias.abs() + scale * torch.maximum(8 * reach.square().sum(), reach.new_ones(()))


@register("decoder", "distance")
@dataclass(frozen=True)
class Distance(DecoderSpec):
    """logit_ij = b - s·‖z_i - z_j‖², with s and b learned."""

    scale: float | None = option(
        None,
        above=0,
        most=1e6,
        help="What the learned scale starts from; none: 1/(2·latent_dim).",
        search=(0.001, 10.0),
    )
    bias: float | None = bias_option()

    def build(self, latent_dim: int, generator: torch.Generator) -> DistanceDecoder:  # noqa: ARG002 - nothing is drawn
        """The decoder at its start; without a scale, two draws of the prior are at b - 1 on average."""
        return DistanceDecoder(1 / (2 * latent_dim) if self.scale is None else self.scale, self.bias)
