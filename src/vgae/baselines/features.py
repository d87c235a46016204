"""Feature cosine: how much alike the features of two nodes are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.baselines.heuristics import chunks
from vgae.errors import InputError
from vgae.graph.features import normalize
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.ops import Factors

CHUNK = 4_000_000  # numbers of rows of features in hand at a time


@dataclass(frozen=True, eq=False)
class FeatureScorer:
    """Features of unit length, dense or sparse, scored by their inner products."""

    directions: npt.NDArray[np.float32] | sp.csr_array
    symmetric: bool = True

    @classmethod
    def of(cls, graph: Graph) -> FeatureScorer:
        """A scorer by a graph's features; a node without any is like none."""
        if graph.features is None:
            raise InputError("The cosine of features needs features, and the graph has none.")
        return cls(normalize(graph.features, "rows"))

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """The cosine of the features of each pair."""
        scores = np.empty(len(pairs), dtype=np.float32)
        for start, stop in chunks(self._sizes(pairs), CHUNK):
            left, right = (self.directions[pairs[start:stop, end]] for end in (0, 1))
            scores[start:stop] = np.asarray((left * right).sum(axis=1)).ravel()
        return scores

    def rows(self) -> Factors | FeatureRows:
        """The same for all pairs of some rows."""
        if isinstance(self.directions, np.ndarray):
            return Factors(torch.from_numpy(self.directions))
        return FeatureRows(self.directions)

    def num_numbers(self, pairs: Pairs) -> int:
        """Numbers in the rows of features of all these pairs."""
        return int(self._sizes(pairs).sum())

    def _sizes(self, pairs: Pairs) -> npt.NDArray[np.int64]:
        """Numbers in the rows of the two ends of each pair."""
        if isinstance(self.directions, np.ndarray):
            return np.full(len(pairs), 2 * self.directions.shape[1], dtype=np.int64)
        sizes: npt.NDArray[np.int64] = np.diff(self.directions.indptr).astype(np.int64)
        return np.asarray(sizes[pairs].sum(axis=1))


@dataclass(frozen=True, eq=False)
class FeatureRows:
    """Rows of X·Xᵀ for sparse features of unit length."""

    directions: sp.csr_array

    @property
    def device(self) -> torch.device:
        """SciPy multiplies on the CPU."""
        return torch.device("cpu")

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.directions.shape[0])

    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        """Some rows from a column on, as a dense tensor."""
        dense = (self.directions[rows.numpy()] @ self.directions[first:].T).toarray()
        return torch.from_numpy(np.ascontiguousarray(dense))
