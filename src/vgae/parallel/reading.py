"""A folder of links, read by all processes of a group: each reads its share of the files, and none holds the graph.

    read      files, or row groups of Parquet files, each process a share of them (`shares.py`)
    number    ids become numbers of nodes (`numbering.py`)
    merge     rows go to the process that has a range of links, which merges duplicates and reversed links and counts
    nodes     features and labels go to the process that has a range of nodes (`nodes.py`)

What comes of it is the graph of the one table, links and numbers of nodes included, in parts (`part.py`).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import torch

from vgae.errors import InputError
from vgae.graph.checks import check_num_nodes
from vgae.graph.cleaning import Cleaning, simplify
from vgae.graph.pairs import IntArray, Pairs, canonical
from vgae.io.assemble import Weighed, notes_on_links, weighed, weights_of
from vgae.io.columns import FloatArray
from vgae.io.links import Ends, ends_of, wanted_of
from vgae.io.nodes import NodeTable
from vgae.io.options import LinkOptions, NodeOptions
from vgae.io.recipe import FeatureRecipe
from vgae.io.unpack import enough_memory
from vgae.parallel.agreement import gather_json
from vgae.parallel.labels import LabelTable, labels_in_parts, read_labels_in_parts
from vgae.parallel.mail import Mail, ranges_of
from vgae.parallel.nodes import NodesPart, Numbered, nodes_in_parts, read_nodes_in_parts
from vgae.parallel.numbering import number_ids
from vgae.parallel.part import GraphPart
from vgae.parallel.shares import read_share

if TYPE_CHECKING:
    from vgae.parallel.group import Group


PLAIN = NodeOptions()  # nothing is asked for


@dataclass(frozen=True, eq=False)
class NodeFiles:
    """The files about nodes, with or without features and labels, and how they are read."""

    features: Path | None = None
    of_features: NodeOptions = PLAIN
    labels: Path | None = None
    of_labels: NodeOptions = PLAIN


@dataclass(frozen=True, eq=False)
class ReadPart:
    """A graph in parts, what was assumed in reading it, and what its features were made by."""

    graph: GraphPart
    notes: tuple[str, ...]
    recipe: FeatureRecipe | None = None
    node_notes: tuple[str, ...] = ()
    label_notes: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class _Rows:
    """The links that a process has read, ids as they are, and what was assumed."""

    ends: tuple[pa.ChunkedArray, ...]
    weights: FloatArray | None
    weight: str | None  # their column, where there are rows
    notes: tuple[str, ...]
    on_files: tuple[str, ...]  # what was assumed about all files


def read_links_in_parts(group: Group, folder: Path, options: LinkOptions) -> ReadPart:
    """The graph whose links are the rows of a folder of tables, read by all processes together."""
    _leave_signals_alone()
    return _read_graph(group, folder, options, None, PLAIN, None)


def read_graph_in_parts(group: Group, folder: Path, options: LinkOptions, files: NodeFiles) -> ReadPart | None:
    """The same with what files say of its nodes; None where one of these has to be read as a whole."""
    _leave_signals_alone()
    nodes = labels = None
    if files.features is not None:
        nodes = read_nodes_in_parts(group, files.features, files.of_features)
    if files.labels is not None:
        labels = read_labels_in_parts(group, files.labels, files.of_labels)
    if (files.features is not None and nodes is None) or (files.labels is not None and labels is None):
        return None
    return _read_graph(group, folder, options, nodes, files.of_features, labels)


def _leave_signals_alone() -> None:
    """Keep pyarrow from taking signals while it reads: SIGTERM is how a process learns that another failed."""
    pa.enable_signal_handlers(False)


def _read_graph(
    group: Group,
    folder: Path,
    options: LinkOptions,
    nodes: NodeTable | None,
    of_nodes: NodeOptions,
    labels: LabelTable | None,
) -> ReadPart:
    with enough_memory(folder):
        read = _read(group, folder, options)
        codes, ids = number_ids(group, read.ends if nodes is None else (*read.ends, nodes.ids))
        num_nodes = check_num_nodes(ids.num_nodes)
        pairs = np.stack(codes[:2], axis=1)
        mail = Mail(group, ranges_of(group, _links(pairs, num_nodes)))
        weights = None if read.weights is None else mail.send(read.weights)
        rows, directed = mail.send(pairs), options.directed
        simple = simplify(rows, num_nodes, weights, directed, lambda fact: not group.any(not fact))
        cleaning = _total(group, simple["cleaning"])
        if not group.any(len(simple["edges"]) > 0):
            raise InputError(f"{folder}: The graph has no links between different nodes ({cleaning}).")
        part = NodesPart(None, None, None, ())
        if nodes is not None:
            numbered = Numbered(pairs.ravel(), simple["edges"].ravel(), codes[2])
            part = nodes_in_parts(group, nodes, of_nodes, numbered, ids, str(folder))
        label_notes: tuple[str, ...] = ()
        if labels is not None:
            found, label_notes = labels_in_parts(group, labels, ids)
            part = replace(part, labels=found)
        merged = simple.get("weights")
        graph = GraphPart.of_links(
            group,
            num_nodes,
            simple["edges"],
            None if merged is None else merged.astype(np.float32),
            simple.get("directions"),
            features=part.features,
            cleaning=cleaning,
            ids=ids,
            labels=part.labels,
        )
    said = list(dict.fromkeys(note for notes in gather_json(group, read.notes) for note in notes))
    of_weights = _weighed(group, weighed(read.weight, graph, read.weights, pairs))
    on_links = notes_on_links(graph.cleaning, of_weights, directed=graph.directed)
    return ReadPart(graph, (*read.on_files, *said, *on_links), part.recipe, part.notes, label_notes)


def _read(group: Group, folder: Path, options: LinkOptions) -> _Rows:
    """This process's share of the rows."""
    wanted, header = wanted_of(options)
    share = read_share(group, folder, wanted, options.delimiter, header)
    if not share.tables:
        nothing, asked = pa.chunked_array([pa.array([], pa.large_string())]), options.weight is not None
        return _Rows((nothing, nothing), np.empty(0) if asked else None, "" if asked else None, (), share.notes)
    table = share.stacked()
    ends: Ends = ends_of(table, options, whole=False)
    return _Rows(ends.columns, *weights_of(table, options, ends), ends.notes, share.notes)


def _links(pairs: Pairs, num_nodes: int) -> IntArray:
    """The number of each link, whichever way it goes."""
    low, high = canonical(pairs).T
    found: IntArray = low * num_nodes + high
    return found


def _weighed(group: Group, own: Weighed | None) -> Weighed | None:
    """What there is to tell of the weights of all processes."""
    if own is None:
        return None
    names, least, most, of_links, of_rows = zip(*gather_json(group, astuple(own)), strict=True)
    return Weighed(next(filter(None, names)), min(least), max(most), sum(of_links), sum(of_rows))


def _total(group: Group, own: Cleaning) -> Cleaning:
    """What all processes have merged and dropped."""
    counts = group.sum(torch.tensor(astuple(own), device=group.device)).tolist()
    return Cleaning(*counts)
