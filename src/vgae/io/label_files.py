"""Labels of a graph's nodes from a table: a column of ids and one of classes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray
from vgae.io.folder import read_table
from vgae.io.nodes import require_one_row_each, take_nodes, to_labels
from vgae.io.options import NodeOptions
from vgae.io.plain import as_path
from vgae.io.source import SourceTable, is_name, is_unnamed, listed
from vgae.io.text import Wanted
from vgae.io.unpack import enough_memory
from vgae.words import count

NEEDED = "a column of ids and one of labels"
USUAL = ("label", "labels", "class", "target", "y", "category", "community")  # what labels are called


def read_labels(path: str | Path, graph: Graph, options: NodeOptions) -> tuple[AnyArray, tuple[str, ...]]:
    """A label for each node of the graph, -1 where the table has none, and what was assumed.

    The columns are those of the options; else the ids are the first column, and the label is the only other one, or the
    one with a usual name.
    """
    path, options = as_path(path, "labels"), replace(options, feature_format="table")
    header = True if any(map(is_name, options.columns)) else None
    with enough_memory(path):
        table = read_table(path, Wanted(links=False, needed=NEEDED), header=header)
        options = replace(options, label=label_column(table, options, str(path)))
        nodes = take_nodes(table, options)
        known = pa.array([str(name) for name in graph.ids], pa.large_string())
        places = pc.fill_null(pc.index_in(nodes.ids.cast(pa.large_string()), value_set=known), -1)
        indices = places.to_numpy().astype(np.int64)
        inside = np.flatnonzero(indices >= 0)
        if not len(inside):
            raise no_nodes(str(path), str(nodes.ids[0].as_py()), str(graph.ids[0]))
        of_rows = np.where(indices >= 0, indices, graph.num_nodes + np.arange(len(indices)))  # strangers all differ
        require_one_row_each(of_rows, np.array(graph.ids, dtype=object), nodes.origin)
        rows = np.full(graph.num_nodes, -1, dtype=np.int64)
        rows[indices[inside]] = inside
        labels = to_labels(table.column(table.place_of(str(options.label))), rows, nodes.origin)
    classes, without = len(set(labels.tolist()) - {-1}), labels.tolist().count(-1)
    return labels, notes_on_labels(str(options.label), classes, without, len(indices) - len(inside))


def no_nodes(table: str, own: str, other: str) -> InputError:
    """What to say of a table that is about none of the nodes."""
    return InputError(
        f"{table}: none of its ids is a node of the graph; its ids are like {own!r}, the others like {other!r}."
    )


def notes_on_labels(column: str, classes: int, without: int, strange: int) -> tuple[str, ...]:
    """What was assumed, how many classes there are, nodes without one, and rows about other nodes."""
    notes = [f"labels are the column {column}", count(classes, "class", "classes")]
    notes += [f"{count(without, 'node')} without one"] if without else []
    notes += [f"{count(strange, 'row')} about nodes that are not in the graph left out"] if strange else []
    return tuple(notes)


def label_column(table: SourceTable, options: NodeOptions, path: str) -> str:
    """The column of labels that is asked for, or the one that can be it."""
    if options.label is not None:
        return options.label
    return _other_column(table.names, take_nodes(table, options).columns, path)


def _other_column(names: list[str], others: pa.Table, path: str) -> str:
    """The column of labels where none is asked for: the only one beside the ids, or the one with a usual name."""
    found: list[str] = [name for name in others.column_names if not is_unnamed(name)]
    if len(found) > 1:
        found = [name for name in found if name.strip().casefold() in USUAL]
    if len(found) != 1:
        raise InputError(f"{path}: say which column holds the labels (label); its columns are {listed(names)}.")
    return found[0]
