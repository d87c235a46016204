"""GML, GEXF and Pajek files as tables of links and nodes, read by NetworkX where that is installed.

What NetworkX makes of a file is taken apart into the same two tables that GraphML gives, so that weights, labels and
node attributes are asked for in the same way. Attributes that are no text, number or truth value are left out.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from vgae.errors import InputError
from vgae.io.formats import GEXF, GML, PAJEK
from vgae.io.graphml import ENDS, ID, Document
from vgae.io.source import Origin, SourceTable
from vgae.io.unpack import first_line, unpacked
from vgae.words import shown

NAMES = {GML: "GML", GEXF: "GEXF", **dict.fromkeys(PAJEK, "Pajek")}
DOCTYPE = b"<!DOCTYPE"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
VERTICES = re.compile(r"(?im)^\s*\*vertices\s+([0-9]{1,9})\s*$")
SECTIONS = re.compile(r"(?im)^\s*\*(edges|edgeslist|arcs|arcslist|matrix)\b")
UNREADABLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    StopIteration,
    SyntaxError,  # of XML too
    TypeError,
    ValueError,
)


def read_document(path: Path, kind: str) -> Document:
    """The nodes, links and attributes in a file of one of these kinds."""
    name = NAMES[kind]
    networkx = _networkx(path, name)
    content = unpacked(path)
    if not content.strip():
        raise InputError(f"{path}: the file is empty.")
    if content.startswith(UTF_16):
        raise InputError(f"{path}: this is UTF-16; save the file as UTF-8.")
    readers: dict[str, Callable[[Any, Path, bytes], Any]] = {GML: _gml, GEXF: _gexf, **dict.fromkeys(PAJEK, _pajek)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graph = readers[kind](networkx, path, content)
            links, nodes = list(graph.edges(data=True)), list(graph.nodes(data=True))
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{path}: the graph in it is too large for the memory that is free.") from None
    except (networkx.NetworkXException, *UNREADABLE) as error:
        raise InputError(f"{path}: not a readable {name} file ({first_line(error)}).") from None
    if not links:
        raise InputError(f"{path}: there are no links in it.")
    ends = {ENDS[place]: [str(link[place]) for link in links] for place in (0, 1)}
    return Document(
        bool(graph.is_directed()),
        _table(path, "link", ends, [link[2] for link in links]),
        _table(path, "node", {ID: [str(node) for node, _ in nodes]}, [values for _, values in nodes]),
    )


def _networkx(path: Path, name: str) -> Any:
    try:
        return import_module("networkx")
    except ImportError:
        raise InputError(
            f"{path}: {name} files are read with NetworkX; install it with pip install 'vgae[networkx]'."
        ) from None


def _gml(networkx: Any, path: Path, content: bytes) -> Any:
    """Nodes are their labels, or, where two have the same, their numbers."""
    text = _text(path, content)
    if not re.search(r"(?m)^\s*graph\b", text):
        raise InputError(f"{path}: not a GML file; there is no graph in it.")
    try:
        return networkx.parse_gml(text)
    except networkx.NetworkXError as error:
        if "label" not in str(error):
            raise
        return networkx.parse_gml(text, label="id")


def _gexf(networkx: Any, path: Path, content: bytes) -> Any:
    if DOCTYPE in content.upper():
        raise InputError(f"{path}: it declares a document type, which is not read; remove it.")
    return networkx.read_gexf(io.BytesIO(content))


def _pajek(networkx: Any, path: Path, content: bytes) -> Any:
    text = _text(path, content)
    declared = VERTICES.findall(text)
    if len(declared) != 1:
        raise InputError(
            f"{path}: not a Pajek file of one network; it should have one line *Vertices and their number."
        )
    if int(declared[0]) > len(content):
        raise InputError(f"{path}: it says that it has {int(declared[0]):,} vertices, for which it is too short.")
    sections = {section.lower() for section in SECTIONS.findall(text)}
    if len(sections) > 1 or sections & {"edgeslist", "arcslist"}:
        raise InputError(
            f"{path}: it has *{' and *'.join(sorted(sections))}; only one of *edges, *arcs, *matrix is read."
        )
    graph = networkx.parse_pajek(text.splitlines())
    if graph.number_of_nodes() != int(declared[0]):
        raise InputError(
            f"{path}: it says that it has {int(declared[0]):,} vertices, but names {graph.number_of_nodes():,}; "
            "a vertex is missing, or two have the same name."
        )
    return graph


def _text(path: Path, content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}: line {line} is not UTF-8; save the file as UTF-8.") from None


def _table(path: Path, noun: str, own: dict[str, list[str]], attributes: Sequence[dict[Any, Any]]) -> SourceTable:
    """Elements of one kind as a table: their own columns, then their attributes."""
    columns: dict[str, Any] = {name: pa.array(values, pa.large_string()) for name, values in own.items()}
    names = dict.fromkeys(str(name) for values in attributes for name in values)
    for name in names:
        column = _column([values.get(name) for values in attributes])
        if column is not None:
            columns[name] = column
    origin = Origin(str(path), lines=range(1, len(attributes) + 1), noun=noun)
    try:
        return SourceTable(origin, pa.table(columns))
    except pa.ArrowException as error:
        raise InputError(f"{path}: its attributes are no table ({shown(first_line(error))}).") from None


def _column(values: Sequence[Any]) -> pa.Array | None:
    """The values of one attribute, None where there is none: of one type, text if they are of several."""
    kinds = {type(value) for value in values if value is not None}
    if not kinds <= {bool, int, float, str} or not kinds:
        return None
    if kinds == {bool}:
        return pa.array(values, pa.bool_())
    if kinds <= {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    return pa.array([None if value is None else str(value) for value in values], pa.large_string())
