"""Approximate posteriors q(Z | X, A): independent over nodes, given by the encoder's outputs."""

from vgae.model.posteriors.base import PLANE, SPHERE, Posterior, PosteriorSpec
from vgae.model.posteriors.delta import Delta, DeltaPosterior
from vgae.model.posteriors.normal import Normal, NormalPosterior
from vgae.model.posteriors.power_spherical import PowerSpherical, PowerSphericalPosterior

__all__ = [
    "PLANE",
    "SPHERE",
    "Delta",
    "DeltaPosterior",
    "Normal",
    "NormalPosterior",
    "Posterior",
    "PosteriorSpec",
    "PowerSpherical",
    "PowerSphericalPosterior",
]
