"""A graph put together: of a table of links and what is known of the nodes, or of a graph and the latter.

nodes   all ids of the links, and those of the node table: without links they are isolated nodes
order   whole numbers by their value, text as it first appears, and a list of ids alone as it stands
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.cleaning import Cleaning
from vgae.graph.given import first_times
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, IntArray, Pairs
from vgae.io.bipartite import Sides, hint_of_two_kinds, two_sides
from vgae.io.columns import BoolArray, FloatArray, as_weights, first_true, number_ids
from vgae.io.features import Features, apply_recipe, fit_features
from vgae.io.links import Ends, ends_of
from vgae.io.nodes import NodeTable, require_one_row_each, rows_of_nodes, to_labels
from vgae.io.options import LinkOptions, NodeOptions, TimedLinkOptions
from vgae.io.recipe import ASK_FOR_IMPUTATION, FeatureRecipe
from vgae.io.source import Origin, SourceTable
from vgae.io.times import as_times
from vgae.words import count


@dataclass(frozen=True, eq=False)
class LoadedGraph:
    """A graph out of a file, what was assumed in reading it, and what its features were made by."""

    graph: Graph
    notes: tuple[str, ...] = ()
    recipe: FeatureRecipe | None = None
    node_table: str | None = None
    node_notes: tuple[str, ...] = ()
    label_table: str | None = None
    label_notes: tuple[str, ...] = ()
    times: npt.NDArray[Any] | None = None  # when each edge was first seen, where that was asked for

    def report(self, name: str) -> list[str]:
        """What was assumed, a line for each table that there was something to assume about."""
        tables = ((name, self.notes), (self.node_table, self.node_notes), (self.label_table, self.label_notes))
        return [f"{table}: {'; '.join(notes)}" for table, notes in tables if notes]


@dataclass(frozen=True, eq=False)
class Nodes:
    """What is known of nodes, and how it becomes features: by the options, or as those of another graph did."""

    table: NodeTable
    options: NodeOptions
    recipe: FeatureRecipe | None = None

    def features(self, rows: IntArray) -> Features:
        """The features of the nodes that have these rows."""
        if self.recipe is None:
            return fit_features(self.table, rows, self.options)
        if self.options.normalize is not None:
            raise InputError("normalize: the features are brought to scale as those of the model were; leave it out.")
        if self.table.is_list:
            return Features()
        return apply_recipe(self.recipe, self.table, rows)

    @property
    def complete(self) -> bool:
        """Whether every node needs a row: of columns and matrices; what no entry is about is 0."""
        entries = self.table.entries
        return bool(self.table.columns.num_columns) if entries is None else entries.names is None


def from_links(table: SourceTable, options: LinkOptions, nodes: Nodes | None = None) -> LoadedGraph:
    """The graph of a table of links and perhaps one of nodes."""
    origin = table.origin
    ends = ends_of(table, options)
    weights, weight = weights_of(table, options, ends)
    sides = two_sides(ends) if options.bipartite else None
    columns = ends.columns if sides is None else sides.columns
    if sides is not None and nodes is not None:
        nodes = Nodes(sides.of_table(nodes.table), nodes.options, nodes.recipe)
    codes, ids = number_ids(columns if nodes is None else (*columns, nodes.table.ids))
    if nodes is not None and nodes.table.is_list:
        codes, ids = _in_order(codes, ids)
    pairs = np.stack(codes[:2], axis=1)
    graph = _graph(origin, pairs, ids, weights, options)
    of_links = weighed(weight, graph, weights, pairs)
    said = notes_on_links(graph.cleaning, of_links, directed=graph.directed)
    notes = (*table.notes, *ends.notes, *said, *_notes_on_sides(table, ends, sides))
    if sides is not None:
        graph = graph.with_parts(sides=sides.of_nodes(codes, ids))
    times = _times_of(table, options, graph, pairs)
    if nodes is None:
        return LoadedGraph(graph, notes, times=times)
    linked = _linked(graph)
    named = linked.copy()
    named[np.concatenate(codes[:2])] = True  # a node that only links to itself is named too
    rows = rows_of_nodes(codes[2], ids, named, nodes.table, origin)
    return replace(_with_nodes(LoadedGraph(graph, notes), origin, nodes, rows, linked), times=times)


def with_nodes(loaded: LoadedGraph, name: str, nodes: Nodes) -> LoadedGraph:
    """A graph whose nodes are known already, with what a file says of them; it may name no other."""
    graph, origin = loaded.graph, nodes.table.origin
    if nodes.table.is_list:
        raise InputError(f"{origin.name}: it names nodes alone, and the nodes of {name} are known; leave it out.")
    known = pa.array([str(node) for node in graph.ids], pa.large_string())
    given = pa.concat_arrays(nodes.table.ids.cast(pa.large_string()).chunks)
    places = pc.index_in(given, value_set=known)
    row = first_true(pc.is_null(places))
    if row is not None:
        raise InputError(f"{origin.at(row)} is about {given[row].as_py()!r}, which is not a node of {name}.")
    codes = places.to_numpy().astype(np.int64)
    require_one_row_each(codes, np.array(graph.ids, dtype=object), origin)
    rows = np.full(graph.num_nodes, -1, dtype=np.int64)
    rows[codes] = np.arange(len(codes))
    return _with_nodes(loaded, Origin(name), nodes, rows, _linked(graph))


def _graph(origin: Origin, pairs: Pairs, ids: AnyArray, weights: FloatArray | None, options: LinkOptions) -> Graph:
    try:
        graph = Graph.from_edges(pairs, num_nodes=len(ids), weights=weights, directed=options.directed)
    except InputError as error:
        raise InputError(f"{origin.name}: {error}") from None
    return graph.with_parts(node_ids=ids)


def _in_order(codes: list[IntArray], ids: AnyArray) -> tuple[list[IntArray], AnyArray]:
    """Nodes in the order of a list of ids, the last of the columns; those that it lacks come after."""
    order = np.concatenate([codes[-1], np.arange(len(ids))])
    order = order[np.sort(np.unique(order, return_index=True)[1])]
    places = np.empty(len(ids), dtype=np.int64)
    places[order] = np.arange(len(ids))
    return [places[column] for column in codes], ids[order]


def _linked(graph: Graph) -> BoolArray:
    linked = np.zeros(graph.num_nodes, dtype=bool)
    linked[graph.edges.ravel()] = True
    return linked


def _times_of(table: SourceTable, options: LinkOptions, graph: Graph, rows: Pairs) -> npt.NDArray[Any] | None:
    """For each edge the first time of the rows that name it, where times are asked for."""
    if not isinstance(options, TimedLinkOptions) or options.time is None:
        return None
    place = table.place_of(options.time)
    return first_times(graph, rows, as_times(table.origin, table.column(place), table.names[place]))


def weights_of(table: SourceTable, options: LinkOptions, ends: Ends) -> tuple[FloatArray | None, str | None]:
    """The weights of the rows, and the name of their column."""
    if options.weight is None:
        return None, None
    place = table.place_of(options.weight)
    name = table.names[place]
    if name in ends.names:
        raise InputError(f"{table.origin.name}: the weights and one end of the links are the same column, {name}.")
    return as_weights(table.origin, table.column(place), name), name


def _with_nodes(of_links: LoadedGraph, links: Origin, nodes: Nodes, rows: IntArray, linked: BoolArray) -> LoadedGraph:
    """The graph of the links with what is known of its nodes; `rows` are their rows there."""
    graph, table, origin = of_links.graph, nodes.table, nodes.table.origin
    absent = np.flatnonzero(rows < 0)
    if len(absent) and nodes.options.impute is None and nodes.complete:
        raise without_rows(origin.name, links.name, len(absent), str(graph.ids_of(absent[:1])[0]))
    features = nodes.features(rows)
    said: list[str] = [*table.notes, *features.notes]
    labels = None
    if table.labels is not None:
        labels = to_labels(table.labels, rows, origin)
        said += note_on_classes(len(set(labels.tolist()) - {-1}), labels.tolist().count(-1))
    filled, listed = features.matrix is not None, not nodes.complete
    said += notes_on_nodes(links.name, len(absent), int(np.count_nonzero(~linked)), filled=filled, listed=listed)
    parts: dict[str, Any] = {"features": features.matrix} | ({} if labels is None else {"labels": labels})
    try:
        graph = graph.with_parts(**parts)
    except InputError as error:
        raise InputError(f"{origin.name}: {error}") from None
    if origin.name == links.name:
        return LoadedGraph(graph, (*of_links.notes, *said), features.recipe)
    return LoadedGraph(graph, of_links.notes, features.recipe, origin.name, tuple(said))


def without_rows(table: str, links: str, number: int, first: str) -> InputError:
    """What to say of nodes that a table of nodes lacks."""
    have = "has" if number == 1 else "have"
    nodes = f"{count(number, 'node')} of {links} {have} no row in it"
    return InputError(f"{table}: {nodes}, such as {first!r}; {ASK_FOR_IMPUTATION}.")


def note_on_classes(number: int, without: int) -> list[str]:
    """How many classes there are, and nodes without one."""
    return [count(number, "class", "classes") + (f", {count(without, 'node')} without one" if without else "")]


def notes_on_nodes(links: str, absent: int, alone: int, *, filled: bool, listed: bool) -> list[str]:
    """How many nodes have no row in the table of nodes, and how many no links."""
    notes = []
    if absent:
        have, their = ("has", "its") if absent == 1 else ("have", "their")
        nodes = f"{count(absent, 'node')} of {links} {have}"
        rows = f"{nodes} no row" + (f", and {their} features are filled in" if filled else "")
        notes.append(f"{nodes} no features, which are 0" if filled and listed else rows)
    if alone:
        notes.append(f"{count(alone, 'node')} {'has' if alone == 1 else 'have'} no links")
    return notes


def _notes_on_sides(table: SourceTable, ends: Ends, sides: Sides | None) -> tuple[str, ...]:
    """What became of two kinds of nodes, or a hint that there may be two."""
    if sides is not None:
        return (sides.note,)
    hint = None if table.origin.lines is not None else hint_of_two_kinds(ends, table.data.num_rows)
    return () if hint is None else (hint,)


@dataclass(frozen=True)
class Weighed:
    """What there is to tell of weights: their column, their range, and what those of links and of rows add up to."""

    name: str
    least: float
    most: float
    of_links: float
    of_rows: float


def weighed(name: str | None, graph: Graph, rows: FloatArray | None, pairs: Pairs) -> Weighed | None:
    """That of a graph, given the rows that it was made of, in which a node linked to itself does not count."""
    if name is None or graph.weights is None or rows is None:
        return None
    found, of_rows = graph.weights, float(rows[pairs[:, 0] != pairs[:, 1]].sum())
    of_links = float(found.sum(dtype=np.float64))
    return Weighed(name, float(found.min(initial=np.inf)), float(found.max(initial=0)), of_links, of_rows)


def notes_on_links(cleaning: Cleaning, weights: Weighed | None, *, directed: bool) -> list[str]:
    """What was assumed about weights and directions."""
    notes = []
    if weights is not None:
        note = f"weights are {weights.name}, from {weights.least:.4g} to {weights.most:.4g}"
        merged = cleaning.duplicates_merged + cleaning.reversed_merged + cleaning.reversed_kept
        if weights.of_links < 0.75 * weights.of_rows:
            note += ": every link is given in both directions with the same weight, which counts once"
        elif merged:
            note += ": those of merged links are added up"
        notes.append(note)
    if directed:
        notes.append("links are directed, from source to target")
    return notes
