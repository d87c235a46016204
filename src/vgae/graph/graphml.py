"""GraphML as tables: one of links, one of nodes, each row with its line.

The file is parsed as a stream. A document type is refused, and with it every entity that the file would define itself.
Values are checked against the type that their key declares; ids are understood as in tables. Not read: more than one
graph, graphs within nodes, hyperedges, and files in which only some of the links are directed.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.parsers import expat

import pyarrow as pa

from vgae.errors import InputError
from vgae.graph.columns import Origin
from vgae.graph.unpack import unpacked

SUFFIX = ".graphml"
ID, ENDS = "@id", ("@source", "@target")  # no attribute is likely to be called so
ARROW = {"boolean": pa.bool_(), "string": pa.large_string()}
NUMBERS = ("int", "long", "float", "double")
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
CHUNK = 2**20


@dataclass(frozen=True)
class Document:
    """What a GraphML file holds; the tables have the columns of `ENDS`, or `ID`, and then the attributes."""

    directed: bool
    links: pa.Table
    nodes: pa.Table
    origin_of_links: Origin
    origin_of_nodes: Origin


def read_graphml(path: Path) -> Document:
    """The nodes, links and attributes in a GraphML file."""
    content = unpacked(path)
    if not content.strip():
        raise InputError(f"{path}: the file is empty.")
    reader = _Reader(path)
    stream = io.BytesIO(content)
    try:
        while chunk := stream.read(CHUNK):
            reader.parser.Parse(chunk, False)
        reader.parser.Parse(b"", True)
    except expat.ExpatError as error:
        raise InputError(f"{path}: line {error.lineno} is not well-formed XML ({error}).") from None
    return reader.document()


@dataclass
class _Rows:
    """The elements of one kind: their lines, their own columns, and their attributes by key."""

    names: tuple[str, ...]
    lines: list[int] = field(default_factory=list)
    own: list[tuple[str, ...]] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class _Key:
    name: str
    kind: str | None
    default: str | None = None


class _Reader:
    """Handlers of the stream; what they gather becomes a `Document`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.CharacterDataHandler = self.characters
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.rows = {"node": _Rows((ID,)), "edge": _Rows(ENDS)}
        self.keys: dict[str, dict[str, _Key]] = {"node": {}, "edge": {}}
        self.stack: list[str] = []
        self.directed: bool | None = None
        self.ways: set[bool] = set()
        self.key: tuple[tuple[str, ...], str, str, str | None] | None = None  # what it is for, id, name, kind
        self.data: str | None = None  # the key of the value that is being read
        self.said = ""

    def refuse(self, what: str, line: int | None = None) -> InputError:
        return InputError(f"{self.path}: line {line or self.parser.CurrentLineNumber} {what}.")

    def doctype(self, *_: Any) -> None:
        raise self.refuse("declares a document type, which is not read; remove it")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition(" ")[2]
        if not self.stack and name != "graphml":
            raise self.refuse(f"starts with <{name}>, not <graphml>; this is not a GraphML file")
        if name == "hyperedge":
            raise self.refuse("has a hyperedge; only links between two nodes are read")
        self.stack.append(name)
        if name == "graph":
            self.start_graph(attributes)
        elif name in self.rows:
            self.start_row(name, attributes)
        elif name == "key":
            self.start_key(attributes)
        elif name == "data" and self.stack[-2:-1] in (["node"], ["edge"]):
            self.data, self.said = self.needed(attributes, "key", "data"), ""
        elif name == "default":
            self.said = ""

    def end(self, tag: str) -> None:
        name = tag.rpartition(" ")[2]
        self.stack.pop()
        if name == "key":
            self.key = None
        elif name == "default" and self.key is not None:
            self.declare(*self.key, self.said.strip())
        elif name == "data" and self.data is not None:
            self.add_value(self.stack[-1], self.data)
            self.data = None

    def characters(self, text: str) -> None:
        if self.stack[-1] in ("data", "default"):
            self.said += text

    def start_graph(self, attributes: dict[str, str]) -> None:
        if self.directed is not None:
            inside = "a graph within a graph" if "graph" in self.stack[:-1] else "a second graph"
            raise self.refuse(f"has {inside}, and one is read; keep one")
        self.directed = self.is_directed(self.needed(attributes, "edgedefault", "graph"), "edgedefault")

    def start_row(self, name: str, attributes: dict[str, str]) -> None:
        rows = self.rows[name]
        rows.own.append(tuple(self.needed(attributes, column.removeprefix("@"), name) for column in rows.names))
        rows.lines.append(self.parser.CurrentLineNumber)
        rows.values.append({})
        if name == "edge":
            way = attributes.get("directed")
            self.ways.add(bool(self.directed) if way is None else self.is_directed(way, "directed"))
            if len(self.ways) > 1:
                raise self.refuse("has a link that is directed where others are not, or the other way round")

    def start_key(self, attributes: dict[str, str]) -> None:
        given = self.needed(attributes, "id", "key")
        what = attributes.get("for", "all")
        kinds = ("node", "edge") if what == "all" else (what,)
        kind = attributes.get("attr.type", "string" if "attr.name" in attributes else None)
        if kind not in (*ARROW, *NUMBERS, None):
            raise self.refuse(f"declares a key of the type {kind!r}; use {', '.join((*ARROW, *NUMBERS))}")
        self.key = (tuple(kind for kind in kinds if kind in self.keys), given, attributes.get("attr.name", given), kind)
        self.declare(*self.key, None)

    def declare(self, kinds: tuple[str, ...], given: str, name: str, kind: str | None, default: str | None) -> None:
        for element in kinds:
            self.keys[element][given] = _Key(name, kind, default)

    def add_value(self, element: str, given: str) -> None:
        key = self.keys[element].get(given)
        if key is None:
            raise self.refuse(f"has a value for the key {given!r}, which is not declared for a {element}")
        self.rows[element].values[-1][given] = self.value_of(key, self.said.strip())

    def value_of(self, key: _Key, said: str) -> Any:
        """A value as its key declares it; nothing said is nothing, and a key that declares nothing is for others."""
        if key.kind == "string":
            return said
        if not said or key.kind is None:
            return None
        try:
            return BOOLEANS[said.lower()] if key.kind == "boolean" else float(said)
        except (KeyError, ValueError):
            raise self.refuse(f"has {said!r} for {key.name!r}, which is declared as {key.kind}") from None

    def needed(self, attributes: dict[str, str], name: str, element: str) -> str:
        if name not in attributes:
            raise self.refuse(f"has a <{element}> without {name}")
        return attributes[name]

    def is_directed(self, way: str, name: str) -> bool:
        known = {"directed": True, "true": True, "undirected": False, "false": False}
        if way not in known:
            raise self.refuse(f"has {name}={way!r}, which is neither directed nor undirected")
        return known[way]

    def document(self) -> Document:
        if self.directed is None:
            raise InputError(f"{self.path}: there is no <graph> in it.")
        declared = {own[0] for own in self.rows["node"].own}
        for own, line in zip(self.rows["edge"].own, self.rows["edge"].lines, strict=True):
            if not declared.issuperset(own):
                stranger = next(end for end in own if end not in declared)
                raise self.refuse(f"names the node {stranger!r}, which is not declared", line)
        if not self.rows["edge"].own:
            raise InputError(f"{self.path}: there are no links in it.")
        directed = self.ways == {True}
        links, nodes = (self.table(element) for element in ("edge", "node"))
        origins = (Origin(str(self.path), lines=self.rows[element].lines) for element in ("edge", "node"))
        return Document(directed, links, nodes, *origins)

    def table(self, element: str) -> pa.Table:
        """The elements of one kind as a table."""
        rows = self.rows[element]
        columns = {name: pa.array([own[place] for own in rows.own]) for place, name in enumerate(rows.names)}
        for given, key in self.keys[element].items():
            if key.kind is None:
                continue
            if key.name in columns:
                raise InputError(
                    f"{self.path}: there are two keys for {key.name!r} of a {element}; rename one of them."
                )
            default = None if key.default is None else self.value_of(key, key.default)
            values = [value.get(given, default) for value in rows.values]
            columns[key.name] = pa.array(values, ARROW.get(key.kind, pa.float64()))
        return pa.table(columns)
