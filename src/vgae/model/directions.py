"""Propagation along directed links, and against them.

    Ã_out = D_out^-½ (A + I) D_in^-½,   Ã_in = Ã_outᵀ,   D_out and D_in the row and column sums of A + I

where A has a one, or the weight, at (source, target). Ã_out H gives each node what the nodes have that it links to,
Ã_in H what those have that link to it. Of an undirected graph both are Ã.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.checks import BOTH
from vgae.graph.graph import Graph
from vgae.ops import SparseMatrix


class Directions:
    """Ã_out of a graph on a device, also without some of the links."""

    def __init__(self, graph: Graph, device: torch.device | str) -> None:
        self.graph, self.device = graph, device

    @cached_property
    def outgoing(self) -> SparseMatrix:
        """Ã_out."""
        loops = sp.eye_array(self.graph.num_nodes, dtype=np.float64, format="csr")
        matrix = sp.csr_array(self.graph.directed_adjacency.astype(np.float64) + loops)
        matrix.sort_indices()
        out, into = (1 / np.sqrt(np.asarray(matrix.sum(axis=axis)).ravel()) for axis in (1, 0))
        rows = np.repeat(np.arange(self.graph.num_nodes), np.diff(matrix.indptr))
        matrix.data = matrix.data * (out[rows] * into[matrix.indices])
        return SparseMatrix(matrix.astype(np.float32), device=self.device)

    @cached_property
    def entries(self) -> _Entries:
        """What the places of Ã_out stand for."""
        return _Entries(self.graph, self.outgoing, self.device)

    def masked(self, kept: Tensor) -> SparseMatrix:
        """Ã_out of the graph without the edges that are hidden; `kept` says which stay, and at its end the diagonal."""
        at, values = self.entries, self.entries.weights * kept[self.entries.edges]
        bare = self.outgoing.with_values(values)
        out, into = (bare @ at.ones)[:, 0].rsqrt(), (bare.transposed() @ at.ones)[:, 0].rsqrt()
        return self.outgoing.with_values(values * (out[at.rows] * into[at.columns]))


class _Entries:
    """Rows, columns, edges and weights of the places of a matrix of arcs and the diagonal, laid out by rows."""

    def __init__(self, graph: Graph, matrix: SparseMatrix, device: torch.device | str) -> None:
        counts = (matrix.rows.starts[1:] - matrix.rows.starts[:-1]).cpu().numpy()
        i = np.repeat(np.arange(graph.num_nodes), counts)
        j = matrix.rows.columns.cpu().numpy().astype(np.int64)
        edges = graph.edges[:, 0] * graph.num_nodes + graph.edges[:, 1]
        places = np.searchsorted(edges, np.minimum(i, j) * graph.num_nodes + np.maximum(i, j))
        places[i == j] = graph.num_edges  # the diagonal
        of_edge: Any = np.ones(graph.num_edges) if graph.weights is None else graph.weights
        if graph.weights is not None and graph.directions is not None:
            of_edge = of_edge / np.where(graph.directions == BOTH, 2, 1)  # of each of the two arcs
        weights: Any = np.append(of_edge, 1.0)[places].astype(np.float32)
        self.rows, self.columns = torch.tensor(i, device=device), torch.tensor(j, device=device)
        self.edges, self.weights = torch.tensor(places, device=device), torch.tensor(weights, device=device)
        self.ones = torch.ones(graph.num_nodes, 1, device=device)
