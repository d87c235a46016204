"""Text as a table: every column a column of text, what the file leaves open decided by rules.

delimiter   the one of comma, tab, semicolon, bar and blanks that splits the first lines most evenly
header      the first row is one unless it holds a number, or a value that occurs again: of links in one of the columns
            of ids, of nodes in its own column, the first two looked at
comments    lines that start with # or % are passed over

Everything is vectorised: no Python loop runs over rows unless one of them is wrong and has to be found.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from vgae.errors import InputError

COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
MAX_BYTES = 32 * 2**30  # unpacked; a file that goes on beyond is refused
DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks"}
SNIFFED_LINES = 50


def suffix_of(path: Path) -> str:
    """The ending that tells the kind of a file, a compression aside."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in COMPRESSED:
        endings.pop()
    return endings[-1] if endings else ""


@contextmanager
def readable(path: Path, otherwise: str) -> Iterator[None]:
    """What keeps a file from being read, in a sentence."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a directory, not a file.") from None
    except PermissionError:
        raise InputError(f"{path}: this file may not be read; check its permissions.") from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {otherwise} ({first_line(error)}).") from None


def unpacked(path: Path) -> bytes:
    """The bytes of a file, unpacked, up to a limit."""
    kind = COMPRESSED.get(path.suffix.lower())
    with readable(path, "it cannot be unpacked"), path.open("rb") as file:
        if kind is None:
            return file.read()
        chunks, size = [], 0
        with pa.CompressedInputStream(file, kind) as stream:
            while chunk := stream.read(2**24):
                chunks.append(chunk)
                size += len(chunk)
                if size > MAX_BYTES:
                    raise InputError(f"{path}: it unpacks to more than {MAX_BYTES / 2**30:.0f} GiB; split the file.")
        return b"".join(chunks)


def read_text(
    path: Path, delimiter: str | None, header: bool | None, notes: list[str], *, links: bool, needed: str
) -> pa.Table:
    """The table in a text file; its rows are links or nodes, `needed` are the two columns that it needs at least."""
    content = _without_comments(unpacked(path))
    _require_text(path, content)
    if delimiter is None:
        delimiter = _sniff(path, content, needed)
        notes.append(f"columns are split at {DELIMITERS[delimiter]}")
    if delimiter == " ":
        content = re.sub(rb"[ \t]+", b" ", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", content))
    first = _first_row(content, delimiter)
    if len(first) < 2:
        raise InputError(_one_column(path, needed))
    names = [f"column {number}" for number in range(1, len(first) + 1)]
    if header is None:
        header = _has_header(path, content, delimiter, names, first, links=links)
        row = "link" if links else "node"
        notes.append(f"the first row is a {'header' if header else f'{row}, not a header'}")
    if header:
        names = [name.strip() or names[place] for place, name in enumerate(first)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path}: the header names the column {twice!r} twice; rename one of them.")
    return _parse(path, content, delimiter, names, skip=int(header))


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def _without_comments(content: bytes) -> bytes:
    """Comment lines made empty, so that the others keep their numbers."""
    content = content.removeprefix(b"\xef\xbb\xbf")
    if content[:1] in (b"#", b"%") or b"\n#" in content or b"\n%" in content:
        content = re.sub(rb"(?m)^[#%].*$", b"", content)
    return content


def _require_text(path: Path, content: bytes) -> None:
    if not content.strip():
        raise InputError(f"{path}: the file is empty.")
    place = content.find(b"\0")
    if place >= 0:
        raise InputError(f"{path}: line {_line(content, place)} holds a NUL byte; this is not a text file.")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = _line(content, error.start)
        raise InputError(f"{path}: line {line} is not UTF-8; save the file as UTF-8.") from None


def _line(content: bytes, place: int) -> int:
    return content.count(b"\n", 0, place) + 1


def _one_column(path: Path, needed: str) -> str:
    return f"{path}: line 1 has one column only; {needed} are needed, or another delimiter."


def _sniff(path: Path, content: bytes, needed: str) -> str:
    """The delimiter that occurs in all of the first lines, and equally often in most of them."""
    lines = [line for line in content[: 2**16].decode(errors="ignore").splitlines() if line.strip()][:SNIFFED_LINES]
    best, score = "", 0.0
    for delimiter in DELIMITERS:
        counts = [len(line.strip().split()) - 1 if delimiter == " " else line.count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count)
        evenness = counts.count(usual) / len(counts) if usual else 0.0
        if evenness > score:
            best, score = delimiter, evenness
    if not best:
        raise InputError(_one_column(path, needed))
    return best


def _first_row(content: bytes, delimiter: str) -> list[str]:
    text = io.StringIO(content.lstrip()[: 2**16].decode(errors="ignore"))
    return next(csv.reader(text, delimiter=delimiter))


def _has_header(path: Path, content: bytes, delimiter: str, names: list[str], first: list[str], *, links: bool) -> bool:
    """A first row that holds numbers, or values that occur again, is data."""
    if any(re.fullmatch(r"\s*-?[0-9.]+\s*", field) for field in first):
        return False
    head = b"\n".join(content.lstrip().split(b"\n", 10_001)[:10_000])
    try:
        rows = _parse(path, head, delimiter, names, skip=1)
    except InputError:
        return True
    seen = [set(rows.column(place).to_pylist()) for place in range(2)]
    if links:
        seen = [seen[0] | seen[1]] * 2
    return not any(field in column for field, column in zip(first, seen, strict=False))


def _parse(path: Path, content: bytes, delimiter: str, names: list[str], *, skip: int) -> pa.Table:
    """Every column as text; a row that does not fit is named by its line."""
    try:
        return pyarrow.csv.read_csv(
            pa.BufferReader(content.lstrip(b"\r\n")),  # else a line left empty would be skipped in place of the header
            read_options=pyarrow.csv.ReadOptions(
                column_names=names,
                skip_rows_after_names=skip,
                block_size=min(max(len(content), 1), 2**26),
                use_threads=False,  # its threads may outlive the interpreter, and abort the process at its end
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.large_string()), strings_can_be_null=False
            ),
        )
    except pa.ArrowException as error:
        raise InputError(_ragged(path, content, delimiter, len(names), error)) from None


def _ragged(path: Path, content: bytes, delimiter: str, width: int, error: Exception) -> str:
    """The sentence about the first row with another number of columns."""
    reader = csv.reader(io.StringIO(content.decode()), delimiter=delimiter)
    for row in reader:
        if row and len(row) != width:
            return (
                f"{path}: line {reader.line_num} has {len(row)} columns where the others have {width}; mend the line."
            )
    return f"{path}: not readable as a table ({first_line(error)})."
