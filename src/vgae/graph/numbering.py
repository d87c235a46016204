"""Numbers for the pairs that can be links, so that sets of pairs become sorted integer arrays.

Without directions a link is the canonical pair (i, j), i < j, and its number is the rank of `vgae.graph.pairs`. With
directions it is the ordered pair of its source and its target, numbered row by row without the diagonal:

    rank(i, j) = i (N - 1) + j - [j > i],   from 0 to N(N - 1) - 1

Of a bipartite graph only pairs across can be links. With nodes a = 0, 1, … of one side and b = 0, 1, … < n of the
other, the number of a pair is a·n + b; by direction, pairs from the second side to the first follow in the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vgae.graph.pairs import IntArray, Pairs, canonical, from_ranks, num_pairs, to_ranks


class Numbering(Protocol):
    """Pairs of different nodes, numbered from 0."""

    @property
    def size(self) -> int:
        """How many pairs there are."""

    def ranks(self, pairs: Pairs) -> IntArray:
        """The number of each pair; pairs of a node with itself have none and must not be given."""

    def pairs(self, ranks: IntArray) -> Pairs:
        """The pairs of these numbers; canonical where directions do not count."""


@dataclass(frozen=True)
class AllPairs:
    """All pairs of N nodes: canonical ones or, with `ordered`, both directions of each."""

    num_nodes: int
    ordered: bool = False

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return num_pairs(self.num_nodes) * (2 if self.ordered else 1)

    def ranks(self, pairs: Pairs) -> IntArray:
        """The number of each pair; without `ordered` it is the same for both directions."""
        if not self.ordered:
            return to_ranks(canonical(pairs), self.num_nodes)
        i, j = pairs[:, 0], pairs[:, 1]
        return i * (self.num_nodes - 1) + j - (j > i)

    def pairs(self, ranks: IntArray) -> Pairs:
        """The pairs of these numbers."""
        if not self.ordered:
            return from_ranks(ranks, self.num_nodes)
        i, place = np.divmod(ranks, max(1, self.num_nodes - 1))
        return np.stack([i, place + (place >= i)], axis=1)


@dataclass(frozen=True, eq=False)
class PairsAcross:
    """The pairs across the two sides of a bipartite graph."""

    sides: npt.NDArray[np.uint8]
    ordered: bool = False

    @cached_property
    def nodes(self) -> tuple[IntArray, IntArray]:
        """The nodes of each side."""
        return np.flatnonzero(self.sides == 0), np.flatnonzero(self.sides == 1)

    @cached_property
    def place(self) -> IntArray:
        """Of each node on its own side."""
        place = np.empty(len(self.sides), dtype=np.int64)
        for nodes in self.nodes:
            place[nodes] = np.arange(len(nodes))
        return place

    @property
    def size(self) -> int:
        """How many pairs there are."""
        return len(self.nodes[0]) * len(self.nodes[1]) * (2 if self.ordered else 1)

    def ranks(self, pairs: Pairs) -> IntArray:
        """The number of each pair."""
        first, second = self.nodes
        i, j = pairs[:, 0], pairs[:, 1]
        back = self.sides[i] == 1  # from the second side to the first
        start, end = np.where(back, j, i), np.where(back, i, j)
        ranks: IntArray = self.place[start] * len(second) + self.place[end]
        return ranks + back * (len(first) * len(second)) if self.ordered else ranks

    def pairs(self, ranks: IntArray) -> Pairs:
        """The pairs of these numbers."""
        first, second = self.nodes
        one_way = len(first) * len(second)
        back, within = np.divmod(ranks, max(1, one_way))
        a, b = np.divmod(within, max(1, len(second)))
        across = np.stack([first[a], second[b]], axis=1)
        return np.where(back[:, None] > 0, across[:, ::-1], across) if self.ordered else canonical(across)
