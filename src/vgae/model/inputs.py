"""What an encoder sees of a graph: the propagation matrix and the features, on a device.

    Ã = D^-½ (A + I) D^-½,   D the degrees of A + I

always of the training graph. Where links have weights, A holds them here, and D sums them. Sparse features stay sparse.
No features means X = I, which is never built.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.ops import SparseMatrix


@dataclass(frozen=True, eq=False)
class EncoderInputs:
    """Ã and X; `features=None` stands for the identity."""

    propagation: SparseMatrix
    features: SparseMatrix | Tensor | None

    @classmethod
    def from_graph(cls, graph: Graph, device: torch.device | str = "cpu") -> EncoderInputs:
        """Lay a graph out on a device."""
        features: SparseMatrix | Tensor | None = None
        if sp.issparse(graph.features):
            features = SparseMatrix(graph.features, device=device)
        elif graph.features is not None:
            features = torch.tensor(graph.features, device=device)
        return cls(SparseMatrix(normalized_adjacency(graph), device=device, symmetric=True), features)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.propagation.shape[0]

    @property
    def input_dim(self) -> int:
        """Columns of X: D, or N where X = I."""
        return self.num_nodes if self.features is None else self.features.shape[1]


def normalized_adjacency(graph: Graph) -> sp.csr_array:
    """Ã of a graph."""
    kind = np.float32 if graph.weights is None else np.float64  # sums of large weights may leave float32
    loops = sp.eye_array(graph.num_nodes, dtype=kind, format="csr")
    with_loops = graph.weighted_adjacency.astype(kind, copy=False) + loops
    scale = 1 / np.sqrt(with_loops.sum(axis=1))
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(with_loops.indptr))
    data = with_loops.data * (scale[rows] * scale[with_loops.indices])  # in this order it is symmetric to the last bit
    result = sp.csr_array((data.astype(np.float32), with_loops.indices, with_loops.indptr), shape=with_loops.shape)
    result.sort_indices()
    return result
