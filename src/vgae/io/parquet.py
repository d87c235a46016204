"""Parquet as a table, batch by batch, so that no more is unpacked than the memory can take.

A value that repeats is stored once, and a file of a few kilobytes can unpack to gigabytes. Text is therefore kept as a
dictionary and places in it until all of it is read, and becomes plain text only if there is room for that.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from vgae import memory
from vgae.errors import InputError
from vgae.io.unpack import is_stream, readable, refuse_pointer, require_room, unpacked
from vgae.words import count

BATCH_ROWS = 2**16
COPIES = 4  # of a column, at most, at one time while it becomes ids or features
BYTES_OF = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}  # BYTE_ARRAY: a place, and text


def read_parquet(path: Path, needed: str, least: int = 2, groups: range | None = None) -> pa.Table:
    """The table in a Parquet file, or that of some of its row groups.

    `needed` are the columns that it needs at least, so many of them.
    """
    with readable(path, "not a readable Parquet file"):
        if path.is_dir():
            raise IsADirectoryError
        source = pa.BufferReader(unpacked(path)) if is_stream(path) else path
        if source is path:
            with path.open("rb") as start:
                refuse_pointer(path, start)
        free = memory.bytes_free()
        with pyarrow.parquet.ParquetFile(source) as file:
            require_room(path, COPIES * sum(_least_bytes(file, groups)), free)
            text = [field.name for field in file.schema_arrow if is_text(field.type)]
        with pyarrow.parquet.ParquetFile(source, read_dictionary=text) as file:
            table = _read_batches(path, file, free, groups)
    if table.num_columns < least:
        raise InputError(f"{path}: {needed} are needed, and it has {count(table.num_columns, 'column')}.")
    return _plain_text(path, table, free)


def row_groups(path: Path) -> list[tuple[int, int]]:
    """Rows and least bytes of each row group of a Parquet file, by what it says of itself."""
    with readable(path, "not a readable Parquet file"):
        with path.open("rb") as start:
            refuse_pointer(path, start)
        with pyarrow.parquet.ParquetFile(path) as file:
            about = file.metadata
            rows = [about.row_group(group).num_rows for group in range(about.num_row_groups)]
            return list(zip(rows, _least_bytes(file), strict=True))


def _least_bytes(file: pyarrow.parquet.ParquetFile, groups: range | None = None) -> list[int]:
    """What each row group takes at least when it is unpacked, going by what the file says of itself.

    What it says of single columns is not asked for: in a damaged file that ends the process.
    """
    about, schema = file.metadata, file.schema
    row = sum(BYTES_OF.get(schema.column(place).physical_type, 4) for place in range(len(schema)))
    found = [about.row_group(group) for group in (range(about.num_row_groups) if groups is None else groups)]
    return [max(group.num_rows * row, group.total_byte_size) for group in found]


def _read_batches(path: Path, file: pyarrow.parquet.ParquetFile, free: float, groups: range | None) -> pa.Table:
    """All rows, counted as they come: what the file says of itself need not be true."""
    batches, size = [], 0
    chosen = None if groups is None else list(groups)
    for batch in file.iter_batches(batch_size=BATCH_ROWS, row_groups=chosen, use_threads=False):
        batches.append(batch)
        size += batch.nbytes
        require_room(path, COPIES * size, free)
    return pa.Table.from_batches(batches, schema=None if batches else file.schema_arrow)


def _plain_text(path: Path, table: pa.Table, free: float) -> pa.Table:
    """Text out of its dictionaries, if there is room for all of it."""
    size = sum(_plain_bytes(column) for column in table.columns if pa.types.is_dictionary(column.type))
    require_room(path, COPIES * size, free)
    for place, name in enumerate(table.column_names):
        column = table.column(place)
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
            require_utf8(str(path), name, column)
            table = table.set_column(place, name, column.cast(pa.large_string()))
    return table


def _plain_bytes(column: pa.ChunkedArray) -> int:
    """What a column takes without its dictionary."""
    total = 8 * len(column)
    if is_text(column.type.value_type):
        for chunk in column.chunks:
            total += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
    return total


def require_utf8(origin: str, name: str, column: pa.ChunkedArray) -> None:
    """Text must be UTF-8, which a Parquet file or a frame may only claim."""
    try:
        for chunk in column.chunks:
            (chunk.dictionary if pa.types.is_dictionary(column.type) else chunk).validate(full=True)
    except pa.ArrowInvalid:
        raise InputError(f"{origin}: the column {name!r} holds text that is not UTF-8; write it as UTF-8.") from None


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
