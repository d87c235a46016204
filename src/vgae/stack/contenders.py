"""Which of the pairs that the first stage finds a meta-model has to see: all that could come to the top of its list.

Links to be found are one pair in thousands, and the top of a list is decided among a few hundred pairs. A uniform
sample of non-links has next to none of those, however large it is: where links lie and no sampled non-link does, a
meta-model believes whatever stands out there, and on the whole graph a hundred times as many non-links lie there. So a
fold describes everything that the first stage lists, as it will be done with the whole graph, and of that

    contenders   the best of the list by any column of evidence, and by a pilot, a small meta-model of the fold itself,
                 are all rows, each of the weight 1
    the rest     is sampled uniformly, with weights by the inverse of the probability

A second pilot, fitted with the contenders of the first among its rows, finds what the first had wrong. The population
that the rows stand for is the same as before: contenders make it exact where it matters, and shift nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from vgae.stack.bases import FloatArray
from vgae.stack.meta import fit_meta
from vgae.stack.options import MetaOptions

TOP_OF_COLUMN = 500  # non-links that are best by one column
TOP_OF_PILOT = 3_000  # and by a pilot
PILOTS = 2
PILOT_TREES = 60
REST = 10_000  # of the list, sampled

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class FoldEvidence:
    """What one fold teaches: evidence (M×C), whether each pair is a link, and how many pairs it stands for."""

    evidence: FloatArray
    labels: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.float64]

    def with_non_links(self, evidence: FloatArray, weights: npt.NDArray[np.float64]) -> FoldEvidence:
        """The same and more non-links."""
        return FoldEvidence(
            evidence=np.concatenate([self.evidence, evidence]),
            labels=np.concatenate([self.labels, np.zeros(len(evidence), dtype=np.uint8)]),
            weights=np.concatenate([self.weights, weights]),
        )


def with_listed(fold: FoldEvidence, listed: FloatArray, options: MetaOptions, seed: int) -> FoldEvidence:
    """The evidence of a fold's links and of non-links that are not listed, and what matters of those that are (M×C)."""
    generator = np.random.default_rng(seed)
    chosen = np.zeros(len(listed), dtype=bool)
    for column in listed.T:
        chosen |= _best(column, TOP_OF_COLUMN)
    small = replace(options, num_trees=min(PILOT_TREES, options.num_trees), num_boosted=1)
    for _ in range(PILOTS):
        if chosen.all():
            break
        rows = fold.with_non_links(*_thinned(listed, chosen, generator))
        pilot = fit_meta(rows.evidence, rows.labels, rows.weights, small, seed=seed)
        chosen |= _best(pilot.log_odds(listed), TOP_OF_PILOT)
    return fold.with_non_links(*_thinned(listed, chosen, generator))


def most_listed(num_columns: int) -> int:
    """How many rows of a fold can be listed pairs."""
    return num_columns * TOP_OF_COLUMN + PILOTS * TOP_OF_PILOT + REST


def _best(values: npt.NDArray[np.floating], top: int) -> Mask:
    """Which are the highest; of equal ones the first, and what is missing is none of them."""
    order = np.argsort(-values, kind="stable")[:top]
    found = np.zeros(len(values), dtype=bool)
    found[order] = ~np.isnan(values[order])
    return found


def _thinned(
    listed: FloatArray, chosen: Mask, generator: np.random.Generator
) -> tuple[FloatArray, npt.NDArray[np.float64]]:
    """All that are chosen and a sample of the rest, and how many each stands for."""
    best, rest = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    sample = np.sort(generator.choice(rest, size=min(REST, len(rest)), replace=False))
    weights = np.repeat([1.0, len(rest) / max(1, len(sample))], [len(best), len(sample)])
    return listed[np.concatenate([best, sample])], weights
