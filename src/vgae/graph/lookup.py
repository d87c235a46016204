"""Which nodes are meant, by their indices or their ids; one rule, wherever nodes are named.

whole numbers     are node indices, whatever the ids of the graph are
everything else   is an id; text finds the id that it is or, where no id is that text, the id that reads so:
                  "31336" is the node with the id 31336
ids=True          whatever is given is an id, whole numbers too
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

import numpy as np

from vgae.errors import InputError
from vgae.graph.convert import as_numpy
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs, as_pairs, check_nodes, check_pairs
from vgae.options import true_or_false, whole_number
from vgae.words import shown

NAMES = (str, bytes, tuple)  # types that no index has
MOST_COMPARED = 20_000  # ids, in looking for near ones; to compare all of a million would take a minute
MOST_SHOWN = 40  # characters of an id in a sentence


def find_pairs(graph: Graph, pairs: Any, what: str = "pairs", *, ids: bool = False) -> Pairs:
    """Pairs of nodes as M×2 indices, or an error that names the first row that is wrong."""
    given = as_numpy(pairs, what)
    if not true_or_false(ids, "ids") and not _holds_names(given):
        found = as_pairs(given, what)
        outside = ((found < 0) | (found >= graph.num_nodes)).any(axis=1)
        if outside.any() and _has_whole_ids(graph):
            row = int(outside.argmax())
            i, j = found[row].tolist()
            raise InputError(f"{what}: row {row} is ({i}, {j}), but {_indices(graph)}.")
        return check_pairs(found, graph.num_nodes, what)
    ends = [end for row in _rows_of_two(given, what) for end in row]
    places = _places(graph, ends, ids, lambda place: f"{what}: row {place // 2} names")
    return np.array(places, dtype=np.int64).reshape(-1, 2)


def find_nodes(graph: Graph, nodes: Any, what: str = "nodes", *, ids: bool = False) -> list[int]:
    """Different nodes, at least one, as indices."""
    given = as_numpy(nodes, what)
    if isinstance(given, NAMES[:2]):
        raise InputError(f"{what}: a list of nodes is needed; write [{shown(given)}].")
    if not true_or_false(ids, "ids") and not _holds_name(given):
        found = _check_nodes(graph, given, what)
    else:
        try:
            given = list(given)
        except TypeError:
            raise InputError(f"{what}: a list of nodes is needed, got {shown(nodes)}.") from None
        found = _places(graph, given, ids, lambda _: f"{what}:")
    if not found:
        raise InputError(f"{what}: none is given; name at least one, or leave {what} out for the best of all links.")
    if len(set(found)) < len(found):
        first = {node: place for place, node in reversed(list(enumerate(found)))}
        twice = next(place for place, node in enumerate(found) if first[node] != place)
        raise InputError(f"{what}: {shown(list(given)[twice])} is given twice; name each node once.")
    return found


def find_node(graph: Graph, node: Any, what: str = "node", *, ids: bool = False) -> int:
    """One node as an index."""
    if true_or_false(ids, "ids") or isinstance(node, NAMES):
        return _places(graph, [node], ids, lambda _: f"{what}:")[0]
    if _has_whole_ids(graph) and isinstance(node, int | np.integer) and not 0 <= node < graph.num_nodes:
        raise InputError(f"{what}: {shown(node)} was given, but {_indices(graph)}.")
    return whole_number(node, what, 0, graph.num_nodes - 1)


def is_name(node: Any, ids: bool) -> bool:
    """Whether a node is named by its id, so that answers name nodes by theirs."""
    return ids or isinstance(node, NAMES)


# -------------------------------------------------------------------------------------------------------------- inside


def _places(graph: Graph, nodes: Sequence[Any], ids: bool, where: Callable[[int], str]) -> list[int]:
    """The indices of nodes, each by its index or id; `where` begins the sentence about one that does not exist."""
    if set(map(type, nodes)) == {str}:  # nearly always, and far faster at once
        at_once = list(map(graph.place_of, nodes))
        if None not in at_once:
            return [place for place in at_once if place is not None]
    found = []
    for place, given in enumerate(nodes):
        node = given.item() if isinstance(given, np.generic) else given
        if type(node) is int and not ids:
            if not 0 <= node < graph.num_nodes:
                raise InputError(f"{where(place)} {shown(node)}, but {_indices(graph)}.")
            found.append(node)
            continue
        if not ids and not isinstance(node, NAMES):
            raise InputError(
                f"{where(place)} {shown(node)}; a node is named by its index, a whole number, or by its id, a text."
            )
        try:
            index = graph.place_of(node)
        except TypeError:
            raise InputError(f"{where(place)} {shown(node)}, which can be no id.") from None
        if index is None:
            raise InputError(f"{where(place)} {_short(node)}, which is not the id of a node; {_nearest(graph, node)}")
        found.append(index)
    return found


def _holds_names(pairs: Any) -> bool:
    """Whether rows of pairs name any node by an id."""
    if isinstance(pairs, np.ndarray):
        return pairs.dtype.kind in "OSU" and pairs.size > 0
    if not isinstance(pairs, list | tuple):
        return False
    return any(isinstance(row, str | bytes) or (isinstance(row, list | tuple) and _holds_name(row)) for row in pairs)


def _holds_name(nodes: Any) -> bool:
    """Whether a list of nodes names any by its id."""
    if isinstance(nodes, np.ndarray):
        return nodes.dtype.kind in "OSU" and nodes.size > 0
    return isinstance(nodes, Iterable) and any(isinstance(node, NAMES) for node in nodes)


def _rows_of_two(pairs: Any, what: str) -> list[Any]:
    """Rows of two nodes, whatever names these."""
    if isinstance(pairs, np.ndarray):
        if pairs.size and (pairs.ndim != 2 or pairs.shape[1] != 2):
            raise InputError(f"{what}: expected two columns of nodes, got an array of shape {pairs.shape}.")
        return list(pairs.tolist()) if pairs.size else []
    try:
        rows = list(pairs)
    except TypeError:
        raise InputError(f"{what}: expected rows of two nodes, got {shown(pairs)}.") from None
    for place, row in enumerate(rows):
        if isinstance(row, str | bytes) or not hasattr(row, "__len__") or len(row) != 2:
            raise InputError(f"{what}: row {place} is {shown(row)}, which is no pair of nodes; give a list of pairs.")
    return rows


def _check_nodes(graph: Graph, nodes: Any, what: str) -> list[int]:
    """Node indices, as they were given."""
    if _has_whole_ids(graph) and isinstance(nodes, list | tuple | np.ndarray):
        whole = (node for node in nodes if isinstance(node, int | np.integer))
        outside = next((node for node in whole if not 0 <= node < graph.num_nodes), None)
        if outside is not None:
            raise InputError(f"{what}: {shown(outside)} was given, but {_indices(graph)}.")
    return check_nodes(nodes, graph.num_nodes)


def _has_whole_ids(graph: Graph) -> bool:
    return graph.node_ids is not None and graph.node_ids.dtype.kind in "iu"


def _indices(graph: Graph) -> str:
    """What whole numbers are, for a sentence about one that is none of them."""
    hint = "; whole numbers are indices, so give ids as text or with ids=True" * (graph.node_ids is not None)
    return f"node indices run from 0 to {graph.num_nodes - 1}{hint}"


def _nearest(graph: Graph, node: Any) -> str:
    """Ids that may have been meant, or what ids look like."""
    wanted = str(node).strip().casefold()
    texts = (str(name) for name in graph.ids)
    if graph.num_nodes > MOST_COMPARED:  # those with the same first letter, most likely
        texts = (text for text in texts if text[:1].casefold() == wanted[:1])
    by_text = {text.strip().casefold(): text for text in islice(texts, MOST_COMPARED)}
    near = get_close_matches(wanted, by_text, n=3)
    if near:
        return f"did you mean {' or '.join(_short(by_text[name]) for name in near)}?"
    return f"ids look like {', '.join(_short(name) for name in graph.ids[:3])}."


def _short(name: Any) -> str:
    """An id as it is written in Python, cut if it is long."""
    text = repr(name)
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
