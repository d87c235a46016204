"""Matrix Market files: an adjacency matrix, or features with a row per node.

    %%MatrixMarket matrix coordinate|array real|integer|pattern general|symmetric|skew-symmetric
    % comments
    rows columns [entries]      then, each in a line: row, column and value from 1, or, of an array, values by column

Half of a symmetric matrix is in the file, its lower triangle. SciPy's own reader ends the process on some damaged
files, so that the lines are parsed here, as a table is.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import MAX_NODES
from vgae.graph.graph import Graph
from vgae.io.options import LinkOptions
from vgae.io.rows import MOST_BLOCK_BYTES, collapsed
from vgae.io.sparse import require_weight_of_matrix, sparse_if_few
from vgae.io.unpack import enough_memory, first_line, unpacked
from vgae.words import count, shown

MARK = b"%%MatrixMarket"
LAYOUTS = {"coordinate": 3, "array": 2}  # and the numbers in the line of their sizes
FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = {"general": 0, "symmetric": 1, "skew-symmetric": -1}  # what an entry is times its mirror image
LEAST_BYTES = {"coordinate": 4, "array": 2}  # of an entry and its line end


@dataclass(frozen=True)
class _Header:
    layout: str
    field: str
    symmetry: int
    shape: tuple[int, int]
    entries: int
    start: int  # where the entries begin


def read_matrix_market(path: Path) -> Any:
    """The matrix in a file."""
    content = unpacked(path).replace(b"\r\n", b"\n")
    header = _header(path, content)
    with enough_memory(path):
        read = _coordinates if header.layout == "coordinate" else _array
        return read(path, content[header.start :], header)


def read_matrix_market_graph(path: Path, options: LinkOptions) -> tuple[Graph, tuple[str, ...]]:
    """The graph whose adjacency matrix is in a file, and what was assumed."""
    matrix = sp.csr_array(read_matrix_market(path))
    try:
        weighted = require_weight_of_matrix(options.weight)
        graph = Graph.from_scipy(matrix, weighted=weighted, directed=options.directed)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return graph, ("nodes are the rows of the matrix, numbered from 0",)


def _header(path: Path, content: bytes) -> _Header:
    """The first line and that of the sizes, which must not promise more than the file has room for."""
    end = content.find(b"\n") + 1 or len(content)
    words = content[:end].decode("ascii", "replace").lower().split()
    if len(words) != 5 or words[0].encode() != MARK.lower() or words[1] != "matrix":
        raise InputError(f"{path}: not a Matrix Market file; its first line should begin with {MARK.decode()} matrix.")
    for word, known in zip(words[2:], (LAYOUTS, FIELDS, SYMMETRIES), strict=True):
        if word not in known:
            raise InputError(f"{path}: matrices that are {shown(word)} are not read; use {', '.join(known)}.")
    layout, field, symmetry = words[2:]
    line = b""
    while end < len(content) and (not line.strip() or line.startswith(b"%")):
        start, end = end, content.find(b"\n", end) + 1 or len(content)
        line = content[start:end]
    sizes = line.split()
    if len(sizes) != LAYOUTS[layout] or not all(size.isdigit() and len(size) < 19 for size in sizes):
        raise InputError(f"{path}: not a Matrix Market file; the line of its sizes is missing or odd.")
    numbers = [int(size) for size in sizes]
    if max(numbers[:2]) > MAX_NODES:
        raise InputError(
            f"{path}: a matrix of {numbers[0]:,}×{numbers[1]:,} is larger than the {MAX_NODES:,} supported."
        )
    if SYMMETRIES[symmetry] and numbers[0] != numbers[1]:
        raise InputError(f"{path}: a matrix of {numbers[0]:,}×{numbers[1]:,} cannot be {symmetry}.")
    entries = numbers[2] if layout == "coordinate" else _num_values(numbers[0], numbers[1], SYMMETRIES[symmetry])
    if entries * LEAST_BYTES[layout] > len(content) - end + LEAST_BYTES[layout]:
        told = count(entries, "entry", "entries")
        raise InputError(f"{path}: it says that it holds {told}, for which it is too short.")
    return _Header(layout, field, SYMMETRIES[symmetry], (numbers[0], numbers[1]), entries, end)


def _num_values(num_rows: int, num_columns: int, symmetry: int) -> int:
    """How many values of an array are in the file."""
    return num_rows * num_columns if not symmetry else num_rows * (num_rows + symmetry) // 2


def _coordinates(path: Path, content: bytes, header: _Header) -> Any:
    kinds = {"row": pa.int64(), "column": pa.int64()}
    if header.field != "pattern":
        kinds["value"] = pa.float64()
    columns = _columns(path, content, header, kinds)
    places = [columns[name] - 1 for name in ("row", "column")]
    for name, found, extent in zip(("row", "column"), places, header.shape, strict=True):
        outside = (found < 0) | (found >= extent)
        if outside.any():
            entry = int(outside.argmax())
            raise InputError(f"{path}: entry {entry + 1} is in {name} {found[entry] + 1} of {extent}.")
    values = columns.get("value", np.ones(header.entries))
    if header.symmetry:
        mirrored = places[0] != places[1]
        places = [np.concatenate([one, other[mirrored]]) for one, other in (places, places[::-1])]
        values = np.concatenate([values, header.symmetry * values[mirrored]])
    return sp.coo_array((values, tuple(places)), shape=header.shape).tocsr()


def _array(path: Path, content: bytes, header: _Header) -> Any:
    if header.field == "pattern":
        raise InputError(f"{path}: an array cannot be a pattern.")
    values = _columns(path, content, header, {"value": pa.float64()})["value"]
    if not header.symmetry:
        return sparse_if_few(values.reshape(header.shape[::-1]).T)
    half = np.zeros(header.shape)
    column, row = np.triu_indices(header.shape[0], 0 if header.symmetry > 0 else 1)  # the lower triangle by column
    half[row, column] = values
    return sparse_if_few(half + header.symmetry * np.tril(half, -1).T)


def _columns(path: Path, content: bytes, header: _Header, kinds: dict[str, pa.DataType]) -> dict[str, Any]:
    """The numbers in the lines, as many of them as there should be."""
    told = f"it says that it holds {count(header.entries, 'entry', 'entries')}"
    if not content.strip():
        if header.entries:
            raise InputError(f"{path}: {told}, and there are none.")
        return {name: np.empty(0, kind.to_pandas_dtype()) for name, kind in kinds.items()}
    body = collapsed(content)
    try:
        table = pyarrow.csv.read_csv(
            pa.BufferReader(body),
            read_options=pyarrow.csv.ReadOptions(
                column_names=list(kinds), block_size=min(MOST_BLOCK_BYTES, max(len(body), 1)), use_threads=False
            ),
            parse_options=pyarrow.csv.ParseOptions(delimiter=" ", quote_char=False),
            convert_options=pyarrow.csv.ConvertOptions(column_types=kinds, null_values=[], strings_can_be_null=False),
        )
    except pa.ArrowException as error:
        raise InputError(f"{path}: not a readable Matrix Market file ({first_line(error)}).") from None
    if table.num_rows != header.entries:
        raise InputError(f"{path}: {told}, but there {'is' if table.num_rows == 1 else 'are'} {table.num_rows:,}.")
    return {name: table.column(name).to_numpy() for name in kinds}
