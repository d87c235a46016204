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
from vgae.graph.pairs import AnyArray, IntArray, Pairs, as_int64
from vgae.options import true_or_false
from vgae.words import count, shown

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


def to_array(values: Iterable[Any], what: str = "ids") -> AnyArray:
    """A one-dimensional array that keeps each value as it is: mixed types and tuples stay objects."""
    values = as_numpy(values, what)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufcSUMmV":
        return values.copy()
    try:
        items = [item.item() if isinstance(item, np.generic) else item for item in values]
    except TypeError:
        raise InputError(f"{what}: expected a list of them, got {shown(values)}.") from None
    kinds = {type(item) for item in items}
    if kinds == {str}:
        return text_array(items)
    if kinds == {bytes} and not any(item.endswith(b"\0") for item in items):  # which an array would drop
        return np.array(items)
    if kinds in ({int}, {bool}, {float}):
        homogeneous = np.array(items)
        if homogeneous.dtype.kind != "f" or isinstance(items[0], float):  # integers beyond 64 bits would become floats
            return homogeneous
    return _object_array(items)


def text_array(texts: Sequence[str]) -> AnyArray:
    """Texts as an array of fixed width; as objects if one is much longer than the others, or holds a NUL.

    An array of fixed width takes as much for each text as for the longest, and drops a NUL at its end.
    """
    lengths = [len(text) for text in texts]
    even = bool(lengths) and max(lengths) <= sum(lengths) / len(lengths) + WASTED_CHARACTERS
    if even and not any("\0" in text for text in texts):
        return np.array(texts)
    return _object_array(texts)


def as_numpy(values: Any, what: str = "values") -> Any:
    """Tensors and data frames as NumPy arrays; everything else as it is."""
    try:
        if hasattr(values, "detach"):
            values = values.detach().cpu().numpy()
        elif hasattr(values, "to_numpy"):
            values = values.to_numpy()
    except (AttributeError, RuntimeError, TypeError, ValueError):
        kind = type(values).__name__
        raise InputError(f"{what}: this {kind} cannot be made a NumPy array; convert it to a plain one.") from None
    if np.ma.is_masked(values):
        raise InputError(f"{what}: some of the entries are masked; fill them in or leave them out.")
    return np.asarray(values) if isinstance(values, np.ndarray) else values


def as_real(values: Any, problem: str) -> AnyArray:
    """Numbers as an array of booleans, integers or floats; ragged rows, text, dates and complex numbers are refused."""
    try:
        array = np.asarray(as_numpy(values, problem.partition(":")[0]))
        if array.dtype == object:
            if any(isinstance(item, str | bytes | np.ndarray) for item in array.flat):
                raise TypeError
            array = array.astype(np.float64)
        if array.dtype.kind not in "biuf":
            raise TypeError
    except InputError:
        raise
    except (OverflowError, RuntimeError, TypeError, ValueError):
        raise InputError(problem) from None
    return array


def to_matrix(features: Any) -> Any:
    """Features as a two-dimensional float32 array or CSR array; they may be any array, list, tensor or data frame."""
    if sp.issparse(features):
        if features.ndim != 2 or features.dtype.kind not in "biuf":
            raise InputError(
                f"features: expected a matrix of numbers, got {features.dtype} of {features.ndim} dimensions."
            )
        return sp.csr_array(well_formed(features, "features"))
    problem = "features: every row must have the same number of entries, and every entry be a number."
    array = as_real(features, problem)
    if array.ndim not in (1, 2):
        raise InputError(f"features: expected a matrix with a row per node, got the shape {array.shape}.")
    with np.errstate(over="ignore"):  # what becomes infinite is found and named later
        matrix = array.astype(np.float32, copy=False)
    if matrix is not array:
        matrix.flags.writeable = False  # nobody else has it: a graph takes it without a copy
    return matrix[:, None] if matrix.ndim == 1 else matrix


