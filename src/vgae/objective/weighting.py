"""The loss, its two terms, and the named conventions that weight them.

The reconstruction term is a sum over all N² ordered pairs with the labels L = A + I,

    R = Σ_{L_ij = 1} w·softplus(-s_ij) + Σ_{L_ij = 0} softplus(s_ij),

and the loss is `reconstruction_scale`·R + `kl_scale`·Σ_i KL(q(z_i) ‖ p(z_i)). A weighting is the choice of these three
numbers:

    paper   w = (N² - S)/S,  reconstruction_scale = ½ / (N² - S),  kl_scale = 1/N²,  with S = 2E of the training graph,
            or its number of arcs where directions count
    elbo    w = 1,           reconstruction_scale = 1,             kl_scale = 1: the variational bound itself, in nats
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from torch import Tensor

from vgae.errors import InputError
from vgae.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class LossTerms:
    """The loss of one step, in its two terms, scaled as they enter the sum."""

    reconstruction: Tensor
    kl: Tensor
    active: Tensor | None = None  # dimensions that say something about the nodes, where the step logs

    def with_active(self, number: Tensor) -> LossTerms:
        """The same, with the number of active dimensions."""
        return LossTerms(self.reconstruction, self.kl, number)

    def detached(self) -> LossTerms:
        """The same without what gradients need."""
        return LossTerms(self.reconstruction.detach(), self.kl.detach(), self.active)

    @property
    def total(self) -> Tensor:
        """What is minimised."""
        return self.reconstruction + self.kl


@dataclass(frozen=True)
class Weighting:
    """The three scale factors of the loss."""

    positive_weight: float
    reconstruction_scale: float
    kl_scale: float

    @classmethod
    def named(cls, name: str, graph: Graph, *, num_ones: float | None = None, beta: float = 1.0) -> Weighting:
        """The convention of that name for a training graph, with S and, for what the KL is multiplied by, β."""
        if name not in WEIGHTINGS:
            raise InputError(f"weighting: {name!r} is not one of {', '.join(WEIGHTINGS)}.")
        found = WEIGHTINGS[name](graph.num_nodes, graph.num_arcs if num_ones is None else num_ones)
        return found if beta == 1 else replace(found, kl_scale=beta * found.kl_scale)

    def terms(self, reconstruction: Tensor, kl: Tensor) -> LossTerms:
        """The loss out of R and Σ_i KL, each scaled."""
        return LossTerms(self.reconstruction_scale * reconstruction, self.kl_scale * kl)


def _paper(num_nodes: int, num_ones: float) -> Weighting:
    num_zeros = num_nodes**2 - num_ones
    return Weighting(
        positive_weight=num_zeros / num_ones,
        # The original averages over N² and multiplies by N² / (2 (N² - S)): half the loss is the ones', half the
        # zeros'.
        reconstruction_scale=0.5 / num_zeros,
        kl_scale=1 / num_nodes**2,
    )


def _elbo(num_nodes: int, num_ones: float) -> Weighting:  # noqa: ARG001 - the bound itself needs no counts
    return Weighting(positive_weight=1.0, reconstruction_scale=1.0, kl_scale=1.0)


WEIGHTINGS: dict[str, Callable[[int, float], Weighting]] = {"paper": _paper, "elbo": _elbo}
