"""Tables of links: which columns are the ends, and what their ids are.

ends    the columns asked for, by name or number; else those that are called what ends are usually called (source and
        target, from and to …); else the first two, a first one without a name aside if it holds the numbers of the rows
ids     without the spaces around them; where the ids that can occur are known, as they are first
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.pairs import Pairs
from vgae.io.columns import as_ids, as_numbers, as_text, first_true, holds_whole_numbers, plain, with_prefix
from vgae.io.folder import read_table
from vgae.io.formats import PARQUET
from vgae.io.options import LinkOptions
from vgae.io.sniff import ends_by_name
from vgae.io.source import Origin, SourceTable, is_name, is_unnamed, listed
from vgae.io.text import Wanted
from vgae.io.unpack import suffix_of

WHY = "every link needs two ends"
SURELY_SQUARE = 10  # columns, from which on a square table of numbers is a matrix whatever the numbers are


@dataclass(frozen=True, eq=False)
class Ends:
    """The two columns of ids in a table of links, with their names, and what was assumed about them."""

    columns: tuple[pa.ChunkedArray, ...]
    names: tuple[str, ...]
    notes: tuple[str, ...]


def read_link_table(path: Path, options: LinkOptions, known: Collection[str] = ()) -> SourceTable:
    """The table of links in a file."""
    wanted, header = wanted_of(options, known)
    return read_table(path, wanted, options.delimiter, header)


def wanted_of(options: LinkOptions, known: Collection[str] = ()) -> tuple[Wanted, bool | None]:
    """What a table of links is read for; where a column is asked for by name, its first row is a header."""
    header = True if options.header is None and any(map(is_name, options.columns)) else options.header
    return Wanted(links=True, needed="two columns of ids", known=known), header


def ends_of(table: SourceTable, options: LinkOptions, *, whole: bool = True) -> Ends:
    """The two columns of ids of a table of links, or of some of its rows."""
    origin = table.origin
    if whole and options.source is None and options.target is None and origin.lines is None:
        _refuse_matrix(origin, table.data)
    places, notes = _places(table, options)
    names = tuple(table.names[place] for place in places)
    given = [table.column(place) for place in places]
    ends = tuple(as_ids(origin, column, name, WHY) for column, name in zip(given, names, strict=True))
    _refuse_second_header(origin, names, ends)
    return Ends(ends, names, (*notes, *_notes_on_spaces(given, ends)))


def read_links_among(
    path: Path, known: pa.Array, options: LinkOptions, otherwise: str, starts: tuple[str, str] = ("", "")
) -> tuple[Pairs, SourceTable]:
    """The rows of a table as pairs of places among known ids, and the table; another id is named by its row.

    `starts` is what known ids of the two columns may begin with although those of the table do not (`bipartite.py`).
    """
    open_question = options.header is None and not any(map(is_name, options.columns))
    open_question = open_question and suffix_of(path) not in PARQUET
    table = read_link_table(path, options, known=set(known.to_pylist()))
    found = []
    for place, start in zip(_places(table, options)[0], starts, strict=True):
        name, origin = table.names[place], table.origin
        exact = as_text(origin, table.column(place), name)
        trimmed = pc.utf8_trim_whitespace(exact)
        places = pc.coalesce(pc.index_in(exact, value_set=known), pc.index_in(trimmed, value_set=known))
        if start:
            places = pc.coalesce(places, pc.index_in(with_prefix(trimmed, start), value_set=known))
        row = first_true(pc.is_null(places))
        if row is not None:
            if not trimmed[row].as_py():
                raise InputError(f"{origin.at(row)} has no id in the column {name!r}; {WHY}.")
            hint = "; if the row is a header, say so (header)" * (row == 0 and open_question and _starts_at_once(table))
            raise InputError(f"{origin.at(row)} names {exact[row].as_py()!r}, {otherwise}{hint}.")
        found.append(places.to_numpy().astype(np.int64))
    return np.stack(found, axis=1), table


def _starts_at_once(table: SourceTable) -> bool:
    """Whether the first row of a file is a row of the table, its columns being without names."""
    return all(name == f"column {place}" for place, name in enumerate(table.names, 1))


def _places(table: SourceTable, options: LinkOptions) -> tuple[tuple[int, int], tuple[str, ...]]:
    """The places of the two columns of ids, and what was assumed in finding them."""
    names, asked = table.names, (options.source, options.target)
    notes = []
    by_name = ends_by_name(names) if asked == (None, None) else None
    if by_name is not None:
        if len(names) > 2:
            how = "" if by_name == (0, 1) else ", by their names"
            notes.append(f"links are the columns {names[by_name[0]]} and {names[by_name[1]]}{how}")
        return by_name, tuple(notes)
    first = 0
    if is_unnamed(names[0]) and len(names) > 2:
        first = _after_index(table, asked=None not in asked)
        notes.append("the first column, which has no name, holds row numbers and is skipped")
    source, target = (first + end if given is None else table.place_of(given) for end, given in enumerate(asked))
    if source == target:
        raise InputError(f"{table.origin.name}: source and target are the same column; choose two of {listed(names)}.")
    if len(names) > 2 and table.origin.lines is None:
        notes.append(f"links are the columns {names[source]} and {names[target]}")
    return (source, target), tuple(notes)


def _after_index(table: SourceTable, *, asked: bool) -> int:
    """The first column that can be an end where the first of all has no name: it has to be an index."""
    if not asked and not holds_whole_numbers(table.column(0)):
        raise InputError(
            f"{table.origin.name}: the first column has no name; say which columns are the ends (source, target)."
        )
    return 1


def _refuse_second_header(origin: Origin, names: Sequence[str], columns: Sequence[pa.ChunkedArray]) -> None:
    """Files that were put one below another have their header again between the rows."""
    if ends_by_name(names) is None or not all(pa.types.is_large_string(column.type) for column in columns):
        return
    same = [pc.equal(column, name) for column, name in zip(columns, names, strict=True)]
    row = first_true(pc.and_(*same))
    if row is not None:
        raise InputError(f"{origin.at(row)} is the header again; remove it.")


def _notes_on_spaces(given: Sequence[pa.ChunkedArray], taken: Sequence[pa.ChunkedArray]) -> list[str]:
    """A note where spaces around ids were removed."""
    changed = [
        (before, after)
        for before, after in zip(given, taken, strict=True)
        if pa.types.is_large_string(before.type) and pc.any(pc.not_equal(before, after)).as_py()
    ]
    if not changed:
        return []
    merged = any(pc.count_distinct(before).as_py() > pc.count_distinct(after).as_py() for before, after in changed)
    return ["spaces around ids are removed" + ", and ids that differ in nothing else are merged" * merged]


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
            "columns of ids, or use Graph.from_scipy; if it is a table of links, say which columns are the ends "
            "(source, target)."
        )


def _text_of(column: pa.ChunkedArray, most: int) -> list[str] | None:
    column = plain(column)
    return column.to_pylist() if len(column) < most and pa.types.is_large_string(column.type) else None
