"""The columns of a table, from a file or a data frame: found by name or number, taken as ids or as numbers.

ids       whole numbers if all of them are, written without leading zeros and within 64 bits; else text
numbers   decimal, with or without an exponent; text counts as one if it reads as one
missing   nothing, and where numbers are expected also NA, N/A, NaN, null and None
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.checks import WEIGHTS_ARE, usable_weights
from vgae.graph.convert import text_array
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.parquet import is_text, read_parquet, require_utf8
from vgae.io.text import NO_NAME, read_text
from vgae.io.unpack import first_line, is_stream, suffix_of

TEXT = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
PARQUET = (".parquet", ".pq")
SUFFIXES = (*TEXT, *PARQUET)
UNNAMED = (NO_NAME, "Unnamed: 0", "__index_level_0__")  # the last two: by pandas, after reading it once, and in Parquet
WHOLE_NUMBER = r"^(0|-?[1-9][0-9]*)$"
NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)$"
NO_NUMBER = ("", "na", "n/a", "nan", "null", "none")  # in small letters
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Origin:
    """Where a table came from, in the words of an error: its name, and the names of its rows."""

    name: str
    first: int = 1
    lines: Sequence[int] | None = None

    def row(self, place: int) -> str:
        """The name of a row: its number, or its line where that is known."""
        return f"row {place + self.first}" if self.lines is None else f"line {self.lines[place]}"


# ------------------------------------------------------------------------------------------------------------- a table


def read_table(
    path: Path,
    delimiter: str | None,
    header: bool | None,
    notes: list[str],
    *,
    links: bool,
    needed: str,
    known: Collection[str] = (),
) -> pa.Table:
    """The table in a file; its rows are links or nodes, `needed` are the two columns that it needs at least."""
    _check_delimiter(delimiter)
    require_bool("header", header)
    kind = suffix_of(path)
    if kind not in SUFFIXES and not is_stream(path):
        raise InputError(f"{path}: not a kind of table that is known; use {', '.join(SUFFIXES)}.")
    if kind in PARQUET:
        table = read_parquet(path, needed)
    else:
        table = read_text(path, delimiter, header, notes, links=links, needed=needed, known=known)
    if table.num_rows == 0:
        raise InputError(f"{path}: there are no rows in it, only a header.")
    return table


def require_bool(name: str, value: Any) -> None:
    """Whether this is True, False or not given at all; a text such as "no" would count as true."""
    if value is not None and not isinstance(value, bool | np.bool_):
        raise InputError(f"{name}: True or False is needed, got {value!r}.")


def _check_delimiter(delimiter: str | None) -> None:
    if delimiter is None:
        return
    if not isinstance(delimiter, str) or len(delimiter) != 1:
        raise InputError(f"delimiter: one character is needed, got {delimiter!r}.")
    if not delimiter.isascii() or delimiter in '"\r\n\0':
        raise InputError(f"delimiter: {delimiter!r} cannot split columns; use another character.")


def table_of(frame: Any, name: str) -> pa.Table:
    """A data frame of pandas or polars as an Arrow table; an Arrow table as it is."""
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
    if table.num_columns < 2 or table.num_rows == 0:
        raise InputError(f"{name}: rows with two columns or more are needed, got {table.num_rows}×{table.num_columns}.")
    for column, values in zip(table.column_names, table.columns, strict=True):
        if is_text(values.type):
            require_utf8(name, column, values)
    return table


def find_column(origin: Origin, table: pa.Table, given: str | None, default: int) -> int:
    """The place of a column that is given by name or by number from 1."""
    if given is None:
        return default
    given = str(given)
    if given in table.column_names:
        place: int = table.column_names.index(given)
        return place
    if given.isdecimal() and 1 <= int(given) <= table.num_columns:
        return int(given) - 1
    raise InputError(f"{origin.name}: there is no column {given!r}; its columns are {listed(table.column_names)}.")


def listed(names: Sequence[str], most: int = 20) -> str:
    """Names in a sentence, not all of them if they are many."""
    words = [name or "(no name)" for name in names[:most]]
    return ", ".join(words) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def is_name(given: str | None) -> bool:
    """Whether a column is asked for by its name, so that there has to be a header."""
    return given is not None and not str(given).isdecimal()


# ----------------------------------------------------------------------------------------------------------------- ids


def as_ids(origin: Origin, column: pa.ChunkedArray, name: str, why: str) -> pa.ChunkedArray:
    """A column of ids, as trimmed text or whole numbers; an id that is missing is named by its row."""
    column = plain(column)
    if pa.types.is_large_string(column.type):
        missing = pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    else:
        _require_ids(origin, column, name)
        missing = pc.is_null(column)
    row = first_true(missing)
    if row is not None:
        raise InputError(f"{origin.name}: {origin.row(row)} has no id in the column {name!r}; {why}.")
    return column


def as_text(origin: Origin, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """A column of ids as text, with the blanks that are around them; empty where one is missing."""
    column = without_encoding(column)
    _require_ids(origin, column, name)
    return pc.fill_null(column.cast(pa.large_string()), "")


def _require_ids(origin: Origin, column: pa.ChunkedArray, name: str) -> None:
    if not (is_text(column.type) or pa.types.is_integer(column.type)):
        raise InputError(f"{origin.name}: the column {name!r} holds {column.type}, but ids are text or whole numbers.")


def is_unnamed(name: str) -> bool:
    """Whether a column is called as one is that pandas or R wrote without a name: the numbers of the rows, mostly."""
    return name in UNNAMED


def holds_whole_numbers(column: pa.ChunkedArray) -> bool:
    """Whether all values of a column are whole numbers."""
    return _as_whole_numbers(plain(column)) is not None


def number_ids(columns: Sequence[pa.ChunkedArray]) -> tuple[list[IntArray], AnyArray]:
    """Columns of ids as node indices, and the ids of the nodes: numbers in order, text as it first appears."""
    numbers = [_as_whole_numbers(column) for column in columns]
    if any(column is None for column in numbers):
        chunks = [chunk for column in columns for chunk in column.cast(pa.large_string()).chunks]
        encoded = pa.concat_arrays(chunks).dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        ids = text_array(encoded.dictionary.to_pylist())
    else:
        codes, ids = _rank(np.concatenate([column for column in numbers if column is not None]))
    return np.split(codes, np.cumsum([len(column) for column in columns])[:-1]), ids


def plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without an encoding: text trimmed and of one type, everything else as it is."""
    column = without_encoding(column)
    return pc.utf8_trim_whitespace(column.cast(pa.large_string())) if is_text(column.type) else column


