"""How far a score may be off by the luck of which pairs were held out: the bootstrap.

Links and non-links of a held-out set are drawn again, each from their own, as many as there are and with replacement.
The standard deviation of a score over such draws is its standard error. Two scorers are compared on the same draws, so
that what is hard for both does not count as a difference between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vgae.evaluation.metrics import Scores

NUM_DRAWS = 200  # gives a standard error to within 5%
ERRORS = 1.96  # standard errors on either side that hold 95%
BLOCK = 1_000_000  # weights of pairs held at a time

Draws = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Difference:
    """How much better one scorer is than another, and the standard error of that; both as fractions of 1."""

    value: float
    error: float

    @property
    def is_clear(self) -> bool:
        """Whether the 95% interval leaves out 0."""
        return abs(self.value) > ERRORS * self.error


def bootstrap(
    scorers: Sequence[tuple[Scores, Scores]], *, num_draws: int = NUM_DRAWS, seed: int = 0
) -> list[dict[str, Draws]]:
    """AUC and AP of each scorer, given by its scores of links and of non-links, over the same draws."""
    num_links, num_non_links = (len(part) for part in scorers[0])
    generator = np.random.default_rng(seed)
    ranked = [_Ranking(*scores) for scores in scorers]
    found: list[list[tuple[Draws, Draws]]] = [[] for _ in scorers]
    at_once = max(1, BLOCK // (num_links + num_non_links))
    for start in range(0, num_draws, at_once):
        size = min(at_once, num_draws - start)
        weights = np.concatenate([_counts(num_links, size, generator), _counts(num_non_links, size, generator)], axis=1)
        for each, ranking in zip(found, ranked, strict=True):
            each.append(ranking.auc_and_ap(weights))
    joined = [(np.concatenate(values) for values in zip(*each, strict=True)) for each in found]
    return [dict(zip(("auc", "ap"), values, strict=True)) for values in joined]


def _counts(size: int, num_draws: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """How often each of so many pairs comes in each draw of as many."""
    drawn = generator.integers(0, size, (num_draws, size)) + size * np.arange(num_draws)[:, None]
    return np.bincount(drawn.ravel(), minlength=size * num_draws).reshape(num_draws, size)


class _Ranking:
    """Pairs from the highest score down, those of equal scores together."""

    def __init__(self, links: Scores, non_links: Scores) -> None:
        scores = np.concatenate([links, non_links])
        self.order = np.argsort(-scores, kind="stable")
        self.is_link = self.order < len(links)
        self.last = np.flatnonzero(np.append(np.diff(scores[self.order]) != 0, True))

    def auc_and_ap(self, weights: npt.NDArray[np.int64]) -> tuple[Draws, Draws]:
        """The AUC and AP of vgae.evaluation.metrics for each row of weights, which say how often a pair counts."""
        ordered = weights[:, self.order]
        links = np.cumsum(ordered * self.is_link, axis=1)[:, self.last].astype(np.float64)
        taken = np.cumsum(ordered, axis=1)[:, self.last].astype(np.float64)
        non_links = taken - links
        more_links, more_non_links = np.diff(links, axis=1, prepend=0.0), np.diff(non_links, axis=1, prepend=0.0)
        above = links - more_links / 2  # of equal scores half count as above
        auc = (more_non_links * above).sum(axis=1) / (links[:, -1] * non_links[:, -1])
        precision = links / np.maximum(taken, 1)
        ap = (more_links * precision).sum(axis=1) / links[:, -1]
        return auc, ap
