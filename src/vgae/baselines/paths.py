"""Walks of three steps on S = D^-½ A D^-½, at the pairs that are asked for:

    (S³)_ij = Σ_{k ∈ Γ(i)} Σ_{l ∈ Γ(j), l ~ k} 1 / (√d_i d_k d_l √d_j)

Between two nodes without a link these are exactly the paths of length three: i, k, l and j are all different, for l = i
or k = j would be a link of i and j. Between two linked nodes, walks over that link and back count too.

The two steps from a start i, row i of S², serve all pairs with that start; the third step is a sum over the neighbours
of the other end. A row is made in whichever way is less work: a sparse product, whose entries are then searched for,
or for a start that reaches much of the graph one pass over all links, which serves a block of starts together. Where
many pairs end at hubs, the third step is such a pass too.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.baselines.heuristics import chunks
from vgae.baselines.similarity import (
    CpuRows,
    Doubles,
    FloatArray,
    Similarity,
    block_width,
    groups,
    normalized_adjacency,
    starts_first,
)
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs
from vgae.ops.sparse import SparseMatrix

CHUNK = 2_000_000  # additions of a sparse product, or third steps, at a time
DENSE_SHARE = 0.005  # of the links: 200 additions in a dense pass take as long as one of a sparse product


@dataclass(frozen=True, eq=False)
class Paths(Similarity):
    """(S³)_ij: paths of length three, each weighted by the degrees of the nodes on it."""

    title: ClassVar[str] = "paths of length three"
    columns: ClassVar[tuple[str, ...]] = ("l3",)
    titles: ClassVar[tuple[str, ...]] = ("paths of length three",)
    symmetric: ClassVar[bool] = True

    steps: sp.csr_array  # S

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """The paths of a graph."""
        return cls(normalized_adjacency(graph))

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.degrees)

    def logits(self, pairs: Pairs) -> FloatArray:
        """The same as a score for each pair."""
        return self.describe(pairs)[:, 0]

    def work(self, pairs: Pairs) -> float:
        """Additions in passes over the links that these pairs take, or what takes as long."""
        starts, ends = self._ends(pairs)
        return float(self._work_of_start[np.unique(starts)].sum() + self.degrees[ends].sum()) / DENSE_SHARE

    def rows(self) -> CpuRows:
        """The same for all pairs of some rows."""
        return CpuRows(self.num_nodes, self._block)

    def _block(self, rows: IntArray, first: int) -> Tensor:
        """Rows of S³."""
        return (self.matrix @ self.two_steps(rows))[first:].T.contiguous()

    @cached_property
    def degrees(self) -> IntArray:
        """d, the number of neighbours of each node."""
        degrees: IntArray = np.diff(self.steps.indptr).astype(np.int64)
        return degrees

    @cached_property
    def _work(self) -> IntArray:
        """Additions that a row of S² takes as a sparse product: Σ_{k ∈ Γ(i)} d_k."""
        pattern = sp.csr_array((np.ones(self.steps.nnz), self.steps.indices, self.steps.indptr), shape=self.steps.shape)
        return np.asarray(pattern @ self.degrees.astype(np.float64)).astype(np.int64)

    @cached_property
    def _work_of_start(self) -> Doubles:
        """The same in whichever way is less."""
        work: Doubles = np.minimum(self._work, DENSE_SHARE * self.steps.nnz)
        return work

    def _ends(self, pairs: Pairs) -> tuple[IntArray, IntArray]:
        """The end of each pair that two steps start from, and the one that the third step leads to."""
        return starts_first(pairs, self._work_of_start, self.degrees.astype(np.float64))

    @cached_property
    def matrix(self) -> SparseMatrix:
        """S, for products with dense matrices."""
        return SparseMatrix(self.steps, symmetric=True)

    def _describe(self, pairs: Pairs) -> list[Doubles]:
        starts, ends = self._ends(pairs)
        found = np.zeros(len(pairs))
        far = self._work[starts] > DENSE_SHARE * self.steps.nnz
        wide, narrow = np.flatnonzero(far), np.flatnonzero(~far & (self._work[starts] > 0))
        for nodes, places, columns in groups(starts[wide], block_width(self.num_nodes)):
            two, last = self.two_steps(nodes), ends[wide[places]]
            if self.degrees[last].sum() > DENSE_SHARE * self.steps.nnz * len(nodes):
                found[wide[places]] = (self.matrix @ two).numpy()[last, columns]
            else:
                found[wide[places]] = self._third_steps(_DenseRows(two.numpy()), columns, last)
        order = np.argsort(starts[narrow], kind="stable")
        narrow = narrow[order]
        nodes, rows = np.unique(starts[narrow], return_inverse=True)
        for begin, end in chunks(self._work[nodes], CHUNK):
            first, last = np.searchsorted(rows, [begin, end])
            places = narrow[first:last]
            product = _SparseRows.of(self.steps[nodes[begin:end]] @ self.steps)
            found[places] = self._third_steps(product, rows[first:last] - begin, ends[places])
        return [found]

    def two_steps(self, starts: IntArray) -> Tensor:
        """Rows of S² as the columns of a tensor."""
        return self.matrix @ torch.from_numpy(self.steps[starts].T.toarray().astype(np.float32, order="C"))

    def _third_steps(self, two: _DenseRows | _SparseRows, rows: IntArray, ends: IntArray) -> Doubles:
        """Σ_l (S²)_il S_lj for pairs that each have a row of S² and another end."""
        found = np.empty(len(ends))
        indptr = self.steps.indptr.astype(np.int64)
        for begin, end in chunks(self.degrees[ends], CHUNK):
            lengths = self.degrees[ends[begin:end]]
            owners = np.repeat(np.arange(end - begin), lengths)
            places = np.arange(len(owners)) + (indptr[ends[begin:end]] - (np.cumsum(lengths) - lengths))[owners]
            values = two.at(rows[begin:end][owners], self.steps.indices[places]) * self.steps.data[places]
            found[begin:end] = np.bincount(owners, values, minlength=end - begin)
        return found


@dataclass(frozen=True, eq=False)
class _DenseRows:
    """Rows of S² as the columns of a dense matrix."""

    columns: FloatArray

    def at(self, rows: IntArray, places: IntArray) -> FloatArray:
        values: FloatArray = self.columns[places, rows]
        return values


@dataclass(frozen=True, eq=False)
class _SparseRows:
    """Rows of S² by their entries, each with its number row·N + column, sorted."""

    keys: IntArray
    values: Doubles
    width: int

    @classmethod
    def of(cls, product: sp.csr_array) -> _SparseRows:
        product.sort_indices()
        rows = np.repeat(np.arange(product.shape[0], dtype=np.int64), np.diff(product.indptr))
        return cls(rows * product.shape[1] + product.indices, product.data, product.shape[1])

    def at(self, rows: IntArray, places: IntArray) -> Doubles:
        keys = rows * self.width + places
        found = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        values: Doubles = np.where(self.keys[found] == keys, self.values[found], 0.0)
        return values
