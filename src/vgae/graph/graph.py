"""The graph that goes in: N nodes, E undirected edges, D feature columns, checked once and then frozen.

Edges are stored as canonical pairs (i < j), sorted, without duplicates and self-loops: the models add I themselves.
What had to be merged or dropped to get there is counted in `Graph.cleaning`. Whatever ids the nodes came with are
kept in `Graph.node_ids`; inside the library a node is its index.

Weights, where there are any, are one per edge: those of merged rows add up. There is one exception: rows that give
every link in both directions, with the same weight in both, are an undirected graph written twice, and each link counts
once. Directions, where links have one, are a fact about the graph that is kept; the models treat links as undirected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph import convert
from vgae.graph.pairs import AnyArray, IntArray, Pairs, check_pairs, contains, distinct

FloatArray = npt.NDArray[np.float32]
DirectionArray = npt.NDArray[np.int8]
FORWARD, BACKWARD, BOTH = 1, -1, 0  # of an edge (i, j) with i < j: from i to j, from j to i, both
WEIGHTS_ARE = "a weight is a number above 0 and at most 3.4e38"
TABLES = "vgae.graph.tables"  # it needs pyarrow, which is loaded when it is first used
MAX_NODES = 100_000_000  # beyond, codes and ranks of pairs would no longer be exact in 64 bits


@dataclass(frozen=True)
class Cleaning:
    """What was given and what had to be merged or dropped to make a simple undirected graph of it."""

    rows_given: int = 0
    self_loops_dropped: int = 0
    duplicates_merged: int = 0
    reversed_merged: int = 0
    reversed_kept: int = 0  # links of a directed graph that go in both directions

    def __str__(self) -> str:
        kept = f", {self.reversed_kept:,} links kept in both directions" if self.reversed_kept else ""
        return (
            f"{self.rows_given:,} rows read: {self.duplicates_merged:,} duplicates and {self.reversed_merged:,} "
            f"reversed links merged, {self.self_loops_dropped:,} self-loops dropped{kept}"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Graph:
    """An undirected graph without self-loops, with optional node features, labels and ids.

    `features` is an N×D matrix of float32, a NumPy array or a SciPy CSR array; `labels` and `node_ids` have one entry
    per node and any type; the label -1 means none. `weights` (float32, above 0) and `directions` (FORWARD, BACKWARD or
    BOTH) have one entry per edge. Make one with `from_edges`, `from_scipy`, `from_networkx`, `from_pyg` or
    `from_frame`.
    """

    num_nodes: int
    edges: Pairs
    features: FloatArray | sp.csr_array | None = None
    labels: AnyArray | None = None
    node_ids: AnyArray | None = None
    cleaning: Cleaning = field(default_factory=Cleaning)
    weights: FloatArray | None = None
    directions: DirectionArray | None = None

    def __post_init__(self) -> None:
        _check_num_nodes(self.num_nodes)
        if len(self.edges) == 0:
            raise InputError(f"The graph has no links between different nodes ({self.cleaning}).")
        i, j = self.edges[:, 0], self.edges[:, 1]
        ordered = np.all((i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1])))
        if i[0] < 0 or j.max() >= self.num_nodes or np.any(i >= j) or not ordered:
            raise InputError("Graph takes canonical, sorted edges without duplicates; use Graph.from_edges.")
        object.__setattr__(self, "features", _check_features(self.features, self.num_nodes))
        for name, values in (("labels", self.labels), ("node_ids", self.node_ids)):
            if values is not None and values.shape != (self.num_nodes,):
                raise InputError(
                    f"{name}: expected one entry for each of the {self.num_nodes} nodes, got {values.shape}."
                )
        if self.node_ids is not None and len(set(self.node_ids.tolist())) < self.num_nodes:
            raise InputError("node_ids: an id occurs more than once; every node needs an id of its own.")
        if self.weights is not None:
            object.__setattr__(self, "weights", check_weights(self.weights, len(self.edges)).astype(np.float32))
        if self.directions is not None:
            object.__setattr__(self, "directions", _check_directions(self.directions, len(self.edges)))
        for own in self._arrays():
            for array in _memory_of(own):
                array.flags.writeable = False

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
                f"features: there are {features.shape[0]} rows, but the edges name the node {pairs.max()}; "
                "give exactly one row per node."
            )
        if num_nodes is None:
            num_nodes = _count_nodes(pairs, ids, features)
        elif ids is not None and num_nodes != len(ids):
            raise InputError(f"num_nodes: {num_nodes} was given, but there are {len(ids)} node ids.")
        _check_num_nodes(num_nodes)
        pairs = check_pairs(pairs, num_nodes, "edges")
        if weights is not None:
            weights = check_weights(convert.as_numpy(weights), len(pairs))
        simple = _simplify(pairs, num_nodes, weights, directed)
        return cls(
            num_nodes=num_nodes,
            features=features,
            labels=None if labels is None else convert.to_array(labels),
            node_ids=ids,
            **simple,
        )

    @classmethod
    def from_scipy(cls, adjacency: Any, *, weighted: bool = False, **attributes: Any) -> Graph:
        """A graph from a square sparse matrix: every stored non-zero entry is a link, and with `weighted` its weight.

        `attributes` are those of `from_edges`: node_ids, features, labels, directed.
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

        `options` are those of `vgae.read_graph`: source, target, weight, directed; `nodes`, another frame whose rows
        are nodes, with id, label, standardise, impute. Columns are found and ids understood as in files.
        """
        graph: Graph = import_module(TABLES).read_frame(links, **options).graph
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
        return graph if node_ids is None else replace(graph, node_ids=convert.to_array(node_ids))

    def with_edges(self, edges: Pairs) -> Graph:
        """The same nodes with other (canonical, sorted) edges; with weights or directions, some of its own edges."""
        changes: dict[str, Any] = {"edges": edges, "cleaning": Cleaning(rows_given=len(edges))}
        for name, values in (("weights", self.weights), ("directions", self.directions)):
            if values is not None:
                changes[name] = values[self._places_of(edges)]
        return replace(self, **changes)

    def without_features(self) -> Graph:
        """The same graph with its features left out."""
        return replace(self, features=None)

    # ---------------------------------------------------------------------------------------------------- contents

    @property
    def num_edges(self) -> int:
        """E, the number of undirected edges."""
        return len(self.edges)

    @property
    def num_features(self) -> int:
        """D, the number of feature columns; 0 without features."""
        return 0 if self.features is None else int(self.features.shape[1])

    @property
    def directed(self) -> bool:
        """Whether the links have a direction."""
        return self.directions is not None

    @cached_property
    def adjacency(self) -> sp.csr_array:
        """A as a symmetric CSR array of float32 ones, indices sorted: what is a link, whatever its weight."""
        return self._symmetric(np.ones(self.num_edges, dtype=np.float32))

    @cached_property
    def weighted_adjacency(self) -> sp.csr_array:
        """The same with the weights in place of the ones; A itself where there are none."""
        return self.adjacency if self.weights is None else self._symmetric(self.weights)

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of nodes, edges, features, weights and directions: equal for equal graphs on every machine."""
        digest = hashlib.sha256(f"{self.num_nodes},{self.num_edges},{self.num_features}".encode())
        digest.update(self.edges.astype("<i8").tobytes())
        if self.features is not None:
            sparse = sp.csr_array(self.features)  # dense and sparse features of the same values hash alike
            for array, kind in ((sparse.indptr, "<i8"), (sparse.indices, "<i8"), (sparse.data, "<f4")):
                digest.update(array.astype(kind).tobytes())
        if self.weights is not None:
            digest.update(b"weights" + self.weights.astype("<f4").tobytes())
        if self.directions is not None:
            digest.update(b"directions" + self.directions.tobytes())
        return digest.hexdigest()

    @cached_property
    def _index_by_id(self) -> dict[Hashable, int]:
        ids = range(self.num_nodes) if self.node_ids is None else self.node_ids.tolist()
        return {node: index for index, node in enumerate(ids)}

    def index_of(self, ids: Iterable[Hashable]) -> IntArray:
        """Indices of the nodes with these ids."""
        try:
            return np.array([self._index_by_id[node] for node in ids], dtype=np.int64)
        except KeyError as error:
            raise InputError(f"There is no node with the id {error.args[0]!r} in this graph.") from None

    def ids_of(self, indices: npt.ArrayLike) -> AnyArray:
        """Original ids of these node indices, in an array of the same shape."""
        array = np.asarray(indices)
        if array.size and not (array.min() >= 0 and array.max() < self.num_nodes):
            raise InputError(f"Node indices run from 0 to {self.num_nodes - 1}, got {array.min()} to {array.max()}.")
        return array if self.node_ids is None else self.node_ids[array]

    def __repr__(self) -> str:
        kind = ("directed " if self.directed else "") + ("weighted " if self.weights is not None else "")
        parts = [f"{self.num_nodes:,} nodes", f"{self.num_edges:,} {kind}edges"]
        if self.features is not None:
            parts.append(f"{self.num_features:,} {'sparse' if sp.issparse(self.features) else 'dense'} features")
        if self.labels is not None:
            parts.append(f"{len(set(self.labels.tolist()) - {-1})} classes")
        return f"Graph({', '.join(parts)})"

    def _arrays(self) -> list[AnyArray]:
        features: Any = self.features
        parts = [features.data, features.indices, features.indptr] if sp.issparse(features) else [features]
        own = (self.edges, self.labels, self.node_ids, self.weights, self.directions, *parts)
        return [array for array in own if array is not None]

    def _symmetric(self, values: FloatArray) -> sp.csr_array:
        """A symmetric CSR array with a value for each edge, indices sorted, frozen."""
        i, j = self.edges[:, 0], self.edges[:, 1]
        coordinates = (np.concatenate([i, j]), np.concatenate([j, i]))
        both = np.concatenate([values, values])
        matrix = sp.coo_array((both, coordinates), shape=(self.num_nodes, self.num_nodes)).tocsr()
        matrix.sort_indices()
        for array in (matrix.data, matrix.indices, matrix.indptr):
            array.flags.writeable = False
        return matrix

    def _places_of(self, edges: Pairs) -> IntArray:
        """Where these edges are among the graph's own."""
        own, asked = (pairs[:, 0] * self.num_nodes + pairs[:, 1] for pairs in (self.edges, edges))
        if not contains(own, asked).all():
            raise InputError("edges: not all of them are edges of this graph, whose weights or directions they keep.")
        return np.searchsorted(own, asked)


