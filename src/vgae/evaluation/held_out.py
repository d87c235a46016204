"""Held-out pairs that somebody gives: whether they are what they should be, and what a model has seen of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, check_pairs, contains, distinct, num_pairs
from vgae.graph.split import HeldOut


def check_held_out(given: Any, num_nodes: int, what: str) -> HeldOut:
    """Held-out pairs of a graph of so many nodes; else an error that says what is needed."""
    given = require_held_out(given, what)
    links, non_links = (
        check_pairs(pairs, num_nodes, f"{what}, {name}")
        for name, pairs in (("links", given.links), ("non_links", given.non_links))
    )
    total = given.num_graph_links
    if total is not None and not (type(total) is int and 0 <= total <= 2 * num_pairs(num_nodes)):
        raise InputError(f"{what}: num_graph_links should be a number of links among {num_nodes} nodes, got {total!r}.")
    return HeldOut(links, non_links, total)


def require_held_out(given: Any, what: str) -> HeldOut:
    """Held-out pairs of whatever graph."""
    if not isinstance(given, HeldOut):
        raise InputError(
            f"{what}: held-out pairs are needed, such as split.val or split.test, not {type(given).__name__}."
        )
    return given


def num_links_among(pairs: Pairs, graph: Graph) -> int:
    """How many of these pairs are links of the graph; in either direction where it has none."""
    return int(contains(graph.all_pairs.ranks(graph.links), _ranks(pairs, graph)).sum())


def require_unseen(validation: HeldOut, graph: Graph) -> None:
    """Refuse validation pairs that a training on this graph would see, or that cannot be told apart."""
    if not validation:
        return
    if not len(validation.links) or not len(validation.non_links):
        raise InputError(
            f"validation: links and non-links are needed, got {len(validation.links)} links and "
            f"{len(validation.non_links)} non-links; leave validation out to train without."
        )
    if bool((validation.pairs[:, 0] == validation.pairs[:, 1]).any()):
        raise InputError("validation: there is a pair of a node with itself, which can be no link.")
    seen = num_links_among(validation.links, graph)
    if seen:
        raise InputError(
            f"validation: {seen:,} of its {len(validation.links):,} links are links of the graph to train on, which "
            "would learn what it is judged by; fit the training graph of the split (split.train)."
        )
    wrong = num_links_among(validation.non_links, graph)
    if wrong:
        raise InputError(
            f"validation: {wrong:,} of its {len(validation.non_links):,} non-links are links of the graph to train on."
        )
    both = int(contains(distinct(_ranks(validation.links, graph)), _ranks(validation.non_links, graph)).sum())
    if both:
        raise InputError(f"validation: {both:,} pairs are given as links and as non-links.")


def have_links(graph: Graph, pairs: Pairs) -> npt.NDArray[np.bool_]:
    """Which of these pairs have a link of the graph at both of their nodes."""
    degrees = np.diff(graph.adjacency.indptr)
    both: npt.NDArray[np.bool_] = (degrees[pairs] > 0).all(axis=1)
    return both


def _ranks(pairs: Pairs, graph: Graph) -> IntArray:
    """Ranks of pairs as the graph numbers them, those of a node with itself left out."""
    return graph.all_pairs.ranks(np.asarray(pairs[pairs[:, 0] != pairs[:, 1]]))
