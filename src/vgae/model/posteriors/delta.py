"""All mass at the mean: the non-probabilistic GAE."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NoReturn

import torch
from torch import Tensor

from vgae.model.posteriors.base import PosteriorSpec
from vgae.model.spec import register


@dataclass(frozen=True, eq=False)
class DeltaPosterior:
    """A point mass: what a GAE infers."""

    mean: Tensor

    @property
    def expectation(self) -> Tensor:
        """The mean."""
        return self.mean

    @property
    def variance(self) -> Tensor:
        """None at all."""
        return torch.zeros_like(self.mean)

    def parameters(self) -> dict[str, Tensor]:
        """The mean."""
        return {"mean": self.mean}

    def sample(self, generator: torch.Generator) -> Tensor:  # noqa: ARG002 - a point needs no randomness
        """The point itself."""
        return self.mean

    def entropy(self) -> NoReturn:
        """A point has no density."""
        raise TypeError("A point mass has no entropy.")

    def log_prob(self, z: Tensor) -> NoReturn:  # noqa: ARG002 - as others have it
        """A point has no density."""
        raise TypeError("A point mass has no density.")


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
