"""Priors p(Z)."""

from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.priors.laplacian import Laplacian, LaplacianPrior
from vgae.model.priors.learned_normal import LearnedNormal, LearnedNormalPrior
from vgae.model.priors.mixture import Mixture, MixturePrior
from vgae.model.priors.standard_normal import StandardNormal, StandardNormalPrior
from vgae.model.priors.together import check_prior, go_together
from vgae.model.priors.uniform_sphere import UniformSphere, UniformSpherePrior
from vgae.model.priors.vamp import Vamp, VampPrior

__all__ = [
    "Laplacian",
    "LaplacianPrior",
    "LearnedNormal",
    "LearnedNormalPrior",
    "Mixture",
    "MixturePrior",
    "Prior",
    "PriorInputs",
    "PriorSpec",
    "StandardNormal",
    "StandardNormalPrior",
    "UniformSphere",
    "UniformSpherePrior",
    "Vamp",
    "VampPrior",
    "check_prior",
    "go_together",
]
