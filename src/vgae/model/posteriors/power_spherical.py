"""The power spherical distribution on the unit sphere (De Cao & Aziz, 2020), for each node.

    q(z) = C (1 + μᵀz)^κ,   β = (d - 1)/2,   α = β + κ,   log C = log Γ(α + β) - log Γ(α) - (α + β) log 2 - β log π

It looks like a von Mises-Fisher distribution, but has a closed form for everything and is drawn without rejection:

    T ~ Beta(α, β),  t = 2T - 1,  v uniform on the sphere of one dimension less,  z = H (t, √(1 - t²) v),

where H is the reflection that takes a pole to μ. The pole is the one that is farther from μ, so that the reflection
never divides by a small number. Gradients pass through the two gamma variables that T is made of.

μ is the encoder's `direction` brought to unit length and κ = (d - 1) softplus(`concentration`): in these units
E μᵀz = κ / (κ + d - 1) depends on the encoder's output alone, whatever d is. κ = 0 is the uniform distribution.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from vgae.errors import InputError
from vgae.model.posteriors.base import SPHERE, PosteriorSpec
from vgae.model.spec import register

LOG_2, LOG_PI = math.log(2), math.log(math.pi)


@dataclass(frozen=True, eq=False)
class PowerSphericalPosterior:
    """A power spherical distribution for each node, given by what the encoder says about it."""

    direction: Tensor
    concentration: Tensor

    @property
    def mean(self) -> Tensor:
        """μ, where the density is highest: the mean direction, of length one."""
        return normalize(self.direction, dim=-1)

    @property
    def kappa(self) -> Tensor:
        """κ of each node."""
        return 2 * self._beta * softplus(self.concentration[..., 0])

    @property
    def expectation(self) -> Tensor:
        """κ / (κ + d - 1) μ: shorter than one, the more so the wider the spread."""
        kappa = self.kappa[..., None]
        return kappa / (kappa + 2 * self._beta) * self.mean

    @property
    def variance(self) -> Tensor:
        """The diagonal of Var(t) μμᵀ + E(1 - t²) / (d - 1) (I - μμᵀ)."""
        kappa, total = self.kappa[..., None], self.kappa[..., None] + 2 * self._beta
        along = 4 * (self._beta + kappa) * self._beta / (total.square() * (total + 1))
        across = 4 * (self._beta + kappa) * self._beta / (total * (total + 1)) / (2 * self._beta)
        squares = self.mean.square()
        return along * squares + across * (1 - squares)

    def parameters(self) -> dict[str, Tensor]:
        """Direction and concentration as the encoder gives them."""
        return {"direction": self.direction, "concentration": self.concentration}

    def sample(self, generator: torch.Generator) -> Tensor:
        """A point on the sphere for each node."""
        mean, kappa = self.mean, self.kappa
        gammas = torch._standard_gamma(torch.stack([self._beta + kappa, torch.full_like(kappa, self._beta)]), generator)
        shares = gammas / gammas.sum(dim=0)  # T and 1 - T, both to full precision
        noise = torch.randn((len(mean), mean.shape[1] - 1), generator=generator, dtype=mean.dtype, device=mean.device)
        lengths = noise.norm(dim=1, keepdim=True)
        # A normal variable is 0 once in millions of draws: then any direction will do.
        tangent = torch.where(lengths > 0, noise / lengths, torch.full_like(noise, (mean.shape[1] - 1) ** -0.5))
        # The pole that is farther from μ; both give the same distribution.
        pole = 1 - 2 * (mean[:, :1] > 0).to(mean.dtype)
        at_pole = torch.cat(
            [pole * (shares[0] - shares[1])[:, None], 2 * (shares[0] * shares[1]).sqrt()[:, None] * tangent], dim=1
        )
        normal = torch.cat([pole - mean[:, :1], -mean[:, 1:]], dim=1)
        along = (normal * at_pole).sum(dim=1, keepdim=True) / normal.square().sum(dim=1, keepdim=True)
        return at_pole - 2 * along * normal

    def entropy(self) -> Tensor:
        """-log C - κ (log 2 + ψ(α) - ψ(α + β)) for each node; in float64, because large terms cancel."""
        kappa = self.kappa.double()
        alpha = self._beta + kappa
        expected = LOG_2 + torch.digamma(alpha) - torch.digamma(alpha + self._beta)
        return -(self._log_normalizer(kappa) + kappa * expected).to(self.direction.dtype)

    def log_prob(self, z: Tensor) -> Tensor:
        """log C + κ log(1 + μᵀz) for each row."""
        cosine = (self.mean * z).sum(dim=-1)
        constant = self._log_normalizer(self.kappa.double()).to(z.dtype)
        smallest = torch.finfo(z.dtype).tiny  # opposite to μ the density is 0
        return constant + self.kappa * (1 + cosine).clamp(min=smallest).log()

    @property
    def _beta(self) -> float:
        return (self.direction.shape[-1] - 1) / 2

    def _log_normalizer(self, kappa: Tensor) -> Tensor:
        """Log C, of κ in float64."""
        alpha, beta = self._beta + kappa, self._beta
        return torch.lgamma(alpha + beta) - torch.lgamma(alpha) - (alpha + beta) * LOG_2 - beta * LOG_PI


@register("posterior", "power_spherical")
@dataclass(frozen=True)
class PowerSpherical(PosteriorSpec):
    """A power spherical distribution on the unit sphere for each node."""

    deterministic: ClassVar[bool] = False
    space: ClassVar[str] = SPHERE

    def check(self, latent_dim: int) -> None:
        """A sphere in one dimension is two points."""
        if latent_dim < 2:
            raise InputError(
                f"latent_dim: the posterior {self.name} needs at least 2 dimensions, because the unit sphere in one is "
                "two points."
            )

    def heads(self, latent_dim: int) -> dict[str, int]:
        """A direction, and how closely draws keep to it."""
        return {"direction": latent_dim, "concentration": 1}

    def build(self, outputs: Mapping[str, Tensor]) -> PowerSphericalPosterior:
        """The distribution with this direction and concentration."""
        return PowerSphericalPosterior(**outputs)
