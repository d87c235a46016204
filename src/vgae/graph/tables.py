"""Links from a stranger's table: CSV, TSV, plain text or Parquet, with ids of any kind, compressed or not.

A row is a link between two ids. What the file leaves open is decided by rules and told in `Reading.notes`:

delimiter   the one of comma, tab, semicolon, bar and blanks that splits the first lines most evenly
header      the first row is one unless it holds a number, or a value that occurs again in the columns of ids
columns     the first two, or those asked for by name or number (from 1)
ids         whole numbers if all of them are, written without leading zeros; else text
comments    lines that start with # or % are passed over

Everything is vectorised: no Python loop runs over rows unless one of them is wrong and has to be found.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from vgae.errors import InputError
from vgae.graph.files import read_npz_graph
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, Pairs

TEXT = (".csv", ".tsv", ".txt", ".edges", ".edgelist")
PARQUET = (".parquet", ".pq")
COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
SUFFIXES = (*TEXT, *PARQUET)
MAX_BYTES = 32 * 2**30  # of text, unpacked; a file that goes on beyond is refused
DELIMITERS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks"}
SNIFFED_LINES = 50
WHOLE_NUMBER = r"^-?(0|[1-9][0-9]*)$"


@dataclass(frozen=True, eq=False)
class Reading:
    """A graph out of a table, and what was assumed in reading it."""

    graph: Graph
    notes: tuple[str, ...]


def read_graph(path: str | Path, **options: Any) -> Graph:
    """A graph from a file: a table of links (csv, tsv, txt, parquet; also .gz, .zst), or an npz.

    `options` for tables are those of `read_links`: source, target, delimiter, header.
    """
    return read_any(path, **options).graph


def read_any(path: str | Path, **options: Any) -> Reading:
    """The same, with what was assumed in reading."""
    path = Path(path)
    if _suffix(path) in SUFFIXES:
        return read_links(path, **options)
    if path.suffix == ".npz":
        given = [name for name, value in options.items() if value is not None]
        if given:
            raise InputError(f"{given[0]}: this option is for tables, and {path} is an npz file.")
        return Reading(read_npz_graph(path), ())
    raise InputError(f"{path}: not a kind of file that is known; use {', '.join((*SUFFIXES, '.npz'))}.")


def read_links(
    path: str | Path,
    *,
    source: str | None = None,
    target: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
) -> Reading:
    """The graph whose links are the rows of a table; `source` and `target` are columns, by name or number from 1."""
    path = Path(path)
    ends, notes = _two_columns(path, source, target, delimiter, header)
    codes, ids = _number(*ends)
    try:
        graph = Graph.from_edges(codes, num_nodes=len(ids))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return Reading(replace(graph, node_ids=ids), tuple(notes))


def read_pairs(
    path: str | Path,
    ids: Sequence[Any],
    *,
    source: str | None = None,
    target: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
) -> Pairs:
    """The rows of a table as pairs of indices into `ids`; an id that is not there is named by its row.

    Here a header is a first row of which neither end is an id, unless columns are asked for by name.
    """
    path = Path(path)
    known = pa.array([str(name) for name in ids])
    named = any(given is not None and not given.isdecimal() for given in (source, target))
    open_question = header is None and not named and _suffix(path) not in PARQUET
    ends, _ = _two_columns(path, source, target, delimiter, False if open_question else header)
    places = [pc.index_in(end.cast(pa.string()), value_set=known) for end in ends]
    skipped = 0
    if open_question and len(ends[0]) > 1 and not any(column[0].is_valid for column in places):
        places, skipped = [column[1:] for column in places], 1
    for end, column in zip(ends, places, strict=True):
        row = _first_true(pc.is_null(column))
        if row is not None:
            stranger = str(end[row + skipped].as_py())
            raise InputError(f"{path}: row {row + 1} names {stranger!r}, which is not a node of this run.")
    return np.stack([column.to_numpy().astype(np.int64) for column in places], axis=1)


def _suffix(path: Path) -> str:
    """The ending that tells the kind of a file, a compression aside."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in COMPRESSED:
        endings.pop()
    return endings[-1] if endings else ""


def _two_columns(
    path: Path, source: str | None, target: str | None, delimiter: str | None, header: bool | None
) -> tuple[list[pa.ChunkedArray], list[str]]:
    """The two columns of ids, and what was assumed in finding them."""
    if delimiter is not None and len(delimiter) != 1:
        raise InputError(f"delimiter: one character is needed, got {delimiter!r}.")
    notes: list[str] = []
    table = _read_parquet(path) if _suffix(path) in PARQUET else _read_text(path, delimiter, header, notes)
    columns = [_column(path, table, given, default) for given, default in ((source, 0), (target, 1))]
    if columns[0] == columns[1]:
        raise InputError(f"{path}: source and target are the same column; choose two of {_names(table)}.")
    if table.num_rows == 0:
        raise InputError(f"{path}: there are no rows of links in it, only a header.")
    if table.num_columns > 2:
        notes.append(f"links are the columns {table.column_names[columns[0]]} and {table.column_names[columns[1]]}")
    ends = [_ids_of(path, table.column(column), table.column_names[column]) for column in columns]
    return ends, notes


@contextmanager
def _readable(path: Path, otherwise: str) -> Iterator[None]:
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
        raise InputError(f"{path}: {otherwise} ({_first_line(error)}).") from None


# ------------------------------------------------------------------------------------------------------------- Parquet


def _read_parquet(path: Path) -> pa.Table:
    with _readable(path, "not a readable Parquet file"):
        table = pyarrow.parquet.read_table(path, use_threads=False)
    if table.num_columns < 2:
        raise InputError(f"{path}: two columns of ids are needed, and it has {table.num_columns}.")
    return table


# ---------------------------------------------------------------------------------------------------------------- text


