"""The objective by a sample of the pairs: a fixed cost per step, and the exact objective in expectation.

With a control variate, for every decoder that has factors,

    R ≈ Σ_ij p(s_ij) + N²/M Σ_{m ≤ M} (softplus - p)(s_{i_m j_m}) + Σ_{L_ij = 1} [w·softplus(-s_ij) - softplus(s_ij)]

where p is a parabola whose sum over all pairs has a closed form (vgae.objective.variate) and the M pairs are drawn
uniformly from all N², afresh in every step. What is added at the ones is what the exact objective adds there, soft
labels and the diagonal included.

Without, for every decoder,

    R ≈ Σ_{L_ij = 1} w·softplus(-s_ij) + (N₀/M) Σ_{m ≤ M} softplus(s_{i_m j_m})

where N₀ is the number of zeros of L = A + I and the M pairs are drawn from them. They are drawn exactly, as in
vgae.graph.negatives: number the N² cells row by row; if the ones are the cells o_0 < o_1 < …, then o_k - k zeros come
before one k, and a binary search in these turns the u-th zero into its cell. A soft label is never among them: the part
of it that is a zero is always counted.
"""

from __future__ import annotations

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.likelihood.bernoulli import correction_at_ones, loss_at_ones, loss_at_zeros
from vgae.likelihood.positive_pairs import PositivePairs, diagonal_of
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.inputs import EncoderInputs
from vgae.objective.base import LossOptions, Objective
from vgae.objective.variate import ControlVariate, num_pairs_for
from vgae.objective.weighting import Weighting


class SampledObjective(Objective):
    """The loss over all ones and a sample of the pairs, for every decoder; plain where a decoder has no factors.

    `num_negatives` is M. `control_variate` is None for whichever the decoder allows.
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
        observed = self.options.observed
        self.positives = PositivePairs.of(graph, symmetric=model.decoder.symmetric, device=device, observed=observed)
        with_variate = model.decoder.factorised if control_variate is None else control_variate
        if with_variate and not model.decoder.factorised:
            raise InputError("control_variate: the decoder has no factors, which the control variate needs; use off.")
        self.num_negatives = num_negatives or num_pairs_for(graph, control_variate=with_variate)
        self.variate: ControlVariate | None = None
        if with_variate:
            self.variate = ControlVariate(graph.num_nodes, self.num_negatives, device)
            self.unobserved = None if observed.diagonal else diagonal_of(graph, device)
        else:
            self._number_zeros(graph, device)

    # ------------------------------------------------------------------------------------------ with a control variate

    def begin(self, model: AutoEncoder, inputs: EncoderInputs, generator: torch.Generator) -> None:
        """Before the first step the control variate looks at a draw, so that this step is not plain."""
        if self.variate is not None:
            posterior = model.encode(inputs.in_step(generator, self.options.mask_links))
            self.variate.look(model.decoder.require_factors(posterior.sample(generator)), generator)

    def state(self) -> dict[str, Tensor]:
        """What the control variate knows of the draw before."""
        return {} if self.variate is None else {"means": self.variate.means}

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R at one sample of the pairs; its value costs nothing extra here."""
        del value
        if self.variate is None:
            return self._plain(decoder, z, generator)
        factors = decoder.require_factors(z)
        logits = factors.logits(self.positives.pairs)
        at_ones = self.positives.sum(correction_at_ones(logits, self.weighting.positive_weight))
        total = self.variate.estimate(factors, generator) + at_ones
        if self.unobserved is None:
            return total
        return total - loss_at_zeros(factors.logits(self.unobserved)).sum()

    # ----------------------------------------------------------------------------------------------------------- plain

    def _number_zeros(self, graph: Graph, device: torch.device | str) -> None:
        self.num_nodes = graph.num_nodes
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

    def _plain(self, decoder: Decoder, z: Tensor, generator: torch.Generator) -> Tensor:
        logits = decoder.logits(z, self.positives.pairs)
        at_zeros = loss_at_zeros(decoder.logits(z, self.sample_zeros(generator)))
        ones = self.weighting.positive_weight * self.positives.sum(loss_at_ones(logits))
        zeros = self.num_zeros / self.num_negatives * at_zeros.sum()
        if self.positives.zeros is None:
            return ones + zeros
        return ones + zeros + self.positives.zeros.to(logits.dtype) @ loss_at_zeros(logits)
