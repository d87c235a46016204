"""Sampled non-links that stand for all of them: strata, and weights by the inverse of the probability to be sampled.

The candidates are the pairs without a link in G, the graph whose links are all that is known; of a bipartite graph
those across, of a directed one without regard to direction. With G_f, the graph that the bases see, which is G without
a fold of its links, each candidate belongs to the first of these strata that fits:

    listed       what the first stage finds in G_f, of which `vgae.stack.contenders` takes its part
    two_hop      other pairs that share a neighbour in G_f
    others       all the rest

From a stratum of N_s pairs n_s are drawn uniformly and without replacement, or all if there are no more, and each gets
the weight N_s / n_s: sums over the sample, weighted, are unbiased for the sums over all candidates.

The samples of several folds are put together as they are: in each, the links of the fold stand beside all non-links.
Odds that are learned from them are those of a link out of a fold; where more or fewer links are left to be found, log
odds differ by the logarithm of that ratio.

Sizes are exact. Two-hop pairs are the entries of A_f², which is made in blocks of rows by the work that they take, so
that memory is bounded; each pair gets a random key, and those with the smallest keys are the sample: one sweep counts
and draws. In a graph for which this takes too much work (`MOST_WORK` additions) wedges i - m - j are drawn instead and
accepted with probability 1 / |Γ(i) ∩ Γ(j)|, which makes every two-hop pair equally likely; the size of the stratum is
then an estimate (number of wedges × mean of 1 / |Γ(i) ∩ Γ(j)|, unbiased), `Sample.estimated` says so, and what the
estimate gives to the one stratum it takes from the other: `Sample.total` is exact in every case.

Nodes without links need no stratum of their own: pairs with one are as large a share of the others as such nodes are of
all nodes, and a stratum is of use for what is rare. In a bipartite graph no candidate shares a neighbour.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from vgae.baselines.heuristics import Neighbourhoods, chunks
from vgae.errors import InputError
from vgae.graph.checks import MAX_SEED
from vgae.graph.graph import Graph
from vgae.graph.numbering import Numbering
from vgae.graph.pairs import IntArray, Pairs, check_pairs, contains, distinct, to_ranks
from vgae.options import Options, option, whole_number
from vgae.words import count

STRATA = ("two_hop", "others")
BLOCK = 4_000_000  # additions at a time, which bounds the entries of a block of A²
MOST_WORK = 2_000_000_000  # additions in all; a graph that takes more has its two-hop pairs sampled by wedges
RARE = 0.05  # share of the candidates below which a stratum is listed, because drawing until it is hit takes too long
DRAWS = 200_000  # pairs or wedges that are drawn at a time

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class SampleSizes(Options):
    """How many non-links are sampled of each stratum, at most."""

    two_hop: int = option(20_000, least=1, help="Non-links sampled of the pairs that share a neighbour.")
    others: int = option(40_000, least=1, help="Non-links sampled of all other pairs.")


@dataclass(frozen=True, eq=False)
class Sample:
    """Sampled non-links, how many each stands for, and the stratum of each by its place in STRATA."""

    pairs: Pairs
    weights: Weights
    strata: npt.NDArray[np.uint8]
    sizes: tuple[int, ...]  # N_s of each stratum
    estimated: bool = False  # whether the sizes of two_hop and others are estimates; their sum never is

    @property
    def total(self) -> int:
        """How many candidates are neither links nor listed."""
        return sum(self.sizes)


def sample_strata(
    known: Graph, seen: Graph, listed: npt.ArrayLike, sizes: SampleSizes | None = None, *, seed: int = 0
) -> Sample:
    """Non-links of the graph `known`, G, by strata of the graph `seen`, G_f, without those listed (M×2).

    What is listed may hold links of G, pairs that can be no links, and repetitions.
    """
    sizes = SampleSizes() if sizes is None else sizes
    generator = np.random.default_rng(whole_number(seed, "seed", 0, MAX_SEED))
    if known.num_nodes != seen.num_nodes:
        raise InputError(
            f"seen: it has {count(seen.num_nodes, 'node')}, but the graph of known links has {known.num_nodes:,}."
        )
    frame = _Frame.of(known, seen, check_pairs(listed, known.num_nodes, "listed"))
    two_hop, num_two_hop, exact = frame.sample_two_hop(sizes.two_hop, generator)
    num_others = frame.num_free - num_two_hop
    others = frame.sample_others(sizes.others, num_others, generator, exact=exact)
    if len(others) == 0 or len(two_hop) == 0:  # an estimate, if it is one, may have given pairs to an empty stratum
        num_two_hop, num_others = (0, frame.num_free) if len(two_hop) == 0 else (frame.num_free, 0)
    drawn, numbers = (two_hop, others), (num_two_hop, num_others)
    weights = [np.full(len(ranks), number / max(1, len(ranks))) for ranks, number in zip(drawn, numbers, strict=True)]
    return Sample(
        pairs=frame.numbering.pairs(np.concatenate(drawn)),
        weights=np.concatenate(weights),
        strata=np.repeat(np.arange(len(STRATA), dtype=np.uint8), [len(ranks) for ranks in drawn]),
        sizes=numbers,
        estimated=not exact,
    )


def fold_links(graph: Graph, num_folds: int, seed: int = 0) -> IntArray:
    """A fold, from 0 on, for each of the graph's edges, at random; the folds differ by one link at most."""
    num_folds = whole_number(num_folds, "folds", 2)
    seed = whole_number(seed, "seed", 0, MAX_SEED)
    if num_folds > graph.num_edges:
        raise InputError(
            f"folds: {num_folds:,} folds need at least {num_folds:,} links, and the graph has {graph.num_edges:,}."
        )
    return np.random.default_rng(seed).permutation(graph.num_edges).astype(np.int64) % num_folds


