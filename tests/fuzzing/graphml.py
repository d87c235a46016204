"""GraphML: a known graph as programs write it, read; then the same gone wrong."""

import gzip
import re
from random import Random
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from fuzzing.case import Case, WrongResultError, differing
from fuzzing.made import (
    MadeGraph,
    dense_features,
    links_of,
    make_columns,
    make_graph,
    require_same_values,
    require_same_weights,
    require_sound,
)
from fuzzing.mutate import mutate
from vgae.io.tables import read_any

NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")
WEIGHT = "times"
TAGS = ("node", "edge", "data", "graph", "key", "default", "hyperedge", "port", "y:Shape", "graphml")


def graphml(case: Case) -> None:
    """A graph in GraphML, in some encoding, packed or not; then gone wrong as bytes or as elements."""
    random = case.random
    made = _legal(make_graph(random))
    columns = make_columns(random, len(made.ids)) if random.random() < 0.5 else []
    text = _written(random, made, columns)
    encoding = random.choice(("utf-8", "utf-8", "utf-8", "utf-16", "iso-8859-1", "us-ascii"))
    content = f'<?xml version="1.0" encoding="{encoding}"?>\n{text}'.encode(encoding, errors="xmlcharrefreplace")
    packed = random.random() < 0.2
    path = case.write(
        "graph.graphml" + ".gz" * packed, gzip.compress(content) if packed else content, unpacked=len(content)
    )
    options: dict[str, Any] = {"weight": WEIGHT} if made.weights is not None else {}
    options |= {"node_attributes": True} if columns else {}
    loaded = case.attempt(lambda: read_any(path, **options))
    if loaded is None:
        if made.links():
            raise WrongResultError(f"a GraphML file without a fault was refused: {case.refusal}")
    else:
        graph = loaded.graph
        if links_of(graph) != made.links():
            raise differing("links", made.links(), links_of(graph))
        if {str(name) for name in graph.ids_of(range(graph.num_nodes)).tolist()} != set(made.ids):
            raise WrongResultError("the nodes are not those that were written")
        if graph.directed != made.directed:
            raise WrongResultError("edgedefault was not kept")
        if made.weights is not None:
            require_same_weights(made, graph)
        if columns:
            rows = {name: [x for column in columns for x in column.features[row]] for row, name in enumerate(made.ids)}
            require_same_values("features", rows, graph, dense_features(graph))
    broken = case.write("broken.graphml", _broken(random, content))
    again = case.attempt(lambda: read_any(broken, **options))
    if again is not None:
        require_sound(again.graph)


def _legal(made: MadeGraph) -> MadeGraph:
    """The same graph with ids that XML can hold, which has no word for most control characters."""
    legal = {name: NOT_XML.sub("_", name) for name in made.ids}
    if len(set(legal.values())) < len(legal):
        legal = {name: f"n{place}" for place, name in enumerate(made.ids)}
    rows = [(legal[one], legal[two]) for one, two in made.rows]
    return MadeGraph([legal[name] for name in made.ids], rows, made.weights, made.directed)


def _written(random: Random, made: MadeGraph, columns: list[Any]) -> str:
    """The text of the file, its declaration aside."""
    parts = ['<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    for column in columns:
        kind = "string" if len(column.features[0]) > 1 or not _is_number(column.written[0]) else "double"
        kind = "boolean" if column.written[0] in ("True", "False") else kind
        parts.append(f'<key id="{column.name}" for="node" attr.name="{column.name}" attr.type="{kind}"/>')
    if made.weights is not None:
        parts.append(f'<key id="w" for="edge" attr.name="{WEIGHT}" attr.type="double"/>')
    if random.random() < 0.3:
        parts.append('<key for="node" id="d9" yfiles.type="nodegraphics"/><!-- drawn -->')
    parts.append(f'<graph id="G" edgedefault="{"directed" if made.directed else "undirected"}">')
    for row, name in enumerate(made.ids):
        data = "".join(f'<data key="{column.name}">{_said(column.written[row])}</data>' for column in columns)
        parts.append(f"<node id={quoteattr(name)}>{data}</node>" if data else f"<node id={quoteattr(name)}/>")
    for place, (one, two) in enumerate(made.rows):
        data = "" if made.weights is None else f'<data key="w">{made.weights[place]!r}</data>'
        parts.append(f"<edge source={quoteattr(one)} target={quoteattr(two)}>{data}</edge>")
    return random.choice(("", "\n", "\r\n  ")).join([*parts, "</graph>", "</graphml>"])


def _said(value: str) -> str:
    return escape(value.lower() if value in ("True", "False") else value)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text != "NA"


def _broken(random: Random, content: bytes) -> bytes:
    """Gone wrong as bytes, or as elements that are where they should not be."""
    if random.random() < 0.5:
        return mutate(content, random)
    places = [found.start() for found in re.finditer(b"<", content)] or [0]
    for _ in range(random.choice((1, 1, 2, 5))):
        place, tag = random.choice(places), random.choice(TAGS)
        extra = random.choice(
            (
                f"<{tag}>",
                f"</{tag}>",
                f"<{tag}/>",
                f'<{tag} id="x" source="x" target="y" key="f0" edgedefault="directed" for="all" directed="true"/>',
                f"<{tag}>" * 1200,
                f'<data key="w">{"9" * random.choice((1, 400, 5000))}</data>',
                f'<data key="f0">{"x" * random.choice((1, 100_000))}</data>',
                f'<key id="f0" for="{random.choice(("node", "edge", "all", "port", ""))}" attr.name="f0" '
                f'attr.type="{random.choice(("int", "double", "boolean", "klingon", ""))}"><default>1</default></key>',
            )
        )
        content = content[:place] + extra.encode() + content[place:]
    return content
