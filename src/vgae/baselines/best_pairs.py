"""The best new pairs of a neighbourhood heuristic, without a dense row.

Only pairs that share a neighbour have a score above 0, and those are the entries of the sparse product A·W·A, which is
made in blocks of rows by the work that they take: a hub's neighbours reach all of each other, so that the product can
have N² entries, and a block of it never has many. A row whose neighbours do not weigh enough together is passed over.
Where fewer pairs than asked for share a neighbour, pairs of score 0 fill the list. The order is that of vgae.ops.topk:
higher scores first; of equal ones the smaller row, then the smaller column.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from vgae.baselines.heuristics import NeighbourRows, chunks
from vgae.graph.pairs import IntArray, Pairs, contains, distinct, from_ranks, num_pairs

BLOCK = 4_000_000  # additions at a time, which bounds the entries of a block


def work_of(rows: NeighbourRows) -> IntArray:
    """Additions that each row of the product takes: Σ_{n ∈ Γ(i)} d_n."""
    degrees = np.diff(rows.adjacency.indptr).astype(np.float64)
    return np.asarray(rows.adjacency @ degrees).astype(np.int64)


def best_pairs(rows: NeighbourRows, top: int, known: IntArray) -> Pairs:
    """The best `top` pairs, row before column, or as many as there are; `known` ranks (sorted) are left out."""
    num_nodes, reach = rows.num_nodes, _reach(rows)
    best, values = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
    for start, stop in chunks(work_of(rows), BLOCK):
        if len(values) == top and reach[start:stop].max() <= values[-1]:
            continue
        ranks, scores = _entries(rows, start, stop)
        if len(values) == top:  # what equals the worst that is in comes after it
            better = scores > values[-1]
            ranks, scores = ranks[better], scores[better]
        elif len(scores) > top:  # what cannot be among the best, however many of the better ones are known
            first, after = _ranks_of_row(start, num_nodes), _ranks_of_row(stop, num_nodes)
            enough = top + int(np.searchsorted(known, after) - np.searchsorted(known, first))
            if enough < len(scores):
                better = scores >= np.partition(scores, -enough)[-enough]
                ranks, scores = ranks[better], scores[better]
        new = ~contains(known, ranks)
        best, values = np.concatenate([best, ranks[new]]), np.concatenate([values, scores[new]])
        order = np.lexsort((best, -values))[:top]
        best, values = best[order], values[order]
    if len(best) < top:
        best = np.concatenate(
            [best, _first_without(distinct(np.concatenate([known, best])), top - len(best), num_nodes)]
        )
    return from_ranks(best, num_nodes)


def _reach(rows: NeighbourRows) -> npt.NDArray[np.float32]:
    """What no score of a row can exceed: Σ_{n ∈ Γ(i)} w_n, added in the order of the scores, so rounded alike."""
    return np.asarray(rows.weighted @ np.ones(rows.num_nodes)).astype(np.float32)


def _entries(rows: NeighbourRows, start: int, stop: int) -> tuple[IntArray, npt.NDArray[np.float32]]:
    """Ranks and scores of the pairs of some rows that share a neighbour, in the upper triangle."""
    product = rows.product(slice(start, stop))
    i = np.repeat(np.arange(start, stop, dtype=np.int64), np.diff(product.indptr))
    j = product.indices
    upper = (j > i) & (product.data > 0)
    i, j = i[upper], j[upper]
    return _ranks_of_row(i, rows.num_nodes) + (j - i - 1), product.data[upper]


def _ranks_of_row(row: IntArray | int, num_nodes: int) -> IntArray | int:
    """The rank of the first pair of a row."""
    return row * (2 * num_nodes - row - 1) // 2


def _first_without(taken: IntArray, num: int, num_nodes: int) -> IntArray:
    """The first ranks that are not among those taken (sorted); the k-th of these has rank - k free ones before it."""
    places = np.arange(min(num, num_pairs(num_nodes) - len(taken)), dtype=np.int64)
    return places + np.searchsorted(taken - np.arange(len(taken)), places, side="right")
