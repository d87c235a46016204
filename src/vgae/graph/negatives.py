"""Non-links: the canonical pairs of a graph that are not edges; of a bipartite graph, those of them that go across.

The edges' ranks r_0 < r_1 < … cut the ranks of all pairs into gaps. The u-th non-link has rank u + (number of edges
before it), and r_k - k non-links come before edge k; one binary search in r_k - k therefore turns any u into its
non-link. So non-links are drawn exactly, never by trial and error: no edge, no self-pair and no duplicate can come
out, whatever the density of the graph.

Pairs across are numbered row by row too: with nodes a = 0, 1, … of one side and b = 0, 1, … < n of the other, the rank
of a pair is a·n + b.
"""

import numpy as np

from vgae.errors import InputError
from vgae.graph.checks import SideArray
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, canonical, from_ranks, to_ranks
from vgae.words import count


def count_non_links(graph: Graph) -> int:
    """How many candidate pairs of the graph are not edges."""
    return graph.num_candidate_pairs - graph.num_edges


def take_non_links(graph: Graph, positions: IntArray) -> Pairs:
    """The non-links at these positions (0 ≤ position < `count_non_links`) in the order of their ranks."""
    if graph.sides is not None:
        return _take_across(graph, graph.sides, positions)
    non_links_before = to_ranks(graph.edges, graph.num_nodes) - np.arange(graph.num_edges)
    ranks = positions + np.searchsorted(non_links_before, positions, side="right")
    return from_ranks(ranks, graph.num_nodes)


def _take_across(graph: Graph, sides: SideArray, positions: IntArray) -> Pairs:
    first, second = np.flatnonzero(sides == 0), np.flatnonzero(sides == 1)
    place = np.empty(graph.num_nodes, dtype=np.int64)  # of each node on its own side
    place[first], place[second] = np.arange(len(first)), np.arange(len(second))
    i, j = graph.edges[:, 0], graph.edges[:, 1]
    start, end = np.where(sides[i] == 0, i, j), np.where(sides[i] == 0, j, i)
    links = np.sort(place[start] * len(second) + place[end])
    ranks = positions + np.searchsorted(links - np.arange(len(links)), positions, side="right")
    a, b = np.divmod(ranks, max(1, len(second)))
    return canonical(np.stack([first[a], second[b]], axis=1))


def sample_non_links(graph: Graph, num: int, generator: np.random.Generator) -> Pairs:
    """Distinct non-links, `num` of them, drawn uniformly and in random order."""
    available = count_non_links(graph)
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
    return take_non_links(graph, generator.choice(available, size=num, replace=False))
