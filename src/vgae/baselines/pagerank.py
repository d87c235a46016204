"""Personalised PageRank at the pairs that are asked for: how often a walk from one node is at the other.

With π_i(j) the PageRank of j for walks from i that jump back with the probability α = 0.15 (`evaluation/pagerank.py`),
S = D^-½ A D^-½ and d the degrees, all is in one symmetric matrix:

    G = α (I - (1 - α) S)⁻¹,   π_i(j) = G_ij √d_j / √d_i,   d_i π_i(j) = d_j π_j(i)

so that walks from one end of a pair are enough, and there are two columns that do not depend on the order of the ends:

    ppr           π_i(j) + π_j(i) = G_ij (d_i + d_j) / √(d_i d_j)
    ppr_degrees   (π_i(j) + π_j(i)) / √(d_i d_j): what is left when hubs, where any walk often is, gain nothing from it

Nodes with a single link are left out of the system. For such an i and its neighbour n, G_ij = w_i G_nj for all j ≠ i,
with w_i = (1 - α) / √d_n, and walks to i and back stay with n as w_i² in its diagonal: the rest of G is unchanged.

All values are solved for to the same precision, however small. Pushing walks along links until little is left
(Andersen, Chung & Lang, 2006) is faster only while most of the small values, which random pairs differ by, are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.baselines.similarity import (
    CpuRows,
    Doubles,
    FloatArray,
    Similarity,
    block_width,
    degrees_of,
    groups,
    normalized_adjacency,
    starts_first,
)
from vgae.evaluation.pagerank import JUMP, num_steps, solve
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs
from vgae.ops.sparse import SparseMatrix


@dataclass(frozen=True, eq=False)
class Walks(Similarity):
    """Personalised PageRank of the two nodes for each other, plain and divided by the roots of their degrees."""

    title: ClassVar[str] = "personalised PageRank"
    columns: ClassVar[tuple[str, ...]] = ("ppr", "ppr_degrees")
    titles: ClassVar[tuple[str, ...]] = ("personalised PageRank", "personalised PageRank by degrees")
    symmetric: ClassVar[bool] = True

    degrees: Doubles  # of each node, at least 1
    core: IntArray  # for each node its place in the system, or its neighbour's if that is its only one
    factors: Doubles  # by which a row of G is the row of that place
    walks: sp.csr_array  # (1 - α) S without the nodes that have a single link

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """Walks on a graph."""
        degrees = degrees_of(graph)
        walks = normalized_adjacency(graph) * (1 - JUMP)
        nodes = np.arange(graph.num_nodes)
        first = np.minimum(graph.adjacency.indptr[:-1], graph.adjacency.nnz - 1)  # of a node without links, any
        neighbour = graph.adjacency.indices[first]
        single = (degrees == 1) & (degrees[neighbour] > 1)  # two that have only each other both stay
        factors = np.where(single, (1 - JUMP) / np.sqrt(np.maximum(degrees[neighbour], 1)), 1.0)
        places = np.cumsum(~single) - 1
        returning = np.bincount(neighbour, np.where(single, factors**2, 0.0), minlength=graph.num_nodes)
        kept = walks[~single][:, ~single] + sp.diags_array(returning[~single])
        core = places[np.where(single, neighbour, nodes)].astype(np.int64)
        return cls(np.maximum(degrees, 1).astype(np.float64), core, factors, sp.csr_array(kept))

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.degrees)

    def logits(self, pairs: Pairs) -> FloatArray:
        """Plain PageRank as a score for each pair."""
        return self.describe(pairs)[:, 0]

    def work(self, pairs: Pairs) -> float:
        """Additions in passes over the links that these pairs take."""
        starts, _ = self._ends(pairs)
        return float(len(np.unique(starts)) * self.walks.nnz * num_steps())

    def rows(self) -> CpuRows:
        """The same for all pairs of some rows."""
        return CpuRows(self.num_nodes, self._block)

    def _block(self, rows: IntArray, first: int) -> Tensor:
        """Rows of plain PageRank."""
        places, of_rows = np.unique(self.core[rows], return_inverse=True)
        width = block_width(self.walks.shape[0])
        parts = [self.from_places(places[begin : begin + width]) for begin in range(0, len(places), width)]
        solved = torch.cat(parts, dim=1)[:, torch.from_numpy(of_rows)]
        found = solved[torch.from_numpy(self.core[first:])].T.contiguous()
        factors = np.outer(self.factors[rows], self.factors[first:])
        ratios = np.sqrt(self.degrees[rows, None] / self.degrees[first:])
        return found.mul_(torch.from_numpy((factors * (ratios + 1 / ratios)).astype(np.float32)))

    @cached_property
    def matrix(self) -> SparseMatrix:
        """The system's matrix, for products."""
        return SparseMatrix(self.walks, symmetric=True)

    def from_places(self, places: IntArray) -> Tensor:
        """Rows of G without the nodes that have a single link, as the columns of a tensor."""
        return solve(self.matrix, places, np.full(len(places), JUMP)).clamp_(min=0)

    def _ends(self, pairs: Pairs) -> tuple[IntArray, IntArray]:
        """The places in the system that walks of each pair start from and are looked for at."""
        alike = np.ones(self.walks.shape[0])
        return starts_first(self.core[pairs], alike, 0 * alike)

    def _describe(self, pairs: Pairs) -> list[Doubles]:
        starts, ends = self._ends(pairs)
        found = np.empty(len(pairs))
        for places, of_pairs, columns in groups(starts, block_width(self.walks.shape[0])):
            solved = self.from_places(places).numpy()
            found[of_pairs] = solved[ends[of_pairs], columns]
        found *= self.factors[pairs].prod(axis=1)
        degrees = self.degrees[pairs]
        product = degrees.prod(axis=1)
        found *= degrees.sum(axis=1) / np.sqrt(product)
        return [found, found / np.sqrt(product)]