def index_endpoints(edges: Any, node_ids: Iterable[Hashable] | None) -> tuple[IntArray, AnyArray | None]:
    """Edges as rows of integers, with the ids they index into, or None where the integers are indices already."""
    endpoints = _endpoints(edges)
    if node_ids is not None:
        ids = to_array(node_ids, "node_ids")
        return _look_up(endpoints, ids), ids
    kind = endpoints.dtype.kind
    if kind in "iu" or len(endpoints) == 0:
        return as_int64(endpoints, "edges"), None
    if kind == "f":
        raise InputError("edges: node indices must be integers; convert the columns, or give text or other ids.")
    if kind not in "OSU":
        raise InputError(f"edges: node indices are integers and ids are text, but these are {endpoints.dtype}.")
    return _number(endpoints)


def from_scipy(adjacency: Any, weighted: bool) -> Parts:
    """Parts of a graph given by its adjacency matrix, whose entries may be weights."""
    if not sp.issparse(adjacency) or adjacency.ndim != 2 or adjacency.shape[0] != adjacency.shape[1]:
        shape = getattr(adjacency, "shape", type(adjacency).__name__)
        raise InputError(f"adjacency: expected a square sparse matrix, got {shape}.")
    if adjacency.dtype.kind not in "biuf":
        raise InputError(f"adjacency: its entries should be real numbers, but are {adjacency.dtype}.")
    matrix = well_formed(adjacency, "adjacency").tocoo()
    stored = matrix.data != 0
    edges = np.stack([matrix.row[stored], matrix.col[stored]], axis=1).astype(np.int64)
    entries = matrix.data[stored]
    _require_positive(entries, edges)
    return Parts(edges, int(adjacency.shape[0]), weights=entries if true_or_false(weighted, "weighted") else None)


def from_networkx(graph: Any, features: Any, label: str | None, weight: str | None) -> Parts:
    """Parts of a NetworkX graph; `features` is a matrix or the name of a node attribute, `weight` one of edges."""
    if not is_networkx(graph):
        raise InputError(f"graph: expected a NetworkX graph, got {shown(graph)}.")
    nodes = list(graph.nodes)
    index = {node: position for position, node in enumerate(nodes)}
    edges = np.array([(index[source], index[target]) for source, target in graph.edges()], dtype=np.int64).reshape(
        -1, 2
    )
    if isinstance(features, str):
        features = _vectors(graph, features)
    labels = None if label is None else to_array(_attribute(graph, label, "label"), "labels")
    weights = None if weight is None else _edge_attribute(graph, weight)
    return Parts(edges, len(nodes), to_array(nodes), features, labels, weights, graph.is_directed())


def from_pyg(data: Any, weight: str | None) -> Parts:
    """Parts of a PyTorch Geometric `Data` object; a `y` with one entry per node is taken as labels."""
    if any(base.__name__ == "HeteroData" for base in type(data).__mro__):
        raise InputError(
            "The PyTorch Geometric data has nodes of several types (HeteroData); make it one graph by to_homogeneous()."
        )
    if not (is_pyg(data) and hasattr(data, "edge_index")):
        raise InputError(f"data: expected a PyTorch Geometric Data, got {shown(data)}.")
    if data.edge_index is None:
        raise InputError("The PyTorch Geometric data has no edge_index.")
    index = np.asarray(as_numpy(data.edge_index, "edge_index"))
    if index.ndim != 2 or index.shape[0] != 2 or index.dtype.kind not in "iu":
        raise InputError(
            f"edge_index: expected two rows of node indices, got {index.dtype} of the shape {index.shape}."
        )
    num_nodes = data.num_nodes
    labels = None if data.y is None else np.asarray(as_numpy(data.y, "y")).ravel()
    if labels is not None and len(labels) != num_nodes:
        labels = None
    return Parts(index.T, num_nodes, None, data.x, labels, None if weight is None else _pyg_weights(data, weight))


def is_networkx(data: Any) -> bool:
    """Whether this is a NetworkX graph, of any kind."""
    return _comes_from("networkx", data) and hasattr(data, "nodes")


