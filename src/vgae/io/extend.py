"""More nodes and links beside those of a graph: what is known keeps its index, what is new comes after.

New nodes come from a table with a row for each, whose columns are those that the graph's own features were made of; new
links from a table whose ends are known or new.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import BACKWARD, FORWARD
from vgae.graph.convert import to_array
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, Pairs
from vgae.io.assemble import LoadedGraph
from vgae.io.bipartite import prefixes_of, sides_with_more
from vgae.io.columns import as_weights, first_true
from vgae.io.features import apply_recipe
from vgae.io.folder import holds_table
from vgae.io.links import read_links_among
from vgae.io.nodes import NodeTable, read_nodes, require_one_row_each
from vgae.io.options import LinkOptions, NodeOptions, require_none_left, take
from vgae.io.plain import as_path
from vgae.io.recipe import FeatureRecipe
from vgae.io.source import Origin, SourceTable
from vgae.io.unpack import enough_memory
from vgae.words import count

OF_LINKS = ("source", "target", "weight", "delimiter", "header")
Weights = npt.NDArray[np.float32] | npt.NDArray[np.float64] | None


def read_more(
    graph: Graph,
    recipe: FeatureRecipe | None,
    *,
    links: str | Path | None = None,
    nodes: str | Path | None = None,
    id: str | None = None,  # noqa: A002 - the option's name
    **options: Any,
) -> LoadedGraph:
    """The graph with the links of one table and the nodes of another added.

    Options for the links are those of `read_links`: source, target, weight, delimiter, header; `id` is the column of
    ids in the table of nodes. Without a `recipe` its other columns are the features as they are, in their order.

    >>> from pathlib import Path
    >>> import vgae
    >>> _ = Path("links.csv").write_text("ann,bob\\nbob,cid\\n")
    >>> _ = Path("more.csv").write_text("ann,cid\\n")
    >>> graph = vgae.read_graph("links.csv")
    >>> vgae.read_more(graph, None, links="more.csv").graph
    Graph(3 nodes, 3 edges)
    """
    given = next((name for name in OF_LINKS if options.get(name) is not None), None)
    of_links = take(LinkOptions, options, OF_LINKS)
    require_none_left("read_more", options)
    if links is None and given is not None:
        raise InputError(f"{given}: this is about a table of links; give one (links).")
    if nodes is None and id is not None:
        raise InputError("id: this is about the columns of a node table; give one (features).")
    with enough_memory(links or nodes):
        names = list(graph.ids)
        known = pa.array([str(name) for name in names], pa.large_string())
        features: Any = graph.features
        node_notes: tuple[str, ...] = ()
        if nodes is not None:
            listed = "coordinates" if recipe is not None and recipe.of_entries else None
            path = as_path(nodes, "nodes")
            asked = NodeOptions(id=id, feature_format=listed if holds_table(path) else None)
            table = read_nodes(path, asked)
            new = pa.concat_arrays(table.ids.cast(pa.large_string()).chunks)
            _require_new(new, known, table.origin)
            more, filled = _features_of(table, recipe, graph.num_features)
            features, node_notes = _stacked(features, more), (*table.notes, *filled)
            names += [int(name) for name in new.to_pylist()] if _are_whole(names, table) else new.to_pylist()
            known = pa.concat_arrays([known, new])
        pairs, weights = _rows_of(graph)
        starts = None if graph.sides is None else prefixes_of(graph.ids, graph.sides)
        added: Pairs = np.empty((0, 2), dtype=np.int64)
        if links is not None:
            where = "the node table has no row for it" if nodes else "there is no table of new nodes (features)"
            otherwise = f"which is not known, and {where}"
            added, read = read_links_among(as_path(links, "links"), known, of_links, otherwise, starts or ("", ""))
            pairs = np.concatenate([pairs, added])
            weights = _with_weights(weights, read, of_links.weight)
        larger = Graph.from_edges(pairs, num_nodes=len(known), weights=weights, directed=graph.directed)
        more_links, more_nodes = larger.num_edges - graph.num_edges, larger.num_nodes - graph.num_nodes
        note = f"{count(more_links, 'link')} and {count(more_nodes, 'node')} added"
        larger = larger.with_parts(features=features, node_ids=to_array(names), labels=_labels_of(graph, len(known)))
        if graph.sides is not None:
            larger = larger.with_parts(sides=sides_with_more(graph.sides, names, starts, added))
        return LoadedGraph(larger, (note,), recipe, None if nodes is None else str(nodes), node_notes)


def _rows_of(graph: Graph) -> tuple[Pairs, Weights]:
    """Rows that make the graph's links again, each in its direction; one in both is two rows of half its weight."""
    pairs, weights = graph.edges, graph.weights
    if graph.directions is None:
        return pairs, weights
    there, back = graph.directions != BACKWARD, graph.directions != FORWARD
    if weights is not None:
        halves = np.where(there & back, weights / 2, weights)
        weights = np.concatenate([halves[there], halves[back]])
    return np.concatenate([pairs[there], pairs[back][:, ::-1]]), weights


