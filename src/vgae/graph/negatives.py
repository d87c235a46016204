"""Non-links: the canonical pairs of a graph that are not edges.

The edges' ranks r_0 < r_1 < … cut the ranks of all pairs into gaps. The u-th non-link has rank u + (number of edges
before it), and r_k - k non-links come before edge k; one binary search in r_k - k therefore turns any u into its
non-link. So non-links are drawn exactly, never by trial and error: no edge, no self-pair and no duplicate can come
out, whatever the density of the graph.
"""

import numpy as np

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, from_ranks, num_pairs, to_ranks
from vgae.words import count


def count_non_links(graph: Graph) -> int:
    """How many canonical pairs of the graph are not edges."""
    return num_pairs(graph.num_nodes) - graph.num_edges


def take_non_links(graph: Graph, positions: IntArray) -> Pairs:
    """The non-links at these positions (0 ≤ position < `count_non_links`) in the order of their ranks."""
    non_links_before = to_ranks(graph.edges, graph.num_nodes) - np.arange(graph.num_edges)
    ranks = positions + np.searchsorted(non_links_before, positions, side="right")
    return from_ranks(ranks, graph.num_nodes)


def sample_non_links(graph: Graph, num: int, generator: np.random.Generator) -> Pairs:
    """Distinct non-links, `num` of them, drawn uniformly and in random order."""
    available = count_non_links(graph)
    if num > available:
        raise InputError(
            f"The graph has only {count(available, 'pair')} without a link, but {num:,} are needed as negatives; "
            "hold out fewer links (smaller val and test)."
        )
    return take_non_links(graph, generator.choice(available, size=num, replace=False))
