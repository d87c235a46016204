"""What follows from a graph's edges and their directions: arcs, links, the pairs that could be links, and matrices."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.graph.arcs import Arcs, matrix_of
from vgae.graph.checks import DirectionArray, FloatArray, SideArray
from vgae.graph.numbering import AllPairs, Numbering, PairsAcross
from vgae.graph.pairs import Pairs


class Linked:
    """Nodes with links between them; `Graph` has the fields."""

    num_nodes: int
    edges: Pairs
    weights: FloatArray | None
    directions: DirectionArray | None
    sides: SideArray | None

    @property
    def num_edges(self) -> int:
        """E, the number of undirected edges."""
        return len(self.edges)

    @property
    def directed(self) -> bool:
        """Whether the links have a direction."""
        return self.directions is not None

    @cached_property
    def _arcs(self) -> Arcs:
        return Arcs.of(self.edges, self.directions)

    @property
    def arcs(self) -> Pairs:
        """The ordered pairs (source, target) that are linked, sorted; without directions both ways of an edge."""
        return self._arcs.pairs

    @property
    def num_arcs(self) -> int:
        """How many ordered pairs are linked: the ones of A."""
        return 2 * self.num_edges if self.directions is None else len(self.arcs)

    @property
    def arc_weights(self) -> FloatArray | None:
        """A weight for each arc, where there are weights; an edge that goes both ways gives half of its own to each."""
        return None if self.weights is None else self._arcs.weights(self.weights, self.directions)

    @property
    def links(self) -> Pairs:
        """What counts as a link: the arcs of a directed graph, the edges of any other."""
        return self.arcs if self.directed else self.edges

    @property
    def num_links(self) -> int:
        """How many links there are, by direction where they have one."""
        return len(self.links)

    @property
    def all_pairs(self) -> AllPairs:
        """All pairs of different nodes, numbered: ordered ones of a directed graph, else canonical ones."""
        return AllPairs(self.num_nodes, ordered=self.directed)

    @property
    def candidate_pairs(self) -> Numbering:
        """Those of them that could be links: all, or those across of a bipartite graph."""
        return self.all_pairs if self.sides is None else PairsAcross(self.sides, ordered=self.directed)

    @property
    def num_candidate_pairs(self) -> int:
        """How many pairs could be links; of a directed graph both ways of each."""
        return self.candidate_pairs.size

    @property
    def density(self) -> float:
        """The share of the candidate pairs that are links."""
        return self.num_links / self.num_candidate_pairs

    def degrees(self, *, weighted: bool = False) -> npt.NDArray[np.float64]:
        """For each node the number of its edges or, where there are weights and they count, the sum of these."""
        weights = self.weights if weighted else None
        first, second = (np.bincount(ends, weights, minlength=self.num_nodes) for ends in self.edges.T)
        return (first + second).astype(np.float64)

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """A as a symmetric CSR array of float32 ones, indices sorted: what is linked, whatever the weight or way."""
        return self._symmetric(np.ones(self.num_edges, dtype=np.float32))

    @cached_property
    def weighted_adjacency(self) -> sp.csr_array:
        """The same with the weights in place of the ones; A itself where there are none."""
        return self.adjacency if self.weights is None else self._symmetric(self.weights)

    @cached_property
    def directed_adjacency(self) -> sp.csr_array:
        """A with a one, or the arc's weight, at (source, target) of every arc; symmetric for an undirected graph."""
        weights = self.arc_weights
        values = np.ones(self.num_arcs, dtype=np.float32) if weights is None else weights
        return matrix_of(self.arcs, values, self.num_nodes)

    def _symmetric(self, values: FloatArray) -> sp.csr_array:
        """A symmetric CSR array with a value for each edge, indices sorted, frozen."""
        both = np.concatenate([self.edges, self.edges[:, ::-1]])
        return matrix_of(both, np.concatenate([values, values]), self.num_nodes)
