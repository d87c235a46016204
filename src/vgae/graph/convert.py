"""From other libraries' graphs to plain parts: edges, ids, features, labels.

Nothing here imports the other libraries: their objects are recognised by where their type was defined, and used through
their own methods. `Graph` checks what comes out.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.pairs import AnyArray, IntArray, Pairs


@dataclass(frozen=True)
class Parts:
    """A graph taken apart: edges as node indices, and whatever came with the nodes."""

    edges: Pairs
    num_nodes: int
    node_ids: AnyArray | None = None
    features: Any = None
    labels: AnyArray | None = None


def to_array(values: Iterable[Any]) -> AnyArray:
    """A one-dimensional array that keeps each value as it is: mixed types and tuples stay objects."""
    if isinstance(values, np.ndarray):
        return values.copy()
    items = list(values)
    if {type(item) for item in items} in ({int}, {str}, {bool}, {float}):
        return np.array(items)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def index_endpoints(edges: Any, node_ids: Iterable[Hashable] | None) -> tuple[IntArray, AnyArray | None]:
    """Edges as rows of integers, with the ids they index into, or None where the integers are indices already."""
    endpoints = _endpoints(edges)
    if node_ids is not None:
        ids = to_array(node_ids)
        return _look_up(endpoints, ids), ids
    if endpoints.dtype.kind in "iu" or len(endpoints) == 0:
        return endpoints.astype(np.int64), None
    if endpoints.dtype.kind == "f":
        raise InputError("edges: node indices must be integers; convert the columns, or give text or other ids.")
    return _number(endpoints)


def from_scipy(adjacency: Any) -> Parts:
    """Parts of a graph given by its adjacency matrix."""
    if not sp.issparse(adjacency) or adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        shape = getattr(adjacency, "shape", type(adjacency).__name__)
        raise InputError(f"adjacency: expected a square sparse matrix, got {shape}.")
    matrix = adjacency.tocoo()
    stored = matrix.data != 0
    edges = np.stack([matrix.row[stored], matrix.col[stored]], axis=1).astype(np.int64)
    return Parts(edges, int(adjacency.shape[0]))


def from_networkx(graph: Any, features: Any, label: str | None) -> Parts:
    """Parts of a NetworkX graph; `features` is a matrix or the name of a node attribute."""
    nodes = list(graph.nodes)
    index = {node: position for position, node in enumerate(nodes)}
    edges = np.array([(index[tail], index[head]) for tail, head in graph.edges()], dtype=np.int64).reshape(-1, 2)
    if isinstance(features, str):
        features = np.stack([np.atleast_1d(value) for value in _attribute(graph, features)])
    labels = None if label is None else to_array(_attribute(graph, label))
    return Parts(edges, len(nodes), to_array(nodes), features, labels)


def from_pyg(data: Any) -> Parts:
    """Parts of a PyTorch Geometric `Data` object."""
    edges = data.edge_index.detach().cpu().numpy().T.astype(np.int64)
    features = None if data.x is None else data.x.detach().cpu().numpy()
    labels = None if data.y is None or data.y.ndim != 1 else data.y.detach().cpu().numpy()
    return Parts(edges, int(data.num_nodes), None, features, labels)


def is_networkx(data: Any) -> bool:
    """Whether this is a NetworkX graph, of any kind."""
    return any(base.__module__.split(".")[0] == "networkx" for base in type(data).__mro__) and hasattr(data, "nodes")


def is_pyg(data: Any) -> bool:
    """Whether this is a PyTorch Geometric `Data`."""
    return type(data).__module__.split(".")[0] == "torch_geometric" and hasattr(data, "edge_index")


def _endpoints(edges: Any) -> AnyArray:
    """The edges as an M×2 array whose endpoints keep their type."""
    if hasattr(edges, "detach"):  # a tensor
        edges = edges.detach().cpu().numpy()
    if isinstance(edges, np.ndarray):
        if edges.size == 0:
            return np.empty((0, 2), dtype=np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"edges: expected rows of two endpoints, got an array of shape {edges.shape}.")
        return edges
    try:
        rows = [tuple(row) for row in edges]
    except TypeError:
        raise InputError(f"edges: expected rows of two endpoints, got {type(edges).__name__}.") from None
    for number, row in enumerate(rows):
        if len(row) != 2:
            raise InputError(f"edges: row {number} has {len(row)} entries instead of two endpoints.")
    flat = to_array([endpoint for row in rows for endpoint in row])
    return flat.reshape(-1, 2) if rows else np.empty((0, 2), dtype=np.int64)


def _look_up(endpoints: AnyArray, ids: AnyArray) -> IntArray:
    """Positions of the endpoints in the list of ids."""
    position = {node: index for index, node in enumerate(ids.tolist())}
    try:
        flat = [position[node] for node in endpoints.ravel().tolist()]
    except KeyError as error:
        unknown = error.args[0]
        row = next(row for row, ends in enumerate(endpoints.tolist()) if unknown in ends)
        raise InputError(f"edges: row {row} names the node {unknown!r}, which is not among node_ids.") from None
    return np.array(flat, dtype=np.int64).reshape(-1, 2)


def _number(endpoints: AnyArray) -> tuple[IntArray, AnyArray]:
    """Ids in the order of their first appearance, and the endpoints as positions in it."""
    flat = endpoints.ravel()
    if flat.dtype == object:
        index: dict[Hashable, int] = {}
        positions = [index.setdefault(node, len(index)) for node in flat.tolist()]
        return np.array(positions, dtype=np.int64).reshape(-1, 2), to_array(index)
    ids, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[inverse].reshape(-1, 2), ids[order]


def _attribute(graph: Any, name: str) -> list[Any]:
    """One node attribute of a NetworkX graph, for every node."""
    values = dict(graph.nodes(data=name))
    for node, value in values.items():
        if value is None:
            raise InputError(f"The node {node!r} has no attribute {name!r}.")
    return list(values.values())
