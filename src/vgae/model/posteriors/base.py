"""What every approximate posterior q(Z | X, A) offers: independent over nodes, given by the encoder's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Protocol

import torch
from torch import Tensor

from vgae.model.spec import Spec

PLANE, SPHERE = "plane", "sphere"  # where embeddings lie: anywhere in d dimensions, or on the unit sphere there


class Posterior(Protocol):
    """A distribution over N×latent_dim embeddings."""

    @property
    def mean(self) -> Tensor:
        """Its mean, or on the sphere its mean direction: the embedding used for evaluation."""

    @property
    def expectation(self) -> Tensor:
        """E z (N×d): the embedding itself, except on the sphere, inside of which the mean of points on it lies."""

    @property
    def variance(self) -> Tensor:
        """Its variance in each dimension (N×d)."""

    def parameters(self) -> dict[str, Tensor]:
        """The encoder's outputs that it is made of, by name."""

    def sample(self, generator: torch.Generator) -> Tensor:
        """A draw that gradients pass through (the reparameterization trick)."""

    def entropy(self) -> Tensor:
        """-E log q(z) of each node, in nats; a point has none, and says so."""

    def log_prob(self, z: Tensor) -> Tensor:
        """log q(z) of each row, or of each of N rows (N×1×d) at each of K posteriors (N×K); a point has none."""


class PosteriorSpec(Spec):
    """A kind of posterior: which outputs it needs of an encoder, and the distribution that they make."""

    deterministic: ClassVar[bool]  # whether every draw is the mean
    space: ClassVar[str] = PLANE

    def check(self, latent_dim: int) -> None:
        """Refuse a number of dimensions that it cannot do with; most take any."""

    def heads(self, latent_dim: int) -> dict[str, int]:
        """The outputs of the encoder, by name, and their widths."""
        raise NotImplementedError

    def build(self, outputs: Mapping[str, Tensor]) -> Posterior:
        """The posterior that an encoder's outputs are the parameters of."""
        raise NotImplementedError