def is_pyg(data: Any) -> bool:
    """Whether this is something of PyTorch Geometric's."""
    return _comes_from("torch_geometric", data)


def is_frame(data: Any) -> bool:
    """Whether this is a data frame of pandas or polars, or an Arrow table."""
    known = any(_comes_from(library, data) for library in ("pandas", "polars", "pyarrow"))
    return known and hasattr(type(data), "columns")


def _comes_from(library: str, data: Any) -> bool:
    return any(base.__module__.split(".")[0] == library for base in type(data).__mro__)


def _endpoints(edges: Any) -> AnyArray:
    """The edges as an M×2 array whose endpoints keep their type."""
    edges = as_numpy(edges, "edges")
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "biufcOSUMmV":
        if edges.ndim and edges.size == 0:
            return np.empty((0, 2), dtype=np.int64)
        if edges.ndim != 2 or edges.shape[1] != 2:
            raise InputError(f"edges: expected rows of two endpoints, got an array of shape {edges.shape}.")
        return edges
    try:
        rows = [row if isinstance(row, str | bytes) else tuple(row) for row in edges]
    except TypeError:
        raise InputError(f"edges: expected rows of two endpoints, got {shown(edges)}.") from None
    for number, row in enumerate(rows):
        if isinstance(row, str | bytes):
            raise InputError(f"edges: row {number} is {shown(row)} instead of two endpoints.")
        if len(row) != 2:
            raise InputError(f"edges: row {number} has {count(len(row), 'entry', 'entries')} instead of two endpoints.")
    flat = to_array([endpoint for row in rows for endpoint in row], "edges")
    return flat.reshape(-1, 2) if rows else np.empty((0, 2), dtype=np.int64)


def _object_array(items: Sequence[Any]) -> AnyArray:
    return np.fromiter(items, dtype=object, count=len(items))


