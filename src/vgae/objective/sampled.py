"""The objective with its zeros sub-sampled: a fixed cost per step, and the exact objective in expectation.

    R ≈ Σ_{L_ij = 1} w·softplus(-s_ij) + Σ_{L_ij = 0} p(s_ij) + (N₀/M) Σ_{m ≤ M} (softplus - p)(s_{i_m j_m})

where N₀ is the number of zeros of L = A + I and the M pairs are drawn from them uniformly, afresh in every step. For
decoders with factors p is a parabola, the control variate (vgae.objective.variate): its sum over all pairs has a closed
form, and that over the zeros is less by what it is at the ones, which are there anyway. Else p = 0.

The zeros are divided into M parts of the same size, and one is drawn from each (vgae.ops.zeros). A soft label is never
among them: the part of it that is a zero is always counted.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.likelihood.bernoulli import loss_at_ones, loss_at_zeros
from vgae.likelihood.positive_pairs import PositivePairs, ones_of
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.inputs import EncoderInputs
from vgae.objective.base import LossOptions, Objective
from vgae.objective.pairwise import sum_over_pairs
from vgae.objective.variate import AllPairs, ControlVariate, num_pairs_for
from vgae.objective.weighting import Weighting
from vgae.ops import Counted, one_pass, sum_at_ones
from vgae.ops.zeros import draw_places, sample_zeros


class SampledObjective(Objective):
    """The loss over all ones and a sample of the zeros, for every decoder.

    `num_negatives` is M. `control_variate` is None for one wherever the decoder has factors.
    """

    positives: PositivePairs  # where there is no control variate

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
        decoder, observed = model.decoder, self.options.observed
        with_variate = decoder.factorised if control_variate is None else control_variate
        if with_variate and not decoder.factorised:
            raise InputError("control_variate: the decoder has no factors, which the control variate needs; use off.")
        self.num_negatives = num_negatives or num_pairs_for(graph, control_variate=with_variate)
        self.num_zeros = num_zeros_of(graph)
        given: Any = {"symmetric": decoder.symmetric, "device": device}
        self.variate = ControlVariate(self.num_zeros, self.num_negatives, device) if with_variate else None
        self.counted = Counted(weighting.positive_weight, None if observed.diagonal else 0.0, as_zeros=observed.soft)
        self.entries = ones_of(graph, **given, observed=observed if with_variate else None)
        if not with_variate:
            self.positives = PositivePairs.of(graph, **given, observed=observed)

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
        return sample_zeros(self.entries, self.num_negatives, generator)

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R at one sample of the zeros; without `value` NaN, where sums over the ones need not be known."""
        if self.variate is None:
            return self._plain(decoder, z, generator)
        known = AllPairs.of(decoder.require_factors(z))
        if one_pass.suits(known.factors):
            draw = one_pass.Draw(draw_places(self.num_negatives, generator, z.device), self.num_zeros)
            numbers = self.variate.coefficients_as_numbers(known)
            given = known.sums.left, known.weights[0], self.entries, self.counted, numbers, draw
            total, moments = one_pass.sum_by_draw(*given, value=value)
            self.variate.take(moments, self.num_negatives)
            return total
        parabola = self.variate.coefficients(known)
        ones = sum_at_ones(known.factors, self.entries, self.counted, parabola, value=value)
        return ones + self.variate.estimate(known, None, self.sample_zeros(generator), parabola)

    def _plain(self, decoder: Decoder, z: Tensor, generator: torch.Generator) -> Tensor:
        """R without a control variate, pair by pair, as decoders without factors need it."""
        ones, weight = self.positives, self.weighting.positive_weight

        def at_ones(part: slice, logits: Tensor) -> Tensor:
            total = weight * ones.sum(loss_at_ones(logits), part)
            return total if ones.zeros is None else total + ones.zeros[part].to(logits.dtype) @ loss_at_zeros(logits)

        def at_zeros(_: slice, logits: Tensor) -> Tensor:
            return self.num_zeros / self.num_negatives * loss_at_zeros(logits).sum()

        drawn = self.sample_zeros(generator).long()
        return sum_over_pairs(decoder, z, ones.pairs, at_ones) + sum_over_pairs(decoder, z, drawn, at_zeros)


def num_zeros_of(graph: Graph) -> int:
    """N₀ of a graph as the decoder sees it, which has to have some."""
    number = graph.num_nodes**2 - graph.num_nodes - graph.num_arcs
    if number == 0:
        raise InputError("The graph links every pair of nodes: there are no zeros to sample; use the exact objective.")
    return number
