"""Graphs from a stranger's files: tables of links, documents, matrices and arrays (`formats.py`), ids of any kind.

A row of a table is a link between two ids; another file may tell of the nodes (`nodes.py`, `entries.py`), and another
of their labels. What the files leave open is decided by rules (`text.py`, `links.py`, `nodes.py`) and reported in
`LoadedGraph.notes`; `assemble.py` puts the graph together.

columns   the ends of a link are those asked for by name or number (from 1), else those with usual names, else the first
          two; weights are asked for
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from vgae.errors import InputError
from vgae.graph.checks import SideArray
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.io.assemble import LoadedGraph, Nodes, from_links, with_nodes
from vgae.io.bipartite import prefixes_of
from vgae.io.entries import COORDINATES
from vgae.io.features import scale_graph
from vgae.io.folder import holds_table
from vgae.io.foreign import read_document
from vgae.io.formats import ARRAYS, DOCUMENTS, GRAPHML, MATRICES, refuse_unknown_graph
from vgae.io.graphml import ENDS, ID, read_graphml
from vgae.io.graphs import read_npz_graph
from vgae.io.label_files import read_labels
from vgae.io.links import read_link_table, read_links_among
from vgae.io.matrix_market import read_matrix_market_graph
from vgae.io.nodes import read_nodes, take_nodes
from vgae.io.npz import names_in
from vgae.io.npz_layouts import is_foreign, read_foreign
from vgae.io.options import LinkOptions, NodeOptions, TimedLinkOptions, names_of, require_none_left, take
from vgae.io.plain import as_path
from vgae.io.recipe import FeatureRecipe
from vgae.io.source import Origin, table_of
from vgae.io.unpack import enough_memory, is_stream, suffix_of
from vgae.spelling import keywords_as_known

__all__ = ["LoadedGraph", "read_any", "read_frame", "read_graph", "read_links", "read_pairs"]

logger = logging.getLogger(__name__)

IN_DOCUMENTS = ("weight", "label", "node_attributes", "standardise", "impute", "recipe", "normalize", "labels")
IN_MATRICES = (
    "weight",
    "directed",
    "features",
    "labels",
    "id",
    "label",
    "standardise",
    "impute",
    "feature_format",
    "normalize",
    "recipe",
)
OF_NODE_TABLES = ("id", "label", "standardise", "impute", "feature_format", "normalize")
OF_DOCUMENT_NODES = ("label", "node_attributes", "standardise", "impute", "normalize")
KNOWN = (*names_of(TimedLinkOptions, NodeOptions), "features", "labels", "recipe")
OF_FRAMES = ("source", "target", "weight", "directed", "bipartite")


def read_graph(path: str | Path, **options: Any) -> Graph:
    """A graph from a file: a table of links, GraphML, GML, GEXF, Pajek, Matrix Market, or an npz, its own or others'.

    Options for tables are those of `read_links`: source, target, weight, directed, bipartite, delimiter, header, and
    features (a file about nodes) with id, label, standardise, impute, feature_format, normalize, and labels (another
    table). For GraphML and the like: weight, label, node_attributes, standardise, impute, normalize.

    >>> from pathlib import Path
    >>> import vgae
    >>> _ = Path("links.csv").write_text("from,to,times\\nann,bob,2\\nbob,cid,1\\n")
    >>> vgae.read_graph("links.csv", weight="times")
    Graph(3 nodes, 2 weighted edges)
    """
    if options.get("time") is not None:
        raise InputError("time: a graph knows no times; vgae.split_by_time takes them beside it.")
    loaded = read_any(path, **options)
    for line in loaded.report(str(path)):
        logger.info("%s", line)
    return loaded.graph


def read_any(path: str | Path, *, labels: str | Path | None = None, **options: Any) -> LoadedGraph:
    """The same, with what was assumed in reading and the recipe of the features."""
    path = as_path(path)
    options = keywords_as_known("read_graph", options, KNOWN)
    unknown = {name: value for name, value in options.items() if name not in KNOWN}
    require_none_left("read_graph", unknown)
    given = {name: value for name, value in options.items() if value is not None}
    of_labels = NodeOptions() if labels is None else NodeOptions(label=given.pop("label", None))
    loaded = _read(path, given)
    if labels is None:
        return loaded
    found, notes = read_labels(labels, loaded.graph, of_labels)
    graph = loaded.graph.with_parts(labels=found)
    return replace(loaded, graph=graph, label_table=str(labels), label_notes=notes)


def _read(path: Path, given: dict[str, Any]) -> LoadedGraph:
    """A graph by the kind of its file."""
    kind = suffix_of(path)
    if holds_table(path) or (kind not in (*DOCUMENTS, *MATRICES, *ARRAYS) and is_stream(path)):
        if "node_attributes" in given:
            raise InputError(f"node_attributes: this option is for GraphML; give {path} a node table (features).")
        return read_links(path, **given)
    if kind in DOCUMENTS:
        _require_known(path, given, IN_DOCUMENTS, f"a {kind.removeprefix('.')} file")
        return read_document_graph(path, **given)
    if kind in MATRICES or path.suffix in ARRAYS:
        _require_known(path, given, IN_MATRICES, "a matrix" if kind in MATRICES else "an npz file")
        return read_matrix_graph(path, **given)
    raise refuse_unknown_graph(path, kind)


def _require_known(path: Path, given: dict[str, Any], known: Sequence[str], what: str) -> None:
    other = next((name for name in given if name not in known), None)
    if other:
        raise InputError(f"{other}: this option is for tables, and {path} is {what}.")


def read_links(
    path: str | Path, *, features: str | Path | None = None, recipe: FeatureRecipe | None = None, **options: Any
) -> LoadedGraph:
    """The graph whose links are the rows of a table; the options are those of `LinkOptions` and `NodeOptions`.

    `features` is a table of nodes, whose columns, the id and the label aside, become features, or entries, or a matrix:
    the same features as in another graph, if its `recipe` is given.
    """
    path = as_path(path)
    of_links, of_nodes = take(TimedLinkOptions, options), take(NodeOptions, options, OF_NODE_TABLES)
    require_none_left("read_links", options)
    with enough_memory(path):
        table = read_link_table(path, of_links)
        if features is None:
            of_nodes.require_none(*OF_NODE_TABLES)
            return from_links(table, of_links)
        return from_links(table, of_links, _nodes_in(features, of_nodes, recipe))


def read_frame(links: Any, *, nodes: Any = None, **options: Any) -> LoadedGraph:
    """The graph whose links are the rows of a data frame; `nodes` is another one, whose rows are nodes.

    The options are those of `read_links`, those about text aside.
    """
    options = keywords_as_known("from_frame", options, (*OF_FRAMES, *OF_NODE_TABLES))
    of_links, of_nodes = take(LinkOptions, options, OF_FRAMES), take(NodeOptions, options, OF_NODE_TABLES)
    require_none_left("from_frame", options)
    table = table_of(links, Origin("links", first=0))
    if nodes is None:
        of_nodes.require_none(*OF_NODE_TABLES)
        return from_links(table, of_links)
    taken = take_nodes(table_of(nodes, Origin("nodes", first=0), least=1), of_nodes)
    return from_links(table, of_links, Nodes(taken, of_nodes))


def read_document_graph(path: str | Path, *, recipe: FeatureRecipe | None = None, **options: Any) -> LoadedGraph:
    """The graph in a GraphML, GML, GEXF or Pajek file; `weight` and `label` are attributes of edges and nodes, by name.

    With `node_attributes` the other node attributes become features, as the columns of a node table do (`standardise`,
    `impute`, `normalize`); with the `recipe` of another graph, those that they are there.
    """
    path = as_path(path)
    of_links, of_nodes = take(LinkOptions, options, ("weight",)), take(NodeOptions, options, OF_DOCUMENT_NODES)
    require_none_left("read_document_graph", options)
    node_attributes = of_nodes.node_attributes or recipe is not None
    if not node_attributes:
        of_nodes.require_none("standardise", "impute", "normalize")
    kind = suffix_of(path)
    document = read_graphml(path) if kind == GRAPHML else read_document(path, kind)
    for asked, table, what in ((of_links.weight, document.links, "edges"), (of_nodes.label, document.nodes, "nodes")):
        known = table.names[2 if what == "edges" else 1 :]
        if asked is not None and asked not in known:
            raise InputError(f"{path}: its {what} have no attribute {asked!r}; they have {', '.join(known) or 'none'}.")
    nodes = take_nodes(document.nodes, replace(of_nodes, id=ID, feature_format="table"))
    nodes = replace(nodes, id_name=None)  # nodes are in the order of their ids, as those of links are
    if not node_attributes:
        nodes = replace(nodes, columns=nodes.columns.select([]))
    of_links = replace(of_links, source=ENDS[0], target=ENDS[1], directed=document.directed)
    links = replace(document.links, data=document.links.data.select(list(of_links.columns)))
    return from_links(links, of_links, Nodes(nodes, of_nodes, recipe))


def read_matrix_graph(
    path: Path, *, features: str | Path | None = None, recipe: FeatureRecipe | None = None, **options: Any
) -> LoadedGraph:
    """The graph in a Matrix Market or npz file, whose nodes are known; `features` is a file about them."""
    of_links, of_nodes = take(LinkOptions, options, ("weight", "directed")), take(NodeOptions, options, OF_NODE_TABLES)
    require_none_left("read_matrix_graph", options)
    if features is None:
        of_nodes.require_none(*(name for name in OF_NODE_TABLES if name != "normalize"))
    with enough_memory(path):
        if suffix_of(path) in MATRICES:
            graph, notes = read_matrix_market_graph(path, of_links)
        elif is_foreign(names_in(path)):
            graph, notes = read_foreign(path, of_links)
        else:
            if of_links != LinkOptions():
                raise InputError(
                    f"weight, directed: {path} is a graph that vgae wrote, which has its own; leave them out."
                )
            graph, notes = read_npz_graph(path), ()
        if features is not None:
            if graph.features is not None:
                raise InputError(f"features: {path} has features of its own; leave {features} out.")
            return with_nodes(LoadedGraph(graph, notes), str(path), _nodes_in(features, of_nodes, recipe))
        try:
            graph, made = scale_graph(graph, of_nodes.normalize, recipe)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        return LoadedGraph(graph, (*notes, *made.notes), made.recipe)


def _nodes_in(features: str | Path, options: NodeOptions, recipe: FeatureRecipe | None) -> Nodes:
    """What a file says of nodes; where the features of another graph came entry by entry, so do these."""
    if recipe is not None and recipe.of_entries and holds_table(as_path(features, "features")):
        options = replace(options, feature_format=COORDINATES)
    return Nodes(read_nodes(as_path(features, "features"), options), options, recipe)


def read_pairs(
    path: str | Path,
    ids: Sequence[Any],
    *,
    source: str | None = None,
    target: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    sides: SideArray | None = None,
) -> Pairs:
    """The rows of a table as pairs of indices into `ids`; an id that is not there is named by its row.

    With the `sides` of a bipartite graph, ids may be without what tells the two kinds apart: 1 for user:1 in the first
    column, for item:1 in the second.
    """
    starts = None if sides is None else prefixes_of(ids, sides)
    options = LinkOptions(source=source, target=target, delimiter=delimiter, header=header)
    known = pa.array([str(name) for name in ids], pa.large_string())
    with enough_memory(path):
        return read_links_among(as_path(path), known, options, "which is not a node of this run", starts or ("", ""))[0]
