"""KL(q ‖ p) in closed form, by the kinds of posterior and prior, or by the step's own draw.

normal posterior, standard normal prior   ½ (μ_d² + σ_d² - 1 - 2 log σ_d) for each node and dimension
point mass, any prior                     0: a GAE has no prior term
any other                                 -H(q) - log p(z) for each node at a draw z ~ q, with the entropy exact
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from vgae.model.posteriors import DeltaPosterior, NormalPosterior, Posterior
from vgae.model.priors import Prior, PriorInputs, StandardNormalPrior

ClosedForm = Callable[[Any, Any, PriorInputs | None], Tensor]


def kl_divergence(posterior: Posterior, prior: Prior, z: Tensor, seen: PriorInputs | None = None) -> Tensor:
    """KL(q ‖ p) for each node, by dimension where it is a sum over them (N×d, else N); z is a draw from q."""
    kind = type(posterior)
    closed_form = _CLOSED_FORMS.get((kind, type(prior))) or _CLOSED_FORMS.get((kind, object))
    if closed_form is not None:
        return closed_form(posterior, prior, seen)
    return -posterior.entropy() - prior.log_prob(z, seen)


def _normal_standard_normal(posterior: NormalPosterior, _: StandardNormalPrior, __: PriorInputs | None) -> Tensor:
    variance = (2 * posterior.log_std).exp()
    return 0.5 * (posterior.mean.square() + variance - 1 - 2 * posterior.log_std)


def _delta_any(posterior: DeltaPosterior, _: object, __: PriorInputs | None) -> Tensor:
    return posterior.mean.new_zeros(len(posterior.mean))


_CLOSED_FORMS: dict[tuple[type, type], ClosedForm] = {
    (NormalPosterior, StandardNormalPrior): _normal_standard_normal,
    (DeltaPosterior, object): _delta_any,  # whatever the prior
}
