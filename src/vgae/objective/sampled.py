"""The objective with its zeros sub-sampled: a fixed cost per step, and the exact objective in expectation.

    R ≈ Σ_{L_ij = 1} w·softplus(-s_ij) + (N₀/M) Σ_{m ≤ M} softplus(s_{i_m j_m})

where N₀ is the number of zeros of L = A + I and the M pairs are drawn from them uniformly, afresh in every step. They
are drawn exactly, as in vgae.graph.negatives: number the N² cells row by row; if the ones are the cells o_0 < o_1 <
…, then o_k - k zeros come before one k, and a binary search in these turns the u-th zero into its cell. A soft label is
never among them: the part of it that is a zero is always counted.
"""

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.likelihood.bernoulli import loss_at_ones, loss_at_zeros
from vgae.likelihood.positive_pairs import PositivePairs
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.objective.base import LossOptions, Objective
from vgae.objective.weighting import Weighting


class SampledObjective(Objective):
    """The loss over all ones and a sample of the zeros, for every decoder."""

    def __init__(
        self,
        graph: Graph,
        model: AutoEncoder,
        weighting: Weighting,
        device: torch.device | str,
        *,
        options: LossOptions | None = None,
        num_negatives: int | None = None,
    ) -> None:
        self.weighting, self.options = weighting, options or LossOptions()
        graph = graph.as_scored(symmetric=model.decoder.symmetric)
        self.num_nodes = graph.num_nodes
        observed = self.options.observed
        self.positives = PositivePairs.of(graph, symmetric=model.decoder.symmetric, device=device, observed=observed)
        self.num_negatives = graph.num_arcs if num_negatives is None else num_negatives
        sources, targets = PositivePairs.of(graph, symmetric=False, device=device).pairs.unbind(dim=1)
        cells = (sources * graph.num_nodes + targets).sort().values
        self.num_zeros = graph.num_nodes**2 - len(cells)
        if self.num_zeros == 0:
            raise InputError(
                "The graph links every pair of nodes: there are no zeros to sample; use the exact objective."
            )
        self.zeros_before = cells - torch.arange(len(cells), device=device)

    def sample_zeros(self, generator: torch.Generator) -> Tensor:
        """Pairs drawn uniformly, with replacement, from the zeros of A + I."""
        device = self.zeros_before.device
        chosen = torch.randint(self.num_zeros, (self.num_negatives,), generator=generator, device=device)
        cells = chosen + torch.searchsorted(self.zeros_before, chosen, right=True)
        sources = cells.div(self.num_nodes, rounding_mode="floor")
        return torch.stack([sources, cells - sources * self.num_nodes]).T

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R at one sample of the zeros; its value costs nothing extra here."""
        del value
        logits = decoder.logits(z, self.positives.pairs)
        at_zeros = loss_at_zeros(decoder.logits(z, self.sample_zeros(generator)))
        ones = self.weighting.positive_weight * self.positives.sum(loss_at_ones(logits))
        zeros = self.num_zeros / self.num_negatives * at_zeros.sum()
        if self.positives.zeros is None:
            return ones + zeros
        return ones + zeros + self.positives.zeros.to(logits.dtype) @ loss_at_zeros(logits)
