"""N(0, diag(s²)) with one scale s_d per dimension, learned with the model.

Where the KL is smallest, s_d² = mean_i (μ_id² + σ_id²): the prior follows the embeddings in scale and no longer pulls
them to zero. What is left of the KL is how much of its dimension's spread each node takes up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.spec import register

LOG_2PI = math.log(2 * math.pi)


class LearnedNormalPrior(Prior):
    """N(0, diag(s²))."""

    def __init__(self, latent_dim: int) -> None:
        super().__init__()
        self.log_std = nn.Parameter(torch.zeros(latent_dim))

    def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:  # noqa: ARG002 - it looks at nothing
        """-Σ_d ½ (z_d / s_d)² + log s_d + ½ log 2π for each row."""
        standard = z * (-self.log_std).exp()
        return -(0.5 * standard.square() + self.log_std + 0.5 * LOG_2PI).sum(dim=1)


@register("prior", "learned_normal")
@dataclass(frozen=True)
class LearnedNormal(PriorSpec):
    """N(0, diag(s²)), s learned."""

    def build(self, latent_dim: int, generator: torch.Generator, input_dim: int) -> LearnedNormalPrior:  # noqa: ARG002
        """The standard normal distribution, to begin with."""
        return LearnedNormalPrior(latent_dim)
