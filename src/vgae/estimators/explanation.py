"""Why a model gives a pair of nodes its probability: what its bases add, and what speaks for a link by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vgae.baselines.explain import PairEvidence


@dataclass(frozen=True)
class BasePart:
    """What one base of a stack adds to the log odds of a pair, and its evidence by column."""

    base: str
    adds: float
    evidence: Mapping[str, float]


@dataclass(frozen=True)
class Explanation:
    """A pair of nodes: its probability and logit, what is known of it, and what speaks for a link.

    Of a stack, `mean` is the log odds of pairs on average and `bases` what each base adds for this one, the largest
    first: together they are the logit. Other models have neither.
    """

    probability: float
    logit: float
    known: str  # in the words of `Links`
    pair: PairEvidence  # common neighbours, paths and shared features, by name
    mean: float | None = None
    bases: tuple[BasePart, ...] = field(default_factory=tuple)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain data."""
        bases = [{"base": each.base, "adds": each.adds, "evidence": dict(each.evidence)} for each in self.bases]
        values = {"probability": self.probability, "logit": self.logit, "known": self.known, "mean": self.mean}
        return values | {"bases": bases, **asdict(self.pair)}
