"""The graph that goes in: N nodes, E edges, D feature columns, checked once and then frozen.

Edges are stored as canonical pairs (i < j), sorted, without duplicates and self-loops: the models add I themselves.
What had to be merged or dropped to get there is counted in `Graph.cleaning`. Whatever ids the nodes came with are
kept in `Graph.node_ids`; inside the library a node is its index.

Weights, where there are any, are one per edge: those of merged rows add up. There is one exception: rows that give
every link in both directions, with the same weight in both, are an undirected graph written twice, and each link counts
once. Directions, where links have one, are one per edge too; `Graph.arcs` are the ordered pairs (source, target) that
follow. What counts as a link, `Graph.links`, is an arc of a directed graph and an edge of any other.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph import convert, hooks
from vgae.graph.arcs import EdgesOfArcs
from vgae.graph.checks import (
    DirectionArray,
    FloatArray,
    SideArray,
    check_directions,
    check_edges,
    check_features,
    check_node_ids,
    check_num_nodes,
    check_of_nodes,
    check_sides,
    check_weights,
    frozen,
    own_weights,
)
from vgae.graph.cleaning import Cleaning, check_cleaning, simplify
from vgae.graph.features import csr_pieces, normalize
from vgae.graph.linked import Linked
from vgae.graph.pairs import AnyArray, IntArray, Pairs, bytes_of, check_pairs, contains
from vgae.options import true_or_false
from vgae.words import count, shown

PARTS = ("features", "labels", "node_ids", "weights", "directions", "cleaning", "sides")


@dataclass(frozen=True, eq=False, repr=False)
class Graph(Linked):
    """A graph without self-loops, undirected or directed, with optional node features, labels and ids.

    `features` is an N×D matrix of float32, a NumPy array or a SciPy CSR array; `labels` and `node_ids` have one entry
    per node, of any type that can be stored: text, numbers and tuples of these, but no dates or other objects; the
    label -1 means none. `weights` (float32, above 0) and `directions` (FORWARD, BACKWARD or BOTH) have one entry per
    edge; `sides` is 0 or 1 for each node of a bipartite graph, whose links all go across. Arrays that are given stay
    the caller's: what somebody could still change is copied. Make a graph with `from_edges`, `from_scipy`,
    `from_networkx`, `from_pyg` or `from_frame`.

    >>> import vgae
    >>> graph = vgae.Graph.from_edges([("ann", "bob"), ("bob", "ann"), ("bob", "cid")])
    >>> graph
    Graph(3 nodes, 2 edges)
    >>> graph.ids
    ('ann', 'bob', 'cid')
    >>> print(graph.cleaning)
    3 rows read: 1 reversed link merged
    """

    num_nodes: int
    edges: Pairs
    features: FloatArray | sp.csr_array | None = None
    labels: AnyArray | None = None
    node_ids: AnyArray | None = None
    cleaning: Cleaning = field(default_factory=Cleaning)
    weights: FloatArray | None = None
    directions: DirectionArray | None = None
    sides: SideArray | None = None

    def __post_init__(self) -> None:
        self._check(_CHECKS)

    def _check(self, names: Iterable[str]) -> None:
        """Check the parts of these names, and keep what the checks give back."""
        for name in names:
            value = getattr(self, name)
            if value is not None or name in _NEEDED:
                object.__setattr__(self, name, _CHECKS[name](self, value))

    def _derived(self, **changes: Any) -> Graph:
        """The same graph with some of its fields changed; the others were checked when this graph was made."""
        derived = object.__new__(type(self))
        for name in _CHECKS:
            object.__setattr__(derived, name, changes[name] if name in changes else getattr(self, name))
        derived._check([name for name in _CHECKS if name in changes])
        return derived

    # ------------------------------------------------------------------------------------------------ construction

    @classmethod
    def from_edges(
        cls,
        edges: Iterable[Any] | npt.ArrayLike,
        *,
        num_nodes: int | None = None,
        node_ids: Iterable[Hashable] | None = None,
        features: Any = None,
        labels: Iterable[Any] | None = None,
        weights: npt.ArrayLike | None = None,
        directed: bool = False,
    ) -> Graph:
        """A graph from rows of two endpoints, in any order and direction.

        With `node_ids`, endpoints are ids out of that list. Without it, integer endpoints are node indices (there are
        `num_nodes` of them, or as many as the features have rows, or one more than the largest), and endpoints of any
        other type become ids in the order of their first appearance. `weights` has a number above 0 for each row. With
        `directed`, rows go from their first endpoint to their second, and that is kept.
        """
        directed = true_or_false(directed, "directed")
        if features is not None:
            features = convert.to_matrix(features)
        pairs, ids = convert.index_endpoints(edges, node_ids)
        if ids is not None and node_ids is None and not (features is None and labels is None):
            raise InputError(
                "node_ids: give the list of ids, so that rows of features and labels can be matched to them."
            )
        if (
            features is not None
            and num_nodes is None
            and ids is None
            and len(pairs)
            and pairs.max() >= features.shape[0]
        ):
            raise InputError(
                f"features: {count(features.shape[0], 'row')} given, but the edges name the node {pairs.max()}; "
                "give exactly one row per node."
            )
        if num_nodes is None:
            num_nodes = _count_nodes(pairs, ids, features)
        num_nodes = check_num_nodes(num_nodes)
        if ids is not None and num_nodes != len(ids):
            raise InputError(f"num_nodes: {num_nodes} was given, but {count(len(ids), 'node id')} given.")
        pairs = check_pairs(pairs, num_nodes, "edges")
        if weights is not None:
            weights = check_weights(weights, len(pairs))
        simple = simplify(pairs, num_nodes, weights, directed)
        return cls(
            num_nodes=num_nodes,
            features=features,
            labels=None if labels is None else frozen(convert.to_array(labels, "labels")),
            node_ids=None if ids is None else frozen(ids),
            **simple,
        )

    @classmethod
    def from_scipy(cls, adjacency: Any, *, weighted: bool = False, **attributes: Any) -> Graph:
        """A graph from a square sparse matrix: every entry above 0 is a link, and with `weighted` its weight.

        A stored 0 is no link; an entry that is negative or not finite is refused. `attributes` are those of
        `from_edges`: node_ids, features, labels, directed.
        """
        return cls._from_parts(convert.from_scipy(adjacency, weighted), attributes)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, features: Any = None, label: str | None = None, weight: str | None = None
    ) -> Graph:
        """A graph from NetworkX, with its nodes as ids; directed if that is.

        `features` is a matrix in the order of `graph.nodes`, or the name of a node attribute that holds numbers or
        vectors; `label` names the node attribute that holds the class, `weight` the edge attribute that is the weight.
        """
        return cls._from_parts(convert.from_networkx(graph, features, label, weight), {})

    @classmethod
    def from_pyg(cls, data: Any, *, weight: str | None = None, directed: bool = False) -> Graph:
        """A graph from a PyTorch Geometric `Data`: its edge_index, and x and y where it has them.

        `weight` names what holds the weights, edge_weight or an edge_attr of one column.
        """
        return cls._from_parts(convert.from_pyg(data, weight), {"directed": directed})

    @classmethod
    def from_frame(cls, links: Any, **options: Any) -> Graph:
        """A graph from a pandas or polars data frame, or an Arrow table, whose rows are links between ids.

        `options` are those of `vgae.read_graph`: source, target, weight, directed, bipartite; `nodes`, another frame
        whose rows are nodes, with id, label, standardise, impute, normalize. Columns and ids are found as in files.
        """
        graph: Graph = hooks.call("read_frame", links, **options).graph
        return graph

    @classmethod
    def of(cls, data: Any) -> Graph:
        """Whatever one of the constructors takes, recognised by its kind; a `Graph` is returned as it is."""
        if isinstance(data, Graph):
            return data
        if sp.issparse(data):
            return cls.from_scipy(data)
        if convert.is_networkx(data):
            return cls.from_networkx(data)
        if convert.is_pyg(data):
            return cls.from_pyg(data)
        if convert.is_frame(data):
            return cls.from_frame(data)
        return cls.from_edges(data)

    @classmethod
    def _from_parts(cls, parts: convert.Parts, attributes: dict[str, Any]) -> Graph:
        node_ids = attributes.pop("node_ids", parts.node_ids)
        known = {"features": parts.features, "labels": parts.labels, "weights": parts.weights}
        given = known | {"directed": parts.directed} | attributes
        graph = cls.from_edges(parts.edges, num_nodes=parts.num_nodes, **given)
        return graph if node_ids is None else graph.with_parts(node_ids=frozen(convert.to_array(node_ids, "node_ids")))

    def with_edges(self, edges: Pairs) -> Graph:
        """The same nodes with other (canonical, sorted) edges; with weights or directions, some of its own edges."""
        edges = check_pairs(edges, self.num_nodes, "edges")
        changes: dict[str, Any] = {"edges": edges, "cleaning": Cleaning(rows_given=len(edges))}
        for name, values in (("weights", self.weights), ("directions", self.directions)):
            if values is not None:
                changes[name] = frozen(values[self._places_of(edges)])
        return self._derived(**changes)

    def with_arcs(self, arcs: Pairs) -> Graph:
        """The same nodes with some of a directed graph's own arcs; an edge of which one way stays goes one way.

        Of the weight of an edge that went both ways, half stays with each of its arcs.
        """
        arcs = check_pairs(arcs, self.num_nodes, "arcs")
        left = self.edges_of(arcs)
        weights = left.weights(self.weights)
        changes = {"edges": frozen(left.edges), "directions": frozen(left.directions), "weights": weights}
        return self._derived(**changes, cleaning=Cleaning(rows_given=len(arcs)))

    def edges_of(self, arcs: Pairs) -> EdgesOfArcs:
        """Some of a directed graph's own arcs as edges."""
        if self.directions is None:
            raise InputError("arcs: the links of this graph have no directions; use with_edges.")
        return EdgesOfArcs.of(arcs, self._arcs, self.edges, self.directions, self.num_nodes)

    def with_links(self, links: Pairs) -> Graph:
        """The same nodes with some of the graph's own links: arcs of a directed graph, else canonical, sorted edges."""
        return self.with_arcs(links) if self.directed else self.with_edges(links)

    def without_directions(self) -> Graph:
        """The same graph as an undirected one."""
        return self.with_parts(directions=None) if self.directed else self

    def as_scored(self, *, symmetric: bool) -> Graph:
        """The graph as a scorer can know it: without directions, if both directions of a pair have one score."""
        return self.without_directions() if symmetric else self

    def with_parts(self, **parts: Any) -> Graph:
        """The same nodes and edges with other features, labels, node_ids, weights, directions, sides or cleaning.

        None leaves a part out. Only what is given is checked; `dataclasses.replace` checks everything again.
        """
        for name in parts:
            if name not in PARTS:
                raise TypeError(f"with_parts() got an unexpected keyword argument {name!r}")
        return self._derived(**parts)

    def without_features(self) -> Graph:
        """The same graph with its features left out."""
        return self.with_parts(features=None)

    def normalized(self, how: str) -> Graph:
        """The same graph with rows of features of unit length ("rows"), or columns between -1 and 1 ("columns")."""
        scaled = None if self.features is None else normalize(self.features, how)
        return self.with_parts(features=scaled)

    # ---------------------------------------------------------------------------------------------------- contents

    @property
    def num_features(self) -> int:
        """D, the number of feature columns; 0 without features."""
        return 0 if self.features is None else int(self.features.shape[1])

    @property
    def num_feature_entries(self) -> int:
        """How many numbers of them are stored."""
        return 0 if self.features is None else int(self.features.size)

    @property
    def num_classes(self) -> int | None:
        """How many different labels there are; None without labels."""
        return None if self.labels is None else len(set(self.labels.tolist()) - {-1})

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of nodes, edges, features, weights, directions and sides: equal for equal graphs on every machine."""
        digest = hashlib.sha256(f"{self.num_nodes},{self.num_edges},{self.num_features}".encode())
        digest.update(bytes_of(self.edges, "<i8"))
        if self.features is not None:
            for array, kind in csr_pieces(self.features):  # dense and sparse features of the same values hash alike
                digest.update(bytes_of(array, kind))
        for name, values, kind in (
            ("weights", self.weights, "<f4"),
            ("directions", self.directions, "i1"),
            ("sides", self.sides, "u1"),
        ):
            if values is not None:
                digest.update(name.encode())
                digest.update(bytes_of(values, kind))
        return digest.hexdigest()

    @cached_property
    def ids(self) -> tuple[Any, ...]:
        """The nodes' own ids in the order of the nodes, or their indices where they have none."""
        return tuple(range(self.num_nodes) if self.node_ids is None else self.node_ids.tolist())

    @cached_property
    def _index_by_id(self) -> dict[Hashable, int]:
        return {node: index for index, node in enumerate(self.ids)}

    @cached_property
    def _index_by_text(self) -> dict[str, int]:
        """Of ids that are no text, by what they read as."""
        return {str(node): index for index, node in enumerate(self.ids) if not isinstance(node, str)}

    def place_of(self, node: Hashable) -> int | None:
        """The index of the node with this id or, for a text that is no id, with the id that reads so; None without."""
        found = self._index_by_id.get(node)
        return self._index_by_text.get(node) if found is None and isinstance(node, str) else found

    def _index(self, node: Any) -> int:
        if self.node_ids is not None:
            return self._index_by_id[node]
        if isinstance(node, int | np.integer) and 0 <= node < self.num_nodes:
            return int(node)
        raise KeyError(node)

    def index_of(self, ids: Iterable[Hashable]) -> IntArray:
        """Indices of the nodes with these ids."""
        try:
            return np.array([self._index(node) for node in ids], dtype=np.int64)
        except KeyError as error:
            raise InputError(f"There is no node with the id {shown(error.args[0])} in this graph.") from None
        except TypeError:
            raise InputError(f"A list of node ids is needed, got {shown(ids)}.") from None

    def ids_of(self, indices: npt.ArrayLike) -> AnyArray:
        """Original ids of these node indices, in an array of the same shape."""
        problem = f"Node indices are whole numbers from 0 to {self.num_nodes - 1}"
        array = convert.as_real(indices, f"{problem}.")
        if array.size == 0:
            array = array.astype(np.int64)
        elif array.dtype.kind not in "iu":
            raise InputError(f"{problem}, got {array.dtype}.")
        elif not (array.min() >= 0 and array.max() < self.num_nodes):
            raise InputError(f"{problem}, got {array.min()} to {array.max()}.")
        return array if self.node_ids is None else self.node_ids[array]

    def __repr__(self) -> str:
        kind = ("directed " if self.directed else "") + ("weighted " if self.weights is not None else "")
        kind = ("bipartite " if self.sides is not None else "") + kind
        parts = [count(self.num_nodes, "node"), count(self.num_edges, f"{kind}edge")]
        if self.features is not None:
            parts.append(count(self.num_features, f"{'sparse' if sp.issparse(self.features) else 'dense'} feature"))
        if self.num_classes is not None:
            parts.append(count(self.num_classes, "class", "classes"))
        return f"Graph({', '.join(parts)})"

    def _places_of(self, edges: Pairs) -> IntArray:
        """Where these edges are among the graph's own."""
        own, asked = (pairs[:, 0] * self.num_nodes + pairs[:, 1] for pairs in (self.edges, edges))
        if not contains(own, asked).all():
            raise InputError("edges: not all of them are edges of this graph, whose weights or directions they keep.")
        return np.searchsorted(own, asked)


def _count_nodes(pairs: Pairs, ids: AnyArray | None, features: Any) -> int:
    """As many as there are ids, or rows of features, or one more than the largest index."""
    if ids is not None:
        return len(ids)
    if features is not None:
        return int(features.shape[0])
    return max(1, int(pairs.max()) + 1) if len(pairs) else 0


_NEEDED = ("num_nodes", "cleaning", "edges")
_CHECKS: dict[str, Callable[[Graph, Any], Any]] = {  # in this order: each may rely on those before it
    "num_nodes": lambda _, value: check_num_nodes(value),
    "cleaning": lambda _, value: check_cleaning(value),
    "edges": lambda graph, value: check_edges(value, graph.num_nodes, graph.cleaning),
    "features": lambda graph, value: check_features(value, graph.num_nodes),
    "labels": lambda graph, value: check_of_nodes(value, "labels", graph.num_nodes),
    "node_ids": lambda graph, value: check_node_ids(value, graph.num_nodes),
    "weights": lambda graph, value: own_weights(value, graph.num_edges),
    "directions": lambda graph, value: check_directions(value, graph.num_edges),
    "sides": lambda graph, value: check_sides(value, graph.num_nodes, graph.edges),
}
