"""Text as rows of fields, by one parser in looking at the first lines and in reading all of them.

A field may stand in quotation marks, and then hold anything; a mark inside it is written twice. Every step takes time
in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import pyarrow as pa
import pyarrow.csv

SPACES = " "  # the delimiter that stands for any run of spaces and tabs
MOST_COLUMNS = 100_000
WIDE = 1000  # columns of a single row, from which on a table of columns would take far more memory than the row
BLOCK_BYTES = 2**26
MOST_BLOCK_BYTES = 2**31 - 1
MOST_QUOTED_LINES = 10_000  # that a look at the first lines follows a quotation mark that is not closed
QUOTED_OR_SPACES = re.compile(rb'(?<![^ \t\r\n])"(?:[^"]|"")*+"|[ \t]+')

Invalid = Callable[[Any], str]


def parse(
    content: bytes,
    delimiter: str,
    names: Sequence[str],
    *,
    only: Sequence[str] | None = None,
    invalid: Invalid | None = None,
) -> pa.Table:
    """Rows as a table of text; `invalid` is asked about rows of another width, and answers "skip" or "error"."""
    for block in (BLOCK_BYTES, MOST_BLOCK_BYTES):
        try:
            return _parse(content, min(block, max(len(content), 1)), delimiter, names, only, invalid)
        except pa.ArrowInvalid as error:
            if "Empty CSV" in str(error):
                return pa.table({name: pa.array([], pa.large_string()) for name in only or names})
            if "straddling" not in str(error) or block > len(content):
                raise
    raise pa.ArrowInvalid("a row is longer than 2 GiB")


def _parse(
    content: bytes,
    block: int,
    delimiter: str,
    names: Sequence[str],
    only: Sequence[str] | None,
    invalid: Invalid | None,
) -> pa.Table:
    return pyarrow.csv.read_csv(
        pa.BufferReader(content),
        read_options=pyarrow.csv.ReadOptions(
            column_names=names,
            block_size=block,
            use_threads=False,  # its threads may outlive the interpreter, and abort the process at its end
        ),
        parse_options=pyarrow.csv.ParseOptions(
            delimiter=delimiter, newlines_in_values=b'"' in content, invalid_row_handler=invalid
        ),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False, include_columns=only
        ),
    )


def first_lines(content: bytes, number: int, most_bytes: int = 2**24) -> bytes:
    """The first lines, each of them whole, and more where a quoted field would be cut; few if they are long."""
    end, lines, quotes, wanted = 0, 0, 0, 0
    while end < len(content) and lines < number + MOST_QUOTED_LINES:
        if lines >= number or (lines >= 2 and end >= most_bytes):
            wanted = wanted or end
            if quotes % 2 == 0:
                return content[:end]
        stop = content.find(b"\n", end) + 1 or len(content)
        quotes += content.count(b'"', end, stop)
        end, lines = stop, lines + 1
    return content[:end] if quotes % 2 == 0 else content[: wanted or end]


def widths_of(content: bytes, delimiter: str) -> list[tuple[int, str]]:
    """How many fields each row has, and its text; the rows of one field come last."""
    found: list[tuple[int, str]] = []

    def gather(row: Any) -> str:
        found.append((row.actual_columns, row.text))
        return "skip"

    single = parse(content, delimiter, ["field"], invalid=gather).column(0).to_pylist()
    return [*found, *((1, text) for text in single)]


def width_of(line: bytes, delimiter: str) -> int:
    """How many fields a line has."""
    if b'"' not in line:
        return len(line.split()) if delimiter == SPACES else line.count(delimiter.encode()) + 1
    line = collapsed(line) if delimiter == SPACES else line
    return max((width for width, _ in widths_of(line, delimiter)), default=0)


def fields_of(content: bytes, delimiter: str, width: int) -> list[tuple[str, ...]]:
    """The rows of this width."""
    names = [str(number) for number in range(width)]
    table = parse(content, delimiter, names, invalid=lambda _: "skip")
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def first_row(content: bytes, delimiter: str) -> tuple[str, ...]:
    """The first row, if it has no more columns than are read."""
    line = first_lines(content, 1)
    width = max((width for width, _ in widths_of(line, delimiter)), default=0)
    if not 0 < width <= MOST_COLUMNS:
        return ()
    if width > WIDE:
        with suppress(csv.Error):  # a field of more than 128 KiB
            return tuple(next(csv.reader(io.StringIO(line.decode(errors="replace"), newline=""), delimiter=delimiter)))
    rows = fields_of(line, delimiter, width)
    return rows[0] if rows else ()


def collapsed(content: bytes) -> bytes:
    """Every run of spaces and tabs as one space, and none where a line begins or ends; quoted fields as they are."""
    if b'"' in content:
        return QUOTED_OR_SPACES.sub(_one_space, content)
    content = re.sub(rb"[ \t]+", b" ", content)
    for edge, line_end in ((b" \n", b"\n"), (b"\n ", b"\n"), (b" \r", b"\r")):
        content = content.replace(edge, line_end)
    return content.strip(b" ")


def _one_space(found: re.Match[bytes]) -> bytes:
    text, (start, end) = found.string, found.span()
    if text[start : start + 1] == b'"':
        return found.group()
    at_edge = start == 0 or end == len(text) or text[start - 1] in b"\r\n" or text[end] in b"\r\n"
    return b"" if at_edge else b" "