def _read_text(path: Path, delimiter: str | None, header: bool | None, notes: list[str]) -> pa.Table:
    content = _without_comments(_unpacked(path))
    _require_text(path, content)
    if delimiter is None:
        delimiter = _sniff(path, content)
        notes.append(f"columns are split at {DELIMITERS[delimiter]}")
    if delimiter == " ":
        content = re.sub(rb"[ \t]+", b" ", re.sub(rb"(?m)^[ \t]+|[ \t]+$", b"", content))
    first = _first_row(content, delimiter)
    if len(first) < 2:
        raise InputError(f"{path}: line 1 has one column only; two columns of ids are needed, or another --delimiter.")
    names = [f"column {number}" for number in range(1, len(first) + 1)]
    if header is None:
        header = _has_header(path, content, delimiter, names, first)
        notes.append(f"the first row is {'a header' if header else 'a link, not a header'}")
    if header:
        names = [name.strip() or names[place] for place, name in enumerate(first)]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(f"{path}: the header names the column {twice!r} twice; rename one of them.")
    return _parse(path, content, delimiter, names, skip=int(header))


def _unpacked(path: Path) -> bytes:
    """The bytes of a file, unpacked, up to a limit."""
    kind = COMPRESSED.get(path.suffix.lower())
    with _readable(path, "it cannot be unpacked"), path.open("rb") as file:
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


def _sniff(path: Path, content: bytes) -> str:
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
        raise InputError(f"{path}: line 1 has one column only; two columns of ids are needed, or another --delimiter.")
    return best


def _first_row(content: bytes, delimiter: str) -> list[str]:
    text = io.StringIO(content.lstrip()[: 2**16].decode(errors="ignore"))
    return next(csv.reader(text, delimiter=delimiter))


def _has_header(path: Path, content: bytes, delimiter: str, names: list[str], first: list[str]) -> bool:
    """A first row that holds numbers, or ids that occur again, is data."""
    if any(re.fullmatch(r"\s*-?[0-9.]+\s*", field) for field in first):
        return False
    head = b"\n".join(content.lstrip().split(b"\n", 10_001)[:10_000])
    try:
        rows = _parse(path, head, delimiter, names, skip=1)
    except InputError:
        return True
    seen = [set(rows.column(place).to_pylist()) for place in range(min(2, rows.num_columns))]
    return not any(field in column for field in first[:2] for column in seen)


def _parse(path: Path, content: bytes, delimiter: str, names: list[str], *, skip: int) -> pa.Table:
    """Every column as text; a row that does not fit is named by its line."""
    try:
        return pyarrow.csv.read_csv(
            pa.BufferReader(content),
            read_options=pyarrow.csv.ReadOptions(
                column_names=names,
                skip_rows_after_names=skip,
                block_size=min(max(len(content), 1), 2**26),
                use_threads=False,  # its threads may outlive the interpreter, and abort the process at its end
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
            convert_options=pyarrow.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False
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
    return f"{path}: not readable as a table ({_first_line(error)})."


# ----------------------------------------------------------------------------------------------------------------- ids


def _column(path: Path, table: pa.Table, given: str | None, default: int) -> int:
    """The place of a column that is given by name or by number from 1."""
    if given is None:
        return default
    if given in table.column_names:
        place: int = table.column_names.index(given)
        return place
    if given.isdecimal() and 1 <= int(given) <= table.num_columns:
        return int(given) - 1
    raise InputError(f"{path}: there is no column {given!r}; its columns are {_names(table)}.")


def _names(table: pa.Table) -> str:
    return ", ".join(table.column_names)


def _ids_of(path: Path, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """A column of ids, as text or whole numbers; an id that is missing is named by its row."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = pc.utf8_trim_whitespace(column)
        missing = pc.or_kleene(pc.is_null(column), pc.equal(column, ""))
    elif pa.types.is_integer(column.type):
        missing = pc.is_null(column)
    else:
        raise InputError(f"{path}: the column {name!r} holds {column.type}, but ids are text or whole numbers.")
    row = _first_true(missing)
    if row is not None:
        raise InputError(f"{path}: row {row + 1} has no id in the column {name!r}; every link needs two ends.")
    return column


def _number(source: pa.ChunkedArray, target: pa.ChunkedArray) -> tuple[AnyArray, AnyArray]:
    """Links as pairs of node indices, and the ids of the nodes: numbers in order, text as it first appears."""
    ends = [_as_numbers(source), _as_numbers(target)]
    if any(end is None for end in ends):
        text = pa.concat_arrays([chunk for end in (source, target) for chunk in end.cast(pa.large_string()).chunks])
        encoded = text.dictionary_encode()
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        ids = np.array(encoded.dictionary.to_pylist(), dtype=object)
        ids = ids.astype(str) if all("\0" not in name for name in ids) else ids
    else:
        numbers = np.concatenate([end for end in ends if end is not None])
        ids, codes = np.unique(numbers, return_inverse=True)
    half = len(codes) // 2
    return np.stack([codes[:half], codes[half:]], axis=1), ids


def _as_numbers(column: pa.ChunkedArray) -> AnyArray | None:
    """Ids as whole numbers, if all of them are and fit into 64 bits."""
    if not pa.types.is_integer(column.type):
        if not pc.all(pc.match_substring_regex(column, WHOLE_NUMBER)).as_py():
            return None
        try:
            column = column.cast(pa.int64())
        except pa.ArrowException:
            return None  # too large for a number, and just as good as text
    numbers: AnyArray = column.to_numpy().astype(np.int64)
    return numbers


def _first_true(mask: pa.ChunkedArray) -> int | None:
    if not pc.any(mask).as_py():
        return None
    place: int = pc.index(mask, pa.scalar(True)).as_py()
    return place


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
