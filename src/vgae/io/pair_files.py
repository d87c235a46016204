"""Files of pairs about a graph that is known: links to hold out, non-links, and non-links of each single link.

tables   two columns of ids, found as in a table of links; non-links of single links have a third column, `negative`,
         with the id of a node that stands in for the second end
npz      the arrays of a split of the Open Graph Benchmark, by its names: `edge` and `edge_neg` (M×2), or `source_node`,
         `target_node` (M) and `target_node_neg` (M×K); their values are ids of nodes, or indices where nodes have none
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.given import NamedPairs, NegativesOfLinks, require_known
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.bipartite import prefixes_of
from vgae.io.columns import as_ids, with_prefix
from vgae.io.links import ends_of, read_link_table
from vgae.io.npz import Expected, read_npz
from vgae.io.options import LinkOptions
from vgae.io.plain import as_path
from vgae.io.source import SourceTable
from vgae.io.unpack import enough_memory, is_stream

NPZ = ".npz"
NEGATIVE = "negative"  # the column of a table
IDS = "iuSU"
ARRAYS = {
    "edge": Expected(IDS, (2,), "rows of two nodes"),
    "edge_neg": Expected(IDS, (2,), "rows of two nodes"),
    "source_node": Expected(IDS, (1,), "a node for each link"),
    "target_node": Expected(IDS, (1,), "a node for each link"),
    "target_node_neg": Expected(IDS, (2,), "a row of nodes for each link"),
    "weight": Expected("iuf", (1, 2), "a number for each link"),  # as ogbl-collab has it, and nobody asks for here
    "year": Expected("iuf", (1, 2), "a number for each link"),
}


def read_pair_file(
    path: str | Path, graph: Graph, options: LinkOptions | None = None, *, negatives: bool
) -> NamedPairs:
    """The pairs of node indices in a table, or in an npz as its links or its non-links."""
    path = as_path(path)
    with enough_memory(path):
        if path.suffix == NPZ:
            rows = _npz_pairs(path, negatives)
            return NamedPairs(str(path), _indices(graph, str(path), rows))
        table = _read(path, graph, options or LinkOptions())
        columns = ends_of(table, options or LinkOptions()).columns
        return NamedPairs(str(path), _places(graph, table, columns))


def read_negatives(path: str | Path, graph: Graph) -> NamedPairs | NegativesOfLinks:
    """Non-links that all links share or, where the file has some for each link, these."""
    path = as_path(path)
    with enough_memory(path):
        if path.suffix == NPZ:
            arrays = read_npz(path, ARRAYS)
            if "target_node_neg" in arrays:
                return _of_links_npz(graph, str(path), arrays)
            return NamedPairs(str(path), _indices(graph, str(path), _npz_pairs(path, negatives=True)))
        table = _read(path, graph, LinkOptions())
        ends = ends_of(table, LinkOptions())
        if NEGATIVE not in table.names:
            return NamedPairs(str(path), _places(graph, table, ends.columns))
        third = as_ids(table.origin, table.column(table.place_of(NEGATIVE)), NEGATIVE, "every row needs one")
        return _of_links_table(str(path), _places(graph, table, (*ends.columns, third)))


def _read(path: Path, graph: Graph, options: LinkOptions) -> SourceTable:
    """The table of pairs; a first row of which neither end is a node is a header, if it looks like one."""
    table = read_link_table(path, options, known={str(name) for name in graph.ids})
    if (
        options.header is not None
        or is_stream(path)
        or (_indices_of(graph, ends_of(table, options).columns)[0] >= 0).any()
    ):
        return table
    by_its_looks = read_link_table(path, options)
    return by_its_looks if by_its_looks.data.num_rows < table.data.num_rows else table


def _places(graph: Graph, table: SourceTable, columns: tuple[pa.ChunkedArray, ...]) -> IntArray:
    """Columns of ids as rows of node indices, all of them nodes of the graph."""
    indices = _indices_of(graph, columns)
    if (indices < 0).any():
        row = int(np.argmax((indices < 0).any(axis=1)))
        named = {row: [column[row].as_py() for column in columns]}
        require_known(graph, table.origin.name, indices, named)
    return indices


def _indices_of(graph: Graph, columns: tuple[pa.ChunkedArray, ...]) -> IntArray:
    """Columns of ids as rows of node indices, -1 for what is no node."""
    known = pa.array([str(name) for name in graph.ids], pa.large_string())
    texts = [column.cast(pa.large_string()) for column in columns]
    first, second = (None if graph.sides is None else prefixes_of(graph.ids, graph.sides)) or ("", "")
    found = []
    for text, start in zip(texts, (first, second, second), strict=False):
        places = pc.index_in(text, value_set=known)
        if start:  # of a bipartite graph, where a table may name 1 what is user:1 there
            places = pc.coalesce(places, pc.index_in(with_prefix(text, start), value_set=known))
        found.append(pc.fill_null(places, -1).to_numpy().astype(np.int64))
    return np.stack(found, axis=1)


def _npz_pairs(path: Path, negatives: bool) -> AnyArray:
    arrays = read_npz(path, ARRAYS)
    name = "edge_neg" if negatives else "edge"
    if name in arrays:
        rows: AnyArray = arrays[name]
        if rows.shape[1] != 2:
            raise InputError(f"{path}: {name} should have two columns, but has the shape {rows.shape}.")
        return rows
    if not negatives and {"source_node", "target_node"} <= arrays.keys():
        return _side_by_side(path, arrays)
    kind = "non-links" if negatives else "links"
    raise InputError(f"{path}: there is no array called {name} in it, which would hold the {kind}.")


def _side_by_side(path: str | Path, arrays: dict[str, AnyArray]) -> AnyArray:
    source, target = arrays["source_node"], arrays["target_node"]
    if len(source) != len(target):
        raise InputError(f"{path}: source_node has {len(source)} entries, and target_node {len(target)}.")
    return np.stack([source, target], axis=1)


def _indices(graph: Graph, name: str, nodes: AnyArray) -> IntArray:
    """Ids in an array as node indices, in the same shape."""
    if graph.node_ids is None and nodes.dtype.kind in "iu":
        inside = (nodes >= 0) & (nodes < graph.num_nodes)
        indices = np.where(inside, nodes, -1).astype(np.int64)
    else:
        places = {str(node): place for place, node in enumerate(graph.ids)}
        texts = [node.decode() if isinstance(node, bytes) else str(node) for node in nodes.ravel().tolist()]
        indices = np.array([places.get(text, -1) for text in texts], dtype=np.int64).reshape(nodes.shape)
    require_known(graph, name, indices, nodes.tolist() if (indices < 0).any() else ())
    return indices


def _of_links_npz(graph: Graph, name: str, arrays: dict[str, Any]) -> NegativesOfLinks:
    missing = next((key for key in ("source_node", "target_node") if key not in arrays), None)
    if missing:
        raise InputError(f"{name}: there is no array called {missing} in it, to which target_node_neg belongs.")
    links = _indices(graph, name, _side_by_side(name, arrays))
    others = arrays["target_node_neg"]
    if len(others) != len(links) or others.shape[1] == 0:
        raise InputError(
            f"{name}: target_node_neg should have a row for each of the {len(links)} links, but has the shape "
            f"{others.shape}."
        )
    return NegativesOfLinks(name, links, _indices(graph, name, others))


def _of_links_table(name: str, rows: IntArray) -> NegativesOfLinks:
    """Rows of a link and a node that stands in for its second end, gathered by links in the order they appear."""
    codes = rows[:, 0] * (int(rows.max()) + 1) + rows[:, 1]
    _, first, link = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    link = np.argsort(order)[link]
    by_link = np.argsort(link, kind="stable")
    sizes = np.bincount(link)
    columns = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    others = np.full((len(sizes), int(sizes.max())), -1, dtype=np.int64)
    others[link[by_link], columns] = rows[by_link, 2]
    return NegativesOfLinks(name, rows[np.sort(first), :2], others)
