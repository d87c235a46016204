"""A table, and where it came from: a text file, a Parquet file or a data frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vgae.errors import InputError
from vgae.io.formats import PARQUET, TABLES
from vgae.io.parquet import is_text, read_parquet, require_utf8
from vgae.io.text import NO_NAME, Wanted, read_text
from vgae.io.unpack import first_line, is_stream, suffix_of

UNNAMED = (NO_NAME, "Unnamed: 0", "__index_level_0__")  # the last two: by pandas, after reading it once, and in Parquet


@dataclass(frozen=True)
class Origin:
    """Where a table came from, in the words of an error: its name, and the names of its rows."""

    name: str
    first: int = 1
    lines: Sequence[int] | None = None
    noun: str = "line"  # what is counted by `lines`

    def row(self, place: int) -> str:
        """The name of a row: its number, or its line where that is known."""
        return f"row {place + self.first}" if self.lines is None else f"{self.noun} {self.lines[place]}"

    def at(self, place: int) -> str:
        """The table and the row, as an error begins."""
        return f"{self.name}: {self.row(place)}"


@dataclass(frozen=True, eq=False)
class SourceTable:
    """A table, where it came from, and what was assumed in reading it."""

    origin: Origin
    data: pa.Table
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of its columns."""
        names: list[str] = self.data.column_names
        return names

    def column(self, place: int) -> pa.ChunkedArray:
        """The column at a place from 0."""
        return self.data.column(place)

    def place_of(self, given: str) -> int:
        """The place of a column that is given by name or by number from 1."""
        if given in self.names:
            return self.names.index(given)
        if given.isdecimal() and len(given) < 10 and 1 <= int(given) <= len(self.names):
            return int(given) - 1
        raise InputError(f"{self.origin.name}: there is no column {given!r}; its columns are {listed(self.names)}.")


def read_file(path: Path, wanted: Wanted, delimiter: str | None = None, header: bool | None = None) -> SourceTable:
    """The table in a file."""
    kind = suffix_of(path)
    if kind not in TABLES and not is_stream(path):
        raise InputError(f"{path}: not a kind of table that is known; use {', '.join(TABLES)}.")
    notes: tuple[str, ...] = ()
    if kind in PARQUET:
        table = read_parquet(path, wanted.needed, wanted.least)
    else:
        table, notes = read_text(path, wanted, delimiter, header)
    if table.num_rows == 0:
        raise InputError(f"{path}: there are no rows in it, only a header.")
    return SourceTable(Origin(str(path)), table, notes)


def table_of(frame: Any, origin: Origin, least: int = 2) -> SourceTable:
    """A data frame of pandas or polars, or an Arrow table, with the name that errors give it."""
    name = origin.name
    try:
        if hasattr(frame, "collect"):  # a lazy one of polars
            frame = frame.collect()
        if isinstance(frame, pa.Table):
            table = frame
        elif hasattr(frame, "to_arrow"):
            table = frame.to_arrow()
        else:
            table = pa.Table.from_pandas(frame, preserve_index=False)
    except (AttributeError, ValueError, pa.ArrowException) as error:
        raise InputError(f"{name}: not a data frame of plain columns ({first_line(error)}).") from None
    if table.num_columns < least or table.num_rows == 0:
        needed = "two columns or more" if least > 1 else "a column of ids"
        raise InputError(f"{name}: rows with {needed} are needed, got {table.num_rows}×{table.num_columns}.")
    for column, values in zip(table.column_names, table.columns, strict=True):
        if is_text(values.type):
            require_utf8(name, column, values)
    return SourceTable(origin, table)


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in a sentence, not all of them if they are many."""
    words = [name or "(no name)" for name in names[:most]]
    return ", ".join(words) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def is_name(given: str) -> bool:
    """Whether a column is asked for by its name, so that there has to be a header."""
    return not given.isdecimal()


def is_unnamed(name: str) -> bool:
    """Whether a column is called as one is that pandas or R wrote without a name: the numbers of the rows, mostly."""
    return name in UNNAMED
