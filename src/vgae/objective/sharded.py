"""Both objectives across processes, each of which has the rows of its own nodes.

    exact     R = Σ over processes of [its part of the sum over all pairs + the ones in its rows]
    sampled   R = Σ over processes of [the ones in its rows + N₀/M Σ over its zeros of (softplus - p)(s)] + Σ_ij p(s_ij)

The sum over all pairs goes round a ring (vgae.parallel.ring). The ones of a row need the factors of its neighbours, its
halo. Where logits are symmetric so are the ones, and the gradient of a row is twice that of the entries in it: nothing
has to be sent back. The zeros of a step are those that one process would draw; each process has those in its rows, and
asks the owners for the factors of the other ends: at most M rows are sent. Of a small graph everybody has the factors
of all nodes, which takes fewer messages. The closed form Σ_ij p(s_ij) needs sums over nodes alone, which all processes
add up; so do the means that the control variate learns from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import Posterior
from vgae.model.sharded import rows_with_loops
from vgae.objective.base import LossOptions, Objective, total_kl
from vgae.objective.collapse import num_active_of
from vgae.objective.sampled import num_zeros_of
from vgae.objective.variate import AllPairs, ControlVariate, moments_of, num_pairs_for, products_of_rows
from vgae.objective.weighting import Weighting
from vgae.ops import Counted, Factors, Ones, sum_at_ones, sum_at_pairs
from vgae.ops.ones import numba_suits
from vgae.ops.powers import PowerSums, Side, weighted_sums
from vgae.parallel.halo import Halo
from vgae.parallel.ring import Ring
from vgae.parallel.totals import total, with_gradient_twice
from vgae.parallel.zeros import Drawn, Zeros

GATHERED = 2**16  # nodes of a graph whose factors everybody has, because a message takes longer than what is in it


class ShardedObjective(Objective):
    """What both have in common: the ones in own rows, the KL and the active dimensions of all nodes."""

    def __init__(
        self, halo: Halo, graph: Graph, model: AutoEncoder, weighting: Weighting, options: LossOptions, counted: Counted
    ) -> None:
        self.halo, self.group = halo, halo.group
        self.weighting, self.options, self.counted = weighting, options, counted
        self.graph = graph.as_scored(symmetric=model.decoder.symmetric)
        self.ones = self._ones(mirrored=model.decoder.symmetric and model.decoder.mirrored)

    def rows_of_ones(self) -> sp.csr_array:
        """Own rows of A + I, with labels."""
        labels = self.options.observed.labels(self.graph)
        return rows_with_loops(self.graph, self.halo.shards.own, labels, directed=self.graph.directed)

    def _ones(self, *, mirrored: bool) -> Ones:
        """The same by the rows that are here: own ones, and those of the halo behind them."""
        halo, rows = self.halo, self.rows_of_ones()
        columns = halo.places(rows.indices.astype(np.int64))
        local = sp.csr_array((rows.data, columns, rows.indptr), shape=(len(self.halo.shards.own), halo.num_rows))
        local.sort_indices()
        labelled = self.options.observed.soft
        ones = Ones.of(local, self.group.device, symmetric=mirrored, labelled=labelled)
        return replace(ones, num_columns=halo.num_rows)

    @property
    def mirrored(self) -> bool:
        """Whether logits and ones are symmetric, so that gradients in the columns are those in the rows."""
        return self.ones.transposed is None

    def at_ones(self, around: Factors, parabola: tuple[Tensor, Tensor], *, value: bool) -> Tensor:
        """F over the ones in own rows, by factors whose columns are own nodes and those of the halo."""
        if not self.mirrored:
            return sum_at_ones(around, self.ones, self.counted, parabola, value=value)
        bias = None if around.column_bias is None else around.column_bias.detach()
        given = replace(around, k=around.columns.detach(), column_bias=bias)
        return with_gradient_twice(sum_at_ones(given, self.ones, self.counted, parabola, value=value))

    def of_all(self, part: Tensor, *, value: bool) -> Tensor:
        """The sum over all processes; where nobody asks for the value, what is here has the right gradient."""
        return total(part, self.group) if value else part

    def total_kl(self, kl: Tensor, shape: Sequence[int], *, value: bool) -> Tensor:
        """Of all nodes; with free bits the sums over nodes decide what counts."""
        summed = kl.sum(dim=0, keepdim=True) if kl.dim() == 2 else kl.sum()[None]
        if not self.options.free_bits:
            return self.of_all(summed.sum(), value=value)
        summed, whole = total(summed, self.group), (self.halo.shards.num_nodes, shape[1])
        if kl.dim() == 2:
            return total_kl(summed, whole, self.options.free_bits)
        limit = self.options.free_bits * shape[1] * self.halo.shards.num_nodes
        return summed.sum().clamp(min=limit)

    @torch.no_grad()
    def num_active(self, posterior: Posterior) -> Tensor:
        """As `num_active_dimensions`, by sums over all nodes."""
        group, number = self.group, self.halo.shards.num_nodes
        expected = posterior.expectation
        mean = group.sum(expected.sum(dim=0, dtype=torch.float64)) / number
        squares = (expected - mean.to(expected.dtype)).square().sum(dim=0, dtype=torch.float64)
        sums = group.sum(torch.stack([squares, posterior.variance.sum(dim=0, dtype=torch.float64)]))
        return num_active_of(*(sums / number))


class ShardedExactObjective(ShardedObjective):
    """The loss over all pairs."""

    def __init__(
        self,
        halo: Halo,
        graph: Graph,
        model: AutoEncoder,
        weighting: Weighting,
        options: LossOptions,
        *,
        precision: str = "highest",
    ) -> None:
        counted = Counted(weighting.positive_weight - 1, None if options.observed.diagonal else -1.0)
        super().__init__(halo, graph, model, weighting, options, counted)
        self.ring = Ring(halo.group, halo.shards, precision)
        device = halo.group.device
        self.parabola = torch.ones((), device=device), torch.zeros((), device=device)

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R over all pairs; without `value`, NaN in its place."""
        del generator
        factors = decoder.require_factors(z)
        everywhere = self.ring.softplus(factors, value=value)
        around = extended(factors, self.halo, gradient=not self.mirrored)
        return self.of_all(everywhere + self.at_ones(around, self.parabola, value=value), value=value)


