"""What the degrees of two nodes say, in a form that does not depend on their order:

    log(1 + d_i) + log(1 + d_j),   |log(1 + d_i) - log(1 + d_j)|,   log(1 + min(d_i, d_j))

They know more than one might want: in a network without isolated nodes, a node that has no link in the training graph
must have one that was held out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from vgae.baselines.similarity import Doubles, Similarity, degrees_of
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs


@dataclass(frozen=True, eq=False)
class Degrees(Similarity):
    """Sum, difference and minimum of the logarithms of one more than the degrees."""

    title: ClassVar[str] = "degrees"
    columns: ClassVar[tuple[str, ...]] = ("degree_sum", "degree_difference", "degree_least")
    titles: ClassVar[tuple[str, ...]] = (
        "sum of the log degrees",
        "difference of the log degrees",
        "the smaller log degree",
    )

    logs: Doubles  # log(1 + d)

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """The degrees of a graph."""
        return cls(np.log1p(degrees_of(graph).astype(np.float64)))

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.logs)

    def _describe(self, pairs: Pairs) -> list[Doubles]:
        first, second = self.logs[pairs[:, 0]], self.logs[pairs[:, 1]]
        return [first + second, np.abs(first - second), np.minimum(first, second)]
