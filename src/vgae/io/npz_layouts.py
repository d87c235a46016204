"""Graphs and features in npz files that others wrote, recognised by the names of their arrays.

SciPy           scipy.sparse.save_npz: format, shape, data, and where the data stand; a matrix
GNN benchmarks  adj_data, adj_indices, adj_indptr, adj_shape; attr_* likewise, or attr_matrix; labels (Shchur 2018)
edge_index      edge_index (2×E or E×2), or edges; x, features or node_features; y, labels or node_labels; edge_weight

Other arrays, such as masks and names, are left unread and named in a note; no pickle is ever read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import MAX_NODES
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray
from vgae.io.graphs import COUNT, GRAPH_ARRAYS, OF_NODES, SPARSE_FEATURES, features_in
from vgae.io.npz import Expected, names_in, read_npz, read_rows, shape_in
from vgae.io.options import LinkOptions
from vgae.io.sparse import require_weight_of_matrix, sparse_if_few

NUMBERS = Expected("biuf", (1, 2, 3), "a list of numbers")
PLACES = Expected("iu", (1,), "a list of whole numbers")
SCIPY = {
    "format": Expected("SU", (0,), "the name of a sparse format", required=True),
    "shape": Expected("iu", (1,), "a number of rows and one of columns", required=True),
    "data": Expected("biuf", (1, 2, 3), "a list of numbers", required=True),
    **dict.fromkeys(("indices", "indptr", "row", "col", "offsets"), PLACES),
    "_is_array": Expected("b", (0,), "true or false"),
}
ENDS = ("edge_index", "edges")
FEATURES = ("x", "features", "node_features", "feat", "feats", "attr_matrix")
LABELS = ("y", "labels", "node_labels", "label")
WEIGHTS = ("edge_weight", "edge_weights", "weights")
CSR = ("data", "indices", "indptr", "shape")
MATRIX = Expected("biuf", (1, 2), "a matrix of numbers")
STARTS = (("adj_", "attr_"), ("adj_matrix.", "attr_matrix."), ("adj_matrix_", "attr_matrix_"))


def is_foreign(names: Sequence[str]) -> bool:
    """Whether arrays of these names are a graph in a layout that is not vgae's own."""
    return _is_scipy(names) or _starts(names) is not None or "edge_index" in names or "node_features" in names


def read_foreign(path: Path, options: LinkOptions) -> tuple[Graph, tuple[str, ...]]:
    """A graph in such a layout, and what was assumed."""
    names = names_in(path)
    try:
        if _is_scipy(names):
            matrix = scipy_matrix(path)
            weighted = require_weight_of_matrix(options.weight)
            return Graph.from_scipy(matrix, weighted=weighted, directed=options.directed), (
                "a sparse matrix by SciPy; nodes are numbered from 0",
            )
        starts = _starts(names)
        return _benchmark(path, names, starts, options) if starts else _edge_index(path, names, options)
    except InputError as error:
        said = str(error)
        raise InputError(said if said.startswith(str(path)) else f"{path}: {said}") from None
    except MemoryError:
        raise InputError(f"{path}: the graph is too large for the memory that is free.") from None
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a graph ({error}).") from None


def read_matrix(path: Path) -> Any:
    """A matrix of features in an npz file: a sparse one by SciPy, or the features of a graph in another layout."""
    names = names_in(path)
    try:
        if _is_scipy(names):
            return scipy_matrix(path)
        starts = _starts(names)
        found = _attributes(path, names, starts[1] if starts else "attr_")
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        said = str(error)
        if isinstance(error, InputError):
            raise InputError(said if said.startswith(str(path)) else f"{path}: {said}") from None
        raise InputError(f"{path}: not a matrix of features ({error}).") from None
    if found is None:
        raise InputError(f"{path}: there are no features in it; use scipy.sparse.save_npz, or call the array features.")
    return found


