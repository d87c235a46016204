"""Tables in parts: a folder of text or Parquet files that are one table, one file below the other by their names.

files     all of them; what begins with . or _ is what other programs keep beside the parts, such as _SUCCESS
columns   the same in all: with a header the same names, in any order; without one as many
header    in all files or in none, as in the first
types     of a column the same, or whole numbers and text, which then is text, or numbers of several types
empty     files without rows are passed over, as long as one has some
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pyarrow as pa

from vgae.errors import InputError
from vgae.io.formats import PARQUET, TABLES
from vgae.io.parquet import is_text, read_parquet, row_groups
from vgae.io.sniff import ends_by_name
from vgae.io.source import Origin, SourceTable, listed, read_file
from vgae.io.text import Wanted, note_on_header, read_text
from vgae.io.unpack import is_folder, readable, suffix_of
from vgae.words import count

NAMED = 3  # files that are named in a note which is not about all of them


@dataclass(frozen=True)
class Piece:
    """A file of a folder, or some row groups of a Parquet file."""

    path: Path
    num_bytes: int
    groups: range | None = None  # all of them
    first: int = 1  # the number of its first row in the file


@dataclass(frozen=True)
class Columns:
    """What the first file of a folder says of all: the names of its columns, and whether text has them as a header."""

    file: str
    names: tuple[str, ...]
    header: bool | None  # None: the first file is no text

    @classmethod
    def of(cls, piece: Piece, table: SourceTable) -> Columns:
        """Those of the first file."""
        names = tuple(table.names)
        numbered = names == tuple(f"column {place}" for place in range(1, len(names) + 1))
        return cls(str(piece.path), names, None if suffix_of(piece.path) in PARQUET else not numbered)


@dataclass(frozen=True)
class Stacked(Origin):
    """Where a table in parts came from: each row has the name of its file."""

    parts: tuple[Origin, ...] = ()
    ends: tuple[int, ...] = ()  # of the parts, in rows of the whole

    @classmethod
    def of(cls, folder: Path, tables: Sequence[SourceTable]) -> Stacked:
        """One part below the other."""
        ends = accumulate(table.data.num_rows for table in tables)
        return cls(str(folder), parts=tuple(table.origin for table in tables), ends=tuple(ends))

    def row(self, place: int) -> str:
        """The row in its file."""
        origin, place = self._part(place)
        return f"{origin.row(place)} of {origin.name}"

    def at(self, place: int) -> str:
        """The file and the row."""
        origin, place = self._part(place)
        return origin.at(place)

    def _part(self, place: int) -> tuple[Origin, int]:
        part = bisect_right(self.ends, place)
        return self.parts[part], place - (self.ends[part - 1] if part else 0)


def holds_table(path: Path) -> bool:
    """Whether a name is that of a table: a file by its ending, or a folder of parts."""
    return is_folder(path) or suffix_of(path) in TABLES


def read_table(path: Path, wanted: Wanted, delimiter: str | None = None, header: bool | None = None) -> SourceTable:
    """The table in a file, or in the files of a folder."""
    if not is_folder(path):
        return read_file(path, wanted, delimiter, header)
    reader = PieceReader(wanted, delimiter, header)
    tables = [reader.read(piece) for piece in pieces_of(path)]
    found = [table for table in tables if table.data.num_rows]
    if not found:
        raise InputError(f"{path}: there are no rows in {'its file' if len(tables) == 1 else 'any of its files'}.")
    notes = notes_on([(table.origin.name, table.notes, table.data.num_rows) for table in tables])
    return SourceTable(Stacked.of(path, found), stack(found), notes)


def pieces_of(folder: Path) -> list[Piece]:
    """The files of a folder, in the order of their names; what is not part of a table is refused."""
    with readable(folder, "this folder cannot be read"):
        names = sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
        pieces = [Piece(path, path.stat().st_size) for path in names]
    if not any(holds_table(piece.path) for piece in pieces):
        raise InputError(
            f"{folder}: this is a folder without tables; a graph in parts is a folder of files such as part-0.csv or "
            f"part-0.parquet ({', '.join(TABLES)})."
        )
    for piece in pieces:
        if is_folder(piece.path):
            raise InputError(f"{piece.path}: this is a folder within a folder; put all parts into {folder} itself.")
        if not piece.path.is_file() or suffix_of(piece.path) not in TABLES:
            raise InputError(
                f"{piece.path}: all files of a folder are read as parts of one table, and this is none that is known "
                f"({', '.join(TABLES)}); move it elsewhere."
            )
    return pieces


def shares_of(pieces: Sequence[Piece], number: int) -> list[list[Piece]]:
    """The pieces divided among as many readers, in order and by their bytes; few files by their row groups."""
    if len(pieces) < 4 * number:
        pieces = [part for piece in pieces for part in _row_groups(piece)]
    total = max(1, sum(piece.num_bytes for piece in pieces))
    shares: list[list[Piece]] = [[] for _ in range(number)]
    before = 0
    for piece in pieces:
        middle = before + piece.num_bytes // 2
        shares[min(number - 1, middle * number // total)].append(piece)
        before += piece.num_bytes
    return shares


def _row_groups(piece: Piece) -> Iterator[Piece]:
    if suffix_of(piece.path) not in PARQUET:
        yield piece
        return
    first, groups = 1, row_groups(piece.path)
    for group, (num_rows, num_bytes) in enumerate(groups):
        yield replace(piece, num_bytes=num_bytes, groups=range(group, group + 1), first=first)
        first += num_rows
    if not groups:
        yield piece


class PieceReader:
    """Reads one piece after the other, all with the columns of the first, or with those that it is given."""

    def __init__(
        self, wanted: Wanted, delimiter: str | None, header: bool | None, columns: Columns | None = None
    ) -> None:
        self.wanted, self.delimiter, self.header, self.columns = wanted, delimiter, header, columns

    def read(self, piece: Piece) -> SourceTable:
        """The table of a piece, which may have no rows."""
        is_parquet = suffix_of(piece.path) in PARQUET
        if not piece.num_bytes and not is_parquet:
            return SourceTable(Origin(str(piece.path)), pa.table({}))
        notes: tuple[str, ...] = ()
        if is_parquet:
            table = read_parquet(piece.path, self.wanted.needed, self.wanted.least, piece.groups)
        else:
            decided = self.columns.header if self.columns and self.header is None else None
            header = self.header if decided is None else decided
            table, notes = read_text(piece.path, self.wanted, self.delimiter, header)
            notes += () if decided is None else (note_on_header(self.wanted, header=decided),)
        found = SourceTable(Origin(str(piece.path), first=piece.first), table, notes)
        if self.columns is None:
            self.columns = Columns.of(piece, found)
            return found
        return self._with_columns(found, self.columns, is_text=not is_parquet)

    def _with_columns(self, found: SourceTable, columns: Columns, *, is_text: bool) -> SourceTable:
        """The columns in the order of the first file; others are refused."""
        if is_text and columns.header is False and self.wanted.links and self.header is None and found.data.num_rows:
            first = [str(column[0].as_py()) for column in found.data.columns]
            if ends_by_name(first) is not None:
                raise InputError(
                    f"{found.origin.name}: its first row is a header ({listed(first)}), and {columns.file} has none; "
                    "give all files of the folder the same header, or none."
                )
        if sorted(found.names) != sorted(columns.names):
            hint = "" if columns.header is None else ", or say whether their first rows are headers (header)"
            raise InputError(
                f"{found.origin.name}: its columns are {listed(found.names)}, and those of {columns.file} are "
                f"{listed(columns.names)}; give all files of the folder the same columns{hint}."
            )
        return replace(found, data=found.data.select(list(columns.names)))


def stack(tables: Sequence[SourceTable]) -> pa.Table:
    """The rows of all tables, which have the same columns, one table below the other."""
    names = tables[0].names
    kinds = {
        name: common_type(name, [(each.origin.name, each.data.schema.field(name).type) for each in tables])
        for name in names
    }
    cast = [each.data.cast(pa.schema([pa.field(name, kinds[name]) for name in names])) for each in tables]
    return pa.concat_tables(cast)


def common_type(name: str, found: Sequence[tuple[str, Any]]) -> Any:
    """The type of a column that has these types in these files; one that would change its values is refused."""
    kinds: dict[Any, str] = {}
    for file, kind in found:
        if not pa.types.is_null(kind):
            kinds.setdefault(kind, file)
    if len(kinds) <= 1:
        return next(iter(kinds), pa.null())
    if all(pa.types.is_integer(kind) for kind in kinds):
        return pa.int64() if pa.uint64() not in kinds else pa.large_string()
    if all(is_text(kind) or pa.types.is_integer(kind) for kind in kinds):
        return pa.large_string()
    if all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds):
        return pa.float64()
    (one, first), (other, second) = list(kinds.items())[:2]
    raise InputError(
        f"{second}: the column {name!r} holds {other}, and in {first} it holds {one}; write it as one type in all."
    )


def notes_on(read: Iterable[tuple[str, tuple[str, ...], int]]) -> tuple[str, ...]:
    """What was assumed in reading files, given by name, notes and rows: once where it holds for all of them."""
    read = list(read)
    files = {Path(name).name for name, _, _ in read}
    with_rows = {Path(name).name for name, _, num_rows in read if num_rows}
    said: dict[str, list[str]] = {}
    for name, notes, num_rows in read:
        for note in notes if num_rows else ():
            said.setdefault(note, []).append(Path(name).name)
    without = f", {len(files) - len(with_rows)} of them without rows" if len(with_rows) < len(files) else ""
    words = [f"{count(len(files), 'file')} read as one table{without}"]
    for note, names in said.items():
        more = f" and {len(names) - NAMED:,} more" * (len(names) > NAMED)
        words.append(note if set(names) >= with_rows else f"{note} ({', '.join(names[:NAMED])}{more})")
    return tuple(words)
