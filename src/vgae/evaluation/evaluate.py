"""Scoring held-out pairs with anything that gives logits: a trained model, a baseline, your own."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from vgae.evaluation.held_out import require_held_out
from vgae.evaluation.metrics import Scores, link_metrics
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


def evaluate(scorer: Scorer, held_out: HeldOut) -> dict[str, float]:
    """AUC, AP, MRR and Hits@K of a scorer on held-out pairs."""
    return link_metrics(*score_held_out(scorer, held_out))


def evaluate_split(scorer: Scorer, split: LinkSplit) -> dict[str, dict[str, float]]:
    """The metrics on a split's validation and test pairs, as far as there are any."""
    held_out = {"validation": split.val, "test": split.test}
    return {name: evaluate(scorer, pairs) for name, pairs in held_out.items() if len(pairs)}
