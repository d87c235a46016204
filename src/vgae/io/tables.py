"""Graphs from a stranger's tables: links in CSV, TSV, plain text, Parquet, GraphML or a data frame, ids of any kind.

A row is a link between two ids; another table may have a row for each node (`nodes.py`). What the files leave open is
decided by rules (`text.py`, `links.py`, `nodes.py`) and reported in `LoadedGraph.notes`.

columns   the ends of a link are those asked for by name or number (from 1), else those with usual names, else the first
          two; weights are asked for
nodes     all ids of the links, and those of the node table: without links they are isolated nodes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from vgae.errors import InputError
from vgae.graph.given import first_times
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs
from vgae.io.columns import BoolArray, FloatArray, as_weights, number_ids
from vgae.io.graphml import ENDS, ID, read_graphml
from vgae.io.graphml import SUFFIX as GRAPHML
from vgae.io.graphs import read_npz_graph
from vgae.io.links import Ends, ends_of, read_link_table, read_links_among
from vgae.io.nodes import NodeTable, read_nodes, rows_of_nodes, take_nodes, to_labels
from vgae.io.options import LinkOptions, NodeOptions, TimedLinkOptions, names_of, require_none_left, take
from vgae.io.plain import as_path
from vgae.io.recipe import ASK_FOR_IMPUTATION, FeatureRecipe, build_features, describe, notes_on
from vgae.io.source import SUFFIXES, Origin, SourceTable, table_of
from vgae.io.times import as_times
from vgae.io.unpack import enough_memory, is_stream, suffix_of
from vgae.words import count

IN_GRAPHML = ("weight", "label", "node_attributes", "standardise", "impute", "recipe")
OF_NODE_TABLES = ("id", "label", "standardise", "impute")
OF_GRAPHML_NODES = ("label", "node_attributes", "standardise", "impute")
KNOWN = (*names_of(TimedLinkOptions, NodeOptions), "features", "recipe")
OF_FRAMES = ("source", "target", "weight", "directed")


@dataclass(frozen=True, eq=False)
class LoadedGraph:
    """A graph out of a file, what was assumed in reading it, and what its features were made by."""

    graph: Graph
    notes: tuple[str, ...] = ()
    recipe: FeatureRecipe | None = None
    node_table: str | None = None
    node_notes: tuple[str, ...] = ()
    times: npt.NDArray[Any] | None = None  # when each edge was first seen, where that was asked for

    def report(self, name: str) -> list[str]:
        """What was assumed, a line for each table that there was something to assume about."""
        tables = ((name, self.notes), (self.node_table, self.node_notes))
        return [f"{table}: {'; '.join(notes)}" for table, notes in tables if notes]


def read_graph(path: str | Path, **options: Any) -> Graph:
    """A graph from a file: a table of links (csv, tsv, txt, parquet; also .gz, .zst), GraphML, or an npz.

    Options for tables are those of `read_links`: source, target, weight, directed, delimiter, header, and features (a
    node table) with id, label, standardise, impute. For GraphML: weight, label, node_attributes, standardise, impute.
    """
    if options.get("time") is not None:
        raise InputError("time: a graph knows no times; vgae.split_by_time takes them beside it.")
    return read_any(path, **options).graph


def read_any(path: str | Path, **options: Any) -> LoadedGraph:
    """The same, with what was assumed in reading and the recipe of the features."""
    path = as_path(path)
    unknown = {name: value for name, value in options.items() if name not in KNOWN}
    require_none_left("read_graph", unknown)
    given = {name: value for name, value in options.items() if value is not None}
    kind = suffix_of(path)
    if path.suffix == ".npz":
        given.pop("recipe", None)  # its features are features already
    if kind in SUFFIXES or (kind not in (GRAPHML, ".npz") and is_stream(path)):
        if "node_attributes" in given:
            raise InputError(f"node_attributes: this option is for GraphML; give {path} a node table (features).")
        return read_links(path, **given)
    if kind == GRAPHML:
        other = next((name for name in given if name not in IN_GRAPHML), None)
        if other:
            raise InputError(f"{other}: this option is for tables, and {path} is a GraphML file.")
        return read_graphml_graph(path, **given)
    if path.suffix == ".npz":
        if given:
            raise InputError(f"{next(iter(given))}: this option is for tables, and {path} is an npz file.")
        return LoadedGraph(read_npz_graph(path))
    raise InputError(f"{path}: not a kind of file that is known; use {', '.join((*SUFFIXES, GRAPHML, '.npz'))}.")


def read_links(
    path: str | Path, *, features: str | Path | None = None, recipe: FeatureRecipe | None = None, **options: Any
) -> LoadedGraph:
    """The graph whose links are the rows of a table; the options are those of `LinkOptions` and `NodeOptions`.

    `features` is a table of nodes, whose columns, the id and the label aside, become features: those that they are in
    another graph, if its `recipe` is given.
    """
    path = as_path(path)
    of_links, of_nodes = take(TimedLinkOptions, options), take(NodeOptions, options, OF_NODE_TABLES)
    require_none_left("read_links", options)
    with enough_memory(path):
        table = read_link_table(path, of_links)
        if features is None:
            of_nodes.require_none(*OF_NODE_TABLES)
            return _to_graph(table, of_links)
        nodes = read_nodes(as_path(features, "features"), of_nodes)
        return _to_graph(table, of_links, _Nodes(nodes, of_nodes, recipe))


def read_frame(links: Any, *, nodes: Any = None, **options: Any) -> LoadedGraph:
    """The graph whose links are the rows of a data frame; `nodes` is another one, whose rows are nodes.

    The options are those of `read_links`, those about text aside.
    """
    of_links, of_nodes = take(LinkOptions, options, OF_FRAMES), take(NodeOptions, options, OF_NODE_TABLES)
    require_none_left("from_frame", options)
    table = table_of(links, Origin("links", first=0))
    if nodes is None:
        of_nodes.require_none(*OF_NODE_TABLES)
        return _to_graph(table, of_links)
    taken = take_nodes(table_of(nodes, Origin("nodes", first=0)), of_nodes)
    return _to_graph(table, of_links, _Nodes(taken, of_nodes))


def read_graphml_graph(path: str | Path, *, recipe: FeatureRecipe | None = None, **options: Any) -> LoadedGraph:
    """The graph in a GraphML file; `weight` is an edge attribute, `label` a node attribute, by name.

    With `node_attributes` the other node attributes become features, as the columns of a node table do (`standardise`,
    `impute`); with the `recipe` of another graph, those that they are there.
    """
    path = as_path(path)
    of_links, of_nodes = take(LinkOptions, options, ("weight",)), take(NodeOptions, options, OF_GRAPHML_NODES)
    require_none_left("read_graphml_graph", options)
    node_attributes = of_nodes.node_attributes or recipe is not None
    if not node_attributes:
        of_nodes.require_none("standardise", "impute")
    document = read_graphml(path)
    for asked, table, kind in ((of_links.weight, document.links, "edges"), (of_nodes.label, document.nodes, "nodes")):
        known = table.names[2 if kind == "edges" else 1 :]
        if asked is not None and asked not in known:
            raise InputError(f"{path}: its {kind} have no attribute {asked!r}; they have {', '.join(known) or 'none'}.")
    nodes = take_nodes(document.nodes, replace(of_nodes, id=ID))
    if not node_attributes:
        nodes = replace(nodes, columns=nodes.columns.select([]))
    of_links = replace(of_links, source=ENDS[0], target=ENDS[1], directed=document.directed)
    links = replace(document.links, data=document.links.data.select(list(of_links.columns)))
    return _to_graph(links, of_links, _Nodes(nodes, of_nodes, recipe))


def read_pairs(
    path: str | Path,
    ids: Sequence[Any],
    *,
    source: str | None = None,
    target: str | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
) -> Pairs:
    """The rows of a table as pairs of indices into `ids`; an id that is not there is named by its row."""
    options = LinkOptions(source=source, target=target, delimiter=delimiter, header=header)
    known = pa.array([str(name) for name in ids], pa.large_string())
    with enough_memory(path):
        return read_links_among(as_path(path), known, options, "which is not a node of this run")[0]


# -------------------------------------------------------------------------------------------------------------- inside


@dataclass(frozen=True, eq=False)
class _Nodes:
    """A node table, and how its columns become features: by the options, or as those of another graph did."""

    table: NodeTable
    options: NodeOptions
    recipe: FeatureRecipe | None = None


def _to_graph(table: SourceTable, options: LinkOptions, nodes: _Nodes | None = None) -> LoadedGraph:
    """The graph of a table of links and perhaps one of nodes."""
    origin = table.origin
    ends = ends_of(table, options)
    weights, weight = _weights_of(table, options, ends)
    codes, ids = number_ids(ends.columns if nodes is None else (*ends.columns, nodes.table.ids))
    try:
        graph = Graph.from_edges(
            np.stack(codes[:2], axis=1), num_nodes=len(ids), weights=weights, directed=options.directed
        )
    except InputError as error:
        raise InputError(f"{origin.name}: {error}") from None
    total = None if weights is None else float(weights[codes[0] != codes[1]].sum())
    notes = (*table.notes, *ends.notes, *_notes_on_links(graph, weight, total))
    graph = graph.with_parts(node_ids=ids)
    times = _times_of(table, options, graph, np.stack(codes[:2], axis=1))
    if nodes is None:
        return LoadedGraph(graph, notes, times=times)
    linked = np.zeros(len(ids), dtype=bool)
    linked[graph.edges.ravel()] = True
    named = linked.copy()
    named[np.concatenate(codes[:2])] = True  # a node that only links to itself is named too
    rows = rows_of_nodes(codes[2], ids, named, nodes.table, origin)
    return replace(_with_nodes(LoadedGraph(graph, notes), origin, nodes, rows, linked), times=times)


def _weights_of(table: SourceTable, options: LinkOptions, ends: Ends) -> tuple[FloatArray | None, str | None]:
    """The weights of the rows, and the name of their column."""
    if options.weight is None:
        return None, None
    place = table.place_of(options.weight)
    name = table.names[place]
    if name in ends.names:
        raise InputError(f"{table.origin.name}: the weights and one end of the links are the same column, {name}.")
    return as_weights(table.origin, table.column(place), name), name


def _times_of(table: SourceTable, options: LinkOptions, graph: Graph, rows: Pairs) -> npt.NDArray[Any] | None:
    """For each edge the first time of the rows that name it, where times are asked for."""
    if not isinstance(options, TimedLinkOptions) or options.time is None:
        return None
    place = table.place_of(options.time)
    return first_times(graph, rows, as_times(table.origin, table.column(place), table.names[place]))


def _with_nodes(of_links: LoadedGraph, links: Origin, nodes: _Nodes, rows: IntArray, linked: BoolArray) -> LoadedGraph:
    """The graph of the links with what a node table knows of its nodes; `rows` are their rows there."""
    graph, table, origin = of_links.graph, nodes.table, nodes.table.origin
    said = list(table.notes)
    absent = np.flatnonzero(rows < 0)
    if len(absent) and nodes.options.impute is None and table.columns.num_columns:
        first = str(graph.ids_of(absent[:1])[0])
        have = "has" if len(absent) == 1 else "have"
        raise InputError(
            f"{origin.name}: {count(len(absent), 'node')} of {links.name} {have} no row in it, such as {first!r}; "
            f"{ASK_FOR_IMPUTATION}."
        )
    recipe, left_out = _recipe_of(nodes)
    said += left_out
    features, labels = None, None
    if recipe is not None:
        encoded = recipe.encode(table.columns, origin)
        features = build_features(encoded, rows)
        said += [describe(recipe), *notes_on(encoded)]
    if table.labels is not None:
        labels = to_labels(table.labels, rows, origin)
        without = labels.tolist().count(-1)
        classes = count(len(set(labels.tolist()) - {-1}), "class", "classes")
        said.append(classes + (f", {count(without, 'node')} without one" if without else ""))
    if len(absent):
        have, their = ("has", "its") if len(absent) == 1 else ("have", "their")
        filled = f", and {their} features are filled in" if features is not None else ""
        said.append(f"{count(len(absent), 'node')} of {links.name} {have} no row{filled}")
    alone = int(np.count_nonzero(~linked))
    if alone:
        said.append(f"{count(alone, 'node')} {'has' if alone == 1 else 'have'} no links")
    graph = graph.with_parts(features=features, labels=labels)
    if origin.name == links.name:
        return LoadedGraph(graph, (*of_links.notes, *said), recipe)
    return LoadedGraph(graph, of_links.notes, recipe, origin.name, tuple(said))


def _recipe_of(nodes: _Nodes) -> tuple[FeatureRecipe | None, tuple[str, ...]]:
    """The recipe of the features, None where there are none, and what is said about columns that hold nothing."""
    columns, recipe = nodes.table.columns, nodes.recipe
    notes: tuple[str, ...] = ()
    if recipe is None and columns.num_columns:
        asked = nodes.options
        recipe = FeatureRecipe.fit(
            columns, standardise=asked.standardise, impute=asked.impute, origin=nodes.table.origin
        )
        empty = set(columns.column_names) - {column.name for column in recipe.columns}
        notes = tuple(f"the column {name} is empty and left out" for name in sorted(empty))
    return (recipe if recipe is not None and recipe.columns else None), notes


def _notes_on_links(graph: Graph, weight: str | None, total: float | None) -> list[str]:
    """What was assumed about weights, which were so much in all, and about directions."""
    notes = []
    if graph.weights is not None and total is not None:
        note = f"weights are {weight}, from {graph.weights.min():.4g} to {graph.weights.max():.4g}"
        merged = graph.cleaning.duplicates_merged + graph.cleaning.reversed_merged + graph.cleaning.reversed_kept
        if graph.weights.sum(dtype=np.float64) < 0.75 * total:
            note += ": every link is given in both directions with the same weight, which counts once"
        elif merged:
            note += ": those of merged links are added up"
        notes.append(note)
    if graph.directed:
        notes.append("links are directed, but the models treat them as undirected")
    return notes
