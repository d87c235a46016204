"""What an encoder sees of a graph: the propagation matrix and the features, on a device.

    Ã = D^-½ (A + I) D^-½,   D the degrees of A + I

always of the training graph. Where links have weights, A holds them here, and D sums them. Sparse features stay sparse.
No features means X = I, which is never built.

In a step of training, links may be hidden from the encoder: each with the same probability, afresh in every step. Ã is
then that of the graph without them. `vgae.model.directions` has what goes along directed links.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.model.directions import Directions
from vgae.ops import SparseMatrix

Features = SparseMatrix | Tensor | None
BLOCK = 2**16  # rows of Ã that are scaled at a time


@dataclass(frozen=True, eq=False)
class EncoderInputs:
    """Ã and X; `features=None` stands for the identity.

    `layout` has what else can be made of the graph, once; `generator` is there in a step of training, and `kept` (of
    each edge, and of the diagonal) where links are hidden in it.
    """

    propagation: SparseMatrix
    features: Features
    layout: Layout | None = None
    generator: torch.Generator | None = None
    kept: Tensor | None = None
    hops_done: int = 0  # how often the features have been multiplied by Ã already

    @classmethod
    def from_graph(cls, graph: Graph, device: torch.device | str = "cpu") -> EncoderInputs:
        """Lay a graph out on a device."""
        return cls.of_layout(Layout(graph, device))

    @classmethod
    def of_layout(cls, layout: Layout) -> EncoderInputs:
        """Those of a graph that is laid out already."""
        return cls(layout.propagation, layout.features, layout)

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.propagation.shape[0]

    @property
    def input_dim(self) -> int:
        """Columns of X: D, or N where X = I."""
        return self.num_nodes if self.features is None else self.features.shape[1]

    @property
    def of_graph(self) -> Layout:
        """What else can be made of the graph; inputs that were put together by hand have none."""
        if self.layout is None:
            raise TypeError("These inputs were not made from a graph.")
        return self.layout

    @property
    def unit_features(self) -> Features:
        """X with rows of length one (rows of zeros stay); without features I, whose rows have that length."""
        if self.features is None:
            return None
        if isinstance(self.features, Tensor) and (self.layout is None or self.features is not self.layout.features):
            return torch.nn.functional.normalize(self.features, dim=1)  # not those of the graph
        return self.of_graph.unit_features

    @property
    def laplacian(self) -> SparseMatrix:
        """L = D - A of the graph, D the degrees of A."""
        return self.of_graph.laplacian

    @cached_property
    def outgoing(self) -> SparseMatrix:
        """D_out^-½ (A + I) D_in^-½ with the directions of the links: each node takes what its targets have.

        Inputs that were put together by hand know no directions, and have Ã.
        """
        if self.layout is None:
            return self.propagation
        along = self.layout.directions
        return along.outgoing if self.kept is None else along.masked(self.kept)

    @cached_property
    def incoming(self) -> SparseMatrix:
        """Its transpose: each node takes what its sources have."""
        return self.outgoing.transposed()

    def in_step(self, generator: torch.Generator, mask_links: float = 0.0) -> EncoderInputs:
        """What the encoder sees in one step of training, with a share of the links hidden from it."""
        if not mask_links:
            return replace(self, generator=generator)
        mask = self.of_graph.mask
        kept = mask.drawn(mask_links, generator)
        return replace(self, propagation=mask.propagation_of(kept), generator=generator, kept=kept)

    def dropout(self, values: Tensor, rate: float) -> Tensor:
        """In a step of training, values of which this share is set to zero and the rest scaled up; else as they are."""
        if not rate or self.generator is None:
            return values
        draws = torch.rand(values.shape, generator=self.generator, dtype=values.dtype, device=values.device)
        return values * (draws >= rate) / (1 - rate)

    def dropout_rows(self, values: Tensor, rate: float) -> Tensor:
        """The same with whole rows: what dropout of the entries of I makes of I @ values."""
        if not rate or self.generator is None:
            return values
        return values * self.dropout(torch.ones_like(values[:, :1]), rate)

    def dropout_entries(self, matrix: SparseMatrix, rate: float) -> SparseMatrix:
        """The same with the stored entries of a matrix; zeros stay zeros."""
        if not rate or self.generator is None:
            return matrix
        return matrix.with_values(self.dropout(matrix.rows.values, rate))


class Layout:
    """What can be made of a graph on a device, each when it is first asked for, and then kept."""

    def __init__(self, graph: Graph, device: torch.device | str) -> None:
        self.graph, self.device = graph, device

    @cached_property
    def propagation(self) -> SparseMatrix:
        """Ã."""
        return SparseMatrix(normalized_adjacency(self.graph), device=self.device, symmetric=True)

    @cached_property
    def features(self) -> Features:
        """X."""
        return laid_out(self.graph.features, self.device)

    @cached_property
    def unit_features(self) -> Features:
        """X with rows of length one."""
        return laid_out(self.graph.normalized("rows").features, self.device)

    @cached_property
    def laplacian(self) -> SparseMatrix:
        """L = D - A, D the degrees of A."""
        adjacency = self.graph.weighted_adjacency
        matrix = sp.diags_array(np.asarray(adjacency.sum(axis=1)).ravel()) - adjacency
        return SparseMatrix(sp.csr_array(matrix), device=self.device, symmetric=True)

    @cached_property
    def directions(self) -> Directions:
        """What goes along the links, and against them."""
        return Directions(self.graph, self.device)

    @cached_property
    def mask(self) -> Mask:
        """What hides links."""
        return Mask(self.graph, self.propagation, self.device)


class Mask:
    """Ã without some links: the same places as in Ã, other values, zero where a link is hidden."""

    def __init__(self, graph: Graph, propagation: SparseMatrix, device: torch.device | str) -> None:
        rows = propagation.rows
        counts = (rows.starts[1:] - rows.starts[:-1]).cpu().numpy()
        i, j = np.repeat(np.arange(graph.num_nodes), counts), rows.columns.cpu().numpy().astype(np.int64)
        edges = graph.edges[:, 0] * graph.num_nodes + graph.edges[:, 1]
        places = np.searchsorted(edges, np.minimum(i, j) * graph.num_nodes + np.maximum(i, j))
        places[i == j] = graph.num_edges  # which is never hidden
        weights = np.ones(graph.num_edges) if graph.weights is None else graph.weights
        kept: Any = np.append(weights, 1.0)[places].astype(np.float32)
        self.propagation, self.num_edges = propagation, graph.num_edges
        self.rows_of_entries = torch.tensor(i, device=device)
        self.columns = torch.tensor(j, device=device)
        self.places = torch.tensor(places, device=device)
        self.weights = torch.tensor(kept, device=device)
        self.ones = torch.ones(graph.num_nodes, 1, device=device)

    def drawn(self, share: float, generator: torch.Generator) -> Tensor:
        """Which edges stay where a random share is hidden, whatever their number; the diagonal, at the end, does."""
        draws = torch.rand(self.num_edges + 1, generator=generator, device=self.weights.device)
        draws[-1:].fill_(1.0)  # the diagonal; a kernel, which can be recorded, where assignment copies from the host
        return draws >= share

    def propagation_of(self, kept: Tensor) -> SparseMatrix:
        """Ã of the graph without the edges that are hidden."""
        values = self.weights * kept[self.places]
        degrees = (self.propagation.with_values(values) @ self.ones)[:, 0]
        scale = degrees.rsqrt()
        return self.propagation.with_values(values * (scale[self.rows_of_entries] * scale[self.columns]))


def laid_out(features: Any, device: torch.device | str) -> Features:
    """Features in the memory of a device."""
    if features is None:
        return None
    return SparseMatrix(features, device=device) if sp.issparse(features) else torch.tensor(features, device=device)


def normalized_adjacency(graph: Graph) -> sp.csr_array:
    """Ã of a graph."""
    matrix = _with_loops(graph)
    starts, columns, scale = matrix.indptr, matrix.indices, 1 / np.sqrt(matrix.sum(axis=1))
    data = matrix.data if matrix.dtype == np.float32 else np.empty(matrix.nnz, np.float32)
    for first in range(0, graph.num_nodes, BLOCK):  # so that scales are there for some entries at a time
        last = min(first + BLOCK, graph.num_nodes)
        entries = slice(int(starts[first]), int(starts[last]))
        own = np.repeat(scale[first:last], np.diff(starts[first : last + 1]))
        scales = own * scale[columns[entries]]
        data[entries] = matrix.data[entries] * scales  # in this order it is symmetric to the last bit
    return sp.csr_array((data, columns, starts), shape=matrix.shape)


def _with_loops(graph: Graph) -> sp.csr_array:
    """A + I by rows, columns sorted, with the weights of links that have some; A itself is not made for it."""
    num = graph.num_nodes
    kind: Any = np.float32 if graph.weights is None else np.float64  # sums of large weights may leave float32
    index = np.int32 if 2 * graph.num_edges + num < 2**31 else np.int64
    ends, itself = graph.edges.T, np.arange(num)
    rows, columns = (np.concatenate([*both, itself], dtype=index) for both in (ends, ends[::-1]))
    values = np.ones(len(rows), kind)
    if graph.weights is not None:
        values[: 2 * graph.num_edges] = np.tile(graph.weights, 2)
    matrix = sp.csr_array(sp.coo_array((values, (rows, columns)), shape=(num, num)))
    matrix.sort_indices()
    return matrix
