"""A fitted stack: its bases on a graph and its meta-model, as something that scores pairs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from vgae.evaluation.all_pairs import Candidates, Listed
from vgae.evaluation.histogram import Histogram
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs, distinct
from vgae.stack.bases import FittedBases, FloatArray, by_base
from vgae.stack.config import StackConfig
from vgae.stack.meta import MetaModel
from vgae.stack.shortlist import FIRST_STAGE, free_ranks, numbered, shortlist, shortlist_of_nodes

COUNTED = 200_000  # pairs outside the shortlist that stand for all of them in a histogram
PART = 500_000  # pairs that are described at a time, which bounds memory


class _LastList:
    """The pairs that were listed last and their logits: a list is ranked, and then counted.

    Logits of other lists are of no use, though they hold the same pairs: what is described at the same time can change
    the last bits of a logit, and what a stack says must not depend on what it was asked before.
    """

    def __init__(self) -> None:
        self.listed: Listed | None = None

    def of(self, pairs: Pairs, score: Callable[[Pairs], FloatArray]) -> Listed:
        """The list of these pairs, which are scored unless they are those of the last one."""
        if self.listed is None or not np.array_equal(self.listed.pairs, pairs):
            self.listed = Listed(pairs, score(pairs))
        return self.listed


@dataclass(frozen=True, eq=False)
class FittedStack:
    """Scores pairs by all bases and the meta-model; the logit is the log odds of a link among unseen pairs."""

    config: StackConfig
    bases: FittedBases
    meta: MetaModel
    symmetric: bool = True
    last: _LastList = field(default_factory=_LastList, init=False, repr=False)

    @property
    def graph(self) -> Graph:
        """The graph that it is asked about, as it sees it."""
        return self.bases.graph

    def logits(self, pairs: Pairs) -> FloatArray:
        """The log odds of a link for each pair; the order of the pairs and of their ends plays no part, to the bit."""
        different, places = self.bases.sorted_pairs(pairs)
        found = np.empty(len(different), dtype=np.float32)
        for start in range(0, len(different), PART):
            evidence = self.bases.describe(different[start : start + PART])
            found[start : start + PART] = self.meta.log_odds(evidence)
        return found[places]

    def on(self, graph: Graph) -> FittedStack:
        """The same stack on another graph with the same features, or with more nodes and links."""
        return replace(self, bases=self.bases.on(self.config.view(graph)))

    # ------------------------------------------------------------------------------------------------- the first stage

    def listed(self, candidates: Candidates, top: int = 0) -> Listed:
        """The pairs of the first stage and their logits."""
        return self.last.of(self.shortlist(candidates, top), self.logits)

    def shortlist(self, candidates: Candidates, top: int = 0) -> Pairs:
        """The pairs of the first stage, each once."""
        return shortlist(self.bases, candidates, max(top, FIRST_STAGE))

    def listed_for(self, candidates: Candidates, nodes: list[int], top: int) -> Listed:
        """The pairs of the first stage of each of some nodes, which come first in their pairs."""
        pairs = self.shortlist_of(candidates, nodes, top)
        return Listed(pairs, self.logits(pairs))

    def shortlist_of(self, candidates: Candidates, nodes: list[int], top: int = 0) -> Pairs:
        """The pairs of the first stage of each of some nodes, which come first in their pairs; each once."""
        return shortlist_of_nodes(self.bases, candidates, nodes, top)

    def histogram(self, candidates: Candidates, listed: Listed) -> Histogram:
        """How often each logit occurs among all candidates: exactly on the list, by a sample outside of it."""
        numbering, known = numbered(candidates)
        taken = np.sort(np.concatenate([known, distinct(numbering.ranks(listed.pairs))]))
        size = numbering.size - len(taken)
        others = self.logits(numbering.pairs(free_ranks(taken, numbering.size, COUNTED)))
        weight = size / max(1, len(others))
        return Histogram.weighted([(listed.logits, 1.0), (others, weight)])

    # ------------------------------------------------------------------------------------------------------ explanation

    def evidence_by_column(self, pairs: Pairs) -> Mapping[str, FloatArray]:
        """What the bases say about each pair, by column."""
        return dict(zip(self.bases.columns, self.bases.describe(pairs).T, strict=True))

    def contributions(self, pair: Pairs) -> tuple[float, Mapping[str, float], Mapping[str, float]]:
        """The mean log odds, what each base adds to them for one pair, and the evidence itself by column."""
        evidence = self.bases.describe(pair)
        added: npt.NDArray[np.float64] = self.meta.contributions(evidence)[0]
        values = dict(zip(self.bases.columns, evidence[0].tolist(), strict=True))
        return float(self.meta.base(evidence)[0]), by_base(self.bases, added), values
