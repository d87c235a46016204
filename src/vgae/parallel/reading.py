"""A folder of links, read by all processes of a group: each reads its share of the files, and none holds the graph.

    read      files, or row groups of Parquet files, in order and by their bytes; columns are those of the first file
    number    ids become numbers of nodes (`numbering.py`)
    merge     rows go to the process that has a range of links, which merges duplicates and reversed links and counts

What comes of it is the graph of the one table, links and numbers of nodes included, in parts (`part.py`).
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
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
from vgae.io.folder import Columns, PieceReader, Stacked, notes_on, pieces_of, shares_of, stack
from vgae.io.links import Ends, ends_of, wanted_of
from vgae.io.options import LinkOptions
from vgae.io.source import SourceTable
from vgae.io.unpack import enough_memory
from vgae.parallel.agreement import gather_json
from vgae.parallel.mail import Mail, ranges_of
from vgae.parallel.numbering import number_ids
from vgae.parallel.part import GraphPart

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True, eq=False)
class ReadPart:
    """A graph in parts, and what was assumed in reading it."""

    graph: GraphPart
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class _Rows:
    """The links that a process has read, ids as they are, and what was assumed."""

    ends: tuple[pa.ChunkedArray, ...]
    weights: FloatArray | None
    weight: str | None  # their column, where there are rows
    notes: tuple[str, ...]
    files: list[tuple[str, tuple[str, ...], int]]  # what each file is called and told, and its rows


def read_links_in_parts(group: Group, folder: Path, options: LinkOptions) -> ReadPart:
    """The graph whose links are the rows of a folder of tables, read by all processes together."""
    with enough_memory(folder):
        read = _read(group, folder, options)
        files = [tuple(each) for found in gather_json(group, read.files) for each in found]
        if not sum(num_rows for _, _, num_rows in files):
            raise InputError(f"{folder}: there are no rows in any of its files.")
        codes, ids = number_ids(group, read.ends)
        num_nodes = check_num_nodes(ids.num_nodes)
        pairs = np.stack(codes, axis=1)
        mail = Mail(group, ranges_of(group, _links(pairs, num_nodes)))
        weights = None if read.weights is None else mail.send(read.weights)
        rows, directed = mail.send(pairs), options.directed
        simple = simplify(rows, num_nodes, weights, directed, lambda fact: not group.any(not fact))
        merged = simple.get("weights")
        graph = GraphPart.of_links(
            group,
            num_nodes,
            simple["edges"],
            None if merged is None else merged.astype(np.float32),
            simple.get("directions"),
            cleaning=_total(group, simple["cleaning"]),
            ids=ids,
        )
    if not graph.num_edges:
        raise InputError(f"{folder}: The graph has no links between different nodes ({graph.cleaning}).")
    said = list(dict.fromkeys(note for notes in gather_json(group, read.notes) for note in notes))
    of_weights = _weighed(group, weighed(read.weight, graph, read.weights, pairs))
    on_links = notes_on_links(graph.cleaning, of_weights, directed=graph.directed)
    return ReadPart(graph, (*notes_on(files), *said, *on_links))


def _read(group: Group, folder: Path, options: LinkOptions) -> _Rows:
    """This process's share of the rows."""
    pieces = pieces_of(folder)
    listed = [[piece.path.name, piece.num_bytes] for piece in pieces]
    for rank, others in enumerate(gather_json(group, listed)):
        if others != listed:
            raise InputError(
                f"{folder}: rank {rank} finds other files there than rank {group.rank}; give all processes the same."
            )
    shares = shares_of(pieces, group.size)
    wanted, header = wanted_of(options)
    reader = PieceReader(wanted, options.delimiter, header)
    first = next((rank for rank, share in enumerate(shares) if any(piece.num_bytes for piece in share)), 0)
    waiting, tables = list(shares[group.rank]), []
    while waiting and reader.columns is None and group.rank == first:
        tables.append(reader.read(waiting.pop(0)))
    said = gather_json(group, reader.columns and astuple(reader.columns))[first]
    if said is not None:
        reader.columns = Columns(said[0], tuple(said[1]), said[2])
    tables += [reader.read(piece) for piece in waiting]
    files = [(str(table.origin.name), table.notes, table.data.num_rows) for table in tables]
    found = [table for table in tables if table.data.num_rows]
    if not found:
        nothing = pa.chunked_array([pa.array([], pa.large_string())])
        asked = options.weight is not None
        return _Rows((nothing, nothing), np.empty(0) if asked else None, "" if asked else None, (), files)
    table = SourceTable(Stacked.of(folder, found), stack(found))
    ends: Ends = ends_of(table, options, whole=False)
    return _Rows(ends.columns, *weights_of(table, options, ends), ends.notes, files)


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