def without_encoding(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without a dictionary."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def first_true(mask: pa.ChunkedArray) -> int | None:
    """The place of the first that is true."""
    if not pc.any(mask).as_py():
        return None
    place: int = pc.index(mask, pa.scalar(True)).as_py()
    return place


def _as_whole_numbers(column: pa.ChunkedArray) -> IntArray | None:
    """Ids as whole numbers, if all of them are and fit into 64 bits."""
    if not pa.types.is_integer(column.type) and not pc.all(pc.match_substring_regex(column, WHOLE_NUMBER)).as_py():
        return None
    try:
        column = column.cast(pa.int64())
    except pa.ArrowException:
        return None  # too large for a number, and just as good as text
    numbers: IntArray = column.to_numpy()
    return numbers


def _rank(numbers: IntArray) -> tuple[IntArray, IntArray]:
    """For each number its place among the distinct ones, and these in order."""
    least, most = int(numbers.min()), int(numbers.max())
    if most - least > 4 * len(numbers):
        ids, codes = np.unique(numbers, return_inverse=True)
        return codes, ids
    seen = np.zeros(most - least + 1, dtype=bool)
    seen[numbers - least] = True
    places = np.cumsum(seen) - 1
    return places[numbers - least], np.flatnonzero(seen) + least


# ------------------------------------------------------------------------------------------------------------- numbers


@dataclass(frozen=True, eq=False)
class Numbers:
    """A column read as numbers: the values, NaN where there is none, and where nothing or only text was found."""

    values: FloatArray
    missing: BoolArray
    text: BoolArray


def as_numbers(column: pa.ChunkedArray) -> Numbers | None:
    """A plain column as numbers; None if its type can hold none."""
    kind = column.type
    if pa.types.is_large_string(kind):
        missing = pc.fill_null(pc.is_in(pc.utf8_lower(column), value_set=pa.array(NO_NUMBER, kind)), True)
        missing = pc.or_(missing, pc.is_null(column))
        numeric = pc.fill_null(pc.match_substring_regex(column, NUMBER), False)
        column = pc.if_else(numeric, column, pa.scalar(None, kind))
        strange = ~(_to_bools(numeric) | _to_bools(missing))
    elif pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind) or pa.types.is_null(kind):
        missing = pc.is_null(column, nan_is_null=pa.types.is_floating(kind))
        strange = np.zeros(len(column), dtype=bool)
    else:
        return None
    values = pc.fill_null(column.cast(pa.float64(), safe=False), float("nan")).to_numpy()
    return Numbers(values, _to_bools(missing), strange)


def as_weights(origin: Origin, column: pa.ChunkedArray, name: str) -> FloatArray:
    """A column of weights; one that is none is named by its row."""
    column = plain(column)
    numbers = as_numbers(column)
    if numbers is None:
        raise InputError(f"{origin.name}: the column {name!r} holds {column.type}, but weights are numbers.")
    usable = usable_weights(numbers.values)
    if not usable.all():
        row = int(np.argmin(usable))
        found = "no weight" if numbers.missing[row] else f"the weight {column[row].as_py()}"
        point = ", with a decimal point" * ("," in found)
        raise InputError(f"{origin.name}: {origin.row(row)} has {found} in the column {name!r}; {WEIGHTS_ARE}{point}.")
    return numbers.values


def _to_bools(mask: pa.ChunkedArray) -> BoolArray:
    found: BoolArray = mask.to_numpy().astype(bool)
    return found
