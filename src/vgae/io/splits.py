"""Splits in npz files: the pairs of all parts, the nodes' ids and labels, the seed, and the hash."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vgae.errors import InputError
from vgae.graph.checks import check_edges, check_num_nodes, frozen
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, Pairs, as_pairs, check_pairs
from vgae.graph.split import PARTS, STORED_VALUES, HeldOut, LinkSplit, hash_of
from vgae.io.graphs import COUNT, DIRECTIONS, OF_NODES, SIDES, WEIGHTS
from vgae.io.ids import pack_ids, unpack_ids
from vgae.io.npz import Expected, read_npz, write_npz
from vgae.io.plain import as_path
from vgae.words import count

FORMAT = 1
ARRAYS = {
    **{name: replace(COUNT, required=True) for name in ("format", "num_nodes", "seed")},
    "content_hash": Expected("U", (0,), "a SHA-256", required=True),
    **{name: Expected("iu", (2,), "rows of two node indices", required=True) for name in PARTS},
    "num_graph_links": COUNT,
    "ordered": COUNT,  # 1 where held-out pairs are source and target; earlier splits of directed graphs have it not
    "weights": WEIGHTS,
    "directions": DIRECTIONS,
    "sides": SIDES,
    "node_ids": OF_NODES,
    "labels": OF_NODES,
}


def write_split(path: str | Path, split: LinkSplit) -> None:
    """Write a split, its seed and hash and the nodes' ids and labels into one npz file, in one step."""
    content: dict[str, Any] = dict(split.parts(), num_nodes=split.train.num_nodes, seed=split.seed)
    content |= split.edge_values() | {"num_graph_links": split.num_graph_links}
    if split.ordered:
        content["ordered"] = 1
    for name, values in (("node_ids", split.train.node_ids), ("labels", split.train.labels)):
        if values is not None:
            content[name] = pack_ids(values)
    write_npz(as_path(path), format=FORMAT, content_hash=split.content_hash, **content)


def read_split(path: str | Path, graph: Graph | None = None, *, content: bytes | None = None) -> LinkSplit:
    """Read a split; its hash must match.

    Given the graph that was split, the training graph gets that graph's features and labels, and the two must fit.
    `content` is what the file holds, if it has been read already.
    """
    parts = read_npz(path, ARRAYS, content=content)
    try:
        return _from_parts(parts, graph)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except MemoryError:
        raise InputError(f"{path}: the split is too large for the memory that is free.") from None
    except (RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a split saved by vgae ({error}).") from None


def _from_parts(parts: dict[str, AnyArray], graph: Graph | None) -> LinkSplit:
    """The split of a file's arrays, if they are whole and, where a graph is given, belong to it."""
    if int(parts["format"]) != FORMAT:
        raise InputError("saved by a version of vgae whose splits this version does not read.")
    num_nodes, content_hash = check_num_nodes(int(parts["num_nodes"])), str(parts["content_hash"])
    pairs = {name: as_pairs(parts[name], name) for name in PARTS}
    edge_values: dict[str, Any] = {name: parts[name] for name in STORED_VALUES if name in parts}
    ordered = "directions" in parts and int(parts.get("ordered", np.int64(0))) == 1
    if hash_of(num_nodes, pairs, edge_values, ordered=ordered) != content_hash:
        raise InputError("the contents do not match their hash; the file is damaged or was edited.")
    if graph is None:
        ids, labels = (unpack_ids(parts[name]) if name in parts else None for name in ("node_ids", "labels"))
        train = Graph(num_nodes, frozen(pairs["train"]), labels=labels, node_ids=ids, **edge_values)
    elif graph.num_nodes == num_nodes:
        train = _train_of(graph, frozen(pairs["train"]), edge_values) if ordered else graph.with_edges(pairs["train"])
    else:
        raise InputError(f"this split was made from another graph, of {count(num_nodes, 'node')}.")
    num_graph_links = int(parts["num_graph_links"]) if "num_graph_links" in parts else None
    if not 0 <= (num_graph_links or 0) <= train.num_candidate_pairs:
        raise InputError(f"num_graph_links: {num_graph_links} links are not possible among {count(num_nodes, 'node')}.")
    held_out = {name: check_pairs(pairs[name], num_nodes, name) for name in PARTS[1:]}
    split = LinkSplit(
        train=train,
        val=HeldOut(held_out["val_links"], held_out["val_non_links"], num_graph_links),
        test=HeldOut(held_out["test_links"], held_out["test_non_links"], num_graph_links),
        seed=int(parts["seed"]),
        ordered=ordered,
    )
    made_from = graph is None or split.is_of(graph) or split.is_trained_by(graph)
    if not (made_from and split.content_hash == content_hash):
        raise InputError("this split was made from another graph.")
    return split


def _train_of(graph: Graph, edges: Pairs, edge_values: dict[str, Any]) -> Graph:
    """The training graph of a directed one: of an edge that goes both ways, one may have been held out."""
    if not graph.directed:
        raise InputError("this split was made from another graph, whose links have directions.")
    check_edges(edges, graph.num_nodes, "of a split")
    arcs = Graph(graph.num_nodes, edges, directions=edge_values["directions"]).arcs
    return graph.with_arcs(arcs)