class ShardedSampledObjective(ShardedObjective):
    """The loss over all ones and a sample of the zeros, with its control variate."""

    def __init__(
        self,
        halo: Halo,
        graph: Graph,
        model: AutoEncoder,
        weighting: Weighting,
        options: LossOptions,
        *,
        num_negatives: int | None = None,
    ) -> None:
        observed = options.observed
        counted = Counted(weighting.positive_weight, None if observed.diagonal else 0.0, as_zeros=observed.soft)
        self.gathered = halo.shards.num_nodes <= GATHERED
        if self.gathered:
            halo = Halo.of(halo.group, halo.shards, halo.shards.others)
        super().__init__(halo, graph, model, weighting, options, counted)
        num_pairs = num_negatives or num_pairs_for(self.graph, control_variate=True)
        num_zeros = num_zeros_of(self.graph)
        self.variate = ControlVariate(num_zeros, num_pairs, halo.group.device)
        self.zeros = Zeros(halo, self.rows_of_ones(), num_zeros, num_pairs, asks=not self.gathered)

    def begin(self, model: AutoEncoder, inputs: EncoderInputs, generator: torch.Generator) -> None:
        """Before the first step the control variate looks at a draw."""
        posterior = model.encode(inputs.in_step(generator, self.options.mask_links))
        factors = model.decoder.require_factors(posterior.sample(generator))
        drawn = self.zeros.draw(generator)
        around = extended(factors, drawn.halo)
        self._learn(AllPairs.of(factors), around, drawn, around.logits(drawn.pairs))

    def state(self) -> dict[str, Tensor]:
        """What the control variate knows of the draw before."""
        return {"means": self.variate.means}

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R at one sample of the zeros; without `value`, what is here of it."""
        factors = decoder.require_factors(z)
        known = SharedPairs.of_all(factors, self.halo)
        a, b = self.variate.coefficients(known)
        drawn = self.zeros.draw(generator)
        around = extended(factors, drawn.halo)
        neighbours = around if self.gathered else extended(factors, self.halo, gradient=not self.mirrored)
        ones = self.at_ones(neighbours, (a, b), value=value)
        residual, logits = sum_at_pairs(around, drawn.pairs, (a, b))
        self._learn(known, around, drawn, logits)
        here = ones + self.variate.num_zeros / self.variate.num_pairs * residual
        return self.of_all(here.to(logits.dtype), value=value) + known.sums.parabola(a, b).to(logits.dtype)

    @torch.no_grad()
    def _learn(self, known: AllPairs, around: Factors, drawn: Drawn, logits: Tensor) -> None:
        """Take the means over the zeros of all processes."""
        rows, columns = known.weights
        weights = rows, torch.cat([columns, weights_of(around.columns[len(columns) :], around)])
        moments = moments_of(weights, drawn.pairs, logits, drawn.first, fused=numba_suits(around.q))
        self.variate.take(self.group.sum(moments), self.variate.num_pairs)


@dataclass(frozen=True, eq=False, kw_only=True)
class SharedPairs(AllPairs):
    """What all processes know of all pairs together; the factors are those of own nodes."""

    num_all: int
    found: tuple[Tensor, Tensor] | None = None  # unless a description has them

    @classmethod
    def of_all(cls, factors: Factors, halo: Halo) -> SharedPairs:
        """Of the factors of a step, by one sum over the processes."""
        here, num_nodes = AllPairs.of(factors), halo.shards.num_nodes
        if here.described is not None:
            of_all = halo.group.sum(torch.from_numpy(here.described.sums)).numpy()
            return cls.by_description(factors, replace(here.described, sums=of_all), num_all=num_nodes)
        left, right = here.sums.left, here.sums.right
        with torch.no_grad():
            numbers, of_columns = [*here.of_rows(), left.total, left.gram, here.of_nodes()], here.of_columns()
            if of_columns is not None:
                numbers += [*of_columns, right.total, right.gram]
            summed = halo.group.sum(torch.cat([each.double().flatten() for each in numbers]))
            sizes = [each.numel() for each in numbers]
            values = [each.view(like.shape) for each, like in zip(torch.split(summed, sizes), numbers, strict=True)]
        of_left, of_nodes = values[:5], values[5]
        of_right = of_left if of_columns is None else values[6:]
        sides = [
            Side(side.rows, sums[3].to(side.total.dtype), sums[4].to(side.gram.dtype))
            for side, sums in ((left, of_left), (right, of_right))
        ]
        sums = PowerSums(sides[0], sides[0] if left is right else sides[1])
        given = [*of_left[:3], *of_right[:3], *of_left[3:], *of_right[3:]]
        everywhere = weighted_sums(given, num_nodes, num_nodes)
        found = everywhere, of_nodes
        return cls(factors, sums, here.diagonal, here.weights, num_all=num_nodes, found=found)

    @property
    def num_nodes(self) -> int:
        """N, of all processes together."""
        return self.num_all

    def weighted_sums(self) -> tuple[Tensor, Tensor]:
        """Of all processes."""
        return super().weighted_sums() if self.found is None else self.found


def extended(factors: Factors, halo: Halo, *, gradient: bool = True) -> Factors:
    """Factors whose columns are own nodes and those of a halo; without gradients in the columns where none are asked.

    The columns' factors and biases travel side by side.
    """
    columns = factors.columns if gradient else factors.columns.detach()
    if factors.column_bias is None:
        return replace(factors, k=halo.extend(columns))
    bias = factors.column_bias if gradient else factors.column_bias.detach()
    joined = halo.extend(torch.cat([columns, bias[:, None]], dim=1))
    return replace(factors, k=joined[:, :-1].contiguous(), column_bias=joined[:, -1].contiguous())


def weights_of(rows: Tensor, factors: Factors) -> Tensor:
    """What some rows of the factors' columns weigh in a pair: ‖k_j‖², and a half for each bias that there is."""
    wide = torch.promote_types(rows.dtype, torch.float32)
    given = rows.detach().to(wide)
    return products_of_rows(given, given) + factors.weight_of_biases
