"""Features that are given entry by entry, or as a matrix, in place of a column for each.

Lists of entries name the node, the feature, and perhaps a value, 1 where there is none: as a table ("coordinates"), or
in JSON, {node: [feature, …]} or {node: {feature: value}}. A node without entries has the features 0. Features are
sorted by their names: numbers by their value, text by the alphabet. In a matrix, row i is about the node with the id i.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import MAX_NODES
from vgae.graph.convert import to_matrix
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.columns import FloatArray, as_ids, as_numbers, number_ids, plain
from vgae.io.json_files import json_limit, parse_any_json
from vgae.io.source import Origin, SourceTable, listed
from vgae.io.unpack import unpacked
from vgae.words import count, shown

NODE_NAMES = ("node", "nodeid", "id", "row", "user", "userid", "paper", "paperid", "document", "docid")
FEATURE_NAMES = (
    "feature",
    "featureid",
    "featid",
    "feat",
    "attribute",
    "attributeid",
    "word",
    "wordid",
    "term",
    "termid",
)
VALUE_NAMES = ("value", "count", "weight", "frequency", "tf", "tfidf", "score")
LARGEST = float(np.finfo(np.float32).max)
COORDINATES = "coordinates"


@dataclass(frozen=True, eq=False)
class Entries:
    """Features of rows as a matrix, and the names of its columns; None: columns are numbered, and no row is missing."""

    matrix: Any
    names: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class ListedFeatures:
    """Features and the ids of the nodes that they are of."""

    ids: pa.ChunkedArray
    entries: Entries
    notes: tuple[str, ...] = ()


# --------------------------------------------------------------------------------------------------------- coordinates


def looks_like_coordinates(table: SourceTable) -> bool:
    """Whether a header says that rows are entries, and a node has several of them."""
    if not named_like_coordinates(table.names):
        return False
    num_nodes: int = pc.count_distinct(plain(table.column(0))).as_py()
    return num_nodes < len(table.column(0))


def named_like_coordinates(given: Sequence[str]) -> bool:
    """Whether columns are called as those of entries are."""
    names = ["".join(filter(str.isalnum, name.casefold())) for name in given]
    if not 2 <= len(names) <= 3 or names[0] not in NODE_NAMES or names[1] not in FEATURE_NAMES:
        return False
    return len(names) == 2 or names[2] in VALUE_NAMES


def take_coordinates(table: SourceTable, id_column: str | None) -> ListedFeatures:
    """A table whose rows are entries: a node, a feature, and perhaps a value."""
    origin, names = table.origin, table.names
    first = 0 if id_column is None else table.place_of(id_column)
    others = [place for place in range(len(names)) if place != first]
    if not 1 <= len(others) <= 2:
        raise InputError(
            f"{origin.name}: an entry is a node, a feature and perhaps a value, but the columns are {listed(names)}."
        )
    ids = as_ids(origin, table.column(first), names[first], "every entry needs one")
    features = as_ids(origin, table.column(others[0]), names[others[0]], "every entry needs a feature")
    (rows,), nodes = number_ids([ids])
    values = _values(origin, table.column(others[1]), names[others[1]]) if len(others) == 2 else None
    words = [names[first], names[others[0]], *([names[others[1]]] if len(others) == 2 else [])]
    note = f"rows are entries of features ({', '.join(words)})"
    return _listed(pa.array(nodes.tolist()), rows, _sorted_codes([features]), values, (*table.notes, note))


def _values(origin: Origin, column: pa.ChunkedArray, name: str) -> FloatArray:
    column = plain(column)
    numbers = as_numbers(column)
    if numbers is None:
        raise InputError(f"{origin.name}: the column {name!r} holds {column.type}, but values are numbers.")
    wrong = numbers.missing | numbers.text | ~(np.abs(numbers.values) <= LARGEST)
    if wrong.any():
        row = int(wrong.argmax())
        found = "no value" if numbers.missing[row] else shown(column[row].as_py())
        raise InputError(f"{origin.at(row)} has {found} in the column {name!r}; a number is needed.")
    return numbers.values


def _sorted_codes(columns: list[pa.ChunkedArray]) -> tuple[IntArray, tuple[str, ...]]:
    """Features as places among their sorted names, and these."""
    (codes,), names = number_ids(columns)
    order = np.argsort(names, kind="stable")
    places = np.empty(len(order), dtype=np.int64)
    places[order] = np.arange(len(order))
    return places[codes], tuple(str(name) for name in names[order].tolist())


def _listed(
    ids: pa.Array,
    rows: IntArray,
    features: tuple[IntArray, tuple[str, ...]],
    values: FloatArray | None,
    notes: tuple[str, ...],
) -> ListedFeatures:
    """Entries as a matrix; those of one node and feature add up, or count once where they have no values."""
    columns, names = features
    data = np.ones(len(rows)) if values is None else values
    matrix = sp.coo_array((data, (rows, columns)), shape=(len(ids), len(names))).tocsr()
    repeated = len(rows) - matrix.nnz
    if values is None:
        matrix.data[:] = 1
    if repeated:
        how = "counted once" if values is None else "added up"
        notes = (*notes, f"{count(repeated, 'entry', 'entries')} given again {how}")
    found = f"{count(matrix.nnz, 'entry', 'entries')} of {count(len(names), 'feature')}"
    entries = Entries(sp.csr_array(matrix, dtype=np.float32), names)
    return ListedFeatures(pa.chunked_array([ids]), entries, (*notes, found))


# ---------------------------------------------------------------------------------------------------------------- JSON


def read_json_features(path: Path) -> ListedFeatures:
    """Features out of JSON: {node: [feature, …]} or {node: {feature: value}}; in a list, nodes are numbered from 0."""
    content = unpacked(path)
    if len(content) > json_limit():
        raise InputError(f"{path}: its {len(content):,} bytes of JSON are more than the free memory can take.")
    given = parse_any_json(content, path, _without_repeats)
    if isinstance(given, list):
        given = {str(place): features for place, features in enumerate(given)}
    if not isinstance(given, dict) or not given:
        raise InputError(f"{path}: {_NEEDED}, got {'nothing' if not given else shown(given)}.")
    kinds = {type(features) for features in given.values()}
    if kinds not in ({list}, {dict}):
        node, wrong = (
            next((node, each) for node, each in given.items() if type(each) not in (list, dict))
            if not kinds <= {list, dict}
            else next(iter(given.items()))
        )
        raise InputError(f"{path}: {_NEEDED}, the same for all nodes, but the node {shown(node)} has {shown(wrong)}.")
    for node in given:
        if not node.strip():
            raise InputError(f"{path}: a node has no id; every list of features needs one.")
    names = list(chain.from_iterable(given.values()))
    for name in {type(name): name for name in names}.values():
        if type(name) not in (str, int):
            raise InputError(f"{path}: features are whole numbers or texts, but one is {shown(name)}.")
    if not names:
        raise InputError(f"{path}: there are no features in it, only empty lists.")
    rows = np.repeat(np.arange(len(given)), [len(features) for features in given.values()])
    values = _json_values(path, given) if kinds == {dict} else None
    features = pa.chunked_array([pa.array([str(name) for name in names], pa.large_string())])
    ids = pa.array([node.strip() for node in given], pa.large_string())
    return _listed(ids, rows, _sorted_codes([features]), values, ("JSON of features by node",))


_NEEDED = "an object with a list of features for each node is needed, {node: [feature, …]} or {node: {feature: value}}"


def _json_values(path: Path, given: dict[str, dict[str, Any]]) -> FloatArray:
    for node, features in given.items():
        for name, value in features.items():
            if type(value) not in (int, float, bool) or not abs(value) <= LARGEST:
                raise InputError(
                    f"{path}: the feature {shown(name)} of the node {shown(node)} is {shown(value)}, no number."
                )
    return np.array([float(value) for features in given.values() for value in features.values()])


def _without_repeats(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object whose names are all different; of two alike, Python would silently take the last."""
    items = list(pairs)
    found = dict(items)
    if len(found) < len(items):
        name, _ = Counter(name for name, _ in items).most_common(1)[0]
        raise ValueError(f"the name {json.dumps(name)[:50]} is there twice")
    return found


