"""GraphML as tables: one of links, one of nodes, each row with its line.

The file is parsed as a stream. A document type is refused, and with it every entity that the file would define itself.
Values are checked against the type that their key declares; ids are understood as in tables. Not read: more than one
graph, graphs within nodes, hyperedges, and files in which only some of the links are directed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from xml.parsers import expat

import numpy as np
import pyarrow as pa

from vgae.errors import InputError
from vgae.io.source import Origin, SourceTable
from vgae.io.unpack import unpacked
from vgae.memory import bytes_free
from vgae.words import shown

SUFFIX = ".graphml"
ID, ENDS = "@id", ("@source", "@target")  # no attribute is likely to be called so
ARROW = {"boolean": pa.bool_(), "string": pa.large_string()}
NUMBERS = ("int", "long", "float", "double")
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
ENCODINGS = re.compile(r"(?i)utf-?8|utf-?16(-?[lb]e)?|(us-)?ascii|iso-8859-[0-9]+|latin-?[0-9]+|(windows-|cp)125[0-9]")
CHUNK = 2**20
MAX_TOKEN = 2**24  # bytes of a tag with its attributes
MAX_DEPTH = 1000  # of elements in elements
MAX_DIGITS = 1000


@dataclass(frozen=True)
class Document:
    """What a GraphML file holds; the tables have the columns of `ENDS`, or `ID`, and then the attributes."""

    directed: bool
    links: SourceTable
    nodes: SourceTable


def read_graphml(path: Path) -> Document:
    """The nodes, links and attributes in a GraphML file."""
    content = unpacked(path)
    if not content.strip():
        raise InputError(f"{path}: the file is empty.")
    reader = _Reader(path)
    try:
        reader.read(content)
        return reader.document()
    except InputError:
        raise
    except expat.ExpatError as error:
        raise InputError(f"{path}: line {error.lineno} is not well-formed XML ({error}).") from None
    except MemoryError:
        raise InputError(_too_large(path)) from None
    except (LookupError, ValueError) as error:  # of an encoding that expat asks Python for
        raise InputError(f"{path}: not readable as XML ({error}); save it as UTF-8.") from None


def _too_large(path: Path) -> str:
    return f"{path}: the graph in it is too large for the memory that is free; leave out nodes, links or attributes."


@dataclass(frozen=True)
class _Key:
    name: str
    kind: str | None  # None: declared by another program for itself
    default: Any = None


@dataclass
class _Values:
    """What the elements of one kind say under one key: the rows that say something, in their order, and what."""

    rows: list[int] = field(default_factory=list)
    said: list[Any] = field(default_factory=list)


@dataclass
class _Rows:
    """The elements of one kind: their lines, their own columns, and their attributes by key."""

    names: tuple[str, ...]
    lines: list[int] = field(default_factory=list)
    own: list[tuple[str, ...]] = field(default_factory=list)
    keys: dict[str, _Key] = field(default_factory=dict)
    values: dict[str, _Values] = field(default_factory=dict)


class _Reader:
    """Handlers of the stream; what they gather becomes a `Document`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.XmlDeclHandler = self.declaration
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.rows = {"node": _Rows((ID,)), "edge": _Rows(ENDS)}
        self.directed: bool | None = None  # of the graph; none yet
        self.ways: set[bool] = set()  # of its links
        self.stack: list[str] = []
        self.declared: tuple[tuple[str, ...], str, _Key] | None = None  # the key whose element is open
        self.key: _Key | None = None  # of the value that is open, if that is to be read
        self.opened = _Values()  # where it will be put
        self.text: list[str] | None = None  # its text so far; None outside of values
        self.inside = 0  # how deep in elements of its own

    def read(self, content: bytes) -> None:
        """Parse piece by piece, as long as there is memory for what is gathered and for the tables to come."""
        for place in range(0, len(content), CHUNK):
            piece = content[place : place + CHUNK]
            self.parser.Parse(piece, False)
            seen = place + len(piece)
            if seen - self.parser.CurrentByteIndex > MAX_TOKEN:  # what expat takes for it grows with the square
                raise self.refuse(f"has a tag or comment that is longer than {MAX_TOKEN // 2**20} MiB")
            if bytes_free() < 2 * seen:
                raise MemoryError
        self.parser.Parse(b"", True)

    def refuse(self, what: str, line: int | None = None) -> InputError:
        return InputError(f"{self.path}: line {line or self.parser.CurrentLineNumber} {what}.")

    def declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and not ENCODINGS.fullmatch(encoding):
            raise self.refuse(f"declares the encoding {shown(encoding)}, which is not read; save the file as UTF-8")

    def doctype(self, *_: Any) -> None:
        raise self.refuse("declares a document type, which is not read; remove it")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(":")[2]
        if len(self.stack) + self.inside >= MAX_DEPTH:
            raise self.refuse(f"is nested more than {MAX_DEPTH:,} levels deep; this is not a GraphML file")
        if self.text is not None:
            self.inside += 1
            if self.key is not None:
                raise self.refuse(
                    f"has <{shown(name)[1:-1]}> within the value of {shown(self.key.name)}, which is text"
                )
            return
        if not self.stack and name != "graphml":
            raise self.refuse(f"starts with <{shown(name)[1:-1]}>, not <graphml>; this is not a GraphML file")
        if name == "hyperedge":
            raise self.refuse("has a hyperedge; only links between two nodes are read")
        self.stack.append(name)
        if name == "graph":
            self.start_graph(attributes)
        elif name in self.rows:
            self.start_row(name, attributes)
        elif name == "key":
            self.start_key(attributes)
        elif name == "data":
            self.start_data(attributes)
        elif name == "default":
            self.start_default()

    def end(self, _tag: str) -> None:
        if self.inside:
            self.inside -= 1
            return
        name = self.stack.pop()
        if name == "key":
            self.declared = None
        elif self.text is not None:
            said, key, self.text, self.key = "".join(self.text).strip(), self.key, None, None
            if key is not None and name == "data":
                self.opened.said.append(self.value_of(key, said))
            elif key is not None and self.declared is not None:
                kinds, given, _ = self.declared
                self.declare(kinds, given, replace(key, default=self.value_of(key, said)))

    def characters(self, text: str) -> None:
        if self.key is not None and self.text is not None:
            self.text.append(text)

    def start_graph(self, attributes: dict[str, str]) -> None:
        if self.directed is not None:
            inside = "a graph within a graph" if "graph" in self.stack[:-1] else "a second graph"
            raise self.refuse(f"has {inside}, but only one is read; keep one")
        self.directed = self.is_directed(self.needed(attributes, "edgedefault", "graph"), "edgedefault")

    def start_row(self, name: str, attributes: dict[str, str]) -> None:
        if self.stack[-2:-1] != ["graph"]:
            raise self.refuse(f"has a <{name}> that is not directly in a <graph>")
        rows = self.rows[name]
        rows.own.append(tuple(self.needed(attributes, column.removeprefix("@"), name) for column in rows.names))
        rows.lines.append(self.parser.CurrentLineNumber)
        if name == "edge":
            way = attributes.get("directed")
            self.ways.add(bool(self.directed) if way is None else self.is_directed(way, "directed"))
            if len(self.ways) > 1:
                raise self.refuse("has a link that is directed where others are not, or the other way round")

    def start_key(self, attributes: dict[str, str]) -> None:
        given = self.needed(attributes, "id", "key")
        what = attributes.get("for", "all")
        kinds = tuple(self.rows) if what == "all" else tuple(kind for kind in self.rows if kind == what)
        kind = attributes.get("attr.type", "string" if "attr.name" in attributes else None)
        if kind not in (*ARROW, *NUMBERS, None):
            raise self.refuse(f"declares a key of the type {shown(kind)}; use {', '.join((*ARROW, *NUMBERS))}")
        if any(given in self.rows[element].keys for element in kinds):
            raise self.refuse(f"declares the key {shown(given)} a second time")
        self.declared = (kinds, given, _Key(attributes.get("attr.name", given), kind))
        self.declare(*self.declared)

    def declare(self, kinds: tuple[str, ...], given: str, key: _Key) -> None:
        for element in kinds:
            self.rows[element].keys[given] = key
            self.rows[element].values[given] = _Values()

    def start_data(self, attributes: dict[str, str]) -> None:
        """The value of a node or link; what is said about anything else is ignored."""
        self.text = []
        rows = self.rows.get(self.stack[-2])
        if rows is None:
            return
        given = self.needed(attributes, "key", "data")
        if given not in rows.keys:
            raise self.refuse(f"has a value for the key {shown(given)}, which is not declared for a {self.stack[-2]}")
        if rows.keys[given].kind is None:
            return
        self.key, self.opened = rows.keys[given], rows.values[given]
        row = len(rows.own) - 1
        if self.opened.rows[-1:] == [row]:
            raise self.refuse(f"has a second value for {shown(self.key.name)} of the same {self.stack[-2]}")
        self.opened.rows.append(row)

    def start_default(self) -> None:
        self.text = []
        if self.declared is not None and self.declared[2].kind is not None and self.stack[-2] == "key":
            self.key = self.declared[2]

    def value_of(self, key: _Key, said: str) -> Any:
        """A value as its key declares it; nothing said is nothing."""
        if key.kind == "string":
            return said
        if not said:
            return None
        try:
            if len(said) > MAX_DIGITS or "_" in said:  # Python would read the latter as a number
                raise ValueError
            return BOOLEANS[said.lower()] if key.kind == "boolean" else float(said)
        except (KeyError, ValueError):
            raise self.refuse(f"has {shown(said)} for {shown(key.name)}, which is declared as {key.kind}") from None

    def needed(self, attributes: dict[str, str], name: str, element: str) -> str:
        if name not in attributes:
            raise self.refuse(f"has a <{element}> without {name}")
        return attributes[name]

    def is_directed(self, way: str, name: str) -> bool:
        known = {"directed": True, "true": True, "undirected": False, "false": False}
        if way not in known:
            raise self.refuse(f"has {name}={shown(way)}, which is neither directed nor undirected")
        return known[way]

    def document(self) -> Document:
        if self.directed is None:
            raise InputError(f"{self.path}: there is no <graph> in it.")
        declared = {own[0] for own in self.rows["node"].own}
        for own, line in zip(self.rows["edge"].own, self.rows["edge"].lines, strict=True):
            if not declared.issuperset(own):
                stranger = next(end for end in own if end not in declared)
                raise self.refuse(f"names the node {shown(stranger)}, which is not declared", line)
        if not self.rows["edge"].own:
            raise InputError(f"{self.path}: there are no links in it.")
        return Document(self.ways == {True}, self.table("edge"), self.table("node"))

    def table(self, element: str) -> SourceTable:
        """The elements of one kind as a table."""
        rows = self.rows[element]
        typed = {given: key for given, key in rows.keys.items() if key.kind is not None}
        taken = sum(8 + len(key.default) if key.kind == "string" and key.default else 8 for key in typed.values())
        if (
            taken * len(rows.own) > bytes_free() / 4
        ):  # every element has a place under every key, whoever says something
            raise MemoryError
        columns = {
            name: pa.array([own[place] for own in rows.own], pa.large_string()) for place, name in enumerate(rows.names)
        }
        for given, key in typed.items():
            if key.name in columns:
                raise InputError(
                    f"{self.path}: there are two keys for {shown(key.name)} of a {element}; rename one of them."
                )
            columns[key.name] = _column(key, rows.values[given], len(rows.own))
        return SourceTable(Origin(str(self.path), lines=rows.lines), pa.table(columns))


def _column(key: _Key, values: _Values, num_rows: int) -> pa.Array:
    """A value for each row: what it says, or the key's default, or nothing."""
    said = pa.array([*values.said, key.default], ARROW.get(str(key.kind), pa.float64()))
    places = np.full(num_rows, len(values.said))
    places[values.rows] = np.arange(len(values.said))
    return said.take(pa.array(places))
