"""What an encoder sees of a graph of which each process has some nodes: their rows of Ã and of X.

Without features X = I, and of W₀ each process has the rows of its nodes. Encoders do not know: they multiply by Ã, and
whatever else they do is done row by row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.features import normalize
from vgae.graph.graph import Graph
from vgae.model.encoders import EncoderSpec
from vgae.model.inputs import EncoderInputs, Features
from vgae.model.prepared import PreparedInputs
from vgae.ops import SparseMatrix
from vgae.parallel.draws import RowGenerator
from vgae.parallel.halo import Halo
from vgae.parallel.mail import counts_of
from vgae.parallel.matrix import ShardedMatrix, divided
from vgae.parallel.part import GraphPart
from vgae.parallel.shards import Shards

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True, eq=False)
class ShardedInputs(PreparedInputs):
    """The inputs of some nodes; what is dropped of them is what one process would drop."""

    entries: range = range(0)  # of a sparse X, those of these nodes
    num_entries: int = 0
    mask: ShardedMask | None = None  # where links are hidden in steps of training

    @property
    def halo(self) -> Halo:
        """The rows of others that own rows of Ã need."""
        if not isinstance(self.propagation, ShardedMatrix):
            raise TypeError("These inputs are not those of a process of a group.")
        return self.propagation.halo

    def in_step(self, generator: torch.Generator, mask_links: float = 0.0) -> EncoderInputs:
        """What the encoder sees in one step of training, with a share of the links hidden from it."""
        if not mask_links or self.mask is None:
            return super().in_step(generator)
        return replace(self, propagation=self.mask.propagation(mask_links, generator), generator=generator)

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


class ShardedMask:
    """Own rows of Ã without some links, as vgae.model.inputs.Mask has all rows; degrees are those of what is left."""

    def __init__(self, graph: Graph, propagation: ShardedMatrix) -> None:
        halo, own = propagation.halo, propagation.halo.shards.own
        self.matrix, self.num_edges = propagation, graph.num_edges
        numbers = rows_with_loops(graph, own, np.arange(graph.num_edges), loops=graph.num_edges)
        weights = rows_with_loops(graph, own, graph.weights)
        device = halo.group.device
        # Of each entry, inside and outside: its row and column, which edge it is, and its weight.
        self.parts = [
            tuple(
                torch.from_numpy(each).to(device)
                for each in (
                    np.repeat(np.arange(len(own)), np.diff(of_numbers.indptr)),
                    of_numbers.indices.astype(np.int64),
                    of_numbers.data.astype(np.int64),
                    of_weights.data.astype(np.float32),
                )
            )
            for of_numbers, of_weights in zip(divided(numbers, halo), divided(weights, halo), strict=True)
        ]

    def propagation(self, share: float, generator: torch.Generator) -> ShardedMatrix:
        """Ã of the graph without a random share of its links; the draw is one of all links, in every process."""
        halo, matrix = self.matrix.halo, self.matrix
        draws = torch.rand(self.num_edges + 1, generator=generator, device=halo.group.device)
        draws[-1:].fill_(1.0)  # the diagonal, which is never hidden
        kept = draws >= share
        inside, outside = (weights * kept[places] for _, _, places, weights in self.parts)
        degrees = matrix.shape[0], len(halo.needed)
        left = matrix.with_parts(inside, outside)
        ones = [torch.ones(number, 1, device=halo.group.device) for number in degrees]
        scale = (left.inside @ ones[0] + left.outside.times(ones[1]))[:, 0].rsqrt()
        scales = scale, halo.send(scale[:, None]).wait()[:, 0]
        values = [
            given * (scale[rows] * of_columns[columns])
            for given, of_columns, (rows, columns, _, _) in zip((inside, outside), scales, self.parts, strict=True)
        ]
        return matrix.with_parts(*values)


def sharded_inputs(
    graph: Graph, encoder: EncoderSpec, shards: Shards, group: Group, *, masked: bool = False
) -> ShardedInputs:
    """The inputs of this process's nodes, agreed on by all processes; links can be hidden where they are `masked`."""
    propagation = ShardedMatrix(normalized_rows(graph, shards.own), shards, group)
    mask = ShardedMask(graph, propagation) if masked else None
    unit_rows = encoder.cost(1, {"mean": 1}).unit_rows
    features = features_of(graph, shards.own, group.device, unit_rows=unit_rows)
    if not isinstance(features, SparseMatrix):
        return ShardedInputs(propagation, features, mask=mask)
    entries = entries_of(graph, shards, group)
    return ShardedInputs(propagation, features, entries=entries, num_entries=graph.num_feature_entries, mask=mask)


def entries_of(graph: Graph, shards: Shards, group: Group) -> range:
    """Which of the entries of a sparse X are in own rows."""
    features: Any = graph.features
    if isinstance(graph, GraphPart):
        ends = np.cumsum(counts_of(group, features.nnz)).tolist()
        return range(ends[group.rank] - features.nnz, ends[group.rank])
    return range(int(features.indptr[shards.own.start]), int(features.indptr[shards.own.stop]))


def rows_with_loops(
    graph: Graph,
    rows: range,
    values: npt.NDArray[Any] | None = None,
    *,
    directed: bool = False,
    loops: float = 1.0,
) -> sp.csr_array:
    """Some rows of A + I, columns sorted, with a value for each link, or one; of arcs where directions count."""
    links = graph.arcs if directed else graph.edges
    parts = [(np.arange(len(rows)), np.arange(rows.start, rows.stop), np.full(len(rows), float(loops)))]
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
    degrees = 1 + graph.degrees(weighted=True)
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
    part = given if isinstance(graph, GraphPart) else given[rows.start : rows.stop]  # which has no others
    if unit_rows:
        part = normalize(part, "rows")
    return SparseMatrix(part, device=device) if sp.issparse(part) else torch.tensor(np.array(part), device=device)
