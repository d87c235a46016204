"""The first stage: which of all pairs are worth being described, found without describing them all.

Where there are few candidates (`SHARING`), all of them. Else the pairs that share a neighbour, the best of them by
resource allocation, and the favourites of each base that ranks all pairs at the cost of a product of matrices. In a
bipartite graph no candidate shares a neighbour: there it is the pairs with a path of three links between them. What is
on neither list is never recommended; how many of some links are on it, `first_stage_recall` counts.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch

from vgae.baselines.best_pairs import best_pairs
from vgae.baselines.heuristics import resource_allocation
from vgae.baselines.paths import Paths
from vgae.evaluation.all_pairs import Candidates
from vgae.evaluation.evaluate import RowScorer
from vgae.graph.graph import Graph
from vgae.graph.numbering import AllPairs, Numbering, PairsAcross
from vgae.graph.pairs import IntArray, Pairs, canonical, distinct, num_pairs
from vgae.ops import top_of_all, top_of_each_row
from vgae.ops.rows import BLOCK
from vgae.stack.bases import FittedBases

MOST_PAIRS = 5_000_000_000  # of a graph whose pairs are all ranked by a base; of a larger one, those of some rows
SHARING = 300_000  # pairs that share a neighbour
FIRST_STAGE = 20_000  # favourites of each base, at least
PER_NODE = 200  # candidates of a node by each base


def favourites(bases: FittedBases, candidates: Candidates, top: int) -> Pairs:
    """The best new pairs of each base that ranks all pairs, and of those that are near each other; with repetitions."""
    lists = [_best_near(bases.graph, candidates, top)]
    lists += [_best_of(scorer, candidates, top) for scorer in bases.row_scorers()]
    return canonical(np.concatenate(lists))


def shortlist(bases: FittedBases, candidates: Candidates, top: int) -> Pairs:
    """The pairs to describe, each once: at least `top`, as far as there are so many candidates."""
    numbering, known = numbered(candidates)
    if numbering.size - len(known) <= max(SHARING, top):
        return numbering.pairs(free_ranks(known, numbering.size))
    near = _best_near(bases.graph, candidates, SHARING)
    found = distinct(numbering.ranks(np.concatenate([near, favourites(bases, candidates, top)])))
    if len(found) < top:  # nothing speaks for any more of them: some, so that there are as many as were asked for
        others = free_ranks(np.sort(np.concatenate([known, found])), numbering.size, top - len(found))
        found = np.sort(np.concatenate([found, others]))
    return numbering.pairs(found)


def shortlist_of_nodes(bases: FittedBases, candidates: Candidates, nodes: list[int], top: int) -> Pairs:
    """The same for each of some nodes, which come first in their pairs."""
    num_nodes, candidates = bases.graph.num_nodes, replace(candidates, ordered=False)
    lists = [np.empty((0, 2), dtype=np.int64)]
    for scorer in (_nearness(bases.graph, candidates), *bases.row_scorers()) if nodes else ():
        rows = scorer.rows()
        excluded = candidates.excluded(rows.device)
        with torch.no_grad():
            found = top_of_each_row(rows, top=max(top, PER_NODE), rows=nodes, excluded=excluded)
        lists.append(found.pairs.cpu().numpy())
    pairs = np.concatenate(lists)
    return np.stack(np.divmod(distinct(pairs[:, 0] * num_nodes + pairs[:, 1]), num_nodes), axis=1)


def numbered(candidates: Candidates) -> tuple[Numbering, IntArray]:
    """Numbers for all pairs that could be links, without regard to direction, and those of the known ones, sorted."""
    known, sides = candidates.known, candidates.sides
    if sides is not None:
        return PairsAcross(sides), distinct(PairsAcross(sides).ranks(known[sides[known[:, 0]] != sides[known[:, 1]]]))
    every = AllPairs(candidates.num_nodes)
    return every, distinct(every.ranks(known[known[:, 0] != known[:, 1]]))


def free_ranks(taken: IntArray, size: int, num: int | None = None) -> IntArray:
    """The ranks below `size` that are not taken (sorted), or so many of them: at random, each once, always the same."""
    free = size - len(taken)
    if num is None or num >= free:
        chosen = np.arange(free, dtype=np.int64)
    else:
        chosen = np.sort(np.random.default_rng(0).choice(free, size=num, replace=False))
    return chosen + np.searchsorted(taken - np.arange(len(taken)), chosen, side="right")


def _best_near(graph: Graph, candidates: Candidates, top: int) -> Pairs:
    """Candidates sharing a neighbour, the best by resource allocation; of a bipartite graph, with a path of three."""
    if candidates.sides is not None:
        paths = Paths.of(graph)
        pairs = canonical(_best_of(paths, candidates, top))
        return pairs[paths.logits(pairs) > 0]
    scorer = resource_allocation(graph)
    pairs = best_pairs(scorer.rows(), top, numbered(candidates)[1])
    return pairs[scorer.logits(pairs) > 0]


def _nearness(graph: Graph, candidates: Candidates) -> RowScorer:
    return resource_allocation(graph) if candidates.sides is None else Paths.of(graph)


def _best_of(scorer: RowScorer, candidates: Candidates, top: int) -> Pairs:
    """The best pairs of a scorer that is symmetric; in a graph with too many pairs, the best of some rows."""
    rows, candidates = scorer.rows(), replace(candidates, ordered=False)
    excluded, num_nodes = candidates.excluded(rows.device), rows.num_nodes
    with torch.no_grad():
        if num_pairs(num_nodes) <= MOST_PAIRS:
            return top_of_all(rows, top=top, symmetric=True, excluded=excluded).pairs.cpu().numpy()
        number = max(1, MOST_PAIRS // num_nodes)
        chosen = np.sort(np.random.default_rng(0).choice(num_nodes, size=number, replace=False))
        is_chosen = torch.zeros(num_nodes, dtype=torch.bool, device=rows.device)
        is_chosen[torch.from_numpy(chosen)] = True
        pairs, logits = torch.empty(0, 2, dtype=torch.int64, device=rows.device), torch.empty(0, device=rows.device)
        for part in np.array_split(chosen, -(-number * num_nodes // BLOCK)):
            found = top_of_each_row(rows, top=top, rows=part.tolist(), excluded=excluded)
            once = ~is_chosen[found.pairs[:, 1]] | (found.pairs[:, 0] < found.pairs[:, 1])
            pairs, logits = torch.cat([pairs, found.pairs[once]]), torch.cat([logits, found.logits[once]])
            best = logits.argsort(descending=True, stable=True)[:top]
            pairs, logits = pairs[best], logits[best]
    return pairs.cpu().numpy()
