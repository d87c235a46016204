"""A graph of which each process has some links, and none has all.

Its links, canonical and sorted, lie one process after the other. What a `Graph` says of itself in numbers (nodes,
edges, its hash) is said of all of it; its `edges`, `weights` and `directions` are those of this process. For a training
they go to the processes that have their nodes (`on`): a link between two processes is then in both.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.graph.checks import BOTH, DirectionArray, FloatArray
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.parallel.mail import Mail, collected, counts_of, streamed, tensor_of

if TYPE_CHECKING:
    from vgae.parallel.group import Group
    from vgae.parallel.numbering import OwnIds
    from vgae.parallel.shards import Shards


@dataclass(frozen=True, eq=False)
class Whole:
    """What every process knows of all of a graph."""

    group: Group
    num_edges: int
    num_arcs: int
    content_hash: str
    undirected_hash: str  # without the directions
    ids: OwnIds | None = None


class GraphPart(Graph):
    """The links of a graph that this process has, without features. Make it with `of_links`."""

    whole: Whole
    own: range | None = None  # the nodes whose links they are; None: links in their order, each in one process

    @classmethod
    def of_links(
        cls,
        group: Group,
        num_nodes: int,
        edges: Pairs,
        weights: FloatArray | None,
        directions: DirectionArray | None = None,
        *,
        cleaning: Cleaning | None = None,
        ids: OwnIds | None = None,
    ) -> GraphPart:
        """Made by all processes of their links, which are sorted, and before those of the next process."""
        num_edges = sum(counts_of(group, len(edges)))
        num_both = 0 if directions is None else int(np.count_nonzero(directions == BOTH))
        num_arcs = 2 * num_edges if directions is None else num_edges + sum(counts_of(group, num_both))
        content, undirected = group.share(_hashes(group, num_nodes, num_edges, edges, weights, directions))
        given = cleaning or Cleaning(rows_given=num_edges if directions is None else num_arcs)
        whole = Whole(group, num_edges, num_arcs, content, undirected, ids)
        fields = {"num_nodes": num_nodes, "edges": edges, "weights": weights, "directions": directions}
        return cls._made(whole, None, **fields, cleaning=given)

    @classmethod
    def _made(cls, whole: Whole, own: range | None, **fields: Any) -> GraphPart:
        """One that is not checked: of its links there may be none here."""
        made = object.__new__(cls)
        others = dict.fromkeys(("features", "labels", "node_ids", "sides"))
        for name, value in {**others, **fields, "whole": whole, "own": own}.items():
            object.__setattr__(made, name, value)
        return made

    def _derived(self, **changes: Any) -> Graph:
        if any(value is not None for value in changes.values()):
            raise TypeError(f"A graph in parts cannot have other {', '.join(changes)}.")
        if "directions" not in changes or not self.directed:
            return self
        whole = replace(self.whole, num_arcs=2 * self.num_edges, content_hash=self.whole.undirected_hash)
        return self._made(whole, self.own, **self._fields() | {"directions": None})

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("num_nodes", "edges", "weights", "directions", "cleaning")}

    @property
    def num_edges(self) -> int:
        """E, of all processes together."""
        return self.whole.num_edges

    @property
    def num_arcs(self) -> int:
        """How many ordered pairs are linked, in all processes together."""
        return self.whole.num_arcs

    @property
    def num_links(self) -> int:
        """How many links there are in all of them, by direction where they have one."""
        return self.num_arcs if self.directed else self.num_edges

    @property
    def content_hash(self) -> str:
        """That of the whole graph."""
        return self.whole.content_hash

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """Nobody has it."""
        raise TypeError("No process has the matrix of a graph in parts.")

    def degrees(self, *, weighted: bool = False) -> npt.NDArray[np.float64]:
        """Of all nodes, by a sum over all processes."""
        kept = slice(None) if self.own is None else _among(self.edges[:, 0], self.own)
        weights = self.weights[kept] if weighted and self.weights is not None else None
        found = np.zeros(self.num_nodes)
        for ends in self.edges[kept].T:
            found += np.bincount(ends, weights, minlength=self.num_nodes)
        summed: npt.NDArray[np.float64] = self.whole.group.sum(tensor_of(self.whole.group, found)).cpu().numpy()
        return summed

    def on(self, shards: Shards) -> GraphPart:
        """The links of this process's nodes; those of nodes in two processes are in both."""
        owners = [shards.owners(ends) for ends in self.edges.T]
        across = np.flatnonzero(owners[0] != owners[1])
        mail = Mail(self.whole.group, np.concatenate([owners[0], owners[1][across]]))
        edges = mail.send(np.concatenate([self.edges, self.edges[across]]))
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        fields = self._fields() | {"edges": edges[order]}
        for name, values in (("weights", self.weights), ("directions", self.directions)):
            if values is not None:
                fields[name] = mail.send(np.concatenate([values, values[across]]))[order]
        return self._made(self.whole, shards.own, **fields)

    def gathered(self) -> Graph | None:
        """All of the graph, with its ids, in the first process; None in others."""
        group, ids = self.whole.group, self.whole.ids
        edges = collected(group, self.edges)
        weights = None if self.weights is None else collected(group, self.weights)
        directions = None if self.directions is None else collected(group, self.directions)
        names = None if ids is None else ids.whole()
        if edges is None:
            return None
        return Graph(
            self.num_nodes, edges, weights=weights, directions=directions, node_ids=names, cleaning=self.cleaning
        )


def _hashes(
    group: Group,
    num_nodes: int,
    num_edges: int,
    edges: Pairs,
    weights: FloatArray | None,
    directions: DirectionArray | None,
) -> tuple[str, str]:
    """What `Graph.content_hash` is of the whole graph, with and without directions, in the first process."""
    digest = hashlib.sha256(f"{num_nodes},{num_edges},0".encode())
    for piece in streamed(group, edges):
        digest.update(piece.astype("<i8").tobytes())
    if weights is not None:
        digest.update(b"weights")
        for piece in streamed(group, weights):
            digest.update(piece.astype("<f4").tobytes())
    undirected = digest.hexdigest()
    if directions is not None:
        digest.update(b"directions")
        for piece in streamed(group, directions):
            digest.update(piece.tobytes())
    return digest.hexdigest(), undirected


def _among(nodes: npt.NDArray[np.int64], own: range) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (nodes >= own.start) & (nodes < own.stop)
    return found
