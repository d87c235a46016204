"""The objective with its zeros sub-sampled: a fixed cost per step, and the exact objective in expectation.

    R ≈ Σ_{L_ij = 1} w·softplus(-s_ij) + Σ_{L_ij = 0} p(s_ij) + (N₀/M) Σ_{m ≤ M} (softplus - p)(s_{i_m j_m})

where N₀ is the number of zeros of L = A + I and the M pairs are drawn from them uniformly, afresh in every step. For
decoders with factors p is a parabola, the control variate (vgae.objective.variate): its sum over all pairs has a closed
form, and that over the zeros is less by what it is at the ones, which are there anyway. Else p = 0.

The zeros are drawn exactly, as in vgae.graph.negatives: number the N² cells row by row; if the ones are the cells o_0 <
o_1 < …, then o_k - k zeros come before one k, and a binary search in these turns the u-th zero into its cell. The zeros
in this order are divided into M parts of the same size, and one is drawn from each: every zero is as likely as before,
no row of the matrix has many more than its share, so that the sum varies less, and memory is read in order. A soft
label is never among them: the part of it that is a zero is always counted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.likelihood.bernoulli import loss_at_ones, loss_at_zeros
from vgae.likelihood.positive_pairs import PositivePairs
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.inputs import EncoderInputs
from vgae.objective.base import LossOptions, Objective
from vgae.objective.variate import AllPairs, ControlVariate, num_pairs_for
from vgae.objective.weighting import Weighting


class SampledObjective(Objective):
    """The loss over all ones and a sample of the zeros, for every decoder.

    `num_negatives` is M. `control_variate` is None for one wherever the decoder has factors.
    """

    def __init__(
        self,
        graph: Graph,
        model: AutoEncoder,
        weighting: Weighting,
        device: torch.device | str,
        *,
        options: LossOptions | None = None,
        num_negatives: int | None = None,
        control_variate: bool | None = None,
    ) -> None:
        self.weighting, self.options = weighting, options or LossOptions()
        graph = graph.as_scored(symmetric=model.decoder.symmetric)
        self.num_nodes = graph.num_nodes
        observed = self.options.observed
        self.positives = PositivePairs.of(graph, symmetric=model.decoder.symmetric, device=device, observed=observed)
        with_variate = model.decoder.factorised if control_variate is None else control_variate
        if with_variate and not model.decoder.factorised:
            raise InputError("control_variate: the decoder has no factors, which the control variate needs; use off.")
        self.num_negatives = num_negatives or num_pairs_for(graph, control_variate=with_variate)
        sources, targets = PositivePairs.of(graph, symmetric=False, device=device).pairs.unbind(dim=1)
        cells = (sources * graph.num_nodes + targets).sort().values
        self.num_zeros = graph.num_nodes**2 - len(cells)
        if self.num_zeros == 0:
            raise InputError(
                "The graph links every pair of nodes: there are no zeros to sample; use the exact objective."
            )
        self.zeros_before = cells - torch.arange(len(cells), device=device)
        self.variate = ControlVariate(self.num_zeros, self.num_negatives, device) if with_variate else None

    def begin(self, model: AutoEncoder, inputs: EncoderInputs, generator: torch.Generator) -> None:
        """Before the first step the control variate looks at a draw, so that this step is not plain."""
        if self.variate is not None:
            posterior = model.encode(inputs.in_step(generator, self.options.mask_links))
            factors = model.decoder.require_factors(posterior.sample(generator))
            self.variate.learn(AllPairs.of(factors), self.sample_zeros(generator))

    def state(self) -> dict[str, Tensor]:
        """What the control variate knows of the draw before."""
        return {} if self.variate is None else {"means": self.variate.means}

    def sample_zeros(self, generator: torch.Generator) -> Tensor:
        """M pairs, row by row, each drawn uniformly from its part of the zeros of A + I."""
        device, num = self.zeros_before.device, self.num_negatives
        places = torch.rand(num, dtype=torch.float64, generator=generator, device=device)
        places += torch.arange(num, device=device)
        chosen = (places * (self.num_zeros / num)).long().clamp_(max=self.num_zeros - 1)
        cells = chosen + torch.searchsorted(self.zeros_before, chosen, right=True)
        sources = cells.div(self.num_nodes, rounding_mode="floor")
        return torch.stack([sources, cells - sources * self.num_nodes]).T

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R at one sample of the zeros; its value costs nothing extra here."""
        del value
        if self.variate is None:
            logits = decoder.logits(z, self.positives.pairs)
            at_zeros = loss_at_zeros(decoder.logits(z, self.sample_zeros(generator)))
            zeros = self.num_zeros / self.num_negatives * at_zeros.sum()
        else:
            known = AllPairs.of(decoder.require_factors(z))
            logits = known.factors.logits(self.positives.pairs)
            zeros = self.variate.estimate(known, self._at_ones(known, logits), self.sample_zeros(generator))
        ones = self.weighting.positive_weight * self.positives.sum(loss_at_ones(logits))
        if self.positives.zeros is None:
            return ones + zeros
        return ones + zeros + self.positives.zeros.to(logits.dtype) @ loss_at_zeros(logits)

    def _at_ones(self, known: AllPairs, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Σ s_ij and Σ s_ij² where A + I is one, soft or not, and whether the diagonal is observed or not."""
        positives, s = self.positives, logits.to(known.dtype)
        times = (positives.multiplicity if positives.zeros is None else positives.multiplicity + positives.zeros).to(s)
        first, second = times @ s, times @ (s * s)
        if self.options.observed.diagonal:
            return first, second
        diagonal = known.diagonal.to(s.dtype)
        return first + diagonal.sum(), second + diagonal.square().sum()
