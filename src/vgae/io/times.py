"""A column of times: numbers, dates, or text that is one of the two. All of a column become whole or real numbers.

Dates are ISO dates, such as 2024-01-31, 2024-01 or 2024-01-31T12:00:00+01:00; without an offset they count as UTC.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.io.columns import as_numbers, plain
from vgae.io.source import Origin

TIMES_ARE = "times are numbers or ISO dates such as 2024-01-31 or 2024-01-31T12:00:00"
MISSING = ("", "na", "n/a", "nan", "nat", "null", "none")


def as_times(origin: Origin, column: pa.ChunkedArray, name: str) -> npt.NDArray[Any]:
    """A number for each row, the larger the later; a row without a time is named."""
    column = plain(column)
    kind = column.type
    if pa.types.is_large_string(kind):
        return _from_text(origin, column, name)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
        _require(origin, name, pc.is_null(column, nan_is_null=True), column)
        return np.asarray(column.to_numpy())
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind) or pa.types.is_integer(kind):
        _require(origin, name, pc.is_null(column), column)
        if pa.types.is_date(kind):
            column = column.cast(pa.timestamp("us"))
        return np.asarray(column.cast(pa.int64()).to_numpy())
    raise InputError(f"{origin.name}: the column {name!r} holds {kind}, but {TIMES_ARE}.")


def _from_text(origin: Origin, column: pa.ChunkedArray, name: str) -> npt.NDArray[Any]:
    numbers = as_numbers(column)
    if numbers is not None and not numbers.text.any():
        _require(origin, name, pa.chunked_array([pa.array(numbers.missing)]), column)
        try:
            return np.asarray(column.cast(pa.int64()).to_numpy())  # exact also beyond 2**53
        except pa.ArrowException:
            return numbers.values
    encoded = column.combine_chunks().dictionary_encode()
    encoded = encoded.combine_chunks() if isinstance(encoded, pa.ChunkedArray) else encoded
    values = [_moment(text) for text in encoded.dictionary.to_pylist()]
    wrong = np.array([value is None for value in values])
    codes = pc.fill_null(encoded.indices, -1).to_numpy(zero_copy_only=False)
    bad = (codes < 0) | wrong[codes] if len(wrong) else codes < 0
    _require(origin, name, pa.chunked_array([pa.array(bad)]), column)
    found: npt.NDArray[Any] = np.array([value or 0 for value in values], dtype=np.int64)[codes]
    return found


def _moment(text: str) -> int | None:
    """Microseconds since 1970 of an ISO date; None of anything else."""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        if len(text) not in (4, 7) or not text[:4].isdecimal():
            return None
        try:
            found = datetime.strptime(text, "%Y" if len(text) == 4 else "%Y-%m")
        except ValueError:
            return None
    aware = found if found.tzinfo else found.replace(tzinfo=UTC)
    since = aware - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds


def _require(origin: Origin, name: str, bad: pa.ChunkedArray, column: pa.ChunkedArray) -> None:
    if not pc.any(bad).as_py():
        return
    row, number = pc.index(bad, pa.scalar(True)).as_py(), pc.sum(bad).as_py()
    value = column[row].as_py()
    missing = value is None or str(value).lower() in MISSING
    found = "no time" if missing else f"the time {value!r}"
    more = f" (and {number - 1:,} more)" if number > 1 else ""
    raise InputError(f"{origin.at(row)}{more} has {found} in the column {name!r}; {TIMES_ARE}.")
