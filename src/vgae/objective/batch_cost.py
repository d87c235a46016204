"""What a step over a part of the graph costs, from counts alone, as vgae.objective.workload has it for whole steps.

How many nodes a part of b reaches is estimated for a graph whose links are anywhere: of N nodes with d links each, a
random set of R has N (1 - (1 - R/N)^(d + 1)) within one link. Groups make it fewer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from vgae.model.neighbourhoods import MOST_FILLED
from vgae.objective.partition import BatchOptions
from vgae.objective.workload import (
    FLOAT,
    INT,
    INTS_PER_DRAW,
    NUMBERS_PER_DRAW,
    NUMBERS_PER_ENTRY,
    NUMBERS_PER_PAIR,
    RETURNED_WITH_NOISE,
    TIMES_SUMMED,
    Memory,
    Workload,
    with_gaps,
)

MOVED_WITH_ENTRY = 30  # numbers, for a row and a column that are found, and the transpose
MOVED_WITH_WEIGHT = 6  # by Adam: a weight, its gradient and two moments


@dataclass(frozen=True)
class BatchCost:
    """The price of steps over parts of the graph that a workload is about."""

    work: Workload
    batch: BatchOptions

    @classmethod
    def of(cls, work: Workload) -> BatchCost | None:
        """That of a workload; None where its steps are over all of the graph."""
        return None if work.batch is None else cls(work, work.batch)

    @cached_property
    def degree(self) -> float:
        """Links per node."""
        return 2 * self.work.num_edges / self.work.num_nodes

    @cached_property
    def hops_done(self) -> int:
        """Hops that are made once; of sparse features and of I, one."""
        work, fixed = self.work, self.work.composition.encoder.fixed_hops
        if not work.sparse_features:
            return fixed if work.num_features else min(fixed, 1)
        filled = min((self.degree + 1) * work.feature_entries, work.num_nodes * work.num_features)
        return min(fixed, 1) if filled <= MOST_FILLED * work.feature_entries else 0

    @cached_property
    def num_ones(self) -> float:
        """Links that a step takes."""
        size = self.batch.size
        return self.degree * size if size >= self.work.num_nodes else min(self.batch.ones, self.degree) * size

    @cached_property
    def reached(self) -> list[float]:
        """Nodes whose embeddings a step needs, then those within a hop, and so on."""
        num, size = self.work.num_nodes, min(self.batch.size, self.work.num_nodes)
        found = [min(size + self.num_ones, num)]
        for _ in range((self.work.composition.encoder.reach or 0) - self.hops_done):
            found.append(num * (1 - (1 - found[-1] / num) ** (self.degree + 1)))
        return found

    @cached_property
    def entries(self) -> float:
        """Entries of Ã that a step takes."""
        return sum(self.reached[:-1]) * (self.degree + 1)

    @cached_property
    def features_per_node(self) -> float:
        """Numbers of X, or of ÃX, for a node."""
        work = self.work
        if not work.num_features:
            return self.degree + 1 if self.hops_done else 1.0
        share = work.feature_entries / (work.num_nodes * work.num_features)
        if work.sparse_features and self.hops_done:
            share = 1 - (1 - share) ** (self.degree + 1)
        return share * work.num_features

    @property
    def feature_entries(self) -> float:
        """Numbers of X, or of ÃX, that a step takes."""
        return self.reached[-1] * self.features_per_node

    @property
    def is_swept(self) -> bool:
        """Whether all pairs of a part are summed up."""
        return self.batch.sweeps(factorised=self.work.factorised)

    @property
    def all_pairs(self) -> float:
        """Logits that are computed by sweeps."""
        halves = 2 if self.work.symmetric and self.work.mirrored else 1
        return self.batch.size**2 / halves if self.is_swept else 0.0

    @property
    def by_rows(self) -> bool:
        """Whether the ones within a part are summed up row by row, and drawn zeros by both their ends."""
        return self.is_swept or (self.work.factorised and self.batch.control_variate)

    @property
    def num_drawn(self) -> int:
        """Zeros that a step draws."""
        return 0 if self.is_swept else self.batch.num_pairs

    @property
    def single_pairs(self) -> float:
        """Pairs whose logits are computed one by one: chosen ones, the diagonal, zeros where there is no other way."""
        return self.num_ones + self.batch.size + (0 if self.by_rows else self.num_drawn)

    @property
    def inside(self) -> float:
        """Ones within a part."""
        size = min(self.batch.size, self.work.num_nodes)
        return size * (1 + self.degree * size / self.work.num_nodes)

    def numbers_moved(self) -> float:
        """In a step, in the unit of `Workload.numbers_moved`."""
        encoder, reach = self.work.encoder, max(1, self.work.composition.encoder.reach or 1)
        propagated = 2 * self.entries * encoder.propagated / reach
        projected = 2 * self.feature_entries * encoder.projected
        found = MOVED_WITH_ENTRY * (self.entries + (0 if self._is_dense else self.feature_entries))
        columns = NUMBERS_PER_PAIR * self.single_pairs
        if self.by_rows:
            columns += NUMBERS_PER_ENTRY * self.inside + NUMBERS_PER_DRAW * self.num_drawn
            columns += 0 if self.is_swept else TIMES_SUMMED * self.batch.size
        pairs = self.work.latent_dim * columns + MOVED_WITH_ENTRY * self.inside
        return propagated + projected + found + pairs + MOVED_WITH_WEIGHT * self.work.num_weights

    @property
    def _is_dense(self) -> bool:
        return self.work.num_features > 0 and not self.work.sparse_features

    def memory(self, *, on_cpu: bool = True) -> Memory:
        """At the peak of a training, beside the process and the graph."""
        work, entry = self.work, 2 * FLOAT
        parts = 4 if work.early_stopping else 3
        keeping = 2 * parts * FLOAT * work.num_weights if work.checkpoints else 0.0
        lasting = entry * work.entries * (3 if work.encoder.along_links else 1) + self._prepared()
        making = (5 * FLOAT if on_cpu else 7 * FLOAT) * work.entries
        weights = parts * FLOAT * work.num_weights
        at_work = max(self._step(), self._inference())
        if on_cpu:
            return Memory(host=with_gaps(max(making, lasting + weights + max(at_work, keeping))))
        return Memory(host=with_gaps(lasting + max(making, keeping)), device=2 * lasting + weights + at_work)

    def _prepared(self) -> float:
        """Features as the encoder takes them, where they are not the graph's own; sparse ones also as a whole."""
        work = self.work
        if self._is_dense:
            return FLOAT * work.feature_entries if self.hops_done or work.encoder.unit_rows else 0.0
        return 3 * 2 * FLOAT * work.num_nodes * self.features_per_node if work.num_features else 0.0

    def _step(self) -> float:
        """Activations, gradients, and the part of the graph, both ways.

        Pairs are there with what the encoder holds, and are gone where it is at its peak, on the way back.
        """
        work, outer = self.work, self.reached[-1]
        of_inner = FLOAT * self.reached[0] * work.latent_dim * RETURNED_WITH_NOISE
        features = (FLOAT if self._is_dense else 6 * FLOAT) * self.feature_entries
        of_pairs = FLOAT * self.single_pairs * (4 * work.latent_dim + work.numbers_per_pair + 7)
        of_pairs += INT * (INTS_PER_DRAW * self.num_drawn + 4 * self.inside)
        places = 2 * INT * work.num_nodes
        values = FLOAT * outer * work.encoder.held + of_inner + of_pairs
        values = max(values, FLOAT * outer * work.encoder.returning)
        return values + features + 8 * FLOAT * self.entries + places + FLOAT * work.num_weights

    def _inference(self) -> float:
        """The embeddings of all nodes, without gradients: for validation, and at the end."""
        encoder = self.work.encoder
        return FLOAT * self.work.num_nodes * (encoder.held + encoder.projected)
