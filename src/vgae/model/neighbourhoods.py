"""The part of a graph that the embeddings of some nodes depend on, and what an encoder sees of it.

An encoder that multiplies by Ã K times needs for the outputs of nodes T the K sets

    R_K = T,   R_{k-1} = R_k and its neighbours,

and computes with Ã[R_k, R_{k-1}], the rows and columns of Ã itself, so that what it gives for T is what it gives for
them in the whole graph. Nodes are numbered from T outwards: each R_k is the first so many, and a product with as many
rows as R_{k-1} tells by that which hop it is. Where a set has no neighbours outside, hops stay in it, and T are its
first rows.

Hops that come before anything that is learned are made once: the features are then Ã^h X, and what is left are K - h.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.model import mapped
from vgae.model.encoders import EncoderSpec
from vgae.model.inputs import EncoderInputs, Features, Layout
from vgae.model.prepared import PreparedInputs, on_host, propagated
from vgae.ops import SparseMatrix

Nodes = npt.NDArray[np.int64]
MOST_FILLED = 8  # entries of ÃX for each of a sparse X, above which X is propagated in the step


class Hops(SparseMatrix):
    """Ã hop by hop: what has as many rows as R_{k-1} is multiplied by Ã[R_k, R_{k-1}]."""

    def __init__(self, matrix: sp.csr_array, counts: list[int], device: torch.device | str) -> None:
        self.shape = (counts[0], counts[0])
        self.by_rows: dict[int, SparseMatrix] = {}
        for columns, rows in pairwise(counts):
            end = matrix.indptr[rows]
            parts = matrix.data[:end], matrix.indices[:end], matrix.indptr[: rows + 1]
            if columns not in self.by_rows:
                hop = sp.csr_array(parts, shape=(rows, columns))
                self.by_rows[columns] = SparseMatrix(hop, device=device)

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self.by_rows[len(dense)] @ dense


class Neighbourhoods:
    """A graph as an encoder sees it, of which inputs for some nodes can be made."""

    def __init__(self, layout: Layout, encoder: EncoderSpec) -> None:
        if encoder.reach is None:
            raise TypeError(f"The encoder {encoder.name} does not say how far it looks.")
        self.layout, self.device = layout, layout.device
        self.propagation = on_host(layout.propagation)
        cost = encoder.cost(1, {"mean": 1})
        self.along = None
        if cost.along_links:
            outgoing = layout.directions.outgoing
            self.along = on_host(outgoing), on_host(outgoing.transposed())
        self.hops_done = _fixed_hops(layout, encoder, self.propagation)
        self.features = self._features(encoder)
        self.hops = encoder.reach - self.hops_done
        self.places = np.full(layout.graph.num_nodes, -1, np.int32)
        self.marks = np.zeros(layout.graph.num_nodes, np.int8)

    def _features(self, encoder: EncoderSpec) -> Any:
        """As the encoder takes them: a tensor, a sparse matrix on the host, or none."""
        graph = self.layout.graph
        if graph.features is None:
            return self.propagation if self.hops_done else None
        features = propagated(graph, encoder, self.propagation, self.hops_done)
        if sp.issparse(features):
            return features
        tensor = mapped.as_tensor(features)
        return tensor if mapped.is_mapped(graph.features) else tensor.to(self.device)

    def whole(self) -> EncoderInputs:
        """The inputs for all nodes at once."""
        if self.features is None:
            features: Features = None
        elif self.features is self.propagation:
            features = self.layout.propagation
        elif sp.issparse(self.features):
            features = SparseMatrix(self.features, device=self.device)
        else:
            features = self.features.to(self.device)
        return PreparedInputs(self.layout.propagation, features, self.layout, hops_done=self.hops_done)

    def around(self, nodes: Nodes) -> PreparedInputs:
        """Inputs of which the first rows of an encoder's outputs are those of these nodes."""
        found, counts = nodes, [len(nodes)]
        fresh = nodes
        for _ in range(self.hops):
            self.marks[self.propagation[fresh].indices] = 1
            self.marks[found] = 0
            fresh = np.flatnonzero(self.marks)
            self.marks[fresh] = 0
            found = np.concatenate([found, fresh])
            counts.insert(0, len(found))
        self.places[found] = np.arange(len(found), dtype=np.int32)
        inner = found[: counts[1] if self.hops else 0]
        hops = self._hops(self.propagation, inner, counts)
        along = None
        if self.along is not None:
            along = self._hops(self.along[0], inner, counts), self._hops(self.along[1], inner, counts)
        self.places[found] = -1
        return PreparedInputs(hops, self._rows(found), hops_done=self.hops_done, along=along)

    def _hops(self, matrix: sp.csr_array, nodes: Nodes, counts: list[int]) -> Hops:
        rows = matrix[nodes]
        local = sp.csr_array((rows.data, self.places[rows.indices], rows.indptr), shape=(len(nodes), counts[0]))
        return Hops(local, counts, self.device)

    def _rows(self, nodes: Nodes) -> Features:
        """The features of some nodes; without features, rows of I."""
        if isinstance(self.features, Tensor):
            index = torch.from_numpy(nodes).to(self.features.device)
            return self.features.index_select(0, index).to(self.device)
        if self.features is not None:
            return SparseMatrix(self.features[nodes], device=self.device)
        ones, starts = np.ones(len(nodes), np.float32), np.arange(len(nodes) + 1)
        shape = (len(nodes), len(self.places))
        return SparseMatrix(sp.csr_array((ones, nodes, starts), shape=shape), device=self.device)


def _fixed_hops(layout: Layout, encoder: EncoderSpec, propagation: sp.csr_array) -> int:
    """How many hops of the features are made once: of I and of a sparse X at most one, if that does not fill it."""
    features: Any = layout.graph.features
    if features is None:
        return min(encoder.fixed_hops, 1)
    if not sp.issparse(features):
        return encoder.fixed_hops
    # Of ÃX as a sparse matrix, were no column shared by neighbours; Ã has as many entries in a column as in a row.
    filled = np.diff(propagation.indptr).astype(np.int64) @ np.diff(features.indptr)
    filled = min(filled, features.shape[0] * features.shape[1])
    return min(encoder.fixed_hops, 1) if filled <= MOST_FILLED * features.nnz else 0
