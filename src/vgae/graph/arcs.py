"""Arcs: the ordered pairs (source, target) of a graph's links, sorted.

Edges are canonical pairs with a direction each. An edge that goes one way is one arc, an edge that goes both ways is
two, and so is every edge of a graph without directions. Where an edge that goes both ways has a weight, which is that
of both directions together, each of its arcs has half of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import BACKWARD, BOTH, FORWARD, DirectionArray, FloatArray, frozen
from vgae.graph.pairs import IntArray, Pairs, contains, distinct


@dataclass(frozen=True, eq=False)
class Arcs:
    """Ordered pairs, sorted, and for each of them the edge that it is of."""

    pairs: Pairs
    edges: IntArray

    @classmethod
    def of(cls, edges: Pairs, directions: DirectionArray | None) -> Arcs:
        """The arcs of canonical edges."""
        ways = np.zeros(len(edges), dtype=np.int8) if directions is None else directions
        there, back = np.flatnonzero(ways != BACKWARD), np.flatnonzero(ways != FORWARD)
        pairs, places = np.concatenate([edges[there], edges[back][:, ::-1]]), np.concatenate([there, back])
        order = np.lexsort((pairs[:, 1], pairs[:, 0]))
        return cls(frozen(np.ascontiguousarray(pairs[order])), frozen(places[order]))

    def weights(self, of_edges: FloatArray, directions: DirectionArray | None) -> FloatArray:
        """A weight for each arc: that of its edge or, where that goes both ways, half of it."""
        values: FloatArray = of_edges[self.edges]
        return values if directions is None else np.where(directions[self.edges] == BOTH, values / 2, values)


def matrix_of(pairs: Pairs, values: FloatArray, num_nodes: int) -> sp.csr_array:
    """A CSR array with a value at each pair, indices sorted, frozen."""
    matrix = sp.coo_array((values, (pairs[:, 0], pairs[:, 1])), shape=(num_nodes, num_nodes)).tocsr()
    matrix.sort_indices()
    for array in (matrix.data, matrix.indices, matrix.indptr):
        frozen(array)
    return matrix


@dataclass(frozen=True, eq=False)
class EdgesOfArcs:
    """Some of a directed graph's arcs as edges again."""

    edges: Pairs
    directions: DirectionArray
    places: IntArray  # of these edges among the graph's own
    halved: IntArray  # which of these edges have lost one of their two directions

    @classmethod
    def of(cls, arcs: Pairs, own: Arcs, edges: Pairs, directions: DirectionArray, num_nodes: int) -> EdgesOfArcs:
        """The edges that have these arcs left; all of them must be the graph's own."""
        known, asked = (pairs[:, 0] * num_nodes + pairs[:, 1] for pairs in (own.pairs, arcs))
        if not contains(known, asked).all():
            raise InputError("arcs: not all of them are links of this graph, in this direction.")
        left = own.edges[np.searchsorted(known, distinct(asked))]  # the edge of each arc that is left
        forward = arcs[:, 0] < arcs[:, 1]
        places = distinct(left)
        counts = np.zeros((2, len(edges)), dtype=bool)
        counts[0, own.edges[np.searchsorted(known, asked[forward])]] = True
        counts[1, own.edges[np.searchsorted(known, asked[~forward])]] = True
        ways = counts[0].astype(np.int8) - counts[1].astype(np.int8)
        lost = (directions == BOTH) & (ways != BOTH)
        return cls(edges[places], ways[places], places, np.flatnonzero(lost[places]))

    def weights(self, of_edges: FloatArray | None) -> FloatArray | None:
        """Their weights, given those of the graph's edges: one that has lost a direction has half of its own."""
        if of_edges is None:
            return None
        found: FloatArray = of_edges[self.places]
        found[self.halved] /= 2
        return found
