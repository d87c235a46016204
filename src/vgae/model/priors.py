"""Priors p(Z), independent over nodes.

StandardNormal   N(0, I): the paper's
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vgae.model.spec import Spec, register


class Prior(nn.Module):
    """A distribution over embeddings; it may hold parameters to be learned."""

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density of each row of z."""
        raise NotImplementedError


class PriorSpec(Spec):
    """A kind of prior."""

    def build(self, latent_dim: int, generator: torch.Generator) -> Prior:
        """The prior over embeddings of so many dimensions."""
        raise NotImplementedError


class StandardNormalPrior(Prior):
    """N(0, I)."""

    def log_prob(self, z: Tensor) -> Tensor:
        """-½ (‖z‖² + d log 2π) for each row."""
        constant = z.shape[1] * torch.log(torch.tensor(2 * torch.pi, dtype=z.dtype, device=z.device))
        return -0.5 * (z.square().sum(dim=1) + constant)


@register("prior", "standard_normal")
@dataclass(frozen=True)
class StandardNormal(PriorSpec):
    """N(0, I)."""

    def build(self, latent_dim: int, generator: torch.Generator) -> StandardNormalPrior:  # noqa: ARG002 - nothing to fit
        """The standard normal distribution, of whatever dimension."""
        return StandardNormalPrior()
