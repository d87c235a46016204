"""Approximate posteriors q(Z | X, A): independent over nodes, given by the encoder's outputs.

Delta    all mass at the mean: the non-probabilistic GAE
Normal   N(mean, diag(σ²)) per node, σ = exp(log_std): the VGAE, sampled as mean + σ·ε, ε ~ N(0, I)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from vgae.model.spec import Spec, register


class Posterior(Protocol):
    """A distribution over N×latent_dim embeddings."""

    @property
    def mean(self) -> Tensor:
        """Its mean: the embedding used for evaluation."""

    def parameters(self) -> dict[str, Tensor]:
        """The encoder's outputs that it is made of, by name."""

    def sample(self, generator: torch.Generator) -> Tensor:
        """A draw that gradients pass through (the reparameterization trick)."""


class PosteriorSpec(Spec):
    """A kind of posterior: which outputs it needs of an encoder, and the distribution that they make."""

    deterministic: ClassVar[bool]  # whether every draw is the mean

    def heads(self, latent_dim: int) -> dict[str, int]:
        """The outputs of the encoder, by name, and their widths."""
        raise NotImplementedError

    def build(self, outputs: Mapping[str, Tensor]) -> Posterior:
        """The posterior that an encoder's outputs are the parameters of."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class DeltaPosterior:
    """A point mass: what a GAE infers."""

    mean: Tensor

    def parameters(self) -> dict[str, Tensor]:
        """The mean."""
        return {"mean": self.mean}

    def sample(self, generator: torch.Generator) -> Tensor:  # noqa: ARG002 - a point needs no randomness
        """The point itself."""
        return self.mean


@dataclass(frozen=True, eq=False)
class NormalPosterior:
    """A diagonal normal distribution: what a VGAE infers."""

    mean: Tensor
    log_std: Tensor

    def parameters(self) -> dict[str, Tensor]:
        """Mean and log σ."""
        return {"mean": self.mean, "log_std": self.log_std}

    def sample(self, generator: torch.Generator) -> Tensor:
        """mean + σ·ε."""
        noise = torch.randn(self.mean.shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        return self.mean + self.log_std.exp() * noise


@register("posterior", "delta")
@dataclass(frozen=True)
class Delta(PosteriorSpec):
    """A point for each node."""

    deterministic: ClassVar[bool] = True

    def heads(self, latent_dim: int) -> dict[str, int]:
        """The mean."""
        return {"mean": latent_dim}

    def build(self, outputs: Mapping[str, Tensor]) -> DeltaPosterior:
        """All mass at the mean."""
        return DeltaPosterior(**outputs)


@register("posterior", "normal")
@dataclass(frozen=True)
class Normal(PosteriorSpec):
    """A diagonal normal distribution for each node."""

    deterministic: ClassVar[bool] = False

    def heads(self, latent_dim: int) -> dict[str, int]:
        """Mean and log σ."""
        return {"mean": latent_dim, "log_std": latent_dim}

    def build(self, outputs: Mapping[str, Tensor]) -> NormalPosterior:
        """N(mean, diag(exp(log_std)²))."""
        return NormalPosterior(**outputs)
