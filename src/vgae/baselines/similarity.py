"""What a similarity is: numbers for a pair of nodes that may speak for a link, made of a graph alone, nothing fitted.

Pairs are M×2 node indices, the two nodes different and in either order: each pair is described with its smaller index
first, so that both orders have the same bits. Links count once each, whatever their weight or direction, as for the
heuristics. What a similarity says of a link of the graph itself, it says with that link in place.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.evaluation.evaluate import RowScorer
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, canonical, check_pairs

BLOCK = 4_000_000  # entries of a dense block, as far as that leaves columns enough to be fast
NARROW, WIDE = 16, 64  # columns of a dense block: fewer waste a pass over the graph, more leave the caches

FloatArray = npt.NDArray[np.float32]
Doubles = npt.NDArray[np.float64]


class Similarity(ABC):
    """A few numbers for each pair of nodes; `title` says what they are, and `titles` what each column is."""

    title: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    titles: ClassVar[tuple[str, ...]]
    needs_features: ClassVar[bool] = False

    @classmethod
    @abstractmethod
    def of(cls, graph: Graph) -> Self:
        """The similarity of the nodes of a graph."""

    @property
    @abstractmethod
    def num_nodes(self) -> int:
        """N."""

    @abstractmethod
    def _describe(self, pairs: Pairs) -> Sequence[FloatArray | Doubles]:
        """A value of each column for each pair, which has its smaller index first."""

    def describe(self, pairs: npt.ArrayLike) -> FloatArray:
        """All columns for each of M pairs, M×C, finite."""
        checked = canonical(check_pairs(pairs, self.num_nodes))
        described = np.empty((len(checked), len(self.columns)), dtype=np.float32)
        if len(checked):
            for column, values in enumerate(self._describe(checked)):
                described[:, column] = values
        return described

    def row_scorer(self) -> RowScorer | None:
        """What ranks all pairs at the cost of a product of matrices, where the similarity has such a part."""
        return None


@dataclass(frozen=True, eq=False)
class CpuRows:
    """Rows of a similarity, made on the CPU: `make` is given some rows and the first column."""

    num_nodes: int
    make: Callable[[IntArray, int], Tensor]

    @property
    def device(self) -> torch.device:
        """Where rows are made."""
        return torch.device("cpu")

    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        """Some rows from a column on, as a dense tensor."""
        return self.make(rows.numpy(), first)


def require_features(graph: Graph, title: str) -> None:
    """Refuse a graph without features."""
    if graph.features is None:
        raise InputError(f"{title}: the graph has no features; leave this similarity out.")


def degrees_of(graph: Graph) -> IntArray:
    """d, the number of neighbours of each node."""
    degrees: IntArray = np.diff(graph.adjacency.indptr).astype(np.int64)
    return degrees


def normalized_adjacency(graph: Graph, *, self_loops: bool = False) -> sp.csr_array:
    """D^-½ A D^-½ in double precision or, with self-loops, D^-½ (A + I) D^-½ with D their degrees; indices sorted."""
    adjacency = sp.csr_array(graph.adjacency, dtype=np.float64)
    if self_loops:
        adjacency = sp.csr_array(adjacency + sp.eye_array(graph.num_nodes, format="csr"))
    scale = 1 / np.sqrt(np.maximum(np.diff(adjacency.indptr), 1))
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(adjacency.indptr))
    values = scale[rows] * scale[adjacency.indices]  # one product for both directions, so symmetric to the bit
    normalized = sp.csr_array((values, adjacency.indices, adjacency.indptr), shape=adjacency.shape)
    normalized.sort_indices()
    return normalized


def starts_first(pairs: Pairs, of_start: Doubles, of_end: Doubles) -> tuple[IntArray, IntArray]:
    """The two ends of each pair: first the one to start at, by the work of each node as a start and as an end.

    Pairs that start at the same node share that work, so that what many pairs have in common becomes their start.
    """
    first, second = pairs[:, 0], pairs[:, 1]
    share = of_start / np.maximum(np.bincount(pairs.ravel(), minlength=len(of_start)), 1)
    keep = share[first] + of_end[second] <= share[second] + of_end[first]
    return np.where(keep, first, second), np.where(keep, second, first)


def groups(starts: IntArray, size: int) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
    """Some different starts at a time, the places of the pairs that have them, and which of them each of those has."""
    order = np.argsort(starts, kind="stable")
    distinct, first = np.unique(starts[order], return_index=True)
    bounds = np.append(first, len(starts))
    for begin in range(0, len(distinct), size):
        end = min(begin + size, len(distinct))
        places = order[bounds[begin] : bounds[end]]
        yield distinct[begin:end], places, np.searchsorted(distinct[begin:end], starts[places])


def block_width(num_nodes: int) -> int:
    """How many columns a dense block of N rows has."""
    return int(np.clip(BLOCK // max(num_nodes, 1), NARROW, WIDE))
