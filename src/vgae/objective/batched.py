"""Steps over a part of the graph: an estimate of the objective by some nodes, whose expectation it is.

A step takes a part B of a random partition of the nodes (vgae.objective.partition). With n parts, a pair of two nodes
is in B with probability 1/m, and

    R ≈ n Σ_{i ∈ B, L_ij = 1} w·softplus(-s_ij) + m Σ_{i, j ∈ B, L_ij = 0} softplus(s_ij),   KL ≈ n Σ_{i ∈ B} KL_i

have R and Σ_i KL_i as their expectations, and so have their gradients: embeddings are those of the whole graph, because
the encoder sees all that they depend on (vgae.model.neighbourhoods). Of the ones in B's rows, whose other ends may be
anywhere, one is taken for each node of B: if there are more, they are divided, row by row, into as many parts of the
same size, and one is drawn from each. With one part of nodes all are taken, and the step is the exact objective's.

The zeros in B are summed up all (exactly, in tiles) where B is small and the decoder has factors. Else M of them are
drawn, with the control variate over B's own pairs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.likelihood.bernoulli import loss_at_ones, loss_at_zeros
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.inputs import EncoderInputs
from vgae.model.neighbourhoods import Neighbourhoods
from vgae.objective.base import LossOptions, Objective, total_kl
from vgae.objective.partition import BatchOptions, Partition
from vgae.objective.variate import AllPairs, ControlVariate
from vgae.objective.weighting import LossTerms, Weighting
from vgae.ops import Counted, Ones, all_pairs_softplus, sum_at_ones
from vgae.ops.zeros import sample_zeros

Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """One step's part of the graph; nodes have numbers of their own, those of the part first."""

    targets: Nodes  # the nodes whose embeddings are needed: the part's, and the other ends of its ones
    size: int  # of the part
    ones: Tensor  # pairs of L in the rows of the part, without the diagonal
    weights: Tensor  # what each of them counts for, times its label
    zeros: Tensor | None  # how often each counts as a zero, where labels are soft
    inside: Ones  # all ones of A + I within the part, without labels


