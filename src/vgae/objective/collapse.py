"""Active dimensions: those in which embeddings say something about the nodes.

A dimension of which all nodes have the same distribution, whichever that is, tells nothing. By the law of total
variance,

    Var z_d = Var_i E z_id + mean_i Var z_id,

and a dimension is active if what the nodes differ by, the first term, is more than a tenth of it: else nine tenths of
what a draw shows are noise. It is a share, and so the same whatever the scale of the embeddings. The usual count
(Burda, Grosse & Salakhutdinov, 2016) looks for Var_i μ_id > 0.01, which has the scale of a prior N(0, I) in it. The KL
does not tell: a dimension may pay for shrinking to a point in which all nodes are the same.

A model has collapsed if no dimension is active, or one of eight or more. On Cora that is what VGAE comes to under the
true bound, where the share is 0.02 to 0.05 in all sixteen dimensions after 200 iterations and falls further; with the
paper's weighting it is 0.7 to 0.97.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.model.posteriors import Posterior

SHARE = 0.1
SMALLEST = 1e-12  # a variance that is rounding
MANY = 8  # dimensions, of which one alone is hardly any


@dataclass(frozen=True)
class Activity:
    """How many dimensions of a model's embeddings are active."""

    active: int
    latent_dim: int

    @classmethod
    def of(cls, posterior: Posterior) -> Activity:
        """Of a posterior over a graph."""
        return cls(int(num_active_dimensions(posterior).item()), posterior.mean.shape[1])

    @property
    def is_collapsed(self) -> bool:
        """Whether embeddings say nothing about the nodes, or hardly anything."""
        return self.active == 0 or (self.active == 1 and self.latent_dim >= MANY)


@torch.no_grad()
def num_active_dimensions(posterior: Posterior) -> Tensor:
    """How many dimensions are active, as a number on the device."""
    between = posterior.expectation.var(dim=0, correction=0)
    return num_active_of(between, posterior.variance.mean(dim=0))


def num_active_of(between: Tensor, within: Tensor) -> Tensor:
    """How many dimensions are active, given both terms of the variance of each."""
    return ((between > SHARE * (between + within)) & (between > SMALLEST)).sum()
