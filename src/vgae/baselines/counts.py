"""The scores of all candidate pairs of a heuristic, counted, without a list of the pairs.

    cn, aa, ra   the entries of the sparse product A·W·A, made in blocks of rows by the work that they take; whoever is
                 not in it shares no neighbour and has the score 0
    pa           pairs by the degrees of their ends: there are few different degrees

What is known is taken off again: a pair has the same bits in both ways of computing it. From the counts and the scores
of the held-out links follows precision at K, equal scores in random order, as in vgae.evaluation.all_pairs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from vgae.baselines.best_pairs import BLOCK, work_of
from vgae.baselines.heuristics import DegreeScorer, NeighbourScorer, chunks
from vgae.evaluation.all_pairs import Candidates, Ranker, census
from vgae.evaluation.histogram import Histogram, bins_of
from vgae.evaluation.metrics import Scores
from vgae.graph.pairs import IntArray, num_pairs

MOST_WORK = 1_000_000_000  # additions by which all scores are counted; beyond, those of random rows

Values = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class ScoreCounts:
    """The highest scores, each once and from the highest down, and how many candidates have each."""

    values: Values
    counts: IntArray

    def precision(self, k: int, links: Scores) -> float | None:
        """The expected share of held-out links, given by their scores, among the k best; None if k is too many."""
        ends = np.cumsum(self.counts)
        place = int(np.searchsorted(ends, k))
        if place == len(ends):
            return None
        above, equal = int(ends[place] - self.counts[place]), int(self.counts[place])
        threshold = self.values[place]
        found = (links > threshold).sum() + (links == threshold).sum() * (k - above) / equal
        return float(found / k)


def count_scores(scorer: NeighbourScorer | DegreeScorer, candidates: Candidates, top: int) -> ScoreCounts:
    """The counts of at least the `top` best scores of the candidates, whose known pairs are given once each."""
    known, sides = candidates.known, candidates.sides
    if isinstance(scorer, DegreeScorer):
        counts = _products_of_degrees(scorer, sides)
    elif sides is not None:  # the neighbours of one side are on the other: no two nodes across share any
        second = int(np.count_nonzero(sides))
        counts = ScoreCounts(np.zeros(1, dtype=np.float32), np.array([second * (len(sides) - second)]))
    else:
        counts = _entries_of_product(scorer, top + len(known))
    if candidates.ordered:  # both ways of a pair, with the same score
        counts = ScoreCounts(counts.values, 2 * counts.counts)
    return _without(counts, scorer.logits(known))


def count_all(scorer: Ranker, candidates: Candidates) -> Histogram:
    """How often each score occurs among all candidates, by the shortest way there is."""
    cheap = isinstance(scorer, DegreeScorer) or (isinstance(scorer, NeighbourScorer) and work(scorer) <= MOST_WORK)
    if not cheap or not isinstance(scorer, NeighbourScorer | DegreeScorer):
        return census(scorer, candidates)
    counts = count_scores(scorer, candidates, num_pairs(candidates.num_nodes))
    bins = bins_of(torch.from_numpy(counts.values[::-1].copy())).numpy()
    filled, starts = np.unique(bins, return_index=True)
    return Histogram(filled.astype(np.int64), np.add.reduceat(counts.counts[::-1].astype(np.float64), starts))


def work(scorer: NeighbourScorer) -> int:
    """Additions that counting its scores takes: Σ d²."""
    return int(scorer.neighbourhoods.degrees.astype(np.float64) @ scorer.neighbourhoods.degrees)


def _entries_of_product(scorer: NeighbourScorer, top: int) -> ScoreCounts:
    rows = scorer.rows()
    found, num_entries = ScoreCounts(np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64)), 0
    for start, stop in chunks(work_of(rows), BLOCK):
        product = rows.product(slice(start, stop))
        of_row = np.repeat(np.arange(start, stop), np.diff(product.indptr))
        scores = product.data[(product.indices > of_row) & (product.data > 0)]
        num_entries += len(scores)
        if found.counts.sum() >= top:
            scores = scores[scores >= found.values[-1]]
        found = _best_of(_joined(found, *np.unique(scores, return_counts=True)), top)
    if found.counts.sum() >= top:
        return found
    zeros = num_pairs(rows.num_nodes) - num_entries
    return _joined(found, np.zeros(1, dtype=np.float32), np.array([zeros]))


def _products_of_degrees(scorer: DegreeScorer, sides: np.ndarray | None) -> ScoreCounts:
    nothing = ScoreCounts(np.empty(0, dtype=np.float32), np.empty(0, dtype=np.int64))
    if sides is None:
        degrees, nodes = np.unique(scorer.degrees, return_counts=True)
        i, j = np.triu_indices(len(degrees))
        pairs = np.where(i == j, nodes[i] * (nodes[i] - 1) // 2, nodes[i] * nodes[j])
        return _joined(nothing, (degrees[i] * degrees[j]).astype(np.float32), pairs)
    (first, one), (second, other) = (np.unique(scorer.degrees[sides == side], return_counts=True) for side in (0, 1))
    return _joined(nothing, np.outer(first, second).astype(np.float32).ravel(), np.outer(one, other).ravel())


def _joined(counts: ScoreCounts, values: Values, more: IntArray) -> ScoreCounts:
    """All scores, each once, from the highest down."""
    every = np.concatenate([counts.values, values])
    distinct, places = np.unique(every, return_inverse=True)
    summed = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(summed, places, np.concatenate([counts.counts, more]))
    return ScoreCounts(distinct[::-1], summed[::-1])


def _best_of(counts: ScoreCounts, top: int) -> ScoreCounts:
    """As many of the highest scores as it takes to have so many pairs."""
    enough = int(np.searchsorted(np.cumsum(counts.counts), top)) + 1
    return ScoreCounts(counts.values[:enough], counts.counts[:enough])


def _without(counts: ScoreCounts, scores: Values) -> ScoreCounts:
    """The counts less these scores, as far as they are among the highest."""
    scores = scores[scores >= counts.values[-1]]
    left = _joined(counts, scores, np.full(len(scores), -1))
    filled = left.counts > 0
    return ScoreCounts(left.values[filled], left.counts[filled])
