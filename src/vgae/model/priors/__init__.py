"""Priors p(Z)."""

from vgae.model.priors.base import Prior, PriorInputs, PriorSpec
from vgae.model.priors.standard_normal import StandardNormal, StandardNormalPrior
from vgae.model.priors.together import check_prior, go_together

__all__ = [
    "Prior",
    "PriorInputs",
    "PriorSpec",
    "StandardNormal",
    "StandardNormalPrior",
    "check_prior",
    "go_together",
]
