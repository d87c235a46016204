"""What an encoder sees of a graph of which each process has some nodes: their rows of Ã and of X.

Without features X = I, and of W₀ each process has the rows of its nodes. Encoders do not know: they multiply by Ã, and
whatever else they do is done row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.features import normalize
from vgae.graph.graph import Graph
from vgae.model.encoders import EncoderSpec
from vgae.model.inputs import Features
from vgae.model.neighbourhoods import PreparedInputs
from vgae.ops import SparseMatrix
from vgae.parallel.draws import RowGenerator
from vgae.parallel.matrix import ShardedMatrix
from vgae.parallel.shards import Shards

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True, eq=False)
class ShardedInputs(PreparedInputs):
    """The inputs of some nodes; what is dropped of them is what one process would drop."""

    entries: range = range(0)  # of a sparse X, those of these nodes
    num_entries: int = 0

    def dropout(self, values: Tensor, rate: float) -> Tensor:
        """A share of the values set to zero, in a step of training."""
        if not rate or not isinstance(self.generator, RowGenerator):
            return values
        return values * (self.generator.uniform(values.shape, values.dtype) >= rate) / (1 - rate)

    def dropout_entries(self, matrix: SparseMatrix, rate: float) -> SparseMatrix:
        """The same with the stored entries of X."""
        if not rate or not isinstance(self.generator, RowGenerator):
            return matrix
        values = matrix.rows.values
        draws = self.generator.some(self.entries, self.num_entries, values.dtype)
        return matrix.with_values(values * (draws >= rate) / (1 - rate))


def sharded_inputs(graph: Graph, encoder: EncoderSpec, shards: Shards, group: Group) -> ShardedInputs:
    """The inputs of this process's nodes; agreed on by all processes."""
    propagation = ShardedMatrix(normalized_rows(graph, shards.own), shards, group)
    unit_rows = encoder.cost(1, {"mean": 1}).unit_rows
    features = features_of(graph, shards.own, group.device, unit_rows=unit_rows)
    if not isinstance(features, SparseMatrix):
        return ShardedInputs(propagation, features)
    starts: Any = graph.features.indptr  # type: ignore[union-attr]  # of features that are sparse
    entries = range(int(starts[shards.own.start]), int(starts[shards.own.stop]))
    return ShardedInputs(propagation, features, entries=entries, num_entries=int(starts[-1]))


def rows_with_loops(
    graph: Graph, rows: range, values: npt.NDArray[Any] | None = None, *, directed: bool = False
) -> sp.csr_array:
    """Some rows of A + I, columns sorted, with a value for each link, or one; of arcs where directions count."""
    links = graph.arcs if directed else graph.edges
    parts = [(np.arange(len(rows)), np.arange(rows.start, rows.stop), np.ones(len(rows)))]
    for source, target in ((0, 1),) if directed else ((0, 1), (1, 0)):
        here = np.flatnonzero((links[:, source] >= rows.start) & (links[:, source] < rows.stop))
        of_links = np.ones(len(here)) if values is None else values[here].astype(np.float64)
        parts.append((links[here, source] - rows.start, links[here, target], of_links))
    at, columns, data = (np.concatenate(each) for each in zip(*parts, strict=True))
    matrix = sp.csr_array(sp.coo_array((data, (at, columns)), shape=(len(rows), graph.num_nodes)))
    matrix.sort_indices()
    return matrix


def normalized_rows(graph: Graph, rows: range) -> sp.csr_array:
    """Some rows of Ã; of other nodes no more than the degrees are looked at."""
    degrees = np.ones(graph.num_nodes)
    for ends in graph.edges.T:
        degrees += np.bincount(ends, weights=graph.weights, minlength=graph.num_nodes)
    scale: Any = 1 / np.sqrt(degrees if graph.weights is not None else degrees.astype(np.float32))
    matrix = rows_with_loops(graph, rows, graph.weights)
    own = np.repeat(scale[rows.start : rows.stop], np.diff(matrix.indptr))
    data = (matrix.data.astype(scale.dtype) * (own * scale[matrix.indices])).astype(np.float32)
    return sp.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)


def features_of(graph: Graph, rows: range, device: torch.device, *, unit_rows: bool) -> Features:
    """X of some nodes."""
    given: Any = graph.features
    if given is None:
        return None
    part = given[rows.start : rows.stop]
    if unit_rows:
        part = normalize(part, "rows")
    return SparseMatrix(part, device=device) if sp.issparse(part) else torch.tensor(np.array(part), device=device)
