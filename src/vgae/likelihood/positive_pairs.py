"""The pairs that are observed to be linked: the ones of L = A + I, the diagonal included."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.graph.graph import Graph


@dataclass(frozen=True, eq=False)
class PositivePairs:
    """The pairs where L is one. A symmetric decoder sees each edge once and counts it twice."""

    pairs: Tensor
    multiplicity: Tensor

    @classmethod
    def of(cls, graph: Graph, *, symmetric: bool, device: torch.device | str) -> PositivePairs:
        """Those of a training graph."""
        edges = torch.tensor(graph.edges.T, device=device)
        diagonal = torch.arange(graph.num_nodes, device=device).expand(2, -1)
        blocks = [edges, diagonal] if symmetric else [edges, edges.flip(0), diagonal]
        pairs = torch.cat(blocks, dim=1).T
        multiplicity = torch.ones(len(pairs), device=device)
        if symmetric:
            multiplicity[: graph.num_edges] = 2
        return cls(pairs, multiplicity)

    def sum(self, values: Tensor) -> Tensor:
        """Σ over the ones of L of a value for each of `pairs`."""
        return self.multiplicity.to(values.dtype) @ values
