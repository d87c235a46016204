"""N(0, I), independent over nodes: the paper's prior."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.spec import register


class StandardNormalPrior(Prior):
    """N(0, I)."""

    def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:  # noqa: ARG002 - it looks at nothing
        """-½ (‖z‖² + d log 2π) for each row."""
        constant = z.shape[1] * torch.log(torch.tensor(2 * torch.pi, dtype=z.dtype, device=z.device))
        return -0.5 * (z.square().sum(dim=1) + constant)


@register("prior", "standard_normal")
@dataclass(frozen=True)
class StandardNormal(PriorSpec):
    """N(0, I)."""

    def build(self, latent_dim: int, generator: torch.Generator, input_dim: int) -> StandardNormalPrior:  # noqa: ARG002
        """The standard normal distribution, of whatever dimension."""
        return StandardNormalPrior()