def _labels_of(graph: Graph, num_nodes: int) -> AnyArray | None:
    """The labels of so many nodes, of which the new ones have none."""
    if graph.labels is None or num_nodes == graph.num_nodes:
        return graph.labels
    none = graph.labels.dtype.type(-1).item() if graph.labels.dtype.kind == "f" else -1
    return to_array([*graph.labels.tolist(), *[none] * (num_nodes - graph.num_nodes)])


def _require_new(names: pa.Array, known: pa.Array, origin: Origin) -> None:
    """Every row of the node table is about a node of its own, which the graph does not have."""
    row = first_true(pc.is_in(names, value_set=known))
    if row is not None:
        raise InputError(
            f"{origin.at(row)} is about the node {names[row].as_py()!r}, which the graph already has; "
            "leave the row out."
        )
    encoded = names.dictionary_encode()
    ids = np.array(encoded.dictionary.to_pylist(), dtype=object)
    require_one_row_each(encoded.indices.to_numpy().astype(np.int64), ids, origin)


def _features_of(table: NodeTable, recipe: FeatureRecipe | None, num_features: int) -> tuple[Any, tuple[str, ...]]:
    """The features of new nodes, and what was filled in or unknown."""
    recipe = recipe or FeatureRecipe(())
    width = table.columns.num_columns if table.entries is None else table.entries.matrix.shape[1]
    if not recipe.columns and width != num_features:
        raise InputError(
            f"{table.origin.name}: {count(width, 'column')} besides the ids, but the model was "
            f"trained on {count(num_features, 'feature')}."
        )
    made = apply_recipe(recipe, table, np.arange(len(table.ids)))
    return made.matrix, made.notes


def _stacked(old: Any, new: Any) -> Any:
    """Features below one another, sparse if the first are."""
    if sp.issparse(old):
        return sp.vstack([old, sp.csr_array(new)], format="csr")
    return np.concatenate([old, new.toarray() if sp.issparse(new) else new])


def _are_whole(names: list[Any], table: NodeTable) -> bool:
    """Whether ids are whole numbers, the known ones and the new."""
    text = table.ids.cast(pa.large_string())
    return (
        all(isinstance(name, int) for name in names)
        and pc.all(pc.match_substring_regex(text, r"^-?(0|[1-9][0-9]{0,17})$")).as_py()
    )


def _with_weights(old: Weights, table: SourceTable, weight: str | None) -> Weights:
    """The weights of all links: the new ones have some where the old ones do."""
    if (old is None) != (weight is None):
        words = "have no weights, so new ones cannot have any" if old is None else "have weights; name the column"
        raise InputError(f"weight: the links of this graph {words}.")
    if old is None or weight is None:
        return None
    return np.concatenate([old, as_weights(table.origin, table.column(table.place_of(weight)), weight)])