@dataclass(frozen=True)
class RowsOfMatrix:
    """A matrix of features in an npz file of which some rows can be read without the others."""

    path: Path
    shape: tuple[int, int]
    starts: AnyArray | None  # of the rows among the entries; None: it is dense
    names: tuple[str, ...]  # of the arrays of data and indices, or of the dense one

    @classmethod
    def of(cls, path: Path) -> RowsOfMatrix | None:
        """That of a file; None where all of it has to be read: it is laid out otherwise, or not as it should be."""
        names = names_in(path)
        start = "" if _is_scipy(names) else ((_starts(names) or ("", "attr_"))[1])
        parts = tuple(start + part for part in CSR)
        if set(parts) <= set(names):
            return cls._sparse(path, parts)
        name = next((name for name in FEATURES if name in names), None)
        if name is None or start + "data" in names or "feature_data" in names:
            return None
        shape = shape_in(path, name, MATRIX)
        if shape is None or not 0 < shape[0] <= MAX_NODES or 0 in shape:
            return None
        return cls(path, (shape[0], 1 if len(shape) == 1 else shape[1]), None, (name,))

    @classmethod
    def _sparse(cls, path: Path, parts: tuple[str, ...]) -> RowsOfMatrix | None:
        data, indices, starts, shape = parts
        known = {starts: PLACES, shape: PLACES, "format": SCIPY["format"]}
        found = read_npz(path, {name: known[name] for name in known if name in names_in(path)}, only=False)
        given, extents = found[starts].astype(np.int64), tuple(int(extent) for extent in found[shape])
        if found.get("format", np.array(b"csr")).item() not in (b"csr", "csr") or len(extents) != 2:
            return None
        lengths = [shape_in(path, data, MATRIX), shape_in(path, indices, PLACES)]
        whole = len(given) == extents[0] + 1 and given[0] == 0 and lengths == [(given[-1],)] * 2
        if not whole or (np.diff(given) < 0).any() or not 0 < extents[0] <= MAX_NODES or extents[1] == 0:
            return None
        return cls(path, (extents[0], extents[1]), given, (data, indices))

    def read(self, rows: range) -> Any:
        """Some of its rows."""
        if self.starts is None:
            found = read_rows(self.path, {self.names[0]: MATRIX}, {self.names[0]: rows})[self.names[0]]
            return found if found.ndim == 2 else found[:, None]
        first, last = int(self.starts[rows.start]), int(self.starts[rows.stop])
        known = dict(zip(self.names, (MATRIX, PLACES), strict=True))
        parts = read_rows(self.path, known, dict.fromkeys(self.names, range(first, last)))
        starts = self.starts[rows.start : rows.stop + 1] - first
        return sp.csr_array((*(parts[name] for name in self.names), starts), shape=(len(rows), self.shape[1]))


def scipy_matrix(path: Path) -> Any:
    """The matrix that scipy.sparse.save_npz wrote."""
    parts = read_npz(path, SCIPY)
    kind = parts["format"].item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else kind
    shape = tuple(int(extent) for extent in parts["shape"])
    if len(shape) != 2 or min(shape) < 0:
        raise InputError(f"{path}: a matrix of two dimensions is needed, and its shape is {shape}.")
    places = {"coo": ("row", "col"), "dia": ("offsets",)}.get(kind, ("indices", "indptr"))
    missing = next((name for name in places if name not in parts), None)
    if missing or kind not in ("csr", "csc", "bsr", "coo", "dia"):
        raise InputError(
            f"{path}: not a matrix that scipy.sparse.save_npz wrote ({missing or kind} is missing or odd)."
        )
    if max(shape) > MAX_NODES:
        raise InputError(f"{path}: a matrix of {shape[0]:,}×{shape[1]:,} is larger than the {MAX_NODES:,} supported.")
    where = tuple(parts[name] for name in places)
    entries = (parts["data"], where) if kind == "coo" else (parts["data"], *where)
    return getattr(sp, f"{kind}_array")(entries, shape=shape)


def _is_scipy(names: Sequence[str]) -> bool:
    return {"format", "shape", "data"} <= set(names)


def _starts(names: Sequence[str]) -> tuple[str, str] | None:
    """How the names of the adjacency's and the attributes' arrays begin, in the layout of the benchmarks."""
    return next((starts for starts in STARTS if starts[0] + "data" in names), None)


