"""Text as a table: every column a column of text, what the file leaves open decided by rules (`sniff.py`).

Everything is vectorised: no Python loop runs over rows unless one of them is wrong and has to be found.
"""

from __future__ import annotations

import codecs
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from vgae import memory
from vgae.errors import InputError
from vgae.io.rows import MOST_COLUMNS, SPACES, collapsed, first_lines, first_row, parse, widths_of
from vgae.io.sniff import (
    DELIMITERS,
    MARKS,
    end_of_comments,
    find_delimiter,
    has_header,
    is_comment,
    lacks_a_name,
    one_column,
    refuse_other_formats,
    separator_line,
    start_of_rows,
)
from vgae.io.unpack import first_line, not_enough_memory, require_room, unpacked
from vgae.words import count

BYTES_PER_ROW, BYTES_PER_FIELD = 100, 32  # what a table takes while it becomes a graph, its text aside
NO_NAME = ""  # of the column that pandas and R write the numbers of the rows into
UTF_8, UTF_16 = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class Wanted:
    """What a table is read for: whether its rows are links or nodes, and the columns that it needs at least.

    Where `known` tells the ids that can occur, a first row is a header only if it names two ends by usual names.
    """

    links: bool
    needed: str
    known: Collection[str] = ()
    least: int = 2  # so many columns


def read_text(
    path: Path, wanted: Wanted, delimiter: str | None = None, header: bool | None = None
) -> tuple[pa.Table, tuple[str, ...]]:
    """The table in a text file, and what was assumed in reading it."""
    notes = []
    content = _as_lines(unpacked(path))
    _require_text(path, content)
    refuse_other_formats(path, content)
    named, content = separator_line(content)
    delimiter = delimiter or named
    begin = start_of_rows(content)
    rows = content[begin:] or content.lstrip(b"\r\n")
    if delimiter is None:
        delimiter = find_delimiter(path, rows, links=wanted.links, needed=wanted.needed, least=wanted.least)
        if delimiter in DELIMITERS:
            notes.append(f"columns are split at {DELIMITERS[delimiter]}")
    elif delimiter == named:
        notes.append(f"columns are split at {DELIMITERS.get(named, repr(named))}, as the first line says")
    width = _width(path, rows, delimiter, wanted)
    begin, comments = end_of_comments(content, begin, delimiter, width, wanted.known)
    if begin == len(content):
        raise InputError(f"{path}: there are no rows in it, only comments.")
    lines_above = content.count(b"\n", 0, begin)
    content = content[begin:]
    _require_room(path, content, width)
    if delimiter == SPACES:
        content = collapsed(content)
    first = first_row(content, delimiter)
    if len(first) != width:
        raise InputError(f"{path}: its lines end in different ways; save it with line feeds only.")
    if header is not False and lacks_a_name(content, delimiter, first, links=wanted.links):
        content, first, width = delimiter.encode() + content, (NO_NAME, *first), width + 1
    if header is None:
        header = has_header(content, delimiter, first, links=wanted.links, known=wanted.known)
        notes.append(note_on_header(wanted, header=header))
    names = _names(path, first) if header else [f"column {number}" for number in range(1, width + 1)]
    table, more = _parse(path, content, delimiter, names, lines_above)
    table = table.slice(1) if header else table
    if comments + more:
        notes.append(f"{count(comments + more, 'comment line')} (# or %) skipped")
    return table, tuple(notes)


def note_on_header(wanted: Wanted, *, header: bool) -> str:
    """What was decided about the first row."""
    row = "link" if wanted.links else "node"
    return f"the first row is a {'header' if header else f'{row}, not a header'}"


def _as_lines(content: bytes) -> bytes:
    """Without a byte order mark, and with line feeds where all lines end in carriage returns alone."""
    content = content.removeprefix(UTF_8)
    return content.replace(b"\r", b"\n") if b"\r" in content and b"\n" not in content else content


def _require_text(path: Path, content: bytes) -> None:
    if not content.strip():
        raise InputError(f"{path}: the file is empty.")
    if content.startswith(UTF_16):
        raise InputError(f"{path}: this is UTF-16; save the file as UTF-8.")
    place = content.find(b"\0")
    if place >= 0:
        raise InputError(f"{path}: line {_line(content, place)} holds a NUL byte; this is not a text file.")
    wrong = _not_utf_8(content)
    if wrong is not None:
        raise InputError(f"{path}: line {_line(content, wrong)} is not UTF-8; save the file as UTF-8.")


