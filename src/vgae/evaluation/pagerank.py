"""Personalised PageRank: where a walk is that starts at a node, follows links at random and jumps back now and then.

    p_s = α e_s + (1 - α) A D⁻¹ p_s

with the probability α of a jump; a node without links keeps its walk. With p = D^½ y this is a symmetric system,

    (I - (1 - α) D^-½ A D^-½) y = α D^-½ e_s,

whose eigenvalues lie between α and 2 - α, so that Chebyshev's iteration solves it for many starts at once, as products
of a sparse and a dense matrix: the error falls by 0.56 in each step (α = 0.15), where a plain walk takes 0.85.
A start with a single link is a step behind its neighbour, p_s = α e_s + (1 - α) p_n, and is not solved for again.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray
from vgae.ops.sparse import SparseMatrix

FloatArray = npt.NDArray[np.float64]
JUMP = 0.15
PRECISION = 1e-7  # values are told apart to this, and what is below counts as 0


class PageRank:
    """PageRank from any nodes of a graph; a block of starts takes a few dense matrices of so many columns."""

    def __init__(self, graph: Graph, *, jump: float = JUMP) -> None:
        degrees = np.diff(graph.adjacency.indptr)
        self.jump = jump
        self.roots = np.sqrt(np.maximum(degrees, 1))
        scale = sp.diags_array(1 / self.roots)
        walks = sp.csr_array(scale @ graph.adjacency.astype(np.float64) @ scale) * (1 - jump)
        self.matrix = SparseMatrix(walks, symmetric=True)
        first = np.minimum(graph.adjacency.indptr[:-1], graph.adjacency.nnz - 1)  # of a node without links, any
        self.neighbour = np.where(degrees == 1, graph.adjacency.indices[first], np.arange(graph.num_nodes))

    def sources(self, nodes: IntArray) -> IntArray:
        """For each node the one whose PageRank tells its own."""
        return self.neighbour[nodes].astype(np.int64)

    def from_sources(self, sources: IntArray) -> FloatArray:
        """PageRank (len(sources)×N) of walks from each of these nodes."""
        solved = solve(self.matrix, sources, self.jump / self.roots[sources], self.jump)
        found: FloatArray = np.multiply(solved.T.numpy(), self.roots, dtype=np.float64)
        return found

    def of(self, node: int, from_source: FloatArray) -> FloatArray:
        """PageRank from a node, given that from its source, in steps of the precision."""
        found = from_source
        if self.neighbour[node] != node:
            found = (1 - self.jump) * from_source
            found[node] += self.jump
        return np.round(found / PRECISION)


def num_steps(jump: float = JUMP) -> int:
    """Steps of Chebyshev's iteration until the error is below a fifth of the precision."""
    walk = 1 - jump
    return math.ceil(math.log(PRECISION / 5) / math.log((1 - math.sqrt(1 - walk**2)) / walk))


@torch.no_grad()
def solve(matrix: SparseMatrix, sources: IntArray, heights: FloatArray, jump: float = JUMP) -> Tensor:
    """Y (N×len(sources)) with (I - W) Y = B by Chebyshev's iteration; the eigenvalues of W lie within ±(1 - α).

    y_{k+1} = y_{k-1} + ω_k (W y_k + b - y_{k-1}), with b not 0 at the source alone, where it has the height given.
    """
    walk = 1 - jump
    places = torch.from_numpy(sources), torch.arange(len(sources))
    raised = torch.tensor(heights, dtype=torch.float32)
    before = torch.zeros(matrix.shape[0], len(sources))
    now = before.clone()
    now[places] = raised
    omega = 2.0
    for _ in range(num_steps(jump)):
        omega = 1 / (1 - walk**2 * omega / 4)
        before.lerp_(matrix @ now, omega)
        before[places] += omega * raised
        before, now = now, before
    return now
