"""Matrix Market files, read by SciPy: an adjacency matrix, or features with a row per node.

How many entries there are is said in the file before they come; SciPy would make room for them at once, so that the
claim is first held against the size of the file.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import scipy.io
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import MAX_NODES
from vgae.graph.graph import Graph
from vgae.io.options import LinkOptions
from vgae.io.sparse import require_weight_of_matrix, sparse_if_few
from vgae.io.unpack import first_line, unpacked

MARK = b"%%MatrixMarket"
LEAST_BYTES = {"coordinate": 4, "array": 2}  # of an entry and its line end


def read_matrix_market(path: Path) -> Any:
    """The matrix in a file."""
    content = unpacked(path)
    _require_plausible(path, content)
    try:
        matrix = scipy.io.mmread(io.BytesIO(content))
        matrix = sp.csr_array(matrix) if sp.issparse(matrix) else sparse_if_few(matrix)
    except MemoryError:
        raise InputError(f"{path}: the matrix is too large for the memory that is free.") from None
    except (ArithmeticError, LookupError, OSError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a readable Matrix Market file ({first_line(error)}).") from None
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{path}: its entries should be real numbers, but are {matrix.dtype}.")
    return matrix


def read_matrix_market_graph(path: Path, options: LinkOptions) -> tuple[Graph, tuple[str, ...]]:
    """The graph whose adjacency matrix is in a file, and what was assumed."""
    matrix = sp.csr_array(read_matrix_market(path))
    try:
        weighted = require_weight_of_matrix(options.weight)
        graph = Graph.from_scipy(matrix, weighted=weighted, directed=options.directed)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return graph, ("nodes are the rows of the matrix, numbered from 0",)


def _require_plausible(path: Path, content: bytes) -> None:
    """A header of Matrix Market, and no more entries than the file has room for."""
    first, _, rest = content.partition(b"\n")
    words = first.split()
    if not first.startswith(MARK) or len(words) != 5:
        raise InputError(f"{path}: not a Matrix Market file; its first line should begin with {MARK.decode()}.")
    kind = words[2].decode("ascii", "replace").lower()
    lines = (line for line in io.BytesIO(rest) if line.strip() and not line.startswith(b"%"))
    sizes = next(lines, b"").split()
    wanted = {"coordinate": 3, "array": 2}.get(kind, 0)
    if len(sizes) != wanted or not all(size.isdigit() and len(size) < 19 for size in sizes):
        raise InputError(f"{path}: not a Matrix Market file; the line of its sizes is missing or odd.")
    numbers = [int(size) for size in sizes]
    if max(numbers[:2]) > MAX_NODES:
        raise InputError(
            f"{path}: a matrix of {numbers[0]:,}×{numbers[1]:,} is larger than the {MAX_NODES:,} supported."
        )
    entries = numbers[2] if kind == "coordinate" else numbers[0] * (numbers[1] - 1) // 2  # of half a matrix at least
    if entries * LEAST_BYTES[kind] > len(rest) + LEAST_BYTES[kind]:
        raise InputError(
            f"{path}: it says that it holds {entries:,} entries, for which it is too short; it is cut off."
        )
