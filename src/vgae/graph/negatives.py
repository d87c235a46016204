"""Non-links: the pairs of a graph that are not links; of a bipartite graph, those of them that go across.

The pairs are canonical or, of a directed graph, ordered: where a link goes one way only, the other way is a non-link.

The links' ranks r_0 < r_1 < … cut the ranks of all pairs into gaps. The u-th non-link has rank u + (number of links
before it), and r_k - k non-links come before link k; one binary search in r_k - k therefore turns any u into its
non-link. So non-links are drawn exactly, never by trial and error: no link, no self-pair and no duplicate can come
out, whatever the density of the graph.
"""

import numpy as np

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs
from vgae.words import count


def count_non_links(graph: Graph) -> int:
    """How many candidate pairs of the graph are not links."""
    return graph.num_candidate_pairs - graph.num_links


def take_non_links(graph: Graph, positions: IntArray) -> Pairs:
    """The non-links at these positions (0 ≤ position < `count_non_links`) in the order of their ranks."""
    return _take(graph, graph.links, positions)


def sample_non_links(graph: Graph, num: int, generator: np.random.Generator, links: Pairs | None = None) -> Pairs:
    """Distinct non-links, `num` of them, drawn uniformly and in random order.

    Of all candidate pairs those that are no links of the graph, or none of these `links` where they are given, each of
    them once.
    """
    known = graph.links if links is None else links
    return _take(graph, known, draw_positions(graph, num, generator, len(known)))


def draw_positions(graph: Graph, num: int, generator: np.random.Generator, num_known: int) -> IntArray:
    """Positions of distinct pairs among the candidate pairs that are not known; too many are refused."""
    available = require_non_links(graph, num, num_known)
    return generator.choice(available, size=num, replace=False)


def require_non_links(graph: Graph, num: int, num_known: int) -> int:
    """How many candidate pairs are not known; an error where these are fewer than are needed."""
    available = graph.num_candidate_pairs - num_known
    if num and not available:
        raise InputError(
            "The graph is complete: every pair is a link, so there is no pair without a link to score against, and no "
            "new link to recommend; to train on it all the same, hold out nothing (val and test 0)."
        )
    if num > available:
        across = "" if graph.sides is None else " across"
        raise InputError(
            f"The graph has only {count(available, 'pair')}{across} without a link, but {num:,} "
            f"{'is' if num == 1 else 'are'} needed as negatives; hold out fewer links (smaller val and test)."
        )
    return available


def _take(graph: Graph, links: Pairs, positions: IntArray) -> Pairs:
    numbering = graph.candidate_pairs
    ranks = np.sort(numbering.ranks(links))
    return numbering.pairs(positions + np.searchsorted(ranks - np.arange(len(ranks)), positions, side="right"))
