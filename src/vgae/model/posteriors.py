"""Approximate posteriors q(Z | X, A): independent over nodes, given by the encoder's heads.

Delta    all mass at the mean: the non-probabilistic GAE
Normal   N(mean, diag(σ²)) per node, σ = exp(log_std): the VGAE, sampled as mean + σ·ε, ε ~ N(0, I)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor


class Posterior(Protocol):
    """A distribution over N×latent_dim embeddings whose parameters are the encoder's heads."""

    heads: ClassVar[tuple[str, ...]]
    is_point: ClassVar[bool]  # whether every draw is the mean

    @property
    def mean(self) -> Tensor:
        """Its mean: the embedding used for evaluation."""

    def sample(self, generator: torch.Generator) -> Tensor:
        """A draw that gradients pass through (the reparameterization trick)."""


@dataclass(frozen=True, eq=False)
class Delta:
    """A point mass: what a GAE infers."""

    heads: ClassVar[tuple[str, ...]] = ("mean",)
    is_point: ClassVar[bool] = True
    mean: Tensor

    def sample(self, generator: torch.Generator) -> Tensor:  # noqa: ARG002 - a point needs no chance
        """The point itself."""
        return self.mean


@dataclass(frozen=True, eq=False)
class Normal:
    """A diagonal normal distribution: what a VGAE infers."""

    heads: ClassVar[tuple[str, ...]] = ("mean", "log_std")
    is_point: ClassVar[bool] = False
    mean: Tensor
    log_std: Tensor

    def sample(self, generator: torch.Generator) -> Tensor:
        """mean + σ·ε."""
        noise = torch.randn(self.mean.shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        return self.mean + self.log_std.exp() * noise


POSTERIORS: dict[str, type[Delta] | type[Normal]] = {"delta": Delta, "normal": Normal}
