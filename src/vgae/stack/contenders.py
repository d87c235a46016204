"""Which of the pairs that the first stage finds a meta-model has to see: all that could come to the top of its list.

Links to be found are one pair in thousands, and the top of a list is decided among a few hundred pairs. A uniform
sample of non-links has next to none of those, however large it is: where links lie and no sampled non-link does, a
meta-model believes whatever stands out there, and on the whole graph a hundred times as many non-links lie there. So a
fold describes everything that the first stage lists, as it is done with the whole graph later, and of that

    contenders   the best of the list by any column of evidence are rows, each of the weight 1
    the rest     is sampled uniformly, with weights by the inverse of the probability

The population that the rows stand for is the same: contenders make it exact where it matters, and shift nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vgae.stack.bases import FloatArray

TOP_OF_COLUMN = 1_000  # listed non-links that are best by one column
REST = 10_000  # of the list, sampled


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


def with_listed(fold: FoldEvidence, listed: FloatArray, generator: np.random.Generator) -> FoldEvidence:
    """The evidence of a fold's links and of non-links that are not listed, and what matters of those that are (M×C)."""
    chosen = np.zeros(len(listed), dtype=bool)
    for column in listed.T:
        chosen |= _best(column)
    best, rest = np.flatnonzero(chosen), np.flatnonzero(~chosen)
    sample = np.sort(generator.choice(rest, size=min(REST, len(rest)), replace=False))
    weights = np.repeat([1.0, len(rest) / max(1, len(sample))], [len(best), len(sample)])
    return fold.with_non_links(listed[np.concatenate([best, sample])], weights)


def most_listed(num_columns: int) -> int:
    """How many rows of a fold can be listed pairs."""
    return num_columns * TOP_OF_COLUMN + REST


def _best(values: FloatArray) -> npt.NDArray[np.bool_]:
    """Which are the highest; of equal ones the first, and what is missing is none of them."""
    order = np.argsort(-values, kind="stable")[:TOP_OF_COLUMN]
    found = np.zeros(len(values), dtype=bool)
    found[order] = ~np.isnan(values[order])
    return found
