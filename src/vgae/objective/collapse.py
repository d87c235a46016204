"""Active dimensions: those in which embeddings say something about the nodes.

A dimension of which all nodes have the same distribution, usually the prior's, tells nothing: the model has given it up
because its KL costs more than it earns. By the law of total variance,

    Var z_d = Var_i μ_id + mean_i σ²_id,

and a dimension is active if the means' share of it is above 1%. Under a prior N(0, I) a dead dimension has σ = 1, so
that this is the usual threshold, Var_i μ_id > 0.01; and it is the same whatever the scale of the embeddings.
"""

from __future__ import annotations

from torch import Tensor

from vgae.model.posteriors import Posterior

SHARE = 0.01
SMALLEST = 1e-12  # a variance that is rounding


def num_active_dimensions(posterior: Posterior) -> Tensor:
    """How many dimensions are active, as a number on the device."""
    mean = posterior.expectation.detach()
    between = mean.var(dim=0, correction=0)
    within = posterior.variance.detach().mean(dim=0)
    return ((between > SHARE * (between + within)) & (between > SMALLEST)).sum()