def _not_utf_8(content: bytes, size: int = 2**24) -> int | None:
    """Where the first byte is that is not UTF-8; the text is decoded piece by piece, and not stored."""
    if content.isascii():
        return None
    decoder = codecs.getincrementaldecoder("utf-8")()
    for start in range(0, len(content), size):
        waiting = len(decoder.getstate()[0])
        try:
            decoder.decode(content[start : start + size], final=start + size >= len(content))
        except UnicodeDecodeError as error:
            return start - waiting + error.start
    return None


def _line(content: bytes, place: int) -> int:
    return content.count(b"\n", 0, place) + 1


def _width(path: Path, rows: bytes, delimiter: str, wanted: Wanted) -> int:
    """How many columns the first row has; of rows that all start like comments, most have."""
    head = first_lines(rows, 1)
    if head.startswith(tuple(mark.encode() for mark in MARKS)):
        head = first_lines(rows, 50)
    head = collapsed(head) if delimiter == SPACES else head
    widths = [width for width, _ in widths_of(head, delimiter)]
    width = max(widths, key=lambda width: (widths.count(width), width), default=1)
    if width < wanted.least:
        raise InputError(one_column(path, wanted.needed))
    if width > MOST_COLUMNS:
        raise InputError(f"{path}: it has {width:,} columns, and at most {MOST_COLUMNS:,} are read; leave some out.")
    return width


def _require_room(path: Path, content: bytes, width: int) -> None:
    """Refuse a table that would take more memory than there is while it becomes a graph."""
    num_rows = content.count(b"\n") + 1
    require_room(path, 2 * len(content) + num_rows * (BYTES_PER_ROW + width * BYTES_PER_FIELD), memory.bytes_free())


def _names(path: Path, first: Sequence[str]) -> list[str]:
    """The names of the columns in a header; only the first may be without, as that of a column that counts rows."""
    given = [first[0].lstrip("".join(MARKS)).strip(), *(name.strip() for name in first[1:])]
    names = [name or (f"column {place + 1}" if place else NO_NAME) for place, name in enumerate(given)]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{path}: the header names the column {twice!r} twice; rename one of them.")
    return names


def _parse(path: Path, content: bytes, delimiter: str, names: Sequence[str], lines_above: int) -> tuple[pa.Table, int]:
    """Every column as text, and the number of comments between the rows; a row that does not fit is named."""
    comments = 0
    wrong: list[Any] = []

    def judge(row: Any) -> str:
        nonlocal comments
        if is_comment(row.text):
            comments += 1
        elif row.text.strip():
            wrong.append(row)
            return "error"
        return "skip"

    try:
        table = parse(content, delimiter, names, invalid=judge)
    except MemoryError:
        raise InputError(not_enough_memory(path)) from None
    except pa.ArrowException as error:
        if wrong:
            raise InputError(_ragged(path, content, wrong[0], lines_above)) from None
        raise InputError(f"{path}: not readable as a table ({first_line(error)}).") from None
    if table.num_rows and _ends_within_quotes(content, table.column(len(names) - 1)[-1].as_py()):
        raise InputError(f"{path}: a quotation mark is opened and never closed; close it, or write it twice.")
    return table, comments


def _ragged(path: Path, content: bytes, row: Any, lines_above: int) -> str:
    """The sentence about a row with another number of columns."""
    text = row.text.encode()
    place = 0 if content.startswith(text + b"\n") else content.find(b"\n" + text) + 1
    line = lines_above + _line(content, place)
    columns = count(row.actual_columns, "column")
    lines = text.count(b"\n") + 1
    if lines > 1:
        return (
            f"{path}: from line {line} on, {lines:,} lines are one row of {columns} where the others have "
            f"{row.expected_columns:,}; a quotation mark there is not closed."
        )
    return f"{path}: line {line} has {columns} where the others have {row.expected_columns:,}; fix the line."


def _ends_within_quotes(content: bytes, field: str) -> bool:
    """Whether the file ends inside of a quoted field, which the parser takes for closed; `field` is the last of all."""
    tail = content.rstrip(b"\r\n")
    raw = field.rstrip("\r\n").replace('"', '""').encode()
    opened = tail.endswith(b'"' + raw) and tail[-len(raw) - 2 : -len(raw) - 1] != b'"'
    return opened and not tail.endswith(raw + b'"')
