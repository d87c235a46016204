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
from vgae.graph.unpack import is_stream, readable, refuse_pointer, require_room, unpacked

BATCH_ROWS = 2**16
COPIES = 4  # of a column, at most, at one time while it becomes ids or features
BYTES_OF = {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4, "INT64": 8, "DOUBLE": 8, "INT96": 12}  # BYTE_ARRAY: a place, and text


def read_parquet(path: Path, needed: str) -> pa.Table:
    """The table in a Parquet file; `needed` are the two columns that it needs at least."""
    with readable(path, "not a readable Parquet file"):
        if path.is_dir():
            raise IsADirectoryError
        source = pa.BufferReader(unpacked(path)) if is_stream(path) else path
        if source is path:
            with path.open("rb") as start:
                refuse_pointer(path, start)
        free = memory.bytes_free()
        with pyarrow.parquet.ParquetFile(source) as file:
            require_room(path, COPIES * _least_bytes(file.metadata), free)
            text = [field.name for field in file.schema_arrow if is_text(field.type)]
        with pyarrow.parquet.ParquetFile(source, read_dictionary=text) as file:
            table = _read_batches(path, file, free)
    if table.num_columns < 2:
        raise InputError(f"{path}: {needed} are needed, and it has {table.num_columns}.")
    return _plain_text(path, table, free)


def _least_bytes(about: pyarrow.parquet.FileMetaData) -> int:
    """What the file takes at least when it is unpacked, going by what it says of itself."""
    total = 0
    for group in range(about.num_row_groups):
        columns = about.row_group(group)
        for place in range(columns.num_columns):
            column = columns.column(place)
            total += max(column.num_values * BYTES_OF.get(column.physical_type, 4), column.total_uncompressed_size)
    return total


def _read_batches(path: Path, file: pyarrow.parquet.ParquetFile, free: float) -> pa.Table:
    """All rows, counted as they come: what the file says of itself need not be true."""
    batches, size = [], 0
    for batch in file.iter_batches(batch_size=BATCH_ROWS, use_threads=False):
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
            table = table.set_column(place, name, column.cast(pa.large_string()))
    return table


def _plain_bytes(column: pa.ChunkedArray) -> int:
    """What a column takes without its dictionary."""
    total = 8 * len(column)
    if is_text(column.type.value_type):
        for chunk in column.chunks:
            total += pc.sum(pc.take(pc.binary_length(chunk.dictionary), chunk.indices)).as_py() or 0
    return total


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of text."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))
