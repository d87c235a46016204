"""Scoring held-out pairs with anything that gives logits: a trained model, a baseline, your own."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from vgae.evaluation.held_out import have_links, require_held_out
from vgae.evaluation.metrics import Scores, auc_and_ap, link_metrics
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut, LinkSplit
from vgae.ops import LogitRows


class Scorer(Protocol):
    """Anything that ranks pairs of nodes."""

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """A score for each pair, higher for likelier links; σ(score) is read as the probability."""


class RowScorer(Scorer, Protocol):
    """A scorer that can also give the scores of whole rows of pairs, and so be asked about all pairs."""

    @property
    def symmetric(self) -> bool:
        """Whether the two directions of a pair have one score."""

    def rows(self) -> LogitRows:
        """The scores of all pairs, by rows."""


def score_held_out(scorer: Scorer, held_out: HeldOut) -> tuple[Scores, Scores]:
    """Logits of the links and of the non-links."""
    held_out = require_held_out(held_out, "held_out")
    logits = scorer.logits(held_out.pairs)
    return logits[held_out.labels], logits[~held_out.labels]


def linked_metrics(scores: tuple[Scores, Scores], held_out: HeldOut, graph: Graph) -> dict[str, float]:
    """AUC and AP of the pairs whose nodes all have links in the training graph, and the share of links left out.

    In a network without isolated nodes, a node that has none in the training graph must have a held-out one: whoever
    knows the degrees of that graph knows it, and non-links are drawn from all nodes. Without links or non-links of
    which that can be said, there are no `auc_linked` and `ap_linked`.
    """
    chosen = [have_links(graph, pairs) for pairs in (held_out.links, held_out.non_links)]
    found = {"left_out": float(1 - chosen[0].mean())}
    if chosen[0].any() and chosen[1].any():
        rest = auc_and_ap(*(each[kept] for each, kept in zip(scores, chosen, strict=True)))
        found |= {f"{name}_linked": value for name, value in rest.items()}
    return found


def evaluate(scorer: Scorer, held_out: HeldOut) -> dict[str, float]:
    """AUC, AP, MRR and Hits@K of a scorer on held-out pairs.

    >>> import numpy as np, vgae
    >>> class Nearness:
    ...     def logits(self, pairs):
    ...         return -np.abs(pairs[:, 0] - pairs[:, 1]).astype(np.float32)
    >>> held_out = vgae.HeldOut(links=np.array([[0, 1], [3, 4]]), non_links=np.array([[0, 9], [2, 7]]))
    >>> vgae.evaluate(Nearness(), held_out)["auc"]
    1.0
    """
    return link_metrics(*score_held_out(scorer, held_out))


def evaluate_split(scorer: Scorer, split: LinkSplit) -> dict[str, dict[str, float]]:
    """The metrics on a split's validation and test pairs, as far as there are any."""
    held_out = {"validation": split.val, "test": split.test}
    return {name: evaluate(scorer, pairs) for name, pairs in held_out.items() if len(pairs)}
