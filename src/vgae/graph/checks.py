"""What the parts of a graph have to be; each comes back as the graph's own, which nobody else can change.

An array that is frozen, and no view of one that is not, is shared; every other array is copied, and the caller's stays
as it is. Ids and labels are what can be stored without a pickle: text, bytes, booleans, numbers, and, in arrays of
objects, text, numbers, None and tuples of these, which JSON can hold. Dates and everything else are refused here, not
only when the graph is to be saved.
"""

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.convert import as_numpy, as_real, to_array, to_matrix, well_formed
from vgae.graph.pairs import AnyArray, Pairs, as_pairs, distinct
from vgae.options import whole_number
from vgae.words import count, shown

FloatArray = npt.NDArray[np.float32]
DirectionArray = npt.NDArray[np.int8]
SideArray = npt.NDArray[np.uint8]
FORWARD, BACKWARD, BOTH = 1, -1, 0  # of an edge (i, j) with i < j: from i to j, from j to i, both
WEIGHTS_ARE = "a weight is a number above 0 and at most 3.4e38"
MAX_NODES = 100_000_000  # beyond, codes and ranks of pairs would no longer be exact in 64 bits
PLAIN = (str, bool, int, float, type(None), np.bool_, np.integer, np.float16, np.float32)
MAX_SEED = 2**64 - 1
MAX_BITS = 10_000  # of an integer: Python does not read back numbers of more than 4,300 digits
MAX_DEPTH = 50  # of tuples in tuples
BLOCK = 2**24  # numbers that are checked at a time


def check_num_nodes(num_nodes: Any) -> int:
    """A number of nodes that a graph can have."""
    number = whole_number(num_nodes, "num_nodes", 0)
    if number == 0:
        raise InputError("The graph is empty: it has no nodes.")
    if number > MAX_NODES:
        many = f"{number:,}" if number < 2**64 else "more than 2**64"  # Python writes out only so many digits
        raise InputError(
            f"The graph would have {many} nodes, more than the {MAX_NODES:,} that are supported; "
            "if its large integers are ids, give the list of them as node_ids."
        )
    return number


def check_edges(edges: Any, num_nodes: int, given: object) -> Pairs:
    """Canonical, sorted, distinct edges; `given` says what they were made of, for the sentence about none."""
    pairs = as_pairs(edges, "edges")
    if len(pairs) == 0:
        raise InputError(f"The graph has no links between different nodes ({given}).")
    i, j = pairs[:, 0], pairs[:, 1]
    ordered = np.all((i[1:] > i[:-1]) | ((i[1:] == i[:-1]) & (j[1:] > j[:-1])))
    if i[0] < 0 or j.max() >= num_nodes or np.any(i >= j) or not ordered:
        raise InputError("Graph takes canonical, sorted edges without duplicates; use Graph.from_edges.")
    return owned(pairs)


def check_of_nodes(values: Any, what: str, num_nodes: int) -> AnyArray:
    """Ids or labels: one for each node, of a type that can be stored."""
    plain = isinstance(values, np.ndarray) and values.dtype.kind in "biufSU"
    array = values if plain or (isinstance(values, np.ndarray) and values.dtype == object) else to_array(values, what)
    if array.shape != (num_nodes,):
        raise InputError(f"{what}: expected one entry for each of the {num_nodes} nodes, got the shape {array.shape}.")
    if array.dtype == object:
        _require_storable(array.tolist(), what)
    elif array.dtype.kind not in "biufSU":
        raise InputError(f"{what}: values of type {array.dtype} cannot be stored; make them text or numbers.")
    return owned(array)


def check_node_ids(values: Any, num_nodes: int) -> AnyArray:
    """Ids, each of them once."""
    ids = check_of_nodes(values, "node_ids", num_nodes)
    num_distinct = len(distinct(ids)) if ids.dtype.kind in "biuf" else len(set(ids.tolist()))
    if num_distinct < num_nodes:
        raise InputError("node_ids: an id occurs more than once; every node needs an id of its own.")
    return ids


def check_weights(weights: Any, num_rows: int) -> npt.NDArray[np.float64]:
    """Weights as numbers, one per row, or an error that names the first row that is wrong."""
    values = as_real(weights, "weights: every weight must be a number.").astype(np.float64)
    if values.shape != (num_rows,):
        raise InputError(f"weights: expected one per row, {num_rows} in all, got the shape {values.shape}.")
    usable = usable_weights(values)
    if not usable.all():
        row = int(np.argmin(usable))
        raise InputError(f"weights: row {row} is {values[row]}; {WEIGHTS_ARE}.")
    return values


def own_weights(weights: Any, num_edges: int) -> FloatArray:
    """Weights of edges, in 32 bits."""
    values = check_weights(weights, num_edges)
    ready = isinstance(weights, np.ndarray) and weights.dtype == np.float32
    return owned(weights) if ready else frozen(values.astype(np.float32))


