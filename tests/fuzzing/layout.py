"""How a table is written: delimiter, header, quotation marks, line ends, comments, packing; what a reader is told."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from fuzzing.case import Case

DELIMITERS = (",", "\t", ";", "|", " ")
USUAL = (("source", "target"), ("from", "to"), ("Source", "Target"), ("src", "dst"), ("node1", "node2"))
OTHERS = (("person", "friend"), ("protein a", "protein b"), ("x", "y"))
SUFFIXES = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
REMARKS = ("# made by a program", "% 3, 4, 5", "#", "# a\tb;c", "%% header follows")
REMARK_LIKE = re.compile(r"\s*[#%]+(\s|$)")
FRONT = (b"", b"", b"", b"\xef\xbb\xbf")
OPTIONS: dict[str, tuple[Any, ...]] = {
    "delimiter": (None, None, None, *DELIMITERS, "a", "", "ab", "é", "\n", '"', 7),
    "header": (None, None, None, True, False, "no"),
    "source": (None, None, None, "1", "2", "source", "", "9", "\x1b[31m", 1, 2.5),
    "target": (None, None, None, "1", "2", "target"),
    "weight": (None, None, None, "3", "1", "w"),
    "directed": (None, None, True, "yes"),
}


@dataclass(frozen=True)
class Layout:
    """How a table looks; `names` is its header, if it has one, and `options` is what a reader is told."""

    delimiter: str
    names: list[str] | None
    quoting: int
    line_end: str
    remarks: list[str]
    options: dict[str, Any] = field(default_factory=dict)

    def text(self, rows: Sequence[Sequence[str]]) -> bytes:
        """The table as text."""
        out = io.StringIO()
        quoting: Any = self.quoting
        first = "" if self.names else rows[0][0]
        marked = REMARK_LIKE.match(first) or (self.remarks and first.startswith(("#", "%")))  # a comment to everybody
        splits = "\r\t" if self.delimiter == " " else "\r"  # which nobody has to quote, but splits lines and columns
        if marked or any(mark in field for row in rows for field in row for mark in splits):
            quoting = csv.QUOTE_ALL
        writer = csv.writer(out, delimiter=self.delimiter, quoting=quoting, lineterminator=self.line_end)
        for remark in self.remarks:
            out.write(remark + self.line_end)
        writer.writerows(([self.names] if self.names else []) + [list(row) for row in rows])
        return out.getvalue().encode()


def line_end_for(random: Random, fields: Sequence[str]) -> str:
    """Line ends that the fields leave open: carriage returns alone only where no field has lines of its own."""
    ends = ("\n", "\n", "\r\n") if any("\n" in field or "\r" in field for field in fields) else ("\n", "\r\n", "\r")
    return random.choice(ends)


def pack(case: Case, name: str, content: bytes) -> tuple[str, bytes]:
    """A file as it is, or packed, with the name that says so."""
    how = case.random.choice(("", "", "", ".gz", ".zst"))
    if how == ".gz":
        content = gzip.compress(content, mtime=0)
    elif how == ".zst":
        content = pa.Codec("zstd").compress(content, asbytes=True)
    return name + how, content


def size_unpacked(content: bytes) -> int:
    """How many bytes come out of gzip, as far as it can be unpacked: a few changed bytes may stand for many more."""
    unpacker, size = zlib.decompressobj(16 + zlib.MAX_WBITS), 0
    try:
        while content:
            found = unpacker.decompress(content, 2**20)
            size, content = size + len(found), unpacker.unconsumed_tail
    except zlib.error:
        pass
    return size


def parquet(random: Random, columns: dict[str, list[Any]]) -> bytes:
    """The same columns as Parquet, of whichever type holds them."""
    arrays = {name: _typed(random, values) for name, values in columns.items()}
    out = io.BytesIO()
    packing = random.choice(("snappy", "zstd", "gzip", "none"))
    pq.write_table(pa.table(arrays), out, compression=packing, use_dictionary=random.random() < 0.5)
    return out.getvalue()


def _typed(random: Random, values: list[Any]) -> pa.Array:
    if not all(isinstance(value, str) for value in values):
        return pa.array(values)
    if all(re.fullmatch("0|-?[1-9][0-9]{0,17}", value) for value in values) and random.random() < 0.7:
        return pa.array([int(value) for value in values])
    array = pa.array(values, random.choice((pa.string(), pa.large_string())))
    return array.dictionary_encode() if random.random() < 0.3 else array


def some_options(random: Random) -> dict[str, Any]:
    """Options that somebody may have given, sensible or not."""
    return {name: random.choice(values) for name, values in OPTIONS.items()}
