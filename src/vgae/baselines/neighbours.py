"""Common neighbours, Adamic-Adar and resource allocation (`heuristics.py`), of one lookup."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from vgae.baselines.heuristics import (
    Neighbourhoods,
    Weights,
    adamic_adar,
    common_neighbours,
    resource_allocation,
)
from vgae.baselines.similarity import FloatArray, Similarity
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs


@dataclass(frozen=True, eq=False)
class Neighbours(Similarity):
    """The number of common neighbours, and their sums of 1 / log d and of 1 / d."""

    title: ClassVar[str] = "common neighbours"
    columns: ClassVar[tuple[str, ...]] = ("cn", "aa", "ra")
    titles: ClassVar[tuple[str, ...]] = ("common neighbours", "Adamic-Adar", "resource allocation")

    neighbourhoods: Neighbourhoods
    weights: tuple[Weights, ...]  # of each node as a common neighbour, for each column

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """The neighbourhoods of a graph."""
        scorers = [make(graph) for make in (common_neighbours, adamic_adar, resource_allocation)]
        return cls(scorers[0].neighbourhoods, tuple(scorer.weights for scorer in scorers))

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.neighbourhoods.adjacency.shape[0])

    def _describe(self, pairs: Pairs) -> list[FloatArray]:
        return self.neighbourhoods.sums(pairs, self.weights)
