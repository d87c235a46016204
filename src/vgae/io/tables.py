"""Graphs from a stranger's tables: links in CSV, TSV, plain text, Parquet, GraphML or a data frame, ids of any kind.

A row is a link between two ids; another table may have a row for each node (`nodes.py`). What the files leave open is
decided by rules (`text.py`, `columns.py`) and told in `LoadedGraph.notes`.

columns   the first two are the ends of a link, or those asked for by name or number (from 1); weights are asked for
nodes     all ids of the links, and those of the node table: without links they are isolated nodes
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs
from vgae.io.columns import (
    SUFFIXES,
    BoolArray,
    FloatArray,
    Origin,
    as_weights,
    find_column,
    number_ids,
    require_bool,
    table_of,
)
from vgae.io.graphml import ENDS, ID, read_graphml
from vgae.io.graphml import SUFFIX as GRAPHML
from vgae.io.graphs import read_npz_graph
from vgae.io.links import ends_of, read_link_table, read_links_among
from vgae.io.nodes import NodeTable, read_nodes, rows_of_nodes, take_nodes, to_labels
from vgae.io.plain import as_path
from vgae.io.recipe import ASK_FOR_IMPUTATION, FeatureRecipe, build_features, check_imputation, describe, notes_on
from vgae.io.unpack import enough_memory, is_stream, suffix_of

IN_GRAPHML = ("weight", "label", "node_attributes", "standardise", "impute", "recipe")


@dataclass(frozen=True, eq=False)
class LoadedGraph:
    """A graph out of a file, what was assumed in reading it, and what its features were made by."""

    graph: Graph
    notes: tuple[str, ...] = ()
    recipe: FeatureRecipe | None = None
    node_table: str | None = None
    node_notes: tuple[str, ...] = ()

    def report(self, name: str) -> list[str]:
        """What was assumed, a line for each table that there was something to assume about."""
        tables = ((name, self.notes), (self.node_table, self.node_notes))
        return [f"{table}: {'; '.join(notes)}" for table, notes in tables if notes]


def read_graph(path: str | Path, **options: Any) -> Graph:
    """A graph from a file: a table of links (csv, tsv, txt, parquet; also .gz, .zst), GraphML, or an npz.

    Options for tables are those of `read_links`: source, target, weight, directed, delimiter, header, and features (a
    node table) with id, label, standardise, impute. For GraphML: weight, label, node_attributes, standardise, impute.
    """
    return read_any(path, **options).graph


def read_any(path: str | Path, **options: Any) -> LoadedGraph:
    """The same, with what was assumed in reading and the recipe of the features."""
    path = as_path(path)
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
    path: str | Path,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    directed: bool = False,
    delimiter: str | None = None,
    header: bool | None = None,
    features: str | Path | None = None,
    id: str | None = None,  # noqa: A002 - the option's name
    label: str | None = None,
    standardise: bool = False,
    impute: str | None = None,
    recipe: FeatureRecipe | None = None,
) -> LoadedGraph:
    """The graph whose links are the rows of a table.

    `source`, `target` and `weight` are columns, by name or number from 1; `directed` links go from source to target.
    `features` is a table of nodes, `id` and `label` columns of it, and all others become features: `standardise` brings
    numbers to mean 0 and standard deviation 1, `impute` ("mean", "zero") fills in what is missing. With the `recipe` of
    another graph they become the features that they are there.
    """
    path = as_path(path)
    notes: list[str] = []
    asked = (source, target, weight)
    with enough_memory(path):
        table = read_link_table(path, asked, delimiter, header, notes)
        nodes = None
        if features is not None:
            said: list[str] = []
            nodes = _Nodes(
                read_nodes(as_path(features, "features"), id, label, said), standardise, impute, said, recipe
            )
        else:
            require_bool("standardise", standardise)
            _refuse_without_nodes(id=id, label=label, standardise=standardise or None, impute=impute)
        return _to_graph(Origin(str(path)), table, asked, directed, nodes, notes)


def read_frame(
    links: Any,
    *,
    source: str | None = None,
    target: str | None = None,
    weight: str | None = None,
    directed: bool = False,
    nodes: Any = None,
    id: str | None = None,  # noqa: A002 - the option's name
    label: str | None = None,
    standardise: bool = False,
    impute: str | None = None,
) -> LoadedGraph:
    """The graph whose links are the rows of a data frame; the options are those of `read_links`, nodes a frame too."""
    table = table_of(links, "links")
    of_nodes = None
    if nodes is not None:
        origin = Origin("nodes", first=0)
        said: list[str] = []
        taken = take_nodes(table_of(nodes, "nodes"), origin, id, label, said)
        of_nodes = _Nodes(taken, standardise, impute, said)
    else:
        require_bool("standardise", standardise)
        _refuse_without_nodes(id=id, label=label, standardise=standardise or None, impute=impute)
    return _to_graph(Origin("links", first=0), table, (source, target, weight), directed, of_nodes, [])


def read_graphml_graph(
    path: str | Path,
    *,
    weight: str | None = None,
    label: str | None = None,
    node_attributes: bool = False,
    standardise: bool = False,
    impute: str | None = None,
    recipe: FeatureRecipe | None = None,
) -> LoadedGraph:
    """The graph in a GraphML file; `weight` is an edge attribute, `label` a node attribute, by name.

    With `node_attributes` the other node attributes become features, as the columns of a node table do; with the
    `recipe` of another graph, those that they are there.
    """
    path = as_path(path)
    node_attributes = node_attributes or recipe is not None
    if not node_attributes:
        require_bool("standardise", standardise)
        _refuse_without_nodes(standardise=standardise or None, impute=impute)
    document = read_graphml(path)
    for asked, table, kind in ((weight, document.links, "edges"), (label, document.nodes, "nodes")):
        known = table.column_names[2 if kind == "edges" else 1 :]
        if asked is not None and asked not in known:
            raise InputError(f"{path}: its {kind} have no attribute {asked!r}; they have {', '.join(known) or 'none'}.")
    nodes = take_nodes(document.nodes, document.origin_of_nodes, ID, label, [])
    if not node_attributes:
        nodes = replace(nodes, columns=nodes.columns.select([]))
    asked_for = (*ENDS, weight)
    links = document.links.select([name for name in asked_for if name is not None])
    of_nodes = _Nodes(nodes, standardise, impute, [], recipe)
    return _to_graph(document.origin_of_links, links, asked_for, document.directed, of_nodes, [])


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
    known = pa.array([str(name) for name in ids], pa.large_string())
    asked = (source, target)
    with enough_memory(path):
        return read_links_among(as_path(path), known, asked, delimiter, header, "which is not a node of this run")[0]


# -------------------------------------------------------------------------------------------------------------- inside


@dataclass(frozen=True, eq=False)
class _Nodes:
    """A node table, what is to be done to its columns, and what was assumed in reading it."""

    table: NodeTable
    standardise: bool
    impute: str | None
    notes: list[str]
    recipe: FeatureRecipe | None = None

    def __post_init__(self) -> None:
        check_imputation(self.impute)
        require_bool("standardise", self.standardise)


def _refuse_without_nodes(**options: Any) -> None:
    given = next((name for name, value in options.items() if value is not None), None)
    if given:
        raise InputError(f"{given}: this is about the columns of a node table; give one (features, node_attributes).")


def _to_graph(
    origin: Origin,
    table: pa.Table,
    asked: tuple[str | None, str | None, str | None],
    directed: bool,
    nodes: _Nodes | None,
    notes: list[str],
) -> LoadedGraph:
    """The graph of a table of links and perhaps one of nodes."""
    source, target, weight = asked
    require_bool("directed", directed)
    ends = ends_of(origin, table, source, target, notes)
    weights: FloatArray | None = None
    if weight is not None:
        place = find_column(origin, table, weight, 2)
        weight = table.column_names[place]
        if weight in (ends[0][1], ends[1][1]):
            raise InputError(f"{origin.name}: the weights and one end of the links are the same column, {weight}.")
        weights = as_weights(origin, table.column(place), weight)
    columns = [column for column, _ in ends]
    codes, ids = number_ids(columns if nodes is None else [*columns, nodes.table.ids])
    try:
        graph = Graph.from_edges(
            np.stack(codes[:2], axis=1), num_nodes=len(ids), weights=weights, directed=bool(directed)
        )
    except InputError as error:
        raise InputError(f"{origin.name}: {error}") from None
    total = None if weights is None else float(weights[codes[0] != codes[1]].sum())
    notes.extend(_notes_on_links(graph, weight, total))
    graph = replace(graph, node_ids=ids)
    if nodes is None:
        return LoadedGraph(graph, tuple(notes))
    linked = np.zeros(len(ids), dtype=bool)
    linked[graph.edges.ravel()] = True
    named = linked.copy()
    named[np.concatenate(codes[:2])] = True  # a node that only links to itself is named too
    rows = rows_of_nodes(codes[2], ids, named, nodes.table, origin)
    return _with_nodes(graph, rows, linked, nodes, origin, notes)


def _with_nodes(
    graph: Graph, rows: IntArray, linked: BoolArray, nodes: _Nodes, links: Origin, notes: list[str]
) -> LoadedGraph:
    """The graph with what a node table knows of its nodes; `rows` are their rows there."""
    table, origin = nodes.table, nodes.table.origin
    said = list(nodes.notes)
    absent = np.flatnonzero(rows < 0)
    if len(absent) and nodes.impute is None and table.columns.num_columns:
        first = str(graph.ids_of(absent[:1])[0])
        raise InputError(
            f"{origin.name}: {len(absent):,} nodes of {links.name} have no row in it, such as {first!r}; "
            f"{ASK_FOR_IMPUTATION}."
        )
    features, labels, recipe = None, None, None
    if nodes.recipe is not None:
        recipe = nodes.recipe
    elif table.columns.num_columns:
        recipe = FeatureRecipe.fit(table.columns, standardise=nodes.standardise, impute=nodes.impute, origin=origin)
        empty = set(table.columns.column_names) - {column.name for column in recipe.columns}
        said.extend(f"the column {name} holds nothing and is left out" for name in sorted(empty))
    if recipe is not None and recipe.columns:
        encoded = recipe.encode(table.columns, origin)
        features = build_features(encoded, rows)
        said += [describe(recipe), *notes_on(encoded)]
    if table.labels is not None:
        labels = to_labels(table.labels, rows, origin)
        without = labels.tolist().count(-1)
        said.append(f"{len(set(labels.tolist()) - {-1}):,} classes" + (f", {without:,} nodes without" * bool(without)))
    if len(absent):
        filled = ", and their features are filled in" if features is not None else ""
        said.append(f"{len(absent):,} nodes of {links.name} have no row{filled}")
    if not linked.all():
        said.append(f"{np.count_nonzero(~linked):,} nodes have no links")
    graph = replace(graph, features=features, labels=labels)
    recipe = recipe if features is not None else None
    if origin.name == links.name:
        return LoadedGraph(graph, (*notes, *said), recipe)
    return LoadedGraph(graph, tuple(notes), recipe, origin.name, tuple(said))


def _notes_on_links(graph: Graph, weight: str | None, total: float | None) -> list[str]:
    """What was assumed about weights, which were so much in all, and about directions."""
    notes = []
    if graph.weights is not None and total is not None:
        note = f"weights are {weight}, from {graph.weights.min():.4g} to {graph.weights.max():.4g}"
        merged = graph.cleaning.duplicates_merged + graph.cleaning.reversed_merged + graph.cleaning.reversed_kept
        if graph.weights.sum(dtype=np.float64) < 0.75 * total:
            note += ": every link is given in both directions with one weight, which counts once"
        elif merged:
            note += ": those of merged links are added up"
        notes.append(note)
    if graph.directed:
        notes.append("links are directed, which is kept, but the models treat them as undirected")
    return notes
