"""Tables of links: which columns are the ends, and what their ids are.

ends    the columns asked for, by name or number; else those that are called what ends are usually called (source and
        target, from and to …); else the first two, a first one without a name aside if it holds the numbers of the rows
ids     without the blanks around them; where the ids that can occur are known, as they are first
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.pairs import Pairs
from vgae.io.columns import (
    PARQUET,
    Origin,
    as_ids,
    as_numbers,
    as_text,
    find_column,
    first_true,
    holds_whole_numbers,
    is_name,
    is_unnamed,
    listed,
    plain,
    read_table,
)
from vgae.io.sniff import ends_by_name
from vgae.io.unpack import suffix_of

WHY = "every link needs two ends"
SURELY_SQUARE = 10  # columns, from which on a square table of numbers is a matrix whatever the numbers are


def read_link_table(
    path: Path,
    asked: Sequence[str | None],
    delimiter: str | None,
    header: bool | None,
    notes: list[str],
    known: Collection[str] = (),
) -> pa.Table:
    """The table of links in a file; where a column is asked for by name, the first row is a header."""
    if header is None and any(is_name(given) for given in asked):
        header = True
    return read_table(path, delimiter, header, notes, links=True, needed="two columns of ids", known=known)


def ends_of(
    origin: Origin, table: pa.Table, source: str | None, target: str | None, notes: list[str]
) -> list[tuple[pa.ChunkedArray, str]]:
    """The two columns of ids, with their names; what was assumed about them is noted."""
    if source is None and target is None and origin.lines is None:
        _refuse_matrix(origin, table)
    places = _places(origin, table, source, target, notes)
    names = [table.column_names[place] for place in places]
    ends = [as_ids(origin, table.column(place), name, WHY) for place, name in zip(places, names, strict=True)]
    _refuse_second_header(origin, names, ends)
    notes.extend(_note_on_blanks([table.column(place) for place in places], ends))
    return list(zip(ends, names, strict=True))


def read_links_among(
    path: Path,
    known: pa.Array,
    asked: Sequence[str | None],
    delimiter: str | None,
    header: bool | None,
    otherwise: str,
) -> tuple[Pairs, pa.Table]:
    """The rows of a table as pairs of places among known ids, and the table; another id is named by its row."""
    open_question = header is None and not any(map(is_name, asked)) and suffix_of(path) not in PARQUET
    table = read_link_table(path, asked, delimiter, header, [], known=set(known.to_pylist()))
    origin = Origin(str(path))
    found = []
    for place in _places(origin, table, asked[0], asked[1], []):
        column, name = table.column(place), table.column_names[place]
        exact = as_text(origin, column, name)
        trimmed = pc.utf8_trim_whitespace(exact)
        places = pc.coalesce(pc.index_in(exact, value_set=known), pc.index_in(trimmed, value_set=known))
        row = first_true(pc.is_null(places))
        if row is not None:
            if not trimmed[row].as_py():
                raise InputError(f"{path}: {origin.row(row)} has no id in the column {name!r}; {WHY}.")
            hint = "; if the row is a header, say so (header)" * (row == 0 and open_question and _starts_at_once(table))
            raise InputError(f"{path}: {origin.row(row)} names {exact[row].as_py()!r}, {otherwise}{hint}.")
        found.append(places.to_numpy().astype(np.int64))
    return np.stack(found, axis=1), table


def _starts_at_once(table: pa.Table) -> bool:
    """Whether the first row of a file is a row of the table, its columns being without names."""
    return all(name == f"column {place}" for place, name in enumerate(table.column_names, 1))


def _places(
    origin: Origin, table: pa.Table, source: str | None, target: str | None, notes: list[str]
) -> tuple[int, int]:
    """The places of the two columns of ids."""
    names = table.column_names
    first = 0
    if source is None and target is None:
        by_name = ends_by_name(names)
        if by_name is not None:
            if table.num_columns > 2:
                how = "" if by_name == (0, 1) else ", by their names"
                notes.append(f"links are the columns {names[by_name[0]]} and {names[by_name[1]]}{how}")
            return by_name
    if is_unnamed(names[0]) and table.num_columns > 2:
        first = _after_index(origin, table, asked=source is not None and target is not None)
        notes.append("the first column, which has no name, holds the numbers of the rows and is passed over")
    places = [find_column(origin, table, given, first + end) for end, given in enumerate((source, target))]
    if places[0] == places[1]:
        raise InputError(f"{origin.name}: source and target are the same column; choose two of {listed(names)}.")
    if table.num_columns > 2 and origin.lines is None:
        notes.append(f"links are the columns {names[places[0]]} and {names[places[1]]}")
    return places[0], places[1]


def _after_index(origin: Origin, table: pa.Table, *, asked: bool) -> int:
    """The first column that can be an end where the first of all has no name: it has to be an index."""
    if not asked and not holds_whole_numbers(table.column(0)):
        raise InputError(f"{origin.name}: the first column has no name; say which are the ends (source, target).")
    return 1


def _refuse_second_header(origin: Origin, names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> None:
    """Files that were put one below another have their header again between the rows."""
    if ends_by_name(names) is None or not all(pa.types.is_large_string(column.type) for column in columns):
        return
    same = [pc.equal(column, name) for column, name in zip(columns, names, strict=True)]
    row = first_true(pc.and_(*same))
    if row is not None:
        raise InputError(f"{origin.name}: {origin.row(row)} is the header once more; remove it.")


def _note_on_blanks(given: Sequence[pa.ChunkedArray], taken: Sequence[pa.ChunkedArray]) -> list[str]:
    """What is told where blanks around ids were left out."""
    changed = [
        (before, after)
        for before, after in zip(given, taken, strict=True)
        if pa.types.is_large_string(before.type) and pc.any(pc.not_equal(before, after)).as_py()
    ]
    if not changed:
        return []
    merged = any(pc.count_distinct(before).as_py() > pc.count_distinct(after).as_py() for before, after in changed)
    return ["blanks around ids are left out" + ", and ids that differ in nothing else are taken for one" * merged]


def _refuse_matrix(origin: Origin, table: pa.Table) -> None:
    """A square table of numbers is an adjacency matrix, and its first two columns are no links."""
    names = table.column_names
    labelled = is_unnamed(names[0]) or _text_of(table.column(0), len(names)) == names[1:]
    columns = table.columns[1:] if labelled else table.columns
    size = len(columns)
    if size < 3 or not size <= table.num_rows <= size + 1:  # one row more: names of columns that are numbers
        return
    numbers = [as_numbers(plain(column)) for column in columns]
    if any(column is None or column.text.any() or column.missing.any() for column in numbers):
        return
    values = np.stack([column.values for column in numbers if column is not None], axis=1)[-size:]
    if np.isin(values, (0, 1)).all() or np.array_equal(values, values.T) or size >= SURELY_SQUARE:
        raise InputError(
            f"{origin.name}: this looks like an adjacency matrix of {size} nodes; write its links as a table with two "
            "columns of ids, or take Graph.from_scipy; of a table of links, say which are the ends (source, target)."
        )


def _text_of(column: pa.ChunkedArray, most: int) -> list[str] | None:
    column = plain(column)
    return column.to_pylist() if len(column) < most and pa.types.is_large_string(column.type) else None
