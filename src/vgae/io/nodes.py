"""Node tables: one row per node, its id, perhaps its label, and columns that become features (`recipe.py`).

Features may also come entry by entry or as a matrix (`entries.py`); a list of ids alone names nodes and their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.convert import text_array
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.columns import BoolArray, FloatArray, Numbers, as_ids, as_numbers, plain
from vgae.io.entries import (
    COORDINATES,
    Entries,
    ListedFeatures,
    looks_like_coordinates,
    read_json_features,
    rows_of_matrix,
    take_coordinates,
)
from vgae.io.folder import holds_table, read_table
from vgae.io.formats import ARRAYS, LISTS, MATRICES, TABLES, refuse_unknown_features
from vgae.io.matrix_market import read_matrix_market
from vgae.io.npz_layouts import read_matrix
from vgae.io.options import NodeOptions
from vgae.io.sniff import id_by_name
from vgae.io.source import Origin, SourceTable, is_name, is_unnamed
from vgae.io.text import Wanted
from vgae.io.unpack import is_folder, is_stream, suffix_of


@dataclass(frozen=True, eq=False)
class NodeTable:
    """The rows of a node table: an id each, perhaps a label, and the columns that become features."""

    origin: Origin
    ids: pa.ChunkedArray
    labels: pa.ChunkedArray | None
    columns: pa.Table
    notes: tuple[str, ...] = ()
    entries: Entries | None = None  # features in place of columns
    id_name: str | None = None

    @property
    def is_list(self) -> bool:
        """Whether there are only ids, whose order is that of the nodes."""
        return self.id_name is not None and self.labels is None and self.columns.num_columns == 0

    @property
    def may_be_entries(self) -> bool:
        """Whether its rows have as many columns as entries have."""
        return bool(1 <= self.columns.num_columns <= 2)


def read_nodes(path: Path, options: NodeOptions) -> NodeTable:
    """What a file says of nodes; where a column of a table is asked for by name, its first row is a header."""
    kind = "" if is_folder(path) else suffix_of(path)
    if kind in LISTS:
        return of_entries(read_json_features(path), Origin(str(path)), options)
    if kind in ARRAYS + MATRICES:
        matrix = read_matrix(path) if kind in ARRAYS else read_matrix_market(path)
        return of_entries(rows_of_matrix(path, matrix), Origin(str(path)), options)
    if not holds_table(path) and not is_stream(path):
        raise refuse_unknown_features(path)
    header = True if any(map(is_name, options.columns)) else None
    return take_nodes(read_table(path, Wanted(links=False, needed="ids", least=1), header=header), options)


def can_be_shared(path: Path, *, arrays: bool) -> bool:
    """Whether several can read a part each of what a file says of nodes: a table, or an npz where that will do."""
    if is_folder(path):
        return True
    return suffix_of(path) in (*TABLES, *(ARRAYS if arrays else ())) and path.is_file() and path.stat().st_size > 0


def of_entries(listed: ListedFeatures, origin: Origin, options: NodeOptions) -> NodeTable:
    """Features that are no columns, so that there are none to choose from, to standardise or to fill in."""
    for name in ("id", "label", "standardise", "feature_format"):
        if getattr(options, name) not in (None, False):
            raise InputError(f"{name}: this is about the columns of a node table, and {origin.name} has none.")
    return NodeTable(origin, listed.ids, None, pa.table({}), listed.notes, listed.entries)


def take_nodes(table: SourceTable, options: NodeOptions) -> NodeTable:
    """A table taken apart into ids, labels and columns of features."""
    origin, names = table.origin, table.names
    if options.feature_format == COORDINATES or (options.feature_format is None and looks_like_coordinates(table)):
        listed = take_coordinates(table, options.id)
        plain_options = NodeOptions(label=options.label, standardise=options.standardise)
        return of_entries(listed, origin, plain_options)
    place, notes = _place_of_ids(table) if options.id is None else (table.place_of(options.id), ())
    ids = as_ids(origin, table.column(place), names[place], "every row needs one")
    label = None if options.label is None else table.place_of(options.label)
    if label == place:
        raise InputError(f"{origin.name}: the ids and the labels are the same column; choose two.")
    others = [other for other in range(len(names)) if other not in (place, label)]
    unnamed = tuple(
        f"column {other + 1}, which has no name, is skipped as row numbers"
        for other in others
        if is_unnamed(names[other])
    )
    return NodeTable(
        origin,
        ids,
        None if label is None else table.column(label),
        table.data.select([names[other] for other in others if not is_unnamed(names[other])]),
        (*table.notes, *notes, *unnamed),
        id_name=names[place],
    )


def _place_of_ids(table: SourceTable) -> tuple[int, tuple[str, ...]]:
    """The column of ids where none is asked for, and what was assumed: the first, unless it only counts the rows."""
    names = table.names
    if len(names) == 1:
        return 0, ("a list of ids, in the order of the nodes",)
    if not is_unnamed(names[0]):
        return 0, (f"ids are the first column, {names[0]}",)
    counts = _counts_rows(table.column(0))
    named = id_by_name(names[1:])
    if named is not None and counts:
        return named + 1, (f"ids are the column {names[named + 1]}, by its name",)
    if counts and _could_be_ids(table.column(1)):
        raise InputError(
            f"{table.origin.name}: the first column has no name and counts the rows; "
            "say which column holds the ids (id)."
        )
    return 0, ("ids are the first column, which has no name",)


def _counts_rows(column: pa.ChunkedArray) -> bool:
    """Whether a column holds the numbers of the rows, from 0 or from 1."""
    text = plain(column).cast(pa.large_string())
    return any(text.to_pylist() == [str(number) for number in range(first, first + len(text))] for first in (0, 1))


def _could_be_ids(column: pa.ChunkedArray) -> bool:
    """Whether a column has another text or whole number in every row."""
    column = plain(column)
    if not pa.types.is_large_string(column.type) and not pa.types.is_integer(column.type):
        return False
    numbers = as_numbers(column)
    broken = numbers is not None and not numbers.text.any() and not _all_whole(numbers)
    return not broken and column.null_count == 0 and pc.count_distinct(column).as_py() == len(column)


def require_one_row_each(codes: IntArray, ids: AnyArray, origin: Origin, *, entries: bool = False) -> None:
    """No two rows may be about one node, by the places of their ids, unless all are `entries`, which is asked for."""
    order = np.argsort(codes, kind="stable")
    same = np.flatnonzero(codes[order][1:] == codes[order][:-1])
    if len(same):
        row, again = min((int(order[place]), int(order[place + 1])) for place in same)
        raise repeated(origin.name, [origin.row(row), origin.row(again)], str(ids[codes[row]]), entries=entries)


def repeated(table: str, rows: Sequence[str], node: str, *, entries: bool) -> InputError:
    """What to say of two rows about one node."""
    hint = "; if rows are entries (node, feature, value), say so (feature_format coordinates)" if entries else ""
    return InputError(f"{table}: {rows[0]} and {rows[1]} are both about the node {node!r}; keep one of them{hint}.")


def rows_of_nodes(codes: IntArray, ids: AnyArray, linked: BoolArray, nodes: NodeTable, links: Origin) -> IntArray:
    """For each node its row in the table, -1 where it has none; `codes` are the nodes of the rows."""
    require_one_row_each(codes, ids, nodes.origin, entries=nodes.may_be_entries)
    if not linked[codes].any():
        raise strangers(nodes.origin.name, links.name, str(ids[codes[0]]), str(ids[int(np.argmax(linked))]))
    rows = np.full(len(ids), -1, dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return rows


def strangers(table: str, links: str, own: str, other: str) -> InputError:
    """What to say of a table about other nodes than those of the links."""
    return InputError(
        f"{table}: none of its ids occurs in {links}; its ids are like {own!r}, the others like {other!r}."
    )


def to_labels(column: pa.ChunkedArray, rows: IntArray, origin: Origin) -> AnyArray:
    """The labels of the nodes that have these rows: whole numbers if all are, else text; -1 for none."""
    column = plain(column)
    numbers = whole_labels(column)
    if numbers is not None:
        whole = np.append(np.where(numbers.missing, -1, numbers.values), -1).astype(np.int64)
        return whole[rows]
    try:
        text = column.cast(pa.large_string()).to_pylist()
    except pa.ArrowException:
        raise InputError(f"{origin.name}: labels are text or numbers, not {column.type}.") from None
    labels = np.array([*(value or -1 for value in text), -1], dtype=object)[rows]
    return text_array(labels.tolist()) if all(isinstance(label, str) for label in labels) else labels


def whole_labels(column: pa.ChunkedArray) -> Numbers | None:
    """A plain column of labels as whole numbers, if all of them are."""
    numbers = as_numbers(column)
    return None if numbers is None or numbers.text.any() or not _all_whole(numbers) else numbers


def _all_whole(numbers: Numbers) -> bool:
    known: FloatArray = numbers.values[~numbers.missing]
    return bool(np.all((known == np.floor(known)) & (np.abs(known) < 2**53)))
