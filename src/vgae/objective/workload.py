"""What a training step costs, from counts alone: numbers that it moves, and bytes that are held at its peak.

Nothing here looks at a matrix: N, E, D, the entries of X and the outline of the model are enough, so that a training
which cannot fit is refused before anything of it is allocated. Bytes are those that training takes beside the process
and the graph, which are there already. They are held in phases, and the largest counts:

    layout     A and Ã are built, X is laid out                              on the host
    objective  the ones of A + I by rows; without factors, or a control variate, their pairs too
    step       activations, the sums by row and their gradients; pair by pair also gathers of z
    keeping    the state for a checkpoint is copied, and copied again as the bytes of a file    on the host

What lasts through all of them are Ã, X, the weights with Adam's two moments, and the ones. Where there are no kernels
for the sums (`vgae.ops.ones`), the row of each one lasts as well, and for the sampled objective the zeros before it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import scipy.sparse as sp

from vgae.graph.graph import Graph
from vgae.machine import num_threads
from vgae.model.autoencoder import Composition
from vgae.model.encoders import EncoderCost
from vgae.objective.pairwise import FEWEST, PIECE
from vgae.objective.partition import BatchOptions
from vgae.objective.variate import num_pairs_for
from vgae.ops.dispatch import HAS_NUMBA, HAS_TRITON, SHORTEST_FOR_NUMBA, WIDEST_FOR_TRITON
from vgae.ops.one_pass import LARGEST
from vgae.ops.ones import BLOCK

INT, FLOAT = 8, 4  # bytes of an index and of a number
# What a single pair costs per latent dimension, in numbers that a sparse product moves: with gathers and scatters, as
# an entry of a pass over rows, and drawn, laid out by both ends and summed up by them.
NUMBERS_PER_PAIR, NUMBERS_PER_ENTRY, NUMBERS_PER_DRAW = 70, 5, 30
TIMES_SUMMED = 40  # the numbers of the factors, for the sums over all pairs in closed form, forward and back
INTS_PER_PIECE = 4  # of a row, as Triton's kernels take it
INTS_PER_ZERO = 4  # of a zero that is scored by itself: its number, and its ends
INTS_PER_DRAW = 6  # its number, as drawn and rounded, its ends, and these in the order of either
# Columns for each latent dimension on the way back: sums by row, what they are multiplied by, sums of gradients; with
# noise also the terms of the KL and of σ, fewer where one kernel has both.
RETURNED, RETURNED_WITH_NOISE, RETURNED_WITH_DRAWS = 4.0, 9.5, {"exact": 8.0, "sampled": 4.0}
VECTORS = 3 * FLOAT  # of a pair: its logit, what becomes of it, and the gradient
SAVED_IN_ONE_PASS = 1.5  # of these columns, where one gradient is added to by all sums (vgae.ops.one_pass)
TIMES_MOVED = 6  # a number that a decoder holds for a pair: written and read, forward and back
# The C library keeps freed blocks of up to 32 MB for later, so that the heap has gaps: up to half as much again as is
# held, as measured, but no more than a few such blocks.
HEAP_GAPS, LARGEST_GAPS = 0.5, 5 * 32e6
FIXED_BYTES = 2.2e6  # stacks of threads, and what torch allocates once
TILE_SIDE = 1000  # of the two tiles that a sweep over all pairs on a CPU may hold
RECORDED_BYTES = 2 * 2**25  # what products have for themselves, in steps as they are and in recorded ones


@dataclass(frozen=True)
class Memory:
    """Bytes that training takes on the host and, if it runs on another device, there."""

    host: float
    device: float = 0.0

    @property
    def largest(self) -> float:
        """Where training runs on the CPU what it takes, else the larger of the two."""
        return max(self.host, self.device)

    def fits(self, room: Memory) -> bool:
        """Whether there is room for it."""
        return self.host <= room.host and self.device <= room.device


@dataclass(frozen=True)
class Workload:
    """What of a graph and a model decides the cost of an iteration."""

    num_nodes: int
    num_edges: int
    num_features: int  # 0: none, X = I
    feature_entries: int  # stored numbers of X
    sparse_features: bool
    composition: Composition
    num_negatives: int
    symmetric: bool
    factorised: bool = True  # whether the exact objective is possible
    mirrored: bool = True  # whether half of all pairs are enough for it
    control_variate: bool = False  # a parabola is summed over all pairs
    numbers_per_pair: int = 0  # that the decoder holds for a single pair, beside the two embeddings
    by_ends: bool = False  # whether pairs can be scored some at a time
    directed: bool = False  # directions count
    mask_links: bool = False  # links are hidden in each step
    early_stopping: bool = False  # the best weights are kept beside the last
    checkpoints: bool = False  # the state is copied now and then, to be written
    divided: bool = False  # among processes, none of which has the features of all nodes
    batch: BatchOptions | None = None  # steps are over parts of the graph (vgae.objective.batch_cost)

    @classmethod
    def of(
        cls,
        graph: Graph,
        composition: Composition,
        *,
        num_negatives: int | None = None,
        control_variate: bool | None = None,
        mask_links: bool = False,
        early_stopping: bool = False,
        checkpoints: bool = False,
        batch: BatchOptions | None = None,
    ) -> Workload:
        """The workload of a model on a graph as the model sees it; with a control variate unless it is said."""
        matrix = graph.features
        decoder = composition.outline(graph.num_features or graph.num_nodes).decoder
        with_variate = decoder.factorised if control_variate is None else control_variate
        seen = graph.as_scored(symmetric=decoder.symmetric)
        return cls(
            num_nodes=graph.num_nodes,
            num_edges=graph.num_edges,
            num_features=graph.num_features,
            feature_entries=graph.num_feature_entries,
            sparse_features=sp.issparse(matrix),
            composition=composition,
            num_negatives=num_negatives or num_pairs_for(seen, control_variate=with_variate),
            symmetric=decoder.symmetric,
            factorised=decoder.factorised,
            mirrored=decoder.symmetric and decoder.mirrored,
            control_variate=with_variate,
            numbers_per_pair=decoder.numbers_per_pair,
            by_ends=decoder.by_ends,
            directed=seen.directed,
            mask_links=mask_links,
            early_stopping=early_stopping,
            checkpoints=checkpoints,
            batch=batch,
        )

    @property
    def all_pairs(self) -> float:
        """Logits that the exact objective computes."""
        return self.num_nodes**2 / (2 if self.symmetric and self.mirrored else 1)

    @property
    def entries(self) -> int:
        """Numbers in Ã: both directions of every edge, and the diagonal."""
        return 2 * self.num_edges + self.num_nodes

    @property
    def num_ones(self) -> int:
        """Pairs at which A + I is one; a symmetric decoder sees each edge once."""
        return self.num_edges * (1 if self.symmetric else 2) + self.num_nodes

    @property
    def input_dim(self) -> int:
        """Columns of X: D, or N where X = I."""
        return self.num_features or self.num_nodes

    @property
    def latent_dim(self) -> int:
        """Dimensions of the embedding."""
        return self.composition.latent_dim

    @cached_property
    def num_weights(self) -> int:
        """Parameters of the model, of all its parts."""
        return sum(weight.numel() for weight in self.composition.outline(self.input_dim).parameters())

    @cached_property
    def encoder(self) -> EncoderCost:
        """What the encoder takes in a step."""
        return self.composition.encoder.cost(self.composition.hidden_dim, self.composition.heads)

    @cached_property
    def hops_done(self) -> int:
        """Hops that whole steps find done: the features are Ã^h X where a step with them moves fewer numbers."""
        fixed = self.composition.encoder.fixed_hops
        if not fixed or not self.num_features or self.mask_links or self.divided:
            return 0
        if not self.sparse_features:
            return fixed  # as many numbers as X has
        return 1 if self._filled <= self.feature_entries + self.entries else 0

    @property
    def _filled(self) -> float:
        """Entries of ÃX for a sparse X, were no column shared by neighbours."""
        most = float(self.num_nodes * self.num_features)
        return min(self.entries / self.num_nodes * self.feature_entries, most)

    def with_widths(self, hidden_dim: int, latent_dim: int) -> Workload:
        """The same with a model of other widths."""
        return replace(self, composition=replace(self.composition, hidden_dim=hidden_dim, latent_dim=latent_dim))

    def single_pairs(self, objective: str) -> int:
        """Pairs whose logits are computed one by one: the ones of A + I, and the sampled zeros."""
        return self.num_ones + (self.num_negatives if objective == "sampled" else 0)

    def numbers_moved(self, objective: str) -> float:
        """By sparse products (forward and back) and gathers."""
        propagated = 2 * self.entries * (self.encoder.propagated - self.hops_done * self.encoder.projected)
        filled = self._filled if self.hops_done and self.sparse_features else self.feature_entries
        projected = 2 * filled * self.encoder.projected
        if not self.by_rows(objective):
            of_a_pair = NUMBERS_PER_PAIR * self.latent_dim + TIMES_MOVED * self.numbers_per_pair
            return propagated + projected + of_a_pair * self.single_pairs(objective)
        passes = 1 if self.symmetric and self.mirrored else 2
        columns = NUMBERS_PER_ENTRY * passes * self.entries
        if objective == "sampled":
            columns += NUMBERS_PER_DRAW * self.num_negatives + TIMES_SUMMED * self.num_nodes
        return propagated + projected + columns * self.latent_dim

    def by_rows(self, objective: str) -> bool:
        """Whether sums over the ones are taken row by row; else pair by pair."""
        return objective == "exact" or self.control_variate

    # ------------------------------------------------------------------------------------------------------ memory

    def memory_needed(self, objective: str, *, on_cpu: bool = True, recorded: bool = False) -> Memory:
        """At the peak of a training with this objective, beside the process and the graph that are there already.

        `recorded` says that steps on a GPU are recorded: that memory is in place of what they took before.
        """
        if on_cpu:
            keeping = self._lasting(objective, "numba") + self._keeping()
            return Memory(host=with_gaps(self._adjacency() + max(self._layout(), self.held(objective), keeping)))
        layout = self._layout() + self._propagation() + self._features() + self._making_the_mask()
        weights = 2 * FLOAT * self.num_weights  # drawn on the host, and brought back to it
        return Memory(
            host=with_gaps(self._adjacency() + max(layout, weights, self._keeping())),
            device=self.held(objective, on_cpu=False) + FIXED_BYTES + (RECORDED_BYTES if recorded else 0),
        )

    def held(self, objective: str, *, on_cpu: bool = True) -> float:
        """Bytes of all tensors at the peak of making the objective or of a step."""
        kernels = self._kernels(on_cpu)
        step = max(self._step(objective, kernels, on_cpu=on_cpu), self._end_of_step()) + self._masked()
        return self._lasting(objective, kernels) + max(
            step, self._making_the_objective(objective), self._making_the_mask()
        )

    def _kernels(self, on_cpu: bool) -> str | None:
        """What sums and draws are made by, None where it is PyTorch alone."""
        if on_cpu:
            return "numba" if HAS_NUMBA and (self.divided or self.num_nodes >= SHORTEST_FOR_NUMBA) else None
        return "triton" if HAS_TRITON and self.latent_dim <= WIDEST_FOR_TRITON else None

    def _adjacency(self) -> float:
        """A by rows, which stays with the graph."""
        return 2 * self.num_edges * self._entry() + self._index() * self.num_nodes

    def _propagation(self) -> float:
        """Ã, and for some encoders the same along the links and against them."""
        times = 3 if self.encoder.along_links else 1
        return times * (self.entries * self._entry() + self._index() * self.num_nodes)

    def _features(self) -> float:
        """X on the device, for some encoders with rows of length one too; a sparse one is laid out both ways."""
        copies = 2 if self.encoder.unit_rows else 1
        if not self.sparse_features:
            return copies * FLOAT * self.feature_entries
        entries = self._filled if self.hops_done else self.feature_entries
        both_ways = 2 * entries * self._entry() + self._index() * (self.num_nodes + self.num_features)
        order = INT * self.feature_entries if self.encoder.drops_features else 0
        return copies * both_ways + order

    def _layout(self) -> float:
        """Rows, columns and values of A, and of A + I while it is scaled; the transpose of a sparse X."""
        scaling = self.entries * (2 * INT + 4 * FLOAT)
        return scaling + (self.feature_entries * self._entry() if self.sparse_features else 0)

    def _making_the_mask(self) -> float:
        """Rows, columns and links of all entries of Ã, once as arrays and once as tensors, and their keys."""
        return 8 * INT * self.entries if self.mask_links else 0.0

    def _mask(self) -> float:
        """Row, column, link and weight of every entry of Ã; along directed links the same, and the order by column."""
        if not self.mask_links:
            return 0.0
        return self.entries * ((3 * INT + FLOAT) + (4 * INT + FLOAT) * self.encoder.along_links)

    def _masked(self) -> float:
        """Which links are hidden, and the values that Ã has without them."""
        return 3 * FLOAT * self.entries if self.mask_links else 0.0

    def _making_the_objective(self, objective: str) -> float:
        """A + I, with values that nobody needs; pair by pair the pairs of its ones, and copies."""
        return self.entries * self._entry() if self.by_rows(objective) else 5 * INT * self.entries

    def _lasting(self, objective: str, kernels: str | None) -> float:
        weights = FLOAT * self.num_weights * (4 if self.early_stopping else 3)
        return self._propagation() + self._features() + weights + self._ones(objective, kernels) + self._mask()

    def _ones(self, objective: str, kernels: str | None) -> float:
        """The columns of A + I, of its transpose where links have directions, and what else is needed."""
        entries = self._index() * (self.entries + self.num_nodes) * (2 if self.directed else 1)
        pairs = 0 if self.by_rows(objective) else self.num_ones * (2 * INT + FLOAT)
        if kernels == "numba":
            return entries + pairs
        if kernels == "triton":
            pairs += 2 * INTS_PER_PIECE * self._index() * self.num_nodes  # of these and of Ã
        sampled = objective == "sampled"
        needed = 0 if kernels and not sampled else self._index() + (INT if sampled else 0)  # rows, the zeros before
        return entries + pairs + self.entries * needed

    def _step(self, objective: str, kernels: str | None, *, on_cpu: bool) -> float:
        """Where the two sides of the objective are at their peak, on the way back."""
        noise = not self.composition.posterior.deterministic
        together = kernels == "numba" and self._draws_with_kl
        drawn = self.latent_dim * (0 if not noise else 1 if together else 2)  # noise and σ
        activations = FLOAT * self.num_nodes * (self.encoder.held + self.latent_dim + drawn) + self._dropped()
        if not self.by_rows(objective):
            return activations + (self._in_pieces() if on_cpu and self.by_ends else self._pair_by_pair())
        in_one_pass = objective == "sampled" and kernels == "numba" and self._in_one_pass
        columns = RETURNED_WITH_DRAWS[objective] if together else RETURNED_WITH_NOISE if noise else RETURNED
        columns -= SAVED_IN_ONE_PASS if in_one_pass else 0
        returned = FLOAT * self.num_nodes * self.latent_dim * columns
        if kernels is None:  # slopes of all entries, or factors of a block of them
            gathered = min(BLOCK, self.entries) * (3 * self.latent_dim + 6)
            returned = max(returned, FLOAT * (self.entries + gathered))
        if objective == "exact":
            return activations + max(self._sweep(kernels), returned)  # one after the other
        in_ints = INT * (1 if in_one_pass else INTS_PER_DRAW)
        pair = in_ints if kernels else FLOAT * (4 * self.latent_dim + 3) + 2 * INT
        return activations + returned + self.num_negatives * pair

    @property
    def _in_one_pass(self) -> bool:
        """Whether a step of the sampled objective takes one pass over its draw, where there are kernels."""
        return self.composition.decoder.name == "inner_product" and self.num_nodes * self.latent_dim <= LARGEST

    @property
    def _draws_with_kl(self) -> bool:
        """Whether draws and their KL are made by one kernel, where there are kernels: of the paper's model."""
        return (self.composition.posterior.name, self.composition.prior.name) == ("normal", "standard_normal")

    def _pair_by_pair(self) -> float:
        """Two gathers of z for each pair, and the gradients of both."""
        at_zeros = self.num_negatives * (2 * self._gathers + VECTORS + 2 * INT)
        return max(self.num_ones * (2 * self._gathers + VECTORS), self.num_ones * (self._gathers + VECTORS) + at_zeros)

    def _in_pieces(self) -> float:
        """The same for a piece of each thread; the gradients of the ones and of the zeros, and what was drawn."""
        gradients = 3 * FLOAT * (self.num_nodes * self.latent_dim + self.num_weights)
        drawn, sums = INT * INTS_PER_ZERO * self.num_negatives, (self.num_ones, self.num_negatives)
        at_once = sum(num_pairs for num_pairs in sums if num_pairs < FEWEST)
        pieces = num_threads() * PIECE if max(sums) >= FEWEST else 0
        return gradients + drawn + (at_once + pieces) * (self._gathers + 2 * FLOAT * self.latent_dim + VECTORS)

    @property
    def _gathers(self) -> float:
        """Bytes of what is gathered for a pair, and of what the decoder makes of it."""
        return FLOAT * (2 * self.latent_dim + self.numbers_per_pair)

    def _sweep(self, kernels: str | None) -> float:
        """What an implementation of the all-pairs op holds: tiles, factors laid out anew, and their gradients."""
        tiles = 0 if kernels else 2 * FLOAT * min(self.num_nodes, TILE_SIDE) ** 2
        return tiles + 6 * FLOAT * self.num_nodes * self.latent_dim

    def _end_of_step(self) -> float:
        """What is there on the way back through the encoder, and the gradients of the weights."""
        gradients = FLOAT * self.num_weights * (2 if self.encoder.joined else 1)
        return FLOAT * self.num_nodes * self.encoder.returning + self._dropped() + gradients

    def _dropped(self) -> float:
        """The features of one step: the values of their entries and, if they are sparse, of the transpose."""
        if not self.encoder.drops_features:
            return 0.0
        return FLOAT * (self.feature_entries or self.num_nodes) * (2 if self.sparse_features else 1)

    def _keeping(self) -> float:
        parts = 4 if self.early_stopping else 3
        return 2 * parts * FLOAT * self.num_weights if self.checkpoints else 0.0

    def _entry(self) -> int:
        """Bytes of an entry of a sparse matrix: its column and its value."""
        return self._index() + FLOAT

    def _index(self) -> int:
        small = max(self.entries, self.feature_entries, self.num_nodes, self.num_features) < 2**31
        return INT // 2 if small else INT


def with_gaps(held: float) -> float:
    """Bytes of the process's heap for so many that are held."""
    return held + min(HEAP_GAPS * held, LARGEST_GAPS) + FIXED_BYTES
