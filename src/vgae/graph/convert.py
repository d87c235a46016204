"""From other libraries' graphs to plain parts: edges, ids, features, labels.

Nothing here imports the other libraries: their objects are recognised by where their type was defined, and used through
their own methods. `Graph` checks what comes out.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.pairs import AnyArray, IntArray, Pairs

Built = TypeVar("Built")
WASTED_CHARACTERS = 32  # for each text on average, at most, in an array of fixed width


@dataclass(frozen=True)
class Parts:
    """A graph taken apart: edges as node indices, and whatever came with the nodes."""

    edges: Pairs
    num_nodes: int
    node_ids: AnyArray | None = None
    features: Any = None
    labels: AnyArray | None = None
    weights: Any = None
    directed: bool = False


def to_array(values: Iterable[Any]) -> AnyArray:
    """A one-dimensional array that keeps each value as it is: mixed types and tuples stay objects."""
    values = as_numpy(values)
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values.copy()
    items = [item.item() if isinstance(item, np.generic) else item for item in values]
    kinds = {type(item) for item in items}
    if kinds == {str}:
        return text_array(items)
    if kinds in ({int}, {bool}, {float}):
        homogeneous = np.array(items)
        if homogeneous.dtype.kind != "f" or isinstance(items[0], float):  # integers beyond 64 bits would become floats
            return homogeneous
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def text_array(texts: Sequence[str]) -> AnyArray:
    """Texts as an array of fixed width; as objects if one is much longer than the others, or holds a NUL.

    An array of fixed width takes as much for each text as for the longest, and drops a NUL at its end.
    """
    lengths = [len(text) for text in texts]
    even = bool(lengths) and max(lengths) <= sum(lengths) / len(lengths) + WASTED_CHARACTERS
    if even and not any("\0" in text for text in texts):
        return np.array(texts)
    array = np.empty(len(texts), dtype=object)
    array[:] = texts
    return array


def as_numpy(values: Any) -> Any:
    """Tensors and data frames as NumPy arrays; everything else as it is."""
    if hasattr(values, "detach"):
        return values.detach().cpu().numpy()
    if hasattr(values, "to_numpy"):
        return values.to_numpy()
    return values


def to_matrix(features: Any) -> Any:
    """Features as a two-dimensional float32 array or CSR array; they may be any array, list, tensor or data frame."""
    features = as_numpy(features)
    if sp.issparse(features):
        return sp.csr_array(features)
    try:
        matrix = np.asarray(features)
        if np.iscomplexobj(matrix):
            raise TypeError
        with np.errstate(over="ignore"):  # what becomes infinite is found and named later
            matrix = matrix.astype(np.float32, copy=False)
    except (TypeError, ValueError):
        raise InputError(
            "features: every row must have the same number of entries, and every entry be a number."
        ) from None
    return matrix[:, None] if matrix.ndim == 1 else matrix


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


def from_scipy(adjacency: Any, weighted: bool) -> Parts:
    """Parts of a graph given by its adjacency matrix, whose entries may be weights."""
    if not sp.issparse(adjacency) or adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        shape = getattr(adjacency, "shape", type(adjacency).__name__)
        raise InputError(f"adjacency: expected a square sparse matrix, got {shape}.")
    matrix = adjacency.tocoo()
    stored = matrix.data != 0
    edges = np.stack([matrix.row[stored], matrix.col[stored]], axis=1).astype(np.int64)
    weights = matrix.data[stored] if weighted else None
    if weights is not None:
        _require_positive(weights, edges)
    return Parts(edges, int(adjacency.shape[0]), weights=weights)


def from_networkx(graph: Any, features: Any, label: str | None, weight: str | None) -> Parts:
    """Parts of a NetworkX graph; `features` is a matrix or the name of a node attribute, `weight` one of edges."""
    nodes = list(graph.nodes)
    index = {node: position for position, node in enumerate(nodes)}
    edges = np.array([(index[tail], index[head]) for tail, head in graph.edges()], dtype=np.int64).reshape(-1, 2)
    if isinstance(features, str):
        rows = [np.atleast_1d(value) for value in _attribute(graph, features)]
        if len({row.shape for row in rows}) > 1:
            raise InputError(f"The node attribute {features!r} does not have the same length for every node.")
        features = rows
    labels = None if label is None else to_array(_attribute(graph, label))
    weights = None if weight is None else _edge_attribute(graph, weight)
    return Parts(edges, len(nodes), to_array(nodes), features, labels, weights, graph.is_directed())


def from_pyg(data: Any, weight: str | None) -> Parts:
    """Parts of a PyTorch Geometric `Data` object; a `y` with one entry per node is taken as labels."""
    if data.edge_index is None:
        raise InputError("The PyTorch Geometric data has no edge_index.")
    num_nodes = int(data.num_nodes)
    labels = None if data.y is None or data.y.numel() != num_nodes else as_numpy(data.y).ravel()
    edges = as_numpy(data.edge_index).T.astype(np.int64)
    return Parts(edges, num_nodes, None, data.x, labels, None if weight is None else _pyg_weights(data, weight))


def is_networkx(data: Any) -> bool:
    """Whether this is a NetworkX graph, of any kind."""
    return _comes_from("networkx", data) and hasattr(data, "nodes")


def is_pyg(data: Any) -> bool:
    """Whether this is a PyTorch Geometric `Data`."""
    return _comes_from("torch_geometric", data) and hasattr(data, "edge_index")


def is_frame(data: Any) -> bool:
    """Whether this is a data frame of pandas or polars, or an Arrow table."""
    known = any(_comes_from(library, data) for library in ("pandas", "polars", "pyarrow"))
    return known and hasattr(type(data), "columns")


def _comes_from(library: str, data: Any) -> bool:
    return any(base.__module__.split(".")[0] == library for base in type(data).__mro__)


def _endpoints(edges: Any) -> AnyArray:
    """The edges as an M×2 array whose endpoints keep their type."""
    edges = as_numpy(edges)
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
    position = _hashed(lambda: {node: index for index, node in enumerate(ids.tolist())})
    try:
        flat = _hashed(lambda: [position[node] for node in endpoints.ravel().tolist()])
    except KeyError as error:
        unknown = error.args[0]
        row = next(row for row, ends in enumerate(endpoints.tolist()) if unknown in ends)
        raise InputError(f"edges: row {row} names the node {unknown!r}, which is not among node_ids.") from None
    return np.array(flat, dtype=np.int64).reshape(-1, 2)


def _number(endpoints: AnyArray) -> tuple[IntArray, AnyArray]:
    """Ids in the order of their first appearance, and the endpoints as positions in it."""
    flat = endpoints.ravel()
    if flat.dtype == object:
        items = flat.tolist()
        missing = next((place for place, node in enumerate(items) if node is None or node != node), None)
        if missing is not None:
            raise InputError(f"edges: row {missing // 2} has a missing endpoint ({items[missing]}).")
        index: dict[Hashable, int] = {}
        positions = _hashed(lambda: [index.setdefault(node, len(index)) for node in items])
        return np.array(positions, dtype=np.int64).reshape(-1, 2), to_array(index)
    ids, first, inverse = np.unique(flat, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[inverse].reshape(-1, 2), ids[order]


def _hashed(build: Callable[[], Built]) -> Built:
    """What is built from ids as keys, or an error where one of them cannot be a key."""
    try:
        return build()
    except TypeError as error:
        raise InputError(f"A node id must be text, a number, a tuple or anything else hashable ({error}).") from None


def _attribute(graph: Any, name: str) -> list[Any]:
    """One node attribute of a NetworkX graph, for every node."""
    values = dict(graph.nodes(data=name))
    for node, value in values.items():
        if value is None:
            raise InputError(f"The node {node!r} has no attribute {name!r}.")
    return list(values.values())


def _edge_attribute(graph: Any, name: str) -> list[Any]:
    """One edge attribute of a NetworkX graph, for every edge."""
    values = list(graph.edges(data=name))
    for tail, head, value in values:
        if value is None:
            raise InputError(f"The edge from {tail!r} to {head!r} has no attribute {name!r}.")
    return [value for _, _, value in values]


def _pyg_weights(data: Any, name: str) -> AnyArray:
    """What a PyTorch Geometric `Data` keeps under a name for its edges, as one number per edge."""
    values = getattr(data, name, None)
    if values is None:
        raise InputError(f"weight: the PyTorch Geometric data has no {name}.")
    array: AnyArray = as_numpy(values)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _require_positive(weights: AnyArray, edges: Pairs) -> None:
    """Weights of a matrix are named by their entry rather than by a row."""
    wrong = ~(weights > 0) | ~np.isfinite(weights)
    if wrong.any():
        i, j = edges[int(wrong.argmax())].tolist()
        raise InputError(f"adjacency: the entry ({i}, {j}) is {weights[wrong][0]}; weights are finite and above 0.")