def _benchmark(
    path: Path, names: Sequence[str], starts: tuple[str, str], options: LinkOptions
) -> tuple[Graph, tuple[str, ...]]:
    adjacency = _csr(path, starts[0])
    labels = _labels(path, names)
    graph = Graph.from_scipy(
        adjacency,
        weighted=require_weight_of_matrix(options.weight),
        directed=options.directed,
        features=_attributes(path, names, starts[1]),
        labels=labels,
    )
    used = {start + part for start in starts for part in CSR} | {*LABELS, *FEATURES}
    return graph, (f"arrays of the GNN benchmarks ({starts[0]}*)", *_unread(names, used))


def _edge_index(path: Path, names: Sequence[str], options: LinkOptions) -> tuple[Graph, tuple[str, ...]]:
    ends = next(name for name in ENDS if name in names)
    found = read_npz(
        path,
        {ends: Expected("iu", (2,), "two rows of node indices", required=True), "num_nodes": COUNT}
        | {name: Expected("iuf", (1, 2), "a number for each link") for name in WEIGHTS},
        only=False,
    )
    index = found[ends]
    if 2 not in index.shape:
        raise InputError(f"{ends}: two rows of node indices are needed, got the shape {index.shape}.")
    as_columns = index.shape[0] == 2 and (ends == "edge_index" or index.shape[1] != 2)
    features, labels = _attributes(path, names, "attr_"), _labels(path, names)
    num_nodes = int(found["num_nodes"]) if "num_nodes" in found else None
    if num_nodes is None and features is None and labels is not None:
        num_nodes = len(labels)
    graph = Graph.from_edges(
        index.T if as_columns else index,
        num_nodes=num_nodes,
        features=features,
        labels=labels,
        weights=_weights(found, options),
        directed=options.directed,
    )
    used = {ends, "num_nodes", *FEATURES, *LABELS} | ({options.weight} if options.weight else set())
    return graph, (f"links are the array {ends}", *_unread(names, used))


def _weights(found: Mapping[str, AnyArray], options: LinkOptions) -> AnyArray | None:
    if options.weight is None:
        return None
    known = [name for name in WEIGHTS if name in found]
    if options.weight not in known:
        there = ", ".join(known) or "none"
        raise InputError(f"weight: there is no array {options.weight!r} of weights; there is {there}.")
    return found[options.weight].reshape(-1)


def _csr(path: Path, start: str) -> Any:
    """A sparse matrix of which each part is an array, named by a common start."""
    wanted = {start + part: NUMBERS if part == "data" else PLACES for part in CSR}
    known = {name: Expected(each.kinds, (1,), each.words, required=True) for name, each in wanted.items()}
    parts = read_npz(path, known, only=False)
    data, indices, indptr, shape = (parts[name] for name in known)
    return sp.csr_array((data, indices, indptr), shape=tuple(int(extent) for extent in shape))


def _attributes(path: Path, names: Sequence[str], start: str) -> Any:
    """The features, sparse by parts or a matrix under one of the usual names; None where there are none."""
    if start + "data" in names:
        return _csr(path, start)
    if "feature_data" in names:
        return features_in(read_npz(path, {name: GRAPH_ARRAYS[name] for name in SPARSE_FEATURES}, only=False))
    name = next((name for name in FEATURES if name in names), None)
    return None if name is None else sparse_if_few(read_npz(path, {name: MATRIX}, only=False)[name])


def _labels(path: Path, names: Sequence[str]) -> AnyArray | None:
    name = next((name for name in LABELS if name in names), None)
    if name is None:
        return None
    known = Expected(OF_NODES.kinds, (1, 2), OF_NODES.words)
    values = read_npz(path, {name: known}, only=False)[name]
    if values.ndim == 2 and values.shape[1] != 1:
        raise InputError(f"{name}: one class is needed for each node, got the shape {values.shape}.")
    return np.ravel(values)


def _unread(names: Sequence[str], used: set[str]) -> tuple[str, ...]:
    """A note on the arrays that are not read."""
    others = sorted(set(names) - used)
    return (f"not used: {', '.join(others[:10])}{' …' * (len(others) > 10)}",) if others else ()