def check_weights(weights: Any, num_rows: int) -> npt.NDArray[np.float64]:
    """Weights as numbers, one per row, or an error that names the first row that is wrong."""
    try:
        values = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("weights: every weight must be a number.") from None
    if values.shape != (num_rows,):
        raise InputError(f"weights: expected one for each of the {num_rows} rows, got the shape {values.shape}.")
    usable = usable_weights(values)
    if not usable.all():
        row = int(np.argmin(usable))
        raise InputError(f"weights: row {row} is {values[row]}; {WEIGHTS_ARE}.")
    return values


def usable_weights(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which of these are weights: above 0 and finite, also in 32 bits."""
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    found: npt.NDArray[np.bool_] = np.isfinite(small) & (small > 0)
    return found


def _check_directions(directions: Any, num_edges: int) -> DirectionArray:
    array = np.asarray(directions)
    if array.shape != (num_edges,) or not np.isin(array, (FORWARD, BACKWARD, BOTH)).all():
        raise InputError(f"directions: 1, -1 or 0 is needed for each of the {num_edges} edges.")
    return array.astype(np.int8)


def _count_nodes(pairs: Pairs, ids: AnyArray | None, features: Any) -> int:
    """As many as there are ids, or rows of features, or one more than the largest index."""
    if ids is not None:
        return len(ids)
    if features is not None:
        return int(features.shape[0])
    return int(pairs.max()) + 1 if len(pairs) else 0


def _check_num_nodes(num_nodes: int) -> None:
    if num_nodes < 1:
        raise InputError("The graph is empty: it has no nodes.")
    if num_nodes > MAX_NODES:
        raise InputError(
            f"The graph would have {num_nodes:,} nodes, more than the {MAX_NODES:,} that are supported; "
            "if its large integers are ids, give the list of them as node_ids."
        )


def _simplify(pairs: Pairs, num_nodes: int, weights: npt.NDArray[np.float64] | None, directed: bool) -> dict[str, Any]:
    """Canonical, sorted, distinct edges out of any rows, with their weights and directions, and what it took."""
    proper = pairs[:, 0] != pairs[:, 1]
    codes = pairs[proper, 0] * num_nodes + pairs[proper, 1]
    arcs = distinct(codes)  # ordered pairs
    tail, head = np.divmod(arcs, num_nodes)
    ends = np.minimum(tail, head) * num_nodes + np.maximum(tail, head)
    links = distinct(ends)
    num_reversed = len(arcs) - len(links)
    simple: dict[str, Any] = {
        "edges": np.stack(np.divmod(links, num_nodes), axis=1),
        "cleaning": Cleaning(
            rows_given=len(pairs),
            self_loops_dropped=len(pairs) - len(codes),
            duplicates_merged=len(codes) - len(arcs),
            reversed_merged=0 if directed else num_reversed,
            reversed_kept=num_reversed if directed else 0,
        ),
    }
    if weights is None and not directed:
        return simple
    place, forward = np.searchsorted(links, ends), tail < head
    if directed:
        ways = [np.bincount(place[way], minlength=len(links)) for way in (forward, ~forward)]
        simple["directions"] = (ways[0] - ways[1]).astype(np.int8)
    if weights is not None:
        of_arc = np.bincount(np.searchsorted(arcs, codes), weights[proper], minlength=len(arcs))
        there, back = (np.bincount(place[way], of_arc[way], minlength=len(links)) for way in (forward, ~forward))
        twice = not directed and np.array_equal(there, back)
        simple["weights"] = there if twice else there + back
        too_large = ~usable_weights(simple["weights"])
        if too_large.any():
            i, j = simple["edges"][int(too_large.argmax())].tolist()
            raise InputError(f"weights: those of the links between the nodes {i} and {j} add up to too large a number.")
    return simple


def _check_features(features: Any, num_nodes: int) -> FloatArray | sp.csr_array | None:
    """Features as a float32 array or CSR array of our own, with a finite row for each node."""
    if features is None:
        return None
    matrix = convert.to_matrix(features)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise InputError(f"features: expected a matrix with a row per node, got the shape {matrix.shape}.")
    if matrix.shape[0] != num_nodes:
        raise InputError(
            f"features: there are {matrix.shape[0]} rows for {num_nodes} nodes; give exactly one row per node."
        )
    sparse = sp.issparse(matrix)
    parts = (matrix.data, matrix.indices, matrix.indptr) if sparse else (matrix,)
    # Another graph's features are shared; anything that somebody else could still change is copied.
    if any(array.flags.writeable for part in parts for array in _memory_of(part)):
        matrix = _tidy_csr(matrix) if sparse else matrix.copy()
    values = matrix.data if sparse else matrix
    finite = np.isfinite(values)
    if not finite.all():
        place = int(np.argmin(finite.ravel()))
        if sparse:
            row, column = int(np.searchsorted(matrix.indptr, place, side="right")) - 1, int(matrix.indices[place])
        else:
            row, column = divmod(place, matrix.shape[1])
        raise InputError(
            f"features: row {row}, column {column} is {values.ravel()[place]}; "
            "fill in missing and infinite values before training."
        )
    return matrix


def _tidy_csr(matrix: sp.csr_array) -> sp.csr_array:
    """A copy with sorted columns, no duplicates and no stored zeros."""
    try:
        matrix.check_format(full_check=True)
    except ValueError as error:
        raise InputError(f"features: the sparse matrix is not well formed ({error}).") from None
    with np.errstate(over="ignore"):
        tidy = sp.csr_array(matrix, dtype=np.float32, copy=True)
    tidy.sum_duplicates()
    tidy.eliminate_zeros()
    return tidy


def _memory_of(array: AnyArray) -> list[AnyArray]:
    """An array and all arrays that it is a view of."""
    found = [array]
    while isinstance(found[-1].base, np.ndarray):
        found.append(found[-1].base)
    return found