@dataclass(frozen=True, eq=False)
class _Frame:
    """All candidates by their ranks: which are links or listed, and which of the rest share a neighbour."""

    numbering: Numbering
    neighbourhoods: Neighbourhoods
    bipartite: bool
    links: IntArray  # ranks, sorted
    listed: IntArray  # ranks, sorted, no links

    @classmethod
    def of(cls, known: Graph, seen: Graph, listed: Pairs) -> _Frame:
        """The candidates of the graph with all links, seen in the graph without some of them."""
        known = known.without_directions()
        numbering, sides = known.candidate_pairs, known.sides
        links = np.sort(numbering.ranks(known.edges))
        apart = listed[:, 0] != listed[:, 1]
        if sides is not None:
            apart &= sides[listed[:, 0]] != sides[listed[:, 1]]
        ranks = distinct(numbering.ranks(listed[apart]))
        ranks = ranks[~contains(links, ranks)]
        return cls(numbering, Neighbourhoods(seen.adjacency), sides is not None, links, ranks)

    @cached_property
    def taken(self) -> IntArray:
        """Ranks of links and of what is listed, sorted."""
        return np.sort(np.concatenate([self.links, self.listed]))

    @property
    def num_free(self) -> int:
        """How many candidates are neither links nor listed."""
        return self.numbering.size - len(self.taken)

    @cached_property
    def work(self) -> IntArray:
        """Additions that each row of A² takes: Σ_{n ∈ Γ(i)} d_n."""
        degrees = self.neighbourhoods.degrees.astype(np.float64)
        return np.asarray(self.neighbourhoods.adjacency @ degrees).astype(np.int64)

    def shares(self, ranks: IntArray) -> npt.NDArray[np.bool_]:
        """Whether each of these pairs shares a neighbour."""
        if self.bipartite:
            return np.zeros(len(ranks), dtype=bool)
        return self.num_shared(ranks) > 0

    def num_shared(self, ranks: IntArray) -> npt.NDArray[np.float32]:
        """How many neighbours each of these pairs shares."""
        ones = np.ones(len(self.neighbourhoods.degrees))
        return self.neighbourhoods.sums(self.numbering.pairs(ranks), [ones])[0]

    # ---------------------------------------------------------------------------------------------------- two hops

    def sample_two_hop(self, num: int, generator: np.random.Generator) -> tuple[IntArray, int, bool]:
        """Ranks of free pairs that share a neighbour, how many there are, and whether that number is exact."""
        if self.bipartite:
            return np.empty(0, dtype=np.int64), 0, True
        if self.work.sum() > MOST_WORK and self._num_wedges[-1]:
            return (*self._sample_wedges(num, generator), False)
        sample, found = _Reservoir(num, generator, self.taken), 0
        for _, _, ranks in self._two_hop_blocks(self.work):
            found += len(ranks)
            sample.add(ranks)
        return sample.ranks, found - int(np.count_nonzero(self.shares(self.taken))), True

    def _two_hop_blocks(self, work: IntArray) -> Iterator[tuple[int, int, IntArray]]:
        """From which row to which, and the ranks of all pairs of these rows that share a neighbour, in no order.

        They are the upper triangle of A², links and what is listed included; blocks are of rows of so much work.
        """
        adjacency, num_nodes = self.neighbourhoods.adjacency, len(work)
        first = 0  # column; where it is worth it, those before the block, which are below the diagonal, are left out
        right = adjacency
        for start, stop in chunks(work, BLOCK):
            if (start - first) * 20 > num_nodes:
                first, right = start, adjacency[:, start:]
            product = adjacency[start:stop] @ right
            i = np.repeat(np.arange(start, stop, dtype=np.int64), np.diff(product.indptr))
            j = product.indices + np.int64(first)
            upper = j > i
            yield start, stop, to_ranks(np.stack([i[upper], j[upper]], axis=1), num_nodes)

    @cached_property
    def _num_wedges(self) -> IntArray:
        """Ordered pairs of neighbours of the nodes up to each, i - m - j with m among them."""
        degrees = self.neighbourhoods.degrees
        return np.cumsum(degrees * (degrees - 1))

    def _sample_wedges(self, num: int, generator: np.random.Generator) -> tuple[IntArray, int]:
        """The same by wedges, with an estimate of how many there are."""
        adjacency, degrees = self.neighbourhoods.adjacency, self.neighbourhoods.degrees
        ends = self._num_wedges
        free_per_wedge, drawn, found = 0.0, 0, np.empty(0, dtype=np.int64)
        while len(found) < num and drawn < DRAWS * 100:
            place = generator.integers(ends[-1], size=DRAWS)
            middle = np.searchsorted(ends, place, side="right")
            first, second = np.divmod(place - (ends - degrees * (degrees - 1))[middle], degrees[middle] - 1)
            second += second >= first
            i, j = (adjacency.indices[adjacency.indptr[middle] + which].astype(np.int64) for which in (first, second))
            ranks = self.numbering.ranks(np.stack([i, j], axis=1))
            shared = self.num_shared(ranks).astype(np.float64)
            free = ~contains(self.taken, ranks)
            free_per_wedge, drawn = free_per_wedge + float((free / shared).sum()), drawn + DRAWS
            accepted = free & (generator.random(DRAWS) * shared < 1)
            found = _first_of_each(np.concatenate([found, ranks[accepted]]))
        estimate = round(free_per_wedge / drawn * int(ends[-1]) / 2)
        return np.sort(found[:num]), min(max(estimate, len(found)), self.num_free)

    # ------------------------------------------------------------------------------------------------------ others

    def sample_others(self, num: int, size: int, generator: np.random.Generator, *, exact: bool) -> IntArray:
        """Ranks of free pairs that share no neighbour, of which there are `size`."""
        if size == 0:
            return np.empty(0, dtype=np.int64)
        if exact and (size <= 2 * num or size < RARE * self.numbering.size):
            return self._list_others(_Reservoir(num, generator, self.taken))
        before = self.taken - np.arange(len(self.taken))  # free pairs before each that is taken
        found, drawn = np.empty(0, dtype=np.int64), 0
        while len(found) < num and (exact or drawn < DRAWS * 100):
            place = generator.integers(self.num_free, size=min(DRAWS, 2 * num))
            ranks = place + np.searchsorted(before, place, side="right")
            found = _first_of_each(np.concatenate([found, ranks[~self.shares(ranks)]]))
            drawn += DRAWS
        return np.sort(found[:num])

    def _list_others(self, sample: _Reservoir) -> IntArray:
        """A sample of them from a list of all, made row by row."""
        if self.bipartite:
            sample.add(np.arange(self.numbering.size, dtype=np.int64))
            return sample.ranks
        num_nodes = len(self.work)
        for start, stop, ranks in self._two_hop_blocks(self.work + np.arange(num_nodes, 0, -1)):
            first, after = (row * (2 * num_nodes - row - 1) // 2 for row in (start, stop))
            free = np.ones(after - first, dtype=bool)
            free[ranks - first] = False
            sample.add(first + np.flatnonzero(free))
        return sample.ranks


class _Reservoir:
    """A uniform sample without replacement of whatever is added, except what is taken: those of the smallest keys."""

    def __init__(self, num: int, generator: np.random.Generator, taken: IntArray) -> None:
        self.num, self.generator, self.taken = num, generator, taken
        self.found, self.keys = np.empty(0, dtype=np.int64), np.empty(0)

    def add(self, ranks: IntArray) -> None:
        """Give each of these a key, and keep those with the smallest of all so far."""
        keys = self.generator.random(len(ranks))
        if len(self.keys) == self.num:  # before it is looked up who is taken, which takes longer
            small = keys < self.keys.max()
            ranks, keys = ranks[small], keys[small]
        free = ~contains(self.taken, ranks)
        self.found = np.concatenate([self.found, ranks[free]])
        self.keys = np.concatenate([self.keys, keys[free]])
        if len(self.keys) > self.num:
            smallest = np.argpartition(self.keys, self.num - 1)[: self.num]
            self.found, self.keys = self.found[smallest], self.keys[smallest]

    @property
    def ranks(self) -> IntArray:
        """The sample, sorted."""
        return np.sort(self.found)


def _first_of_each(values: IntArray) -> IntArray:
    """The values without repetitions, in the order in which they came."""
    _, first = np.unique(values, return_index=True)
    return values[np.sort(first)]