def usable_weights(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Which of these are weights: above 0 and finite, also in 32 bits."""
    with np.errstate(over="ignore", under="ignore"):
        small = values.astype(np.float32)
    found: npt.NDArray[np.bool_] = np.isfinite(small) & (small > 0)
    return found


def check_directions(directions: Any, num_edges: int) -> DirectionArray:
    """A direction for each edge."""
    problem = f"directions: 1, -1 or 0 is needed for every edge, {num_edges} in all."
    array = as_real(directions, problem)
    if array.shape != (num_edges,) or not np.isin(array, (FORWARD, BACKWARD, BOTH)).all():
        raise InputError(problem)
    return owned(array.astype(np.int8, copy=False))


def check_sides(sides: Any, num_nodes: int, edges: Pairs) -> SideArray:
    """A side for each node of a bipartite graph, whose links go across."""
    problem = f"sides: 0 or 1 is needed for every node, {num_nodes} in all."
    array = as_real(sides, problem)
    if array.shape != (num_nodes,) or not np.isin(array, (0, 1)).all():
        raise InputError(problem)
    own = owned(array.astype(np.uint8, copy=False))
    same = own[edges[:, 0]] == own[edges[:, 1]]
    if same.any():
        i, j = edges[int(same.argmax())].tolist()
        raise InputError(f"sides: the link between the nodes {i} and {j} stays on one side, but all have to go across.")
    return own


def check_features(features: Any, num_nodes: int, first: int = 0) -> FloatArray | sp.csr_array:
    """Features as a float32 array or CSR array, with a finite row for each node; errors count from the first on."""
    given = to_matrix(features)
    if given.shape[1] == 0:
        raise InputError(f"features: expected a matrix with a row per node, got the shape {given.shape}.")
    if given.shape[0] != num_nodes:
        raise InputError(
            f"features: {count(given.shape[0], 'row')} for {count(num_nodes, 'node')}; give exactly one row per node."
        )
    sparse = sp.issparse(given)
    matrix: Any = _tidy_csr(given) if sparse else owned(given)
    values: AnyArray = matrix.data if sparse else matrix
    place = _first_not_finite(values)
    if place is not None:
        if sparse:
            row, column = int(np.searchsorted(matrix.indptr, place, side="right")) - 1, int(matrix.indices[place])
        else:
            row, column = divmod(place, matrix.shape[1])
        raise InputError(
            f"features: row {row + first}, column {column} is {values.ravel()[place]}; "
            "fill in missing and infinite values before training."
        )
    return matrix


def _first_not_finite(values: AnyArray) -> int | None:
    """The place of the first number that is none, row by row; a block at a time, for arrays that lie in a file."""
    width = int(np.prod(values.shape[1:], dtype=np.int64))
    num = max(1, BLOCK // width)
    for start in range(0, len(values), num):
        finite = np.isfinite(values[start : start + num])
        if not finite.all():
            return start * width + int(np.argmin(finite.ravel()))
    return None


def owned(array: AnyArray) -> AnyArray:
    """An array that nobody else can change: itself if it is frozen, else a frozen copy."""
    own = np.asarray(as_numpy(array))
    return frozen(own.copy() if any(part.flags.writeable for part in _memory_of(own)) else own)


def frozen(array: AnyArray) -> AnyArray:
    """An array that was made here, made read-only: a graph takes it over without a copy."""
    for part in _memory_of(array):
        part.flags.writeable = False
    return array


def _tidy_csr(matrix: sp.csr_array) -> sp.csr_array:
    """Sorted columns, no duplicates, no stored zeros: the matrix itself if it is frozen and so already, else a copy."""
    well_formed(matrix, "features")
    parts = (matrix.data, matrix.indices, matrix.indptr)
    ours = not any(array.flags.writeable for part in parts for array in _memory_of(part))
    if not (ours and matrix.dtype == np.float32 and matrix.has_canonical_format and np.all(matrix.data)):
        with np.errstate(over="ignore"):
            matrix = sp.csr_array(matrix, dtype=np.float32, copy=True)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
    for part in (matrix.data, matrix.indices, matrix.indptr):
        frozen(part)
    return matrix


def _require_storable(values: list[Any], what: str) -> None:
    if {type(value) for value in values} <= {str, bool, float, type(None)}:
        return
    for place, value in enumerate(values):
        if not _is_storable(value):
            raise InputError(
                f"{what}: entry {place} is {shown(value)}, a {type(value).__name__}, which cannot be stored; "
                "make it text, a number or a tuple of these."
            )


def _is_storable(value: Any, depth: int = 0) -> bool:
    if isinstance(value, tuple):
        return depth < MAX_DEPTH and all(_is_storable(item, depth + 1) for item in value)
    if isinstance(value, np.timedelta64) or (isinstance(value, int) and value.bit_length() > MAX_BITS):
        return False  # the former is a np.integer to NumPy
    return isinstance(value, PLAIN)


def _memory_of(array: AnyArray) -> list[AnyArray]:
    """An array and all arrays that it is a view of."""
    found = [array]
    while isinstance(found[-1].base, np.ndarray):
        found.append(found[-1].base)
    return found
