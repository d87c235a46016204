"""The exact objective: all N² pairs, every iteration, without an N×N matrix.

    R = Σ_ij softplus(s_ij) + Σ_{L_ij = 1} [w·softplus(-s_ij) - softplus(s_ij)]

The first sum is the all-pairs op, the second is as sparse as the graph. Because softplus(s) = softplus(-s) + s, a one
contributes (w - 1)·softplus(-s) - s to the second. A soft label y contributes y times that. Without the diagonal, the
first sum's part of it is taken back, which is a one with w = 0.
"""

import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.likelihood.positive_pairs import ones_of
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.objective.base import LossOptions, Objective
from vgae.objective.weighting import Weighting
from vgae.ops import Counted, all_pairs_softplus, sum_at_ones


class ExactObjective(Objective):
    """The loss over all pairs, for every decoder that has factors."""

    def __init__(
        self,
        graph: Graph,
        model: AutoEncoder,
        weighting: Weighting,
        device: torch.device | str,
        *,
        options: LossOptions | None = None,
        precision: str = "highest",
    ) -> None:
        self.weighting, self.options = weighting, options or LossOptions()
        self.precision = precision
        observed, weight = self.options.observed, weighting.positive_weight
        self.ones = ones_of(graph, symmetric=model.decoder.symmetric, device=device, observed=observed)
        self.counted = Counted(weight - 1, None if observed.diagonal else -1.0)
        self.parabola = torch.ones((), device=device), torch.zeros((), device=device)

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R over all pairs; without `value`, NaN in its place."""
        del generator
        factors = decoder.require_factors(z)
        everywhere = all_pairs_softplus(
            factors.q, factors.k, factors.row_bias, factors.column_bias, value=value, precision=self.precision
        )
        return everywhere + sum_at_ones(factors, self.ones, self.counted, self.parabola, value=value)