def _look_up(endpoints: AnyArray, ids: AnyArray) -> IntArray:
    """Positions of the endpoints in the list of ids."""
    if endpoints.dtype.kind == ids.dtype.kind == "i" and ids.ndim == 1 and len(ids):
        return _look_up_integers(endpoints, ids)
    position = _hashed(lambda: {node: index for index, node in enumerate(ids.tolist())})
    ends = endpoints.ravel().tolist()
    flat = _hashed(lambda: [position.get(node, -1) for node in ends])
    if -1 in flat:
        place = flat.index(-1)
        raise _unknown(place // 2, ends[place])
    return np.array(flat, dtype=np.int64).reshape(-1, 2)


def _look_up_integers(endpoints: AnyArray, ids: AnyArray) -> IntArray:
    """The same by a search, which takes a tenth of the time."""
    order = np.argsort(ids, kind="stable")
    found: IntArray = order[np.searchsorted(ids, endpoints, side="right", sorter=order) - 1]
    unknown = np.argwhere(ids[found] != endpoints)
    if len(unknown):
        row, end = unknown[0]
        raise _unknown(int(row), endpoints[row, end].item())
    return found


def _unknown(row: int, node: Hashable) -> InputError:
    return InputError(f"edges: row {row} names the node {shown(node)}, which is not among node_ids.")


def _number(endpoints: AnyArray) -> tuple[IntArray, AnyArray]:
    """Ids in the order of their first appearance, and the endpoints as positions in it."""
    flat = endpoints.ravel()
    if flat.dtype == object:
        items = flat.tolist()
        missing = next((place for place, node in enumerate(items) if _is_missing(node)), None)
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


def _is_missing(node: Any) -> bool:
    return node is None or (isinstance(node, float) and node != node)


def _hashed(build: Callable[[], Built]) -> Built:
    """What is built from ids as keys, or an error where one of them cannot be a key."""
    try:
        return build()
    except TypeError as error:
        raise InputError(f"A node id must be text, a number, a tuple or anything else hashable ({error}).") from None


def _attribute(graph: Any, name: Any, option: str) -> list[Any]:
    """One node attribute of a NetworkX graph, for every node."""
    _require_name(name, option)
    values = dict(graph.nodes(data=name))
    for node, value in values.items():
        if value is None:
            raise InputError(f"The node {shown(node)} has no attribute {name!r}.")
    return list(values.values())


def _vectors(graph: Any, name: str) -> list[AnyArray]:
    """One node attribute of a NetworkX graph as a vector for every node, all of the same length."""
    try:
        rows = [np.atleast_1d(value) for value in _attribute(graph, name, "features")]
    except (TypeError, RuntimeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"The node attribute {name!r} does not hold numbers or vectors of them.") from None
    if len({row.shape for row in rows}) > 1:
        raise InputError(f"The node attribute {name!r} does not have the same length for every node.")
    return rows


def _edge_attribute(graph: Any, name: str) -> list[Any]:
    """One edge attribute of a NetworkX graph, for every edge."""
    _require_name(name, "weight")
    values = list(graph.edges(data=name))
    for source, target, value in values:
        if value is None:
            raise InputError(f"The edge from {shown(source)} to {shown(target)} has no attribute {name!r}.")
    return [value for _, _, value in values]


def _pyg_weights(data: Any, name: str) -> AnyArray:
    """What a PyTorch Geometric `Data` keeps under a name for its edges, as one number per edge."""
    _require_name(name, "weight")
    values = getattr(data, name, None)
    if values is None:
        raise InputError(f"weight: the PyTorch Geometric data has no {name}.")
    array: AnyArray = np.asarray(as_numpy(values, "weight"))
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def _require_name(name: Any, option: str) -> None:
    if not isinstance(name, str):
        raise InputError(f"{option}: the name of an attribute is needed, got {shown(name)}.")


def well_formed(matrix: Any, what: str) -> Any:
    """A sparse matrix whose indices lie within it; SciPy itself would follow them anywhere, and checks only some."""
    try:
        problem = _problem_of(matrix)
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        problem = str(error)
    if problem:
        raise InputError(f"{what}: the sparse matrix is not well formed ({problem}).")
    return matrix


def _problem_of(matrix: Any) -> str:
    """What is wrong with where the entries of a sparse matrix are; nothing, mostly."""
    num_rows, num_columns = matrix.shape
    if matrix.format == "coo" and matrix.nnz:
        for places, extent in zip((matrix.row, matrix.col), matrix.shape, strict=True):
            if not 0 <= places.min() <= places.max() < extent:
                return f"indices run from {places.min()} to {places.max()}"
    elif matrix.format == "dia":
        offsets = matrix.offsets
        if len(offsets) and not -num_rows < offsets.min() <= offsets.max() < num_columns:
            return f"diagonals run from {offsets.min()} to {offsets.max()}"
    elif matrix.format in ("csr", "csc", "bsr"):
        height, width = matrix.blocksize if matrix.format == "bsr" else (1, 1)
        major, minor = num_rows // height, num_columns // width
        if matrix.format == "csc":
            major, minor = minor, major
        starts, places = matrix.indptr, matrix.indices
        if len(starts) != major + 1 or starts[0] != 0 or np.any(starts[1:] < starts[:-1]):
            return "the index pointer does not rise from 0, once for each row or column"
        if starts[-1] > min(len(places), len(matrix.data)):
            return "there are fewer entries than the index pointer says"
        if len(places) and not 0 <= places.min() <= places.max() < minor:
            return f"indices run from {places.min()} to {places.max()}"
    return ""


def _require_positive(entries: AnyArray, edges: Pairs) -> None:
    """What is no link or no weight is named by its place in the matrix."""
    wrong = ~(entries > 0) | ~np.isfinite(entries)
    if wrong.any():
        i, j = edges[int(wrong.argmax())].tolist()
        raise InputError(
            f"adjacency: the entry ({i}, {j}) is {entries[wrong][0]}; a link is a finite number above 0, no link is 0."
        )
