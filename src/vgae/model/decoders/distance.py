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
from torch import Tensor, nn

from vgae.model.decoders.base import BIASES, Decoder, DecoderSpec, learned, squared_distances
from vgae.model.spec import register
from vgae.ops import Factors
from vgae.options import option


class DistanceDecoder(Decoder):
    """b - s·‖z_i - z_j‖²."""

    likeness = "nearness"

    def __init__(self, latent_dim: int, scale: float | None, bias: float) -> None:
        super().__init__()
        self.latent_dim, self.starts_at = latent_dim, scale
        self.bias = learned(bias)
        self.log_scale = learned(math.log(scale or 1 / (2 * latent_dim)))

    def begin(self, log_odds: float) -> None:
        """Where no scale was given, take that at which draws of N(0, I) are linked about as often as the log-odds say.

        Their squared distance is 2·latent_dim on average. The bias stays: it has to be above the log-odds of all pairs,
        or no two nodes could be near enough for a link.
        """
        if self.starts_at is None:
            nn.init.constant_(self.log_scale, math.log(max(self.bias.item() + 1 - log_odds, 1) / (2 * self.latent_dim)))

    def factors(self, z: Tensor) -> Factors:
        """q = k = √(2s)·(z - its mean over the nodes), r = c = ½ (b - ‖q‖²)."""
        centre = self.mean_of(z.detach())  # whose gradient is zero, as no logit depends on it
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
        help="What the learned scale starts from; none: draws of N(0, I) are linked about as often as nodes are.",
        search=(0.001, 10.0),
    )
    bias: float = option(0.0, **BIASES, help="What the learned bias starts from.")

    def build(self, latent_dim: int, generator: torch.Generator) -> DistanceDecoder:  # noqa: ARG002 - nothing is drawn
        """The decoder at its start."""
        return DistanceDecoder(latent_dim, self.scale, self.bias)
