"""The exact objective: all N² pairs, every iteration, without an N×N matrix.

    R = Σ_ij softplus(s_ij) + Σ_{L_ij = 1} [w·softplus(-s_ij) - softplus(s_ij)]

The first sum is the all-pairs op, the second is as sparse as the graph. Because softplus(s) = softplus(-s) + s, a one
contributes (w - 1)·softplus(-s) - s to the second.
"""

import torch

from vgae.graph.graph import Graph
from vgae.likelihood.bernoulli import correction_at_ones
from vgae.likelihood.positive_pairs import PositivePairs
from vgae.model.autoencoder import AutoEncoder
from vgae.model.posteriors import Posterior
from vgae.objective.weighting import LossTerms, Weighting
from vgae.ops import all_pairs_softplus


class ExactObjective:
    """The loss over all pairs, for every decoder that has factors."""

    def __init__(
        self,
        graph: Graph,
        model: AutoEncoder,
        weighting: Weighting,
        device: torch.device | str,
        *,
        precision: str = "highest",
    ) -> None:
        self.weighting = weighting
        self.precision = precision
        self.positives = PositivePairs.of(graph, symmetric=model.decoder.symmetric, device=device)

    def __call__(
        self, model: AutoEncoder, posterior: Posterior, generator: torch.Generator, *, value: bool = True
    ) -> LossTerms:
        """The terms at one draw from the posterior; without `value`, NaN in place of the reconstruction's value."""
        factors = model.decoder.require_factors(posterior.sample(generator))
        everywhere = all_pairs_softplus(
            factors.q, factors.k, factors.row_bias, factors.column_bias, value=value, precision=self.precision
        )
        logits = factors.logits(self.positives.pairs)
        at_positives = correction_at_ones(logits, self.weighting.positive_weight)
        return self.weighting.terms(everywhere + self.positives.sum(at_positives), model.kl(posterior))
