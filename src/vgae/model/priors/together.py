"""Which posterior and prior go together: those of one space, and none with a point for each node."""

from __future__ import annotations

from typing import cast

from vgae.errors import InputError
from vgae.model.posteriors import SPHERE, PosteriorSpec
from vgae.model.priors.base import PriorSpec
from vgae.model.priors.standard_normal import StandardNormal
from vgae.model.spec import registered


def go_together(posterior: PosteriorSpec | type[PosteriorSpec], prior: PriorSpec | type[PriorSpec]) -> bool:
    """Whether there is a KL between them; a point has none, and its prior is the paper's, unused."""
    if posterior.deterministic:
        return prior.name == StandardNormal.name
    return posterior.space in prior.spaces


def check_prior(posterior: PosteriorSpec, prior: PriorSpec) -> None:
    """Refuse a posterior and a prior that cannot go together, by name, with what does."""
    if go_together(posterior, prior):
        return
    posteriors = cast(dict[str, type[PosteriorSpec]], registered("posterior"))
    fitting = [name for name, each in posteriors.items() if go_together(each, prior)]
    with_prior = f"{prior.name} goes with the posterior {' or '.join(fitting)}"
    if posterior.deterministic:
        raise InputError(
            f"prior: {prior.name} cannot be used with the posterior {posterior.name}, a point for each node that is "
            f"held against no prior; {with_prior}."
        )
    priors = cast(dict[str, type[PriorSpec]], registered("prior"))
    others = [name for name, each in priors.items() if go_together(posterior, each)]
    where = "lies on the unit sphere" if posterior.space == SPHERE else "does not lie on the unit sphere"
    raise InputError(
        f"prior: {prior.name} cannot be used with the posterior {posterior.name}, which {where}; {with_prior}, and "
        f"{posterior.name} with the prior {' or '.join(others)}."
    )
