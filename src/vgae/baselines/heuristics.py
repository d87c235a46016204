"""Local heuristics: what the neighbourhoods of two nodes say about a link between them.

With Γ(i) the neighbours of i in the training graph and d their number:

    common neighbours         |Γ(i) ∩ Γ(j)|
    Adamic-Adar               Σ_{n ∈ Γ(i) ∩ Γ(j)} 1 / log d_n
    resource allocation       Σ_{n ∈ Γ(i) ∩ Γ(j)} 1 / d_n
    preferential attachment   d_i · d_j

The first three are entries of A·W·A with a diagonal W; only the entries asked for are computed, by multiplying rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs

CHUNK = 100_000  # pairs at a time, so that the rows in hand stay few


@dataclass(frozen=True, eq=False)
class NeighbourScorer:
    """Σ of a weight over the common neighbours of a pair."""

    adjacency: sp.csr_array
    weighted: sp.csr_array

    @classmethod
    def of(cls, graph: Graph, weights: npt.NDArray[np.float64]) -> "NeighbourScorer":
        """A scorer with a weight for each node in the role of the common neighbour."""
        return cls(graph.adjacency, sp.csr_array(graph.adjacency @ sp.diags_array(weights)))

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """The weighted number of common neighbours of each pair."""
        scores = np.empty(len(pairs), dtype=np.float32)
        for start in range(0, len(pairs), CHUNK):
            part = pairs[start : start + CHUNK]
            common = self.weighted[part[:, 0]] * self.adjacency[part[:, 1]]
            scores[start : start + CHUNK] = common.sum(axis=1)
        return scores


@dataclass(frozen=True, eq=False)
class DegreeScorer:
    """The product of the two degrees."""

    degrees: npt.NDArray[np.float64]

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """d_i·d_j for each pair."""
        return (self.degrees[pairs[:, 0]] * self.degrees[pairs[:, 1]]).astype(np.float32)


def common_neighbours(graph: Graph) -> NeighbourScorer:
    """|Γ(i) ∩ Γ(j)|."""
    return NeighbourScorer.of(graph, np.ones(graph.num_nodes))


def adamic_adar(graph: Graph) -> NeighbourScorer:
    """Rare common neighbours count more: 1 / log d."""
    # A common neighbour has at least two neighbours; below that the weight is never used.
    return NeighbourScorer.of(graph, 1 / np.log(np.maximum(_degrees(graph), 2)))


def resource_allocation(graph: Graph) -> NeighbourScorer:
    """Rare common neighbours count much more: 1 / d."""
    return NeighbourScorer.of(graph, 1 / np.maximum(_degrees(graph), 1))


def preferential_attachment(graph: Graph) -> DegreeScorer:
    """d_i·d_j."""
    return DegreeScorer(_degrees(graph))


def _degrees(graph: Graph) -> npt.NDArray[np.float64]:
    degrees: npt.NDArray[np.float64] = np.diff(graph.adjacency.indptr).astype(np.float64)
    return degrees
