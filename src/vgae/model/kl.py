"""KL(q ‖ p) in closed form, by the kinds of posterior and prior.

normal posterior, standard normal prior   ½ Σ_d (μ_d² + σ_d² - 1 - 2 log σ_d) for each node
point mass, any prior                     0: a GAE has no prior term
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from vgae.model.posteriors import DeltaPosterior, NormalPosterior, Posterior
from vgae.model.priors import StandardNormalPrior


def kl_divergence(posterior: Posterior, prior: object) -> Tensor:
    """KL(q ‖ p) for each node."""
    kind = type(posterior)
    closed_form = _CLOSED_FORMS.get((kind, type(prior))) or _CLOSED_FORMS.get((kind, object))
    if closed_form is None:
        pair = f"{type(posterior).__name__} and {type(prior).__name__}"
        raise TypeError(f"There is no closed form for the KL divergence between {pair}; add one in vgae.model.kl.")
    return closed_form(posterior, prior)


def _normal_standard_normal(posterior: NormalPosterior, _: StandardNormalPrior) -> Tensor:
    variance = (2 * posterior.log_std).exp()
    return 0.5 * (posterior.mean.square() + variance - 1 - 2 * posterior.log_std).sum(dim=1)


def _delta_any(posterior: DeltaPosterior, _: object) -> Tensor:
    return posterior.mean.new_zeros(len(posterior.mean))


_CLOSED_FORMS: dict[tuple[type, type], Callable[[Any, Any], Tensor]] = {
    (NormalPosterior, StandardNormalPrior): _normal_standard_normal,
    (DeltaPosterior, object): _delta_any,  # whatever the prior
}
