"""The meta-model: from evidence about a pair of nodes to the log odds of a link, and a second look at the best pairs.

The first model (`vgae.stack.blend`) is fitted to all rows. Its trees give links and non-links the same weight (β = 1):
from log odds of -9, where links are one pair in 10⁴, the Newton steps of boosting are up to 10⁴ long and never come
back. But with such weights a non-link counts for nothing beside a link, and at the top of the list, where both are as
frequent, trees see hardly a difference between pairs of which a half are links and pairs of which all are.

So the second model is fitted to the rows above a threshold of the first alone, as many pairs as three times the links
to be found, where links are frequent enough for trees to be grown with the weights of the population (β = 0). A pair
above the threshold gets the log odds of the second, all other pairs those of the first. Both are log odds of the
population, so that they can be compared, and probabilities sum up to the number of links above the threshold and over
all pairs.

The second is stiffer than the first. Some of the non-links are links that nobody has found, or that were held out.
Where every pair is a link, a half of the rows may say no, and which half is chance: a model that can bend where the
evidence is strongest orders pairs by that chance. So the regression of the second is straight in each column, and what
leads to the top orders the pairs that are there; trees, of which there are fewer and smaller ones, have three times the
weight beside it that they have in the first, because they alone are left to find what is not straight. They are grown
four times, by other random choices, and averaged: among pairs of which nearly all are links, one growth's choices would
decide which of them come first.

What is fitted is arrays (`vgae.stack.logistic`, `vgae.stack.trees`): stored as data, checked when loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.checks import MAX_SEED
from vgae.options import whole_number
from vgae.stack import logistic
from vgae.stack.blend import MIX, Blend, Rows, fit_blend
from vgae.stack.logistic import Arrays, Doubles, Evidence
from vgae.stack.options import MetaOptions
from vgae.stack.trees import KINDS

FEWEST = 500  # links, and as many non-links, that a second look takes
SMALLER = {"num_trees": 120, "num_leaves": 8}  # trees of it, at most
LEAF_ROWS = 300  # pairs in a leaf of it, at least
TREES = 3  # by how much their weight beside the regression is multiplied there
GROWN = 4  # boosted models of different seeds that are averaged there, at least
SECOND, THRESHOLD = ("second.", "hidden."), "threshold"  # the models of it, of which 0.1 had two, and where it begins


@dataclass(frozen=True, eq=False)
class MetaModel:
    """A fitted meta-model; it says the same about a pair whatever other pairs are asked about."""

    first: Blend
    second: tuple[Blend, ...] = ()  # whose log odds are averaged; one, in what is fitted now
    threshold: float = 0.0  # of the first's log odds; from there on the second are asked

    @property
    def num_columns(self) -> int:
        """C, how many columns of evidence it takes."""
        return self.first.num_columns

    def log_odds(self, evidence: npt.ArrayLike) -> Doubles:
        """The log odds of a link for each row of evidence (M×C); NaN is evidence that is missing."""
        x = self._checked(evidence)
        found = self.first.log_odds(x)
        if self.second:
            again = found >= self.threshold
            found[again] = np.mean([blend.log_odds(x[again]) for blend in self.second], axis=0)
        return found

    def contributions(self, evidence: npt.ArrayLike) -> Doubles:
        """What each column adds to the log odds, M×C; the sum over the columns and `base` of a row are its log odds.

        For the regression it is exact, coefficient times difference from the population's mean; for the trees it is
        divided along the way of the pair through each tree (see vgae.stack.trees).
        """
        x = self._checked(evidence)
        found = self.first.contributions(x)
        if self.second:
            again = self.is_seen_again(x)
            found[again] = np.mean([blend.contributions(x[again]) for blend in self.second], axis=0)
        return found

    def base(self, evidence: npt.ArrayLike) -> Doubles:
        """What the contributions of each row start from: the mean of the log odds over the pairs of its model."""
        x = self._checked(evidence)
        found = np.full(len(x), self.first.base)
        if self.second:
            found[self.is_seen_again(x)] = np.mean([blend.base for blend in self.second])
        return found

    def is_seen_again(self, evidence: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        """Which rows get a second look."""
        x = self._checked(evidence)
        if not self.second:
            return np.zeros(len(x), dtype=bool)
        return self.first.log_odds(x) >= self.threshold

    def _checked(self, evidence: npt.ArrayLike) -> Evidence:
        x = _as_evidence(evidence)
        if x.shape[1] != self.num_columns:
            raise InputError(f"evidence: {self.num_columns} columns are needed, got {x.shape[1]}.")
        return x

    # ------------------------------------------------------------------------------------------------- as it is stored

    def tensors(self) -> Arrays:
        """All numbers of the model by name, for safetensors."""
        found = self.first.tensors()
        for prefix, blend in zip(SECOND, self.second, strict=False):
            found |= {prefix + name: array for name, array in blend.tensors().items()}
        return found | {THRESHOLD: np.array([self.threshold])} if self.second else found

    @classmethod
    def from_tensors(cls, tensors: Arrays, num_columns: int) -> MetaModel:
        """The model of these numbers, if they can be one; InputError says what is wrong."""
        num_columns = whole_number(num_columns, "columns", 0)
        parts: dict[str, Arrays] = {prefix: {} for prefix in ("", *SECOND)}
        for name, array in tensors.items():
            prefix = next((each for each in SECOND if name.startswith(each)), "")
            parts[prefix][name.removeprefix(prefix)] = array
        threshold = parts[""].pop(THRESHOLD, np.empty(0))
        first, *second = (Blend.from_tensors(part, num_columns) for prefix, part in parts.items() if part or not prefix)
        if not second and THRESHOLD not in tensors:
            return cls(first)
        if threshold.dtype != np.float64 or threshold.shape != (1,) or not abs(threshold[0]) <= logistic.LARGEST:
            raise InputError(f"{THRESHOLD}: one finite number is needed.")
        if not parts[SECOND[0]]:
            raise InputError(f"meta-model: {SECOND[0]}{MIX}: missing or not known.")
        return cls(first, tuple(second), float(threshold[0]))


def size_limit(options: MetaOptions, num_columns: int) -> int:
    """Bytes that the numbers of a model with these options can take, without what a file has beside them."""
    first, second = (_largest_blend(each, num_columns) for each in (options, stiffer(options)))
    return 8 + first + len(SECOND) * max(first, second)  # those of 0.1 were no larger than the first


def _largest_blend(options: MetaOptions, num_columns: int) -> int:
    trees = options.num_trees * options.num_boosted
    node = sum(np.dtype(kind).itemsize for kind in KINDS.values())
    of_columns = num_columns * (len(logistic.NAMES) + 2 * options.num_knots)
    return 8 * (3 + 1 + of_columns + trees + 1) + trees * (2 * options.num_leaves - 1) * node


# ------------------------------------------------------------------------------------------------------------- fitting


def fit_meta(
    evidence: npt.ArrayLike,
    labels: npt.ArrayLike,
    weights: npt.ArrayLike,
    options: MetaOptions | None = None,
    *,
    seed: int = 0,
) -> MetaModel:
    """Fit to evidence (M×C, NaN where it is missing), labels (0 or 1), and how many pairs each row stands for."""
    options = MetaOptions() if options is None else options
    seed = whole_number(seed, "seed", 0, MAX_SEED)
    rows = _as_rows(evidence, labels, weights)
    first = fit_blend(rows, options, seed, tree_balance=1.0)
    log_odds = first.log_odds(rows.x)
    threshold = _threshold(log_odds, rows, options.second_look)
    best = rows[log_odds >= threshold]
    if min(best.num_links, len(best.y) - best.num_links) < FEWEST:
        return MetaModel(first)
    return MetaModel(first, (fit_blend(best, stiffer(options), seed, tree_balance=0.0),), threshold)


def stiffer(options: MetaOptions) -> MetaOptions:
    """Those of the second look."""
    smaller = {name: min(getattr(options, name), number) for name, number in SMALLER.items()}
    share = TREES * options.boosting / (1 + (TREES - 1) * options.boosting)
    more = {"leaf_rows": max(options.leaf_rows, LEAF_ROWS), "num_boosted": max(options.num_boosted, GROWN)}
    return replace(options, **smaller, **more, boosting=share, num_knots=0, balance=0.0)


def _threshold(log_odds: Doubles, rows: Rows, multiple: float) -> float:
    """Above which there are so many times as many pairs as there are links."""
    order = np.argsort(-log_odds, kind="stable")
    above = np.cumsum(rows.weights[order])
    links = float(rows.weights @ rows.y)
    place = int(np.searchsorted(above, multiple * links))
    return float(log_odds[order[min(place, len(order) - 1)]]) if multiple else np.inf


def _as_rows(evidence: npt.ArrayLike, labels: npt.ArrayLike, weights: npt.ArrayLike) -> Rows:
    x = _as_evidence(evidence)
    y, w = (np.asarray(values, dtype=np.float64) for values in (labels, weights))
    if y.shape != (len(x),) or w.shape != (len(x),):
        raise InputError(f"labels and weights: one is needed for each of {len(x)} rows, got {y.shape} and {w.shape}.")
    if not np.isin(y, (0, 1)).all():
        raise InputError("labels: each must be 0 or 1.")
    if not (np.isfinite(w).all() and (w > 0).all()):
        raise InputError("weights: each must be a finite number above 0.")
    if not 0 < y.sum() < len(y):
        raise InputError(
            "The meta-model of a stack needs links and non-links to learn from, and there are only "
            f"{'links: the graph is complete' if len(y) and y[0] else 'non-links'}."
        )
    return Rows(x, y, w)


def _as_evidence(evidence: npt.ArrayLike) -> Evidence:
    """Rows of float32; what is infinite is made as large as can be."""
    x = np.asarray(evidence, dtype=np.float32)
    if x.ndim != 2:
        raise InputError(f"evidence: a table of rows and columns is needed, got an array of shape {x.shape}.")
    return np.nan_to_num(x, nan=np.nan) if np.isinf(x).any() else x
