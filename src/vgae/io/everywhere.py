"""What is so of all rows of a table: of one that is here alone, or of one of which other processes have more rows.

What reads a table asks here for whatever depends on all of its rows. `vgae.parallel.rows` asks the others.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from vgae.io.columns import FloatArray


class Here:
    """All rows are here."""

    def every(self, fact: bool) -> bool:
        """Whether something is so of the rows of all, given that of these."""
        return fact

    def total(self, number: int) -> int:
        """A count of all rows."""
        return number

    def moments(self, values: FloatArray) -> tuple[float, float]:
        """The mean of some values of all rows, and their standard deviation; 1 in its place where they are all one."""
        return moments_of(values)

    def num_distinct(self, texts: pa.Array) -> int:
        """How many different texts there are, of texts that are different here."""
        return len(texts)

    def distinct(self, texts: pa.Array) -> list[str]:
        """All of them."""
        found: list[str] = texts.to_pylist()
        return found


def moments_of(values: FloatArray) -> tuple[float, float]:
    """Mean and standard deviation; the latter of one value is 0, or what rounding leaves of it, and 1 stands for it."""
    if values.min() == values.max():
        return float(values[0]), 1.0
    return float(values.mean()), float(values.std())


def texts_in(column: pa.ChunkedArray) -> pa.Array:
    """The different texts in a plain column of text, the empty one left out."""
    found = pc.unique(pc.drop_null(column))
    return found.filter(pc.not_equal(found, "")) if len(found) else found


HERE = Here()
