"""A graph of which each process has some links, and none has all.

Its links, canonical and sorted, lie one process after the other. What a `Graph` says of itself in numbers (nodes,
edges, its hash) is said of all of it; its `edges`, `weights` and `directions` are those of this process. For a training
they go to the processes that have their nodes (`on`): a link between two processes is then in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.graph.checks import BOTH, DirectionArray, FloatArray, check_features, frozen
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, Pairs
from vgae.parallel.mail import Mail, collected, counts_of, streamed, tensor_of
from vgae.parallel.matrices import Matrix, collected_rows, send_rows, streamed_arrays
from vgae.parallel.shards import Shards

if TYPE_CHECKING:
    from vgae.parallel.group import Group
    from vgae.parallel.labels import OwnLabels
    from vgae.parallel.numbering import OwnIds


@dataclass(frozen=True, eq=False)
class Whole:
    """What every process knows of all of a graph."""

    group: Group
    num_edges: int
    num_arcs: int
    hashes: dict[str, str]  # of the graph with features, directions, both or none, by their names
    ids: OwnIds | None = None
    labels: OwnLabels | None = None
    feature_entries: int = 0


class GraphPart(Graph):
    """The links of a graph that this process has, and the features of some nodes. Make it with `of_links`."""

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
        features: Matrix | None = None,
        cleaning: Cleaning | None = None,
        ids: OwnIds | None = None,
        labels: OwnLabels | None = None,
    ) -> GraphPart:
        """Made by all processes of their links, which are sorted, and before those of the next process.

        Features are those of a process's range of `Shards.even`.
        """
        num_edges = sum(counts_of(group, len(edges)))
        num_both = 0 if directions is None else int(np.count_nonzero(directions == BOTH))
        num_arcs = 2 * num_edges if directions is None else num_edges + sum(counts_of(group, num_both))
        given = cleaning or Cleaning(rows_given=num_edges if directions is None else num_arcs)
        fields = {"num_nodes": num_nodes, "edges": edges, "weights": weights, "directions": directions}
        whole = Whole(group, num_edges, num_arcs, {}, ids, labels)
        made = cls._made(whole, None, **fields, features=features, cleaning=given)
        return made._hashed()

    @classmethod
    def _made(cls, whole: Whole, own: range | None, **fields: Any) -> GraphPart:
        """One that is not checked: of its links there may be none here."""
        made = object.__new__(cls)
        others = dict.fromkeys(("labels", "node_ids", "sides"))
        for name, value in {**others, **fields, "whole": whole, "own": own}.items():
            object.__setattr__(made, name, value)
        return made

    def _hashed(self) -> GraphPart:
        """The same with what all processes know of its features, and with its hashes."""
        entries = 0 if self.features is None else sum(counts_of(self.whole.group, int(self.features.size)))
        hashes = self.whole.group.share(_hashes(self))
        return self._made(replace(self.whole, hashes=hashes, feature_entries=entries), self.own, **self._fields())

    def _derived(self, **changes: Any) -> Graph:
        """Without directions or features; with other ones, which all processes give for their ranges of nodes."""
        other = [name for name, value in changes.items() if value is not None and name != "features"]
        if other or (changes.get("features") is not None and self.own is not None):
            raise TypeError(f"A graph in parts cannot have other {', '.join(changes)}.")
        kept = {name: None for name in ("features", "directions") if name in changes}
        whole = self.whole if "directions" not in kept else replace(self.whole, num_arcs=2 * self.num_edges)
        if changes.get("features") is not None:
            nodes = Shards.even(self.num_nodes, self.whole.group.size, self.whole.group.rank).own
            changes["features"] = check_features(changes["features"], len(nodes), nodes.start)
        made = self._made(whole, self.own, **self._fields() | kept | changes)
        return made if changes.get("features") is None else made._hashed()

    def _fields(self) -> dict[str, Any]:
        names = ("num_nodes", "edges", "weights", "directions", "features", "cleaning")
        return {name: getattr(self, name) for name in names}

    def with_own(self, edges: Pairs, weights: FloatArray | None, directions: DirectionArray | None) -> GraphPart:
        """The same nodes with some of the edges that each process has."""
        whole = self.whole
        of_nodes: dict[str, Any] = {"features": self.features, "ids": whole.ids, "labels": whole.labels}
        return self.of_links(whole.group, self.num_nodes, edges, weights, directions, **of_nodes)

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
    def num_feature_entries(self) -> int:
        """How many numbers of features all processes store."""
        return 0 if self.features is None else self.whole.feature_entries

    @property
    def num_classes(self) -> int | None:
        """How many different labels there are in all of them."""
        return None if self.whole.labels is None else self.whole.labels.num_classes

    @property
    def content_hash(self) -> str:
        """That of the whole graph."""
        return self.whole.hashes[_kind(features=self.features is not None, directed=self.directed)]

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
        if self.features is not None:
            here = Shards.even(self.num_nodes, shards.size, shards.rank).own
            to = Mail(self.whole.group, shards.owners(np.arange(here.start, here.stop)))
            fields["features"] = send_rows(to, self.features)
        return self._made(self.whole, shards.own, **fields)

    def gathered(self) -> Graph | None:
        """All of the graph, with its ids, in the first process; None in others."""
        group, ids, labels = self.whole.group, self.whole.ids, self.whole.labels
        found: dict[str, Any] = {
            name: None if values is None else collected(group, values)
            for name, values in (("edges", self.edges), ("weights", self.weights), ("directions", self.directions))
        }
        found["features"] = None if self.features is None else collected_rows(group, self.features)
        found["node_ids"] = None if ids is None else ids.whole()
        found["labels"] = None if labels is None else labels.whole()
        for values in found.values():  # which nobody else has, so that the graph takes them without a copy
            for array in (values.data, values.indices, values.indptr) if sp.issparse(values) else (values,):
                if array is not None:
                    frozen(array)
        return Graph(num_nodes=self.num_nodes, cleaning=self.cleaning, **found) if group.is_first else None


def _kind(*, features: bool, directed: bool) -> str:
    return " and ".join(["features"] * features + ["directions"] * directed)


def _hashes(graph: GraphPart) -> dict[str, str]:
    """What `Graph.content_hash` is of all of a graph, with features, directions, both or none, in the first process."""
    group = graph.whole.group
    digests = {
        features: hashlib.sha256(f"{graph.num_nodes},{graph.num_edges},{graph.num_features * features}".encode())
        for features in (False, True)
    }

    def update(pieces: Iterable[AnyArray], kind: str) -> None:
        for piece in pieces:
            for digest in digests.values():
                digest.update(piece.astype(kind).tobytes())

    update(streamed(group, graph.edges), "<i8")
    for piece, kind in () if graph.features is None else streamed_arrays(group, graph.features):
        digests[True].update(piece.astype(kind).tobytes())
    if graph.weights is not None:
        update([np.frombuffer(b"weights", dtype=np.uint8)], "u1")
        update(streamed(group, graph.weights), "<f4")
    found = {_kind(features=each, directed=False): digest.hexdigest() for each, digest in digests.items()}
    if graph.directions is not None:
        update([np.frombuffer(b"directions", dtype=np.uint8)], "u1")
        update(streamed(group, graph.directions), "i1")
        found |= {_kind(features=each, directed=True): digest.hexdigest() for each, digest in digests.items()}
    return found


def _among(nodes: npt.NDArray[np.int64], own: range) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (nodes >= own.start) & (nodes < own.stop)
    return found
