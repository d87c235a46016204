"""The first stage: which of all pairs are worth being described, found without describing them all.

Pairs that share a neighbour, the best of them by resource allocation, and the favourites of each base that ranks all
pairs at the cost of a product of matrices. What is on neither list is never recommended; how many of the held-out links
are, `FittedStack.recall` counts.
"""

from __future__ import annotations

import numpy as np
import torch

from vgae.baselines.best_pairs import best_pairs
from vgae.baselines.heuristics import NeighbourScorer, resource_allocation
from vgae.evaluation.all_pairs import Candidates
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, distinct
from vgae.ops import top_of_all, top_of_each_row
from vgae.stack.bases import FittedBases

MOST_PAIRS = 5_000_000_000  # of a graph whose pairs are all ranked by a base; of a larger one, those of some rows
SHARING = 300_000  # pairs that share a neighbour
PER_NODE = 200  # candidates of a node by each base


def favourites(bases: FittedBases, candidates: Candidates, top: int) -> Pairs:
    """The best new pairs of each base that ranks all pairs, and of resource allocation; one after another."""
    lists = [_best_sharing(bases.graph, candidates, top)]
    for scorer in bases.row_scorers():
        rows = scorer.rows()
        excluded = candidates.excluded(rows.device)
        with torch.no_grad():
            if rows.num_nodes * (rows.num_nodes - 1) // 2 <= MOST_PAIRS:
                found = top_of_all(rows, top=top, symmetric=scorer.symmetric, excluded=excluded)
            else:
                number = max(1, MOST_PAIRS // rows.num_nodes)
                chosen = np.random.default_rng(0).choice(rows.num_nodes, size=number, replace=False)
                each = max(1, -(-top // number))
                found = top_of_each_row(rows, top=each, rows=np.sort(chosen).tolist(), excluded=excluded)
        lists.append(found.pairs.cpu().numpy())
    return np.concatenate(lists)


def shortlist(bases: FittedBases, candidates: Candidates, top: int) -> Pairs:
    """The pairs to describe: those that share a neighbour, and so many favourites of each base; each once."""
    graph = bases.graph
    pairs = np.concatenate([_best_sharing(graph, candidates, SHARING), favourites(bases, candidates, top)])
    return graph.all_pairs.pairs(distinct(graph.all_pairs.ranks(pairs)))


def shortlist_of_nodes(bases: FittedBases, candidates: Candidates, nodes: list[int], top: int) -> Pairs:
    """The same for each of some nodes, which come first in their pairs."""
    top = max(top, PER_NODE)
    scorers = [resource_allocation(bases.graph), *bases.row_scorers()]
    lists = []
    for scorer in scorers:
        rows = scorer.rows()
        with torch.no_grad():
            found = top_of_each_row(rows, top=top, rows=nodes, excluded=candidates.excluded(rows.device))
        lists.append(found.pairs.cpu().numpy())
    pairs = np.concatenate(lists)
    codes = distinct(pairs[:, 0] * bases.graph.num_nodes + pairs[:, 1])
    return np.stack(np.divmod(codes, bases.graph.num_nodes), axis=1)


def _best_sharing(graph: Graph, candidates: Candidates, top: int) -> Pairs:
    """Candidates that share a neighbour, the best by resource allocation; of a bipartite graph there are none."""
    if candidates.sides is not None:
        return np.empty((0, 2), dtype=np.int64)
    scorer: NeighbourScorer = resource_allocation(graph)
    known = candidates.known[candidates.known[:, 0] != candidates.known[:, 1]]
    ranks: IntArray = distinct(graph.all_pairs.ranks(known))
    pairs = best_pairs(scorer.rows(), top, ranks)
    return pairs[scorer.logits(pairs) > 0]
