"""How good a ranking of all candidate pairs is: what a user takes from it is its top, which no sample of pairs shows.

Candidates are all pairs but the known ones (the training graph's links and, when test links are ranked, validation's)
and those of a node with itself. With L held-out links among them:

    precision@K   share of the K best candidates that are held-out links
    recall@K      share of the held-out links that are among the K best candidates
    MRR, Hits@K   each held-out link is ranked from both of its ends: among all candidates of the one end, other
                  held-out links of that end left out ("filtered"), the rank of the other; mean of 1/rank, and the
                  share with a rank of at most K. Ties are taken at their middle.

Where candidates are ordered, as those of a directed graph are, both ways of a pair are two candidates, and a link is
ranked from its source alone, among all targets.

For precision and recall, equal scores are in random order: where the K-th best score is that of several candidates,
each of them is as likely to be taken as any other, and the expectation is reported. A heuristic that gives one score to
half of all pairs is neither rewarded nor punished for the numbering of the nodes.

A scorer with a first stage (`ListScorer`) ranks the candidates on its list and no others: a held-out link that is not
on it counts as ranked below all. How many are, is the recall of the first stage; there are no ranks by node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.evaluation.evaluate import RowScorer, Scorer
from vgae.evaluation.histogram import Counter, Histogram
from vgae.evaluation.promising import promising_blocks
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, canonical
from vgae.ops import Best, Block, Excluded, LogitRows, blocks_of
from vgae.ops.rows import BLOCK

MOST_PAIRS = 500_000_000  # candidates that are counted in a histogram; of more, those of so many random rows
MOST_RANKED = 20_000_000_000  # candidates that the command ranks without being asked twice
TOP = (10, 100, 1000)
HITS = (1, 10, 50, 100)
FIRST_STAGE_RECALL = "first_stage_recall"  # share of the links that the first stage of a scorer has found


@dataclass(frozen=True, eq=False)
class Candidates:
    """The pairs that are ranked: all of N nodes, or all across two sides, but the known ones."""

    num_nodes: int
    known: Pairs
    sides: np.ndarray | None = None
    ordered: bool = False  # the two ways of a pair are two candidates, and a known pair is known one way

    @classmethod
    def of(cls, graph: Graph, known: Pairs | None = None) -> Candidates:
        """The pairs of a graph but its links, or but these; ordered where the graph is directed."""
        return cls(graph.num_nodes, graph.links if known is None else known, graph.sides, graph.directed)

    def codes(self, pairs: Pairs) -> IntArray:
        """A number for each pair, by which pairs are compared; one for both ways of a pair unless they are ordered."""
        ends = pairs if self.ordered else canonical(pairs)
        return np.asarray(ends[:, 0] * self.num_nodes + ends[:, 1])

    def each_once(self, scorer: Ranker) -> bool:
        """Whether a look at one half of all ordered pairs is enough."""
        return scorer.symmetric and not self.ordered

    def excluded(self, device: torch.device, more: Pairs | None = None) -> Excluded:
        """What is left out of blocks of rows; `more` pairs beside the known ones."""
        known = self.known if more is None else np.concatenate([self.known, more])
        return Excluded.of(known, self.num_nodes, device, self.sides, ordered=self.ordered)


@dataclass(frozen=True, eq=False)
class Sweep:
    """What one sweep over all candidates finds: the best, and the logits of marked pairs.

    Those of marked pairs that are worse than all of the best may be minus infinity.
    """

    best: Best
    marked: Tensor


@dataclass(frozen=True, eq=False)
class Listed:
    """The pairs of a first stage, each once, and their logits: all that such a scorer ranks."""

    pairs: Pairs
    logits: npt.NDArray[np.float32]


@runtime_checkable
class ListScorer(Scorer, Protocol):
    """A scorer that is too slow for all pairs: it ranks those that a first stage of its own has found."""

    @property
    def symmetric(self) -> bool:
        """Whether the two directions of a pair have one score."""

    def listed(self, candidates: Candidates, top: int = 0) -> Listed:
        """The candidates that it ranks, at least so many where there are as many."""

    def listed_for(self, candidates: Candidates, nodes: list[int], top: int) -> Listed:
        """The same for each of some nodes, which come first in their pairs."""

    def histogram(self, candidates: Candidates, listed: Listed) -> Histogram:
        """How often each logit occurs among all candidates, as far as that can be known."""


Ranker = RowScorer | ListScorer  # whatever can rank all pairs, or those of a first stage


def sweep(scorer: Ranker, candidates: Candidates, marked: Pairs, top: int) -> Sweep:
    """Look at every candidate that could be among the best; marked pairs are candidates themselves."""
    if isinstance(scorer, ListScorer):
        return sweep_list(scorer.listed(candidates, top), candidates, marked, top)
    source = scorer.rows()
    excluded = candidates.excluded(source.device)
    each_once = candidates.each_once(scorer)
    places = _Places(marked, source, symmetric=each_once)
    best = Best(top, source.device, ties=True)
    with torch.no_grad():
        for block in promising_blocks(source, excluded, symmetric=each_once, top=top):
            best.add(block)
            places.read(block)
    return Sweep(best, places.logits)


def sweep_list(listed: Listed, candidates: Candidates, marked: Pairs, top: int) -> Sweep:
    """The same for the candidates of a first stage; marked pairs that it has not found are at minus infinity."""
    codes, asked = candidates.codes(listed.pairs), candidates.codes(marked)
    order = np.argsort(codes)
    places = np.minimum(np.searchsorted(codes, asked, sorter=order), max(len(codes) - 1, 0))
    logits = np.full(len(marked), -np.inf, dtype=np.float32)
    if len(codes):
        found = order[places]
        logits = np.where(codes[found] == asked, listed.logits[found], logits)
    best = Best.of(torch.from_numpy(listed.pairs), torch.from_numpy(listed.logits), top)
    return Sweep(best, torch.from_numpy(logits))


def recall_of(found: Sweep) -> dict[str, float]:
    """Which share of the marked pairs is on the list of a first stage."""
    return {FIRST_STAGE_RECALL: float(torch.isfinite(found.marked).double().mean())}


def census(scorer: Ranker, candidates: Candidates, most: int = MOST_PAIRS) -> Histogram:
    """How often each logit occurs among all candidates; where there are too many, among those of random rows.

    Of a pair that is one candidate and has two logits, each of them counts half.
    """
    if isinstance(scorer, ListScorer):
        return scorer.histogram(candidates, scorer.listed(candidates))
    source = scorer.rows()
    excluded, counter = candidates.excluded(source.device), Counter(source.device)
    num_nodes, each_once = source.num_nodes, candidates.each_once(scorer)
    with torch.no_grad():
        if num_nodes * (num_nodes - 1) // 2 <= most:
            for block in blocks_of(source, excluded, symmetric=each_once):
                counter.add(block.logits)
            return counter.histogram(1.0 if each_once or candidates.ordered else 0.5)
        chosen = np.random.default_rng(0).choice(num_nodes, size=max(1, most // num_nodes), replace=False)
        for rows in torch.split(torch.tensor(chosen, device=source.device), max(1, BLOCK // num_nodes)):
            counter.add(excluded.leave_out(source.block(rows), rows))
    both = 1 if candidates.ordered else 2
    return counter.histogram(num_nodes / len(chosen) / both)


class _Places:
    """Where marked pairs are in blocks of rows, and the logits that were read there.

    A pair scored by itself may differ from the same pair in a block in its last bits, which would put it on the wrong
    side of a border; so all logits that are compared come from blocks.
    """

    def __init__(self, pairs: Pairs, source: LogitRows, *, symmetric: bool) -> None:
        ordered = np.sort(pairs, axis=1) if symmetric else pairs
        self.order = np.argsort(ordered[:, 0], kind="stable")
        self.pairs = ordered[self.order]
        self.logits = torch.full((len(pairs),), -torch.inf, device=source.device)
        self.device = source.device

    def read(self, block: Block) -> None:
        """Take the logits of marked pairs in a block."""
        start, stop = np.searchsorted(self.pairs[:, 0], [int(block.rows[0]), int(block.rows[-1]) + 1])
        if start == stop:
            return
        here = torch.tensor(self.pairs[start:stop] - [int(block.rows[0]), block.first], device=self.device)
        self.logits[torch.tensor(self.order[start:stop], device=self.device)] = block.logits[here[:, 0], here[:, 1]]


def top_metrics(best: Best, marked: Tensor, top: Sequence[int]) -> dict[str, float]:
    """Precision and recall at each K that there are as many candidates for, equal scores in random order."""
    found: dict[str, float] = {}
    for k in sorted(set(top)):
        if not 0 < k <= len(best.logits):
            continue
        threshold = best.logits[k - 1]
        above, equal = int((best.logits > threshold).sum()), int((best.logits == threshold).sum())
        if threshold == best.logits[-1]:
            equal += best.num_ties
        links_above, links_equal = int((marked > threshold).sum()), int((marked == threshold).sum())
        links = links_above + links_equal * (k - above) / equal
        found |= {f"precision@{k}": links / k, f"recall@{k}": links / len(marked)}
    return found


def ranks_by_node(scorer: RowScorer, candidates: Candidates, links: Pairs) -> np.ndarray:
    """The rank of each end of a link among all candidates of the other end, other links left out (2M numbers).

    Where candidates are ordered, the rank of the target among all candidates of the source (M numbers).
    """
    source = scorer.rows()
    excluded = candidates.excluded(source.device, links)
    asked = links if candidates.ordered else np.concatenate([links, links[:, ::-1]])
    order = np.argsort(asked[:, 0], kind="stable")
    ranks = torch.empty(len(asked), dtype=torch.float64)
    height = max(1, BLOCK // source.num_nodes)
    with torch.no_grad():
        for part in np.array_split(order, -(-len(order) // height)) if len(order) else ():
            nodes, places = np.unique(asked[part, 0], return_inverse=True)
            rows = torch.tensor(nodes, device=source.device)
            block, place = source.block(rows), torch.tensor(places, device=source.device)
            own = block[place, torch.tensor(asked[part, 1], device=source.device)][:, None]
            others = excluded.leave_out(block, rows)[place]
            above, equal = (others > own).sum(dim=1), (others == own).sum(dim=1)
            ranks[torch.tensor(part)] = (1 + above + equal / 2).double().cpu()
    return ranks.numpy()


def node_metrics(ranks: np.ndarray, num_nodes: int) -> dict[str, float]:
    """Mean reciprocal rank and Hits@K; a K that no rank can exceed is left out."""
    hits = {f"node_hits@{k}": float((ranks <= k).mean()) for k in HITS if k < num_nodes - 1}
    return {"node_mrr": float((1 / ranks).mean())} | hits


def rank_all_pairs(scorer: Ranker, links: Pairs, candidates: Candidates) -> dict[str, float]:
    """Precision@K, recall@K over all candidates (K = 10, 100, 1000 and the number of links), ranks by node.

    Of a scorer with a first stage, the share of the links on its list (first_stage_recall) in place of ranks by node.
    """
    if not len(links):
        return {}
    top = (*TOP, len(links))
    found = sweep(scorer, candidates, links, max(top))
    metrics = top_metrics(found.best, found.marked, top)
    if isinstance(scorer, ListScorer):
        return metrics | recall_of(found)
    return metrics | node_metrics(ranks_by_node(scorer, candidates, links), candidates.num_nodes)
