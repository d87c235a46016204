"""Pairs: M×2 integer arrays of node indices.

An undirected link is the pair (i, j) with i < j, its *canonical* form. Among N nodes the canonical pairs are numbered
row by row through the strict upper triangle, from 0 to N(N-1)/2 - 1; that number is the pair's *rank*:

    rank(i, j) = i (2N - i - 1) / 2 + (j - i - 1)

Sorting canonical pairs and sorting their ranks is the same thing, so sets of pairs become sorted integer arrays.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.words import shown

IntArray = npt.NDArray[np.int64]
Pairs = npt.NDArray[np.int64]
AnyArray = npt.NDArray[Any]


def canonical(pairs: Pairs) -> Pairs:
    """Each pair with its smaller index first."""
    return np.sort(pairs, axis=1)


def num_pairs(num_nodes: int) -> int:
    """How many canonical pairs there are among this many nodes."""
    return num_nodes * (num_nodes - 1) // 2


def to_ranks(pairs: Pairs, num_nodes: int) -> IntArray:
    """Ranks of canonical pairs."""
    i, j = pairs[:, 0], pairs[:, 1]
    return i * (2 * num_nodes - i - 1) // 2 + (j - i - 1)


def from_ranks(ranks: IntArray, num_nodes: int) -> Pairs:
    """Canonical pairs of the given ranks; the inverse of `to_ranks`."""
    side = 2 * num_nodes - 1
    i = ((side - np.sqrt(side * side - 8.0 * ranks)) / 2).astype(np.int64)
    # The square root is rounded: step to the row whose ranks really hold this one.
    i -= i * (side - i) // 2 > ranks
    i += (i + 1) * (side - i - 1) // 2 <= ranks
    j = ranks - i * (side - i) // 2 + i + 1
    return np.stack([i, j], axis=1)


def distinct(values: IntArray) -> IntArray:
    """The distinct values, sorted; by sorting, which is ten times faster than np.unique's hashing on large arrays."""
    ordered = np.sort(values)
    return ordered[np.concatenate([[True], ordered[1:] != ordered[:-1]])] if len(ordered) else ordered


def contains(sorted_values: IntArray, values: IntArray) -> npt.NDArray[np.bool_]:
    """For each value, whether it occurs in a sorted array."""
    if len(sorted_values) == 0:
        return np.zeros(len(values), dtype=bool)
    position = np.minimum(np.searchsorted(sorted_values, values), len(sorted_values) - 1)
    found: npt.NDArray[np.bool_] = sorted_values[position] == values
    return found


def bytes_of(array: AnyArray, kind: str) -> memoryview:
    """The bytes of an array of some type, for a hash or a file; no copy of them where it is of that type already."""
    return np.ascontiguousarray(array, kind).reshape(-1).view(np.uint8).data


def check_pairs(pairs: npt.ArrayLike, num_nodes: int, what: str = "pairs") -> Pairs:
    """The pairs as an M×2 int64 array, or an error that names the first row that is wrong."""
    result = as_pairs(pairs, what)
    outside = ((result < 0) | (result >= num_nodes)).any(axis=1)
    if outside.any():
        row = int(outside.argmax())
        i, j = (int(value) for value in result[row])
        raise InputError(
            f"{what}: row {row} is ({i}, {j}), but node indices run from 0 to {num_nodes - 1}; "
            "correct the row or give the right number of nodes."
        )
    return result


def as_pairs(pairs: npt.ArrayLike, what: str) -> Pairs:
    """The pairs as an M×2 int64 array, whatever nodes they name."""
    try:
        array = np.asarray(pairs)
    except ValueError:
        rows: Any = pairs
        wrong = next((row for row, pair in enumerate(rows) if not _is_two(pair)), 0)
        raise InputError(f"{what}: row {wrong} is not a pair of node indices.") from None
    except (TypeError, RuntimeError):
        raise InputError(f"{what}: expected rows of two node indices, got {shown(pairs)}.") from None
    if array.ndim and array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"{what}: expected two columns of node indices, got an array of shape {array.shape}.")
    if array.dtype.kind not in "iu":
        raise InputError(f"{what}: expected integer node indices, got values of type {array.dtype}.")
    return as_int64(array, what)


def as_int64(array: AnyArray, what: str) -> IntArray:
    """Integers of any width as 64 bits; unsigned ones that would become negative are refused."""
    if array.dtype.kind == "u" and array.size and array.max() > np.iinfo(np.int64).max:
        raise InputError(f"{what}: {array.max()} is too large for a node index; give the ids as node_ids.")
    return array.astype(np.int64, copy=False)


def check_nodes(nodes: npt.ArrayLike, num_nodes: int) -> list[int]:
    """Node indices as a list, or an error that names the first that is none."""
    try:
        array = np.asarray(nodes)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"nodes: a list of node indices is needed, got {shown(nodes)}.") from None
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise InputError(f"nodes: a list of node indices is needed, got {array.dtype} of shape {array.shape}.")
    for node in array.tolist():
        if not 0 <= node < num_nodes:
            raise InputError(f"nodes: {node} is not a node; node indices run from 0 to {num_nodes - 1}.")
    return [int(node) for node in array.tolist()]


def _is_two(pair: Any) -> bool:
    try:
        return len(pair) == 2
    except TypeError:
        return False
