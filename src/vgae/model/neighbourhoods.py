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

from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class PreparedInputs(EncoderInputs):
    """Inputs whose features are what the encoder takes: of length one, or multiplied by Ã, where it wants them so."""

    along: tuple[SparseMatrix, SparseMatrix] | None = None

    @property
    def unit_features(self) -> Features:
        """The features, which have been brought to length one before."""
        return self.features

    @property
    def outgoing(self) -> SparseMatrix:
        """Along the links."""
        return super().outgoing if self.along is None else self.along[0]

    @property
    def incoming(self) -> SparseMatrix:
        """Against them."""
        return super().incoming if self.along is None else self.along[1]


class Neighbourhoods:
    """A graph as an encoder sees it, of which inputs for some nodes can be made."""

    def __init__(self, layout: Layout, encoder: EncoderSpec) -> None:
        if encoder.reach is None:
            raise TypeError(f"The encoder {encoder.name} does not say how far it looks.")
        self.layout, self.device = layout, layout.device
        self.propagation = _on_host(layout.propagation)
        cost = encoder.cost(1, {"mean": 1})
        self.along = None
        if cost.along_links:
            outgoing = layout.directions.outgoing
            self.along = _on_host(outgoing), _on_host(outgoing.transposed())
        self.features, self.hops_done = _prepared(layout, encoder, self.propagation, unit_rows=cost.unit_rows)
        self.hops = encoder.reach - self.hops_done
        self.places = np.full(layout.graph.num_nodes, -1, np.int32)
        self.marks = np.zeros(layout.graph.num_nodes, np.int8)

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


def _prepared(layout: Layout, encoder: EncoderSpec, propagation: sp.csr_array, *, unit_rows: bool) -> tuple[Any, int]:
    """The features that an encoder takes, a tensor, a sparse matrix on the host or none, and how many hops are done."""
    given: Any = layout.graph.features
    fixed = encoder.fixed_hops
    if given is None:
        return (propagation, 1) if fixed else (None, 0)
    if sp.issparse(given):
        features: Any = layout.graph.normalized("rows").features if unit_rows else given
        # Of ÃX as a sparse matrix, were no column shared by neighbours; Ã has as many entries in a column as in a row.
        filled = np.diff(propagation.indptr).astype(np.int64) @ np.diff(features.indptr)
        filled = min(filled, features.shape[0] * features.shape[1])
        if not fixed or filled > MOST_FILLED * features.nnz:
            return features, 0
        return sp.csr_array(propagation @ features), 1
    features = mapped.unit_rows(given) if unit_rows else given
    for _ in range(fixed):
        features = mapped.product(propagation, features)
    tensor = mapped.as_tensor(features)
    return (tensor if mapped.is_mapped(given) else tensor.to(layout.device)), fixed


def _on_host(matrix: SparseMatrix) -> sp.csr_array:
    """The same numbers for SciPy, without a copy where they are on the host already."""
    rows = matrix.rows
    parts = (rows.values, rows.columns, rows.starts)
    data, columns, starts = (part.cpu().numpy() for part in parts)
    return sp.csr_array((data, columns, starts), shape=matrix.shape)
