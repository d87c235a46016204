"""Priors p(Z), independent over nodes.

StandardNormal   N(0, I): the paper's
"""

from typing import Protocol

import torch
from torch import Tensor, nn


class Prior(Protocol):
    """A distribution over embeddings; it may hold parameters to be learned."""

    def log_prob(self, z: Tensor) -> Tensor:
        """Log density of each row of z."""


class StandardNormal(nn.Module):
    """N(0, I)."""

    def log_prob(self, z: Tensor) -> Tensor:
        """-½ (‖z‖² + d log 2π) for each row."""
        constant = z.shape[1] * torch.log(torch.tensor(2 * torch.pi, dtype=z.dtype, device=z.device))
        return -0.5 * (z.square().sum(dim=1) + constant)


PRIORS = {"standard_normal": StandardNormal}
