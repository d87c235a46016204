"""What `vgae accuracy` measures of a fitted method on one split, all by the same rules for every method.

    auc, ap                      the paper's protocol: test links among as many random non-links
    auc_linked, ap_linked        the same pairs without those that have a node without a link in the training graph
    left_out                     the share of the test links that this leaves out
    precision@100, @1000         the share of test links among the best pairs of all, links for training and validation
                                 known and left out
    heart_mrr, heart_hits@10 …   each test link among 500 hard non-links of its own (`evaluation/heart.py`)
    auc by ra, …                 of a stack: AUC, AP and precision of each column of its evidence alone

A node without a training link gives itself away: in a network in which every node has links, it must have a held-out
one. Of the test pairs of Cora, Citeseer and Pubmed that have such a node, two in three are links. Hence `auc_linked`.

For precision, a method that knows how to find its best pairs (`recommend`) is asked for them. Others are asked for the
scores of all pairs, and equal scores are in random order, as in `evaluation/all_pairs.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from vgae.baselines.counts import count_scores
from vgae.baselines.heuristics import DegreeScorer, NeighbourScorer
from vgae.evaluation.all_pairs import Candidates, Listed, sweep, top_metrics
from vgae.evaluation.evaluate import Scorer, linked_metrics
from vgae.evaluation.heart import evaluate_heart
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.pairs import Pairs, contains, distinct
from vgae.graph.split import LinkSplit

TOP = (100, 1000)
LEAST = float(np.finfo(np.float32).min)  # in place of evidence that is missing
MOST_WORK = 300_000_000_000  # additions to describe the pairs of a ring through all nodes, up to ten minutes
HEART = ("mrr", "hits@10", "hits@20")  # of those that HeaRT has


class Recommender(Protocol):
    """What finds its best new pairs by itself."""

    def recommend(self, k: int) -> Any:
        """The best k new pairs, best first, as `pairs` of what is returned; known links are left out."""


class Composed(Recommender, Protocol):
    """What puts its scores together from columns of evidence, about the pairs that a first stage has found."""

    def candidates(self) -> Candidates:
        """All pairs that are not known."""

    def listed(self, candidates: Candidates) -> Listed:
        """The pairs that the first stage has found."""

    def evidence_by_column(self, pairs: Pairs) -> Mapping[str, npt.NDArray[np.float32]]:
        """What each column says about some pairs."""


def measure(
    scorer: Scorer, split: LinkSplit, *, recommender: Recommender | None = None, hard: bool = False
) -> dict[str, float]:
    """All metrics of a method that was fitted on the split's training graph; those of HeaRT if `hard`."""
    return sampled_metrics(scorer, split) | more_metrics(scorer, split, recommender=recommender, hard=hard)


def more_metrics(
    scorer: Scorer, split: LinkSplit, *, recommender: Recommender | None = None, hard: bool = False
) -> dict[str, float]:
    """Precision at the top of the list, and HeaRT if `hard`."""
    if recommender is not None:
        found = precision_of_recommended(recommender, split)
    else:
        found = precision_over_all(scorer, split)
    if hard:
        of_test = evaluate_heart(scorer, split, sets=("test",))["test"]
        found |= {f"heart_{name}": of_test[name] for name in HEART if name in of_test}
    return found


def column_metrics(composed: Composed, split: LinkSplit) -> dict[str, float]:
    """What each column of evidence scores alone; at the top, among the pairs that the first stage has found."""
    listed, test = composed.listed(composed.candidates()).pairs, split.test
    numbering = split.train.all_pairs
    hits = contains(distinct(numbering.ranks(test.links)), numbering.ranks(listed))
    asked = (composed.evidence_by_column(pairs) for pairs in (test.links, test.non_links, listed))
    found: dict[str, float] = {}
    for column, links, non_links, of_list in _by_column(*asked):
        order = np.argsort(-of_list, kind="stable")
        top = {f"precision@{k}": float(hits[order[:k]].sum() / k) for k in TOP if k <= len(hits)}
        found |= {by_column(name, column): value for name, value in (auc_and_ap(links, non_links) | top).items()}
    return found


def by_column(metric: str, column: str) -> str:
    """What a metric of a single column is called."""
    return f"{metric} by {column}"


def _by_column(*tables: Mapping[str, npt.NDArray[np.float32]]) -> Iterator[tuple[Any, ...]]:
    """The name of a column and its values in each of the tables; what is missing is the least."""
    for column in tables[0]:
        yield column, *(np.nan_to_num(table[column], nan=LEAST) for table in tables)


def sampled_metrics(scorer: Scorer, split: LinkSplit) -> dict[str, float]:
    """AUC and AP on the test pairs, and on those of them whose nodes both have links in the training graph."""
    links, non_links = (scorer.logits(pairs) for pairs in (split.test.links, split.test.non_links))
    return auc_and_ap(links, non_links) | linked_metrics((links, non_links), split.test, split.train)


def precision_over_all(scorer: Any, split: LinkSplit) -> dict[str, float]:
    """Precision@K over all pairs but the known ones; nothing where a method cannot say, or not in reasonable time."""
    numbering, graph = split.train.all_pairs, split.train
    known = distinct(numbering.ranks(np.concatenate([graph.links, split.val.links])))
    candidates = Candidates.of(graph, numbering.pairs(known))
    links = numbering.pairs(numbering.ranks(split.test.links))
    if isinstance(scorer, NeighbourScorer | DegreeScorer):
        counts, scores = count_scores(scorer, candidates, max(TOP)), scorer.logits(links)
        each = {k: counts.precision(k, scores) for k in TOP}
        return {f"precision@{k}": value for k, value in each.items() if value is not None}
    if not hasattr(scorer, "rows") or _takes_too_long(scorer, graph.num_nodes):
        return {}
    found = sweep(scorer, candidates, links, max(TOP))
    metrics = top_metrics(found.best, found.marked, TOP)
    return {name: value for name, value in metrics.items() if name.startswith("precision")}


def _takes_too_long(scorer: Any, num_nodes: int) -> bool:
    """Whether all rows of a baseline that walks over the graph for each of them take more than some minutes."""
    if not hasattr(scorer, "work"):
        return False
    ring = np.stack([np.arange(num_nodes), np.roll(np.arange(num_nodes), 1)], axis=1)  # of pairs, with all nodes in it
    return bool(scorer.work(ring) > MOST_WORK)


def precision_of_recommended(recommender: Recommender, split: LinkSplit) -> dict[str, float]:
    """Precision@K of the pairs that a method recommends, of which it knows the links for training and validation."""
    numbering = split.train.all_pairs
    pairs = np.asarray(recommender.recommend(max(TOP)).pairs)
    hits = contains(distinct(numbering.ranks(split.test.links)), numbering.ranks(pairs))
    return {f"precision@{k}": float(hits[:k].sum() / k) for k in TOP if k <= len(hits)}