# -------------------------------------------------------------------------------------------------------------- matrix


def rows_of_matrix(path: Path, matrix: Any) -> ListedFeatures:
    """A matrix of features whose row i is about the node with the id i."""
    try:
        matrix = to_matrix(matrix)  # whose indices are checked: SciPy would follow them anywhere
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    if matrix.ndim != 2 or not 0 < matrix.shape[0] <= MAX_NODES or matrix.shape[1] == 0:
        raise InputError(f"{path}: features are a matrix with a row per node, but its shape is {tuple(matrix.shape)}.")
    return by_number(matrix, range(matrix.shape[0]), matrix.shape[0])


def by_number(matrix: Any, rows: range, num_rows: int) -> ListedFeatures:
    """Some rows of a matrix of so many."""
    ids = pa.chunked_array([pa.array(np.arange(rows.start, rows.stop))])
    return ListedFeatures(ids, Entries(matrix), (f"row i of its {num_rows:,} rows is about the node i, from 0",))


def arranged(entries: Entries, names: tuple[str, ...], origin: Origin) -> tuple[Any, tuple[str, ...]]:
    """The entries under the features of these names, as another graph has them; those that it lacks are left out."""
    if entries.names is None:
        raise InputError(
            f"{origin.name}: the model's features have names, such as {names[0]!r}; give a list of entries."
        )
    known = {name: place for place, name in enumerate(names)}
    places: AnyArray = np.array([known.get(name, -1) for name in entries.names], dtype=np.int64)
    matrix = sp.coo_array(entries.matrix)
    found = places[matrix.col] >= 0
    columns, rows = places[matrix.col[found]], matrix.row[found]
    taken = sp.coo_array((matrix.data[found], (rows, columns)), shape=(matrix.shape[0], len(names))).tocsr()
    unknown = int(np.count_nonzero(places < 0))
    words = "is unknown and left out" if unknown == 1 else "are unknown and left out"
    return taken, (f"{count(unknown, 'feature')} {words}",) if unknown else ()


def taken_rows(matrix: Any, rows: IntArray) -> Any:
    """The rows at these places, one of zeros for -1."""
    if not sp.issparse(matrix):
        return np.concatenate([matrix, np.zeros((1, matrix.shape[1]), matrix.dtype)])[rows]
    empty = sp.csr_array((1, matrix.shape[1]), dtype=matrix.dtype)
    return sp.csr_array(sp.vstack([matrix, empty], format="csr")[np.where(rows < 0, matrix.shape[0], rows)])
