"""KL(q ‖ p) in closed form, by the kinds of posterior and prior, or by the step's own draw.

normal posterior, standard normal prior   ½ (μ_d² + σ_d² - 1 - 2 log σ_d) for each node and dimension
normal posterior, learned normal prior    ½ ((μ_d² + σ_d²)/s_d² - 1) - log σ_d + log s_d for each node and dimension
normal posterior, Laplacian prior         as in vgae.model.priors.laplacian, for each node and dimension
power spherical posterior, uniform prior  log |S| - H(q) for each node
point mass, any prior                     0: a GAE has no prior term
any other                                 -H(q) - log p(z) for each node at a draw z ~ q, with the entropy exact
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from vgae.model.posteriors import DeltaPosterior, NormalPosterior, Posterior, PowerSphericalPosterior
from vgae.model.priors import (
    LaplacianPrior,
    LearnedNormalPrior,
    Prior,
    PriorInputs,
    StandardNormalPrior,
    UniformSpherePrior,
)
from vgae.ops.normal import draw_with_kl, kernels_suit

ClosedForm = Callable[[Any, Any, PriorInputs | None], Tensor]


def kl_divergence(posterior: Posterior, prior: Prior, z: Tensor, seen: PriorInputs | None = None) -> Tensor:
    """KL(q ‖ p) for each node, by dimension where it is a sum over them (N×d, else N); z is a draw from q."""
    kind = type(posterior)
    closed_form = _CLOSED_FORMS.get((kind, type(prior))) or _CLOSED_FORMS.get((kind, object))
    if closed_form is not None:
        return closed_form(posterior, prior, seen)
    return -posterior.entropy() - prior.log_prob(z, seen)


def sample_with_kl(posterior: Posterior, prior: Prior, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
    """A draw and, where it is made along with it, the KL summed over nodes (1×d); else None in its place."""
    paper = type(posterior) is NormalPosterior and type(prior) is StandardNormalPrior
    if not (paper and isinstance(posterior, NormalPosterior) and kernels_suit(posterior.mean)):
        return posterior.sample(generator), None
    z, kl = draw_with_kl(posterior.mean, posterior.log_std, posterior.noise(generator))
    return z, kl[None]


def _normal_standard_normal(posterior: NormalPosterior, _: StandardNormalPrior, __: PriorInputs | None) -> Tensor:
    variance = (2 * posterior.log_std).exp()
    return 0.5 * (posterior.mean.square() + variance - 1 - 2 * posterior.log_std)


def _normal_learned_normal(posterior: NormalPosterior, prior: LearnedNormalPrior, _: PriorInputs | None) -> Tensor:
    log_ratio = posterior.log_std - prior.log_std
    standard = posterior.mean * (-prior.log_std).exp()
    return 0.5 * (standard.square() + (2 * log_ratio).exp() - 1 - 2 * log_ratio)


def _normal_laplacian(posterior: NormalPosterior, prior: LaplacianPrior, seen: PriorInputs | None) -> Tensor:
    precision, mean = prior.precision(seen), posterior.mean
    log_ratio = posterior.log_std - prior.log_scales(mean)
    squares = prior.scaled(mean * (precision.matrix @ mean) + precision.diagonal.to(mean.dtype) * posterior.variance)
    return 0.5 * (squares - 1 - 2 * log_ratio - precision.log_determinant / len(mean))


def _power_spherical_uniform(
    posterior: PowerSphericalPosterior, prior: UniformSpherePrior, seen: PriorInputs | None
) -> Tensor:
    return -posterior.entropy() - prior.log_prob(posterior.direction, seen)  # the density is the same everywhere


def _delta_any(posterior: DeltaPosterior, _: object, __: PriorInputs | None) -> Tensor:
    return posterior.mean.new_zeros(len(posterior.mean))


_CLOSED_FORMS: dict[tuple[type, type], ClosedForm] = {
    (NormalPosterior, StandardNormalPrior): _normal_standard_normal,
    (NormalPosterior, LearnedNormalPrior): _normal_learned_normal,
    (NormalPosterior, LaplacianPrior): _normal_laplacian,
    (PowerSphericalPosterior, UniformSpherePrior): _power_spherical_uniform,
    (DeltaPosterior, object): _delta_any,  # whatever the prior
}
