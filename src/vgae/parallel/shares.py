"""The share of a table that each process of a group reads: files of a folder, or row groups of Parquet files.

Files are in the order of their names and divided by their bytes; columns are those of the first file.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from vgae.errors import InputError
from vgae.io.folder import Columns, Piece, PieceReader, Stacked, common_type, notes_on, pieces_of, shares_of, stack
from vgae.io.source import Origin, SourceTable
from vgae.io.text import Wanted
from vgae.io.unpack import is_folder, readable
from vgae.parallel.agreement import gather_json

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True, eq=False)
class Share:
    """What a process has read of a table, which has rows in some process."""

    path: Path
    tables: list[SourceTable]  # those with rows, in order
    columns: Columns  # of all
    notes: tuple[str, ...]  # on all files

    def stacked(self) -> SourceTable:
        """The rows as one table; there have to be some."""
        return SourceTable(Stacked.of(self.path, self.tables), stack(self.tables), self.notes)

    def alike(self, group: Group) -> SourceTable:
        """The same with the types that columns have in all processes; there may be no rows."""
        own = self.stacked() if self.tables else None
        schema = pa.schema([]) if own is None else own.data.schema
        file = self.tables[0].origin.name if self.tables else ""
        given = [
            (name, pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text))))
            for name, text in gather_json(group, [file, schema.serialize().to_pybytes().hex()])
            if name
        ]
        common = pa.schema(
            [
                pa.field(name, common_type(name, [(file, found.field(name).type) for file, found in given]))
                for name in self.columns.names
            ]
        )
        if own is None:
            return SourceTable(Origin(str(self.path)), common.empty_table(), self.notes)
        return SourceTable(own.origin, own.data.cast(common), self.notes)


def read_share(group: Group, path: Path, wanted: Wanted, delimiter: str | None, header: bool | None) -> Share:
    """This process's share of the rows of a file or a folder; one without any rows is refused."""
    pieces = pieces_in(group, path)
    shares = shares_of(pieces, group.size)
    reader = PieceReader(wanted, delimiter, header)
    first = next((rank for rank, share in enumerate(shares) if any(piece.num_bytes for piece in share)), 0)
    waiting, tables = list(shares[group.rank]), list[SourceTable]()
    while waiting and reader.columns is None and group.rank == first:
        tables.append(reader.read(waiting.pop(0)))
    said = gather_json(group, reader.columns and astuple(reader.columns))[first]
    if said is not None:
        reader.columns = Columns(said[0], tuple(said[1]), said[2])
    tables += [reader.read(piece) for piece in waiting]
    told = [(str(table.origin.name), table.notes, table.data.num_rows) for table in tables]
    files = [(name, tuple(notes), rows) for found in gather_json(group, told) for name, notes, rows in found]
    if reader.columns is None or not sum(num_rows for _, _, num_rows in files):
        where = "it, only a header" if not is_folder(path) else "its file" if len(pieces) == 1 else "any of its files"
        raise InputError(f"{path}: there are no rows in {where}.")
    notes = notes_on(files) if is_folder(path) else next((notes for _, notes, num_rows in files if num_rows), ())
    return Share(path, [table for table in tables if table.data.num_rows], reader.columns, notes)


def pieces_in(group: Group, path: Path) -> list[Piece]:
    """The files of a folder, or a file alone; where others find other ones, that is said."""
    if is_folder(path):
        pieces = pieces_of(path)
    else:
        with readable(path, "this file cannot be read"):
            pieces = [Piece(path, path.stat().st_size)]
    listed = [[piece.path.name, piece.num_bytes] for piece in pieces]
    for rank, others in enumerate(gather_json(group, listed)):
        if others != listed:
            raise InputError(
                f"{path}: rank {rank} finds other files there than rank {group.rank}; give all processes the same."
            )
    return pieces
