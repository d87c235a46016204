"""N(mean, diag(σ²)) per node, σ = exp(log_std): the VGAE, sampled as mean + σ·ε, ε ~ N(0, I)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vgae.model.posteriors.base import PosteriorSpec
from vgae.model.spec import register
from vgae.ops.pages import empty, is_large
from vgae.parallel.draws import RowGenerator

LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class NormalPosterior:
    """A diagonal normal distribution: what a VGAE infers."""

    mean: Tensor
    log_std: Tensor

    @property
    def expectation(self) -> Tensor:
        """The mean."""
        return self.mean

    @property
    def variance(self) -> Tensor:
        """σ²."""
        return (2 * self.log_std).exp()

    def parameters(self) -> dict[str, Tensor]:
        """Mean and log σ."""
        return {"mean": self.mean, "log_std": self.log_std}

    def sample(self, generator: torch.Generator) -> Tensor:
        """mean + σ·ε."""
        return self.mean + self.log_std.exp() * self.noise(generator)

    def noise(self, generator: torch.Generator) -> Tensor:
        """ε ~ N(0, I) (N×d)."""
        if isinstance(generator, RowGenerator):
            return generator.normal(self.mean.shape, self.mean.dtype)
        if not is_large(self.mean):
            return torch.randn(self.mean.shape, generator=generator, dtype=self.mean.dtype, device=self.mean.device)
        return empty(*self.mean.shape, dtype=self.mean.dtype).normal_(generator=generator)

    def entropy(self) -> Tensor:
        """Σ_d log σ_d + ½ (1 + log 2π) for each node."""
        return (self.log_std + 0.5 * (1 + LOG_2PI)).sum(dim=1)

    def log_prob(self, z: Tensor) -> Tensor:
        """-Σ_d ½ ((z_d - μ_d)/σ_d)² + log σ_d + ½ log 2π for each row."""
        standard = (z - self.mean) * (-self.log_std).exp()
        return -(0.5 * standard.square() + self.log_std + 0.5 * LOG_2PI).sum(dim=-1)


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
