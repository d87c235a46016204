"""Graphs in npz files.

A graph in an npz file has the arrays `edges` (rows of two node indices) and, as far as there are any, `num_nodes`,
`features` (dense) or `feature_data`, `feature_indices`, `feature_indptr` and `num_features` (CSR), `labels`,
`node_ids`, `weights` (one per row of edges), `directions` (1 for a row that goes from its first node to its second,
-1 for one that goes back, 0 for both), `sides` (0 or 1 for each node of a bipartite graph).
"""

from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import BACKWARD, BOTH, FORWARD
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray
from vgae.io.ids import pack_ids, unpack_ids
from vgae.io.npz import Expected, read_npz, write_npz
from vgae.io.plain import as_path

COUNT = Expected("iu", (0,), "a whole number")
OF_NODES = Expected("biufSU", (0, 1), "a text or number for each node")  # in whatever way `pack_ids` packs them
WEIGHTS = Expected("iuf", (1,), "a number for each link")
DIRECTIONS = Expected("iuf", (1,), "1, -1 or 0 for each link")
SIDES = Expected("biu", (1,), "0 or 1 for each node")
GRAPH_ARRAYS = {
    "edges": Expected("iuSU", (2,), "rows of two node indices (integers) or ids", required=True),
    "num_nodes": COUNT,
    "features": Expected("biuf", (1, 2), "a matrix of numbers"),
    "feature_data": Expected("biuf", (1,), "a list of numbers"),
    "feature_indices": Expected("iu", (1,), "a list of whole numbers"),
    "feature_indptr": Expected("iu", (1,), "a list of whole numbers"),
    "num_features": COUNT,
    "labels": OF_NODES,
    "node_ids": OF_NODES,
    "weights": WEIGHTS,
    "directions": DIRECTIONS,
    "sides": SIDES,
    "cleaning": Expected("iu", (1,), "a list of whole numbers"),
}

SPARSE_FEATURES = ("feature_data", "feature_indices", "feature_indptr", "num_features")


def write_graph(path: str | Path, graph: Graph) -> None:
    """A graph as an npz file.

    >>> import vgae
    >>> graph = vgae.Graph.from_edges([("ann", "bob"), ("bob", "cid")])
    >>> vgae.write_graph("graph.npz", graph)
    >>> vgae.read_graph("graph.npz").ids
    ('ann', 'bob', 'cid')
    """
    graph = Graph.of(graph)
    arrays: dict[str, Any] = {
        "num_nodes": graph.num_nodes,
        "edges": graph.edges,
        "cleaning": astuple(graph.cleaning),
    }
    if sp.issparse(graph.features):
        matrix: Any = graph.features
        arrays |= {
            "feature_data": matrix.data,
            "feature_indices": matrix.indices,
            "feature_indptr": matrix.indptr,
        }
        arrays["num_features"] = graph.num_features
    elif graph.features is not None:
        arrays["features"] = graph.features
    arrays |= {
        name: values
        for name, values in (("weights", graph.weights), ("directions", graph.directions), ("sides", graph.sides))
        if values is not None
    }
    if graph.labels is not None:
        arrays["labels"] = pack_ids(graph.labels)
    if graph.node_ids is not None:
        arrays["node_ids"] = pack_ids(graph.node_ids)
    try:
        write_npz(as_path(path), **arrays)
    except InputError:
        raise
    except (OSError, ValueError) as error:  # the latter of a NUL in the path
        reason = error.strerror if isinstance(error, OSError) else error
        raise InputError(f"{path}: the graph cannot be written there ({reason}).") from None


def read_npz_graph(path: str | Path) -> Graph:
    """A graph from an npz file, whoever wrote it."""
    parts = read_npz(path, GRAPH_ARRAYS)
    try:
        ids = unpack_ids(parts["node_ids"]) if "node_ids" in parts else None
        by_index = parts["edges"].dtype.kind in "iu"
        edges, weights, directed = _directed_rows(parts)
        graph = Graph.from_edges(
            edges,
            weights=weights,
            directed=directed,
            num_nodes=int(parts["num_nodes"]) if "num_nodes" in parts else None,
            node_ids=None if by_index else ids,
            features=features_in(parts),
            labels=unpack_ids(parts["labels"]) if "labels" in parts else None,
        )
        if by_index and ids is not None:
            graph = graph.with_parts(node_ids=ids)
        if "sides" in parts:
            graph = graph.with_parts(sides=parts["sides"])
        if "cleaning" in parts:
            graph = graph.with_parts(cleaning=Cleaning(*parts["cleaning"].tolist()))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except MemoryError:
        raise InputError(f"{path}: the graph is too large for the memory that is free.") from None
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise InputError(f"{path}: not a graph ({error}).") from None
    return graph


def _directed_rows(parts: dict[str, AnyArray]) -> tuple[AnyArray, AnyArray | None, bool]:
    """The rows of edges, their weights, and whether they have directions: a row that goes both ways becomes two."""
    edges, weights = parts["edges"], parts.get("weights")
    if "directions" not in parts:
        return edges, weights, False
    directions = parts["directions"]
    if directions.shape != edges.shape[:1] or not np.isin(directions, (FORWARD, BACKWARD, BOTH)).all():
        raise InputError("directions: 1, -1 or 0 is needed for each row of edges.")
    there, back = directions != BACKWARD, directions != FORWARD
    if weights is not None:
        if weights.shape != directions.shape:
            raise InputError("weights: one is needed for each row of edges.")
        share = np.where(directions == BOTH, 0.5, 1.0) * weights
        weights = np.concatenate([share[there], share[back]])
    return np.concatenate([edges[there], edges[back][:, ::-1]]), weights, True


def features_in(parts: dict[str, AnyArray]) -> Any:
    """The features among the arrays of an npz, sparse or dense; None where there are none."""
    found = {name: parts[name] for name in SPARSE_FEATURES if name in parts}
    if not found.keys() - {"num_features"}:
        return parts.get("features")
    missing = next((name for name in SPARSE_FEATURES if name not in found), None)
    if missing:
        raise InputError(f"{missing} is missing; sparse features need {', '.join(SPARSE_FEATURES)}.")
    *columns, num_features = found.values()
    return sp.csr_array(tuple(columns), shape=(len(columns[2]) - 1, int(num_features)))
