"""The columns of a table, taken as ids or as numbers.

ids       whole numbers if all of them are, written without leading zeros and within 64 bits; else text
numbers   decimal, with or without an exponent; text counts as one if it reads as one
missing   nothing, and where numbers are expected also NA, N/A, NaN, null and None
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.checks import WEIGHTS_ARE, usable_weights
from vgae.graph.convert import text_array
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.parquet import is_text
from vgae.io.source import Origin

WHOLE_NUMBER = r"^(0|-?[1-9][0-9]*)$"
NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity)$"
NO_NUMBER = ("", "na", "n/a", "nan", "null", "none")  # in small letters
FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]


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
        raise InputError(f"{origin.at(row)} has no id in the column {name!r}; {why}.")
    return column


def as_text(origin: Origin, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """A column of ids as text, with the spaces that are around them; empty where one is missing."""
    column = without_encoding(column)
    _require_ids(origin, column, name)
    return pc.fill_null(column.cast(pa.large_string()), "")


def _require_ids(origin: Origin, column: pa.ChunkedArray, name: str) -> None:
    if not (is_text(column.type) or pa.types.is_integer(column.type)):
        raise InputError(f"{origin.name}: the column {name!r} holds {column.type}, but ids are text or whole numbers.")


def holds_whole_numbers(column: pa.ChunkedArray) -> bool:
    """Whether all values of a column are whole numbers."""
    return whole_numbers(plain(column)) is not None


def number_ids(columns: Sequence[pa.ChunkedArray]) -> tuple[list[IntArray], AnyArray]:
    """Columns of ids as node indices, and the ids of the nodes: numbers in order, text as it first appears."""
    numbers = [whole_numbers(column) for column in columns]
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


def with_prefix(column: pa.ChunkedArray, prefix: str) -> pa.ChunkedArray:
    """Ids with a text in front of each."""
    text = column.cast(pa.large_string())
    return pc.binary_join_element_wise(pa.scalar(prefix, pa.large_string()), text, pa.scalar("", pa.large_string()))


def first_true(mask: pa.ChunkedArray) -> int | None:
    """The place of the first that is true."""
    if not pc.any(mask).as_py():
        return None
    place: int = pc.index(mask, pa.scalar(True)).as_py()
    return place


def whole_numbers(column: pa.ChunkedArray) -> IntArray | None:
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
        raise InputError(f"{origin.at(row)} has {found} in the column {name!r}; {WEIGHTS_ARE}{point}.")
    return numbers.values


def _to_bools(mask: pa.ChunkedArray) -> BoolArray:
    found: BoolArray = mask.to_numpy().astype(bool)
    return found
