"""The uniform distribution on the unit sphere, for posteriors that lie there.

    p(z) = 1 / |S|,   |S| = 2 π^(d/2) / Γ(d/2)

It has no centre that it could pull embeddings to: the KL costs how sure a node's direction is, not where it points.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from vgae.model.posteriors import SPHERE
from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.spec import register


class UniformSpherePrior(Prior):
    """The uniform distribution on the unit sphere."""

    def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:  # noqa: ARG002 - it looks at nothing
        """-log |S| for each row."""
        return z.new_full((len(z),), -log_area(z.shape[1]))


def log_area(dim: int) -> float:
    """log |S| of the unit sphere in d dimensions."""
    return math.log(2) + 0.5 * dim * math.log(math.pi) - math.lgamma(0.5 * dim)


@register("prior", "uniform_sphere")
@dataclass(frozen=True)
class UniformSphere(PriorSpec):
    """The uniform distribution on the unit sphere."""

    spaces: ClassVar[tuple[str, ...]] = (SPHERE,)

    def build(self, latent_dim: int, generator: torch.Generator, input_dim: int) -> UniformSpherePrior:  # noqa: ARG002
        """The uniform distribution, of whatever dimension."""
        return UniformSpherePrior()