class BatchedObjective(Objective):
    """The loss by a part of the nodes in each step."""

    def __init__(
        self,
        graph: Graph,
        model: AutoEncoder,
        weighting: Weighting,
        neighbourhoods: Neighbourhoods,
        batch: BatchOptions,
        options: LossOptions | None = None,
    ) -> None:
        self.weighting, self.options, self.batch = weighting, options or LossOptions(), batch
        self.neighbourhoods, self.device = neighbourhoods, torch.device(neighbourhoods.device)
        graph = graph.as_scored(symmetric=model.decoder.symmetric)
        self.soft = self.options.observed.labels(graph) is not None
        self.directed = graph.directed
        self.ones: sp.csr_array = neighbourhoods.propagation  # which has its entries where A + I has its ones
        if graph.directed or self.soft:
            self.ones = graph.directed_adjacency if graph.directed else graph.weighted_adjacency
        self.places = np.full(graph.num_nodes, -1, np.int64)
        self.partition = Partition(graph.num_nodes, batch.size)
        self.swept = batch.sweeps(factorised=model.decoder.factorised)
        with_variate = batch.control_variate and model.decoder.factorised and not self.swept
        self.variate = ControlVariate(0, batch.num_pairs, self.device) if with_variate else None

    def state(self) -> dict[str, Tensor]:
        """Which part comes next and, where there is one, what the control variate knows of the draw before."""
        partition = {"partition": self.partition.state}
        return partition if self.variate is None else partition | {"means": self.variate.means}

    def __call__(
        self,
        model: AutoEncoder,
        inputs: EncoderInputs,
        generator: torch.Generator,
        *,
        value: bool = True,
        warmth: Tensor | None = None,
    ) -> LossTerms:
        """The terms by the next part of the nodes, at one draw from their posterior."""
        part = self.part(self.partition.following(generator), generator)
        return self.by(part, model, inputs, generator, value=value, warmth=warmth)

    def by(
        self,
        part: Part,
        model: AutoEncoder,
        inputs: EncoderInputs,
        generator: torch.Generator,
        *,
        value: bool = True,
        warmth: Tensor | None = None,
    ) -> LossTerms:
        """The terms by a part that is given."""
        seen = self.neighbourhoods.around(part.targets).in_step(generator)
        outputs = model.encoder(seen)
        posterior = model.posterior.build(_first(outputs, len(part.targets)))
        z = posterior.sample(generator)
        reconstruction = self._reconstruction(model.decoder, z, part, generator, value=value)
        own = model.posterior.build(_first(outputs, part.size))
        kl = model.kl(own, z[: part.size], inputs)
        kl = self.partition.times * total_kl(kl, (part.size, z.shape[1]), self.options.free_bits)
        return self._terms(reconstruction, kl, own, value=value, warmth=warmth)

    def part(self, nodes: Nodes, generator: torch.Generator) -> Part:
        """What a step needs to know about these nodes."""
        rows = self.ones[nodes]
        sources, others, labels = np.repeat(np.arange(len(nodes)), np.diff(rows.indptr)), rows.indices, rows.data
        off_diagonal = nodes[sources] != others
        sources, others, labels = sources[off_diagonal], others[off_diagonal], labels[off_diagonal]
        self.places[nodes] = np.arange(len(nodes))
        local = self.places[others]
        inside = self._inside(sources[local >= 0], local[local >= 0], len(nodes))
        chosen = self._chosen(len(others), len(nodes), generator)
        count = self.partition.times
        if chosen is not None:
            count *= len(others) / len(chosen)
            sources, others, labels = sources[chosen], others[chosen], labels[chosen]
        outside = np.unique(others[self.places[others] < 0])
        self.places[outside] = np.arange(len(nodes), len(nodes) + len(outside))
        ones = np.stack([sources, self.places[others]], axis=1)
        self.places[nodes] = self.places[outside] = -1
        weights = torch.tensor(labels if self.soft else np.ones_like(labels), device=self.device)
        return Part(
            targets=np.concatenate([nodes, outside]),
            size=len(nodes),
            ones=torch.from_numpy(ones).to(self.device),
            weights=count * weights,
            zeros=count * (1 - weights) if self.soft else None,
            inside=inside,
        )

    def _inside(self, sources: Nodes, targets: Nodes, size: int) -> Ones:
        """The ones of A + I within a part, by these pairs without the diagonal."""
        adjacency = sp.csr_array((np.ones(len(sources), np.float32), (sources, targets)), shape=(size, size))
        matrix = sp.csr_array(adjacency + sp.eye_array(size, dtype=np.float32))
        matrix.sort_indices()
        return Ones.of(matrix, self.device, symmetric=not self.directed)

    def _chosen(self, num_ones: int, num_nodes: int, generator: torch.Generator) -> Nodes | None:
        """Places among the ones of a part's rows, one drawn from each of as many parts; None where all are taken."""
        num = int(self.batch.ones * num_nodes)
        if self.partition.num_parts == 1 or num_ones <= num:
            return None
        draws = torch.rand(num, dtype=torch.float64, generator=generator, device=generator.device).cpu().numpy()
        places: Nodes = ((np.arange(num) + draws) * (num_ones / num)).astype(np.int64)
        return np.minimum(places, num_ones - 1)

    def _reconstruction(
        self, decoder: Decoder, z: Tensor, part: Part, generator: torch.Generator, *, value: bool
    ) -> Tensor:
        """R, not scaled."""
        logits = decoder.logits(z, part.ones)
        ones = part.weights.to(logits.dtype) @ loss_at_ones(logits)
        zeros = self.partition.times_pair * self._zeros(decoder, z[: part.size], part, generator, value=value)
        if self.options.observed.diagonal:
            itself = torch.arange(part.size, device=z.device).expand(2, -1).T
            ones = ones + self.partition.times * loss_at_ones(decoder.logits(z, itself)).sum()
        total = self.weighting.positive_weight * ones + zeros
        return total if part.zeros is None else total + part.zeros.to(logits.dtype) @ loss_at_zeros(logits)

    def _zeros(self, decoder: Decoder, z: Tensor, part: Part, generator: torch.Generator, *, value: bool) -> Tensor:
        """Σ softplus(s_ij) over the pairs of the part where A + I is zero, or an estimate."""
        inside, num_pairs = part.inside, self.batch.num_pairs
        if self.swept:
            factors = decoder.require_factors(z)
            everywhere = all_pairs_softplus(
                factors.q, factors.k, factors.row_bias, factors.column_bias, value=value, precision="highest"
            )
            one = torch.ones((), device=z.device)
            line = one, torch.zeros_like(one)  # -softplus(s) = -softplus(-s) - s
            return everywhere + sum_at_ones(factors, inside, Counted(-1.0), line, value=value)
        pairs = sample_zeros(inside, num_pairs, generator)
        if self.variate is None:
            return inside.num_zeros / num_pairs * loss_at_zeros(decoder.logits(z, pairs.long())).sum()
        known = AllPairs.of(decoder.require_factors(z))
        self.variate.num_zeros = inside.num_zeros
        parabola = self.variate.coefficients(known)
        at_ones = sum_at_ones(known.factors, inside, Counted(0.0), parabola, value=value)
        return at_ones + self.variate.estimate(known, None, pairs, parabola)


def _first(outputs: Mapping[str, Tensor], num: int) -> dict[str, Tensor]:
    """The rows of the first nodes."""
    return {name: values[:num] for name, values in outputs.items()}
