"""The pairs that are observed to be linked: the ones of L = A + I, or of A where the diagonal is not observed.

The ones of A are the arcs of the graph: both ways of each link, or of a directed graph those ways that there are. A
symmetric decoder has one logit for both ways, and sees a directed graph as an undirected one.

Links with weights in (0, 1] can be observed in part: a soft label y is a one with weight y and a zero with 1 - y.

Decoders with factors sum over the ones of A + I row by row (`ones_of`); others need them as a list (`PositivePairs`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.arcs import matrix_of
from vgae.graph.graph import Graph
from vgae.ops.entries import Ones

EVERY = slice(None)


@dataclass(frozen=True)
class Observed:
    """What of a graph is observed: with or without each node's link to itself, links as ones or by their weights."""

    diagonal: bool = True
    soft: bool = False

    def labels(self, graph: Graph) -> np.ndarray | None:
        """A label in (0, 1] for each link (arcs of a directed graph, else edges); None where all are one."""
        if not self.soft:
            return None
        weights = graph.arc_weights if graph.directed else graph.weights
        if weights is None:
            raise InputError("soft_labels: the links have no weights; name their column (weight), or leave this out.")
        outside = weights > 1
        if outside.any():
            i, j = graph.ids_of(graph.links[int(outside.argmax())]).tolist()
            raise InputError(
                f"soft_labels: the link between {i} and {j} has the weight {weights[outside][0]:g}; "
                "as labels, weights have to be above 0 and at most 1."
            )
        return weights

    def num_ones(self, graph: Graph) -> float:
        """S, the sum of the labels off the diagonal."""
        labels = self.labels(graph)
        if labels is None:
            return graph.num_arcs
        return (1 if graph.directed else 2) * float(labels.sum(dtype=np.float64))


@dataclass(frozen=True, eq=False)
class PositivePairs:
    """The pairs where L is above zero. A symmetric decoder sees each edge once and counts it twice."""

    pairs: Tensor
    multiplicity: Tensor  # times the label
    zeros: Tensor | None = None  # how often the pair counts as a zero, where labels are soft

    @classmethod
    def of(
        cls, graph: Graph, *, symmetric: bool, device: torch.device | str, observed: Observed | None = None
    ) -> PositivePairs:
        """Those of a training graph."""
        observed, graph = observed or Observed(), graph.as_scored(symmetric=symmetric)
        links = torch.tensor(graph.links.T, device=device)
        times = 1 if symmetric or graph.directed else 2  # that a link's label is there
        blocks = [links] if times == 1 else [links, links.flip(0)]
        if observed.diagonal:
            blocks.append(diagonal_of(graph, device).T)
        pairs = torch.cat(blocks, dim=1).T
        multiplicity = torch.ones(len(pairs), device=device)
        if symmetric:
            multiplicity[: graph.num_edges] = 2
        given = observed.labels(graph)
        if given is None:
            return cls(pairs, multiplicity)
        labels = torch.ones(len(pairs), device=device)
        labels[: times * graph.num_links] = torch.tensor(np.tile(given, times), dtype=labels.dtype, device=device)
        return cls(pairs, multiplicity * labels, multiplicity * (1 - labels))

    def sum(self, values: Tensor, part: slice = EVERY) -> Tensor:
        """Σ L_ij v_ij over the ones of L, or a part of them, of a value for each of these `pairs`."""
        return self.multiplicity[part].to(values.dtype) @ values


def ones_of(graph: Graph, *, symmetric: bool, device: torch.device | str, observed: Observed | None = None) -> Ones:
    """The entries of A + I by rows, with their labels where these are soft; whether the diagonal is observed or not."""
    observed, graph = observed or Observed(), graph.as_scored(symmetric=symmetric)
    labels = observed.labels(graph)
    if graph.directed:
        values = np.ones(graph.num_arcs, dtype=np.float32) if labels is None else labels
        matrix = matrix_of(graph.arcs, values, graph.num_nodes)
    else:
        matrix = graph.adjacency if labels is None else graph.weighted_adjacency
    matrix = sp.csr_array(matrix.astype(np.float32, copy=False) + sp.eye_array(graph.num_nodes, dtype=np.float32))
    matrix.sort_indices()
    return Ones.of(matrix, device, symmetric=not graph.directed, labelled=labels is not None)


def diagonal_of(graph: Graph, device: torch.device | str) -> Tensor:
    """Each node with itself (N×2)."""
    return torch.arange(graph.num_nodes, device=device).expand(2, -1).T
