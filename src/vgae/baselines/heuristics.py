"""Local heuristics: what the neighbourhoods of two nodes say about a link between them.

With Γ(i) the neighbours of i in the training graph and d their number:

    common neighbours         |Γ(i) ∩ Γ(j)|
    Adamic-Adar               Σ_{n ∈ Γ(i) ∩ Γ(j)} 1 / log d_n
    resource allocation       Σ_{n ∈ Γ(i) ∩ Γ(j)} 1 / d_n
    preferential attachment   d_i · d_j

The first three are entries of A·W·A with a diagonal W. For pairs, the neighbours of the end that has fewer of them are
looked up among the other's, so that a hub costs no more than a leaf; for all pairs of a row, rows are multiplied, a
block at a time: N×N is never built.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, contains
from vgae.ops import Factors

CHUNK = 2_000_000  # neighbours that are looked up at a time

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """The neighbours of every node, and which of them pairs have in common."""

    adjacency: sp.csr_array

    @cached_property
    def degrees(self) -> IntArray:
        """d, the number of neighbours of each node."""
        degrees: IntArray = np.diff(self.adjacency.indptr).astype(np.int64)
        return degrees

    @cached_property
    def _links(self) -> IntArray:
        """Both directions of every link as one number, sorted: row·N + column."""
        num_nodes = self.adjacency.shape[0]
        rows = np.repeat(np.arange(num_nodes, dtype=np.int64), self.degrees)
        links: IntArray = rows * num_nodes + self.adjacency.indices
        return links

    def sums(self, pairs: Pairs, weights: Sequence[Weights]) -> list[npt.NDArray[np.float32]]:
        """Σ of each of these weights over the common neighbours of each pair."""
        found = [np.zeros(len(pairs), dtype=np.float32) for _ in weights]
        for start, stop, owners, common in self._common(pairs):
            for scores, weight in zip(found, weights, strict=True):
                scores[start:stop] = np.bincount(owners, weight[common], minlength=stop - start)
        return found

    def num_lookups(self, pairs: Pairs) -> IntArray:
        """How many neighbours each pair asks to be looked up: those of the end that has fewer."""
        return np.minimum(self.degrees[pairs[:, 0]], self.degrees[pairs[:, 1]])

    def _common(self, pairs: Pairs) -> Iterator[tuple[int, int, IntArray, IntArray]]:
        """The common neighbours of pairs from one place to another: whose they are, and which."""
        fewer_first = self.degrees[pairs[:, 0]] <= self.degrees[pairs[:, 1]]
        few = np.where(fewer_first, pairs[:, 0], pairs[:, 1])
        many = np.where(fewer_first, pairs[:, 1], pairs[:, 0])
        indptr, indices = self.adjacency.indptr.astype(np.int64), self.adjacency.indices
        num_nodes = self.adjacency.shape[0]
        for start, stop in chunks(self.degrees[few], CHUNK):
            lengths = self.degrees[few[start:stop]]
            owners = np.repeat(np.arange(stop - start), lengths)
            before = np.cumsum(lengths) - lengths
            places = np.arange(len(owners)) + (indptr[few[start:stop]] - before)[owners]
            neighbours = indices[places].astype(np.int64)
            shared = contains(self._links, many[start:stop][owners] * num_nodes + neighbours)
            yield start, stop, owners[shared], neighbours[shared]


@dataclass(frozen=True, eq=False)
class NeighbourScorer:
    """Σ of a weight over the common neighbours of a pair."""

    neighbourhoods: Neighbourhoods
    weights: Weights
    symmetric: bool = True

    @classmethod
    def of(cls, graph: Graph, weights: Weights) -> NeighbourScorer:
        """A scorer with a weight for each node in the role of the common neighbour."""
        return cls(Neighbourhoods(graph.adjacency), weights)

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """The weighted number of common neighbours of each pair."""
        return self.neighbourhoods.sums(pairs, [self.weights])[0]

    def rows(self) -> NeighbourRows:
        """The same for all pairs of some rows."""
        adjacency = self.neighbourhoods.adjacency
        return NeighbourRows(sp.csr_array(adjacency @ sp.diags_array(self.weights)), adjacency)


@dataclass(frozen=True, eq=False)
class NeighbourRows:
    """Rows of A·W·A."""

    weighted: sp.csr_array  # A·W
    adjacency: sp.csr_array

    @property
    def device(self) -> torch.device:
        """SciPy multiplies on the CPU."""
        return torch.device("cpu")

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.adjacency.shape[0])

    def product(self, rows: slice | IntArray) -> sp.csr_array:
        """Some rows as a sparse matrix of float32, its indices in no order: where nothing is, nothing is shared."""
        found = self.weighted[rows] @ self.adjacency
        return sp.csr_array((found.data.astype(np.float32), found.indices, found.indptr), shape=found.shape)

    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        """Some rows from a column on, as a dense tensor."""
        dense = self.product(rows.cpu().numpy()).toarray()
        return torch.from_numpy(np.ascontiguousarray(dense[:, first:]))


@dataclass(frozen=True, eq=False)
class DegreeScorer:
    """The product of the two degrees."""

    degrees: Weights
    symmetric: bool = True

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """d_i·d_j for each pair."""
        return (self.degrees[pairs[:, 0]] * self.degrees[pairs[:, 1]]).astype(np.float32)

    def rows(self) -> Factors:
        """Logits of rank 1."""
        return Factors(torch.from_numpy(self.degrees.astype(np.float32))[:, None])


def chunks(sizes: IntArray, largest: int) -> Iterator[tuple[int, int]]:
    """Consecutive ranges of items whose sizes add up to no more than the largest; an item that is larger is alone."""
    ends = np.cumsum(sizes)
    start = 0
    while start < len(sizes):
        before = int(ends[start - 1]) if start else 0
        stop = max(int(np.searchsorted(ends, before + largest, side="right")), start + 1)
        yield start, stop
        start = stop


def common_neighbours(graph: Graph) -> NeighbourScorer:
    """|Γ(i) ∩ Γ(j)|."""
    return NeighbourScorer.of(graph, np.ones(graph.num_nodes))


def adamic_adar(graph: Graph) -> NeighbourScorer:
    """Rare common neighbours count more: 1 / log d."""
    # A common neighbour has at least two neighbours; below that the weight is never used.
    return NeighbourScorer.of(graph, 1 / np.log(np.maximum(_degrees(graph), 2)))


def resource_allocation(graph: Graph) -> NeighbourScorer:
    """Rare common neighbours count much more: 1 / d."""
    return NeighbourScorer.of(graph, 1 / np.maximum(_degrees(graph), 1))


def preferential_attachment(graph: Graph) -> DegreeScorer:
    """d_i·d_j."""
    return DegreeScorer(_degrees(graph))


def _degrees(graph: Graph) -> Weights:
    degrees: Weights = np.diff(graph.adjacency.indptr).astype(np.float64)
    return degrees
