"""The meta-model: from evidence about a pair of nodes to the log odds of a link, and a second look at the best pairs.

The first model (`vgae.stack.blend`) is fitted to all rows. Its trees give links and non-links the same weight (β = 1):
from log odds of -9, where links are one pair in 10⁴, the Newton steps of boosting are up to 10⁴ long and never come
back. But with such weights a non-link counts for nothing beside a link, and at the top of the list, where both are as
frequent, trees see hardly a difference between pairs of which a half are links and pairs of which all are.

So the second model is fitted to the rows above a threshold of the first alone, as many pairs as three times the links
to be found, where links are frequent enough for trees to be grown with the weights of the population (β = 0). Its
trees are fewer and smaller: there are fewer rows. A pair above the threshold gets the log odds of the second, all
other pairs those of the first. Both are log odds of the population, so that they can be compared, and probabilities sum
up to the number of links above the threshold and over all pairs.

Some of the non-links are links that nobody has found, or that were held out. Let there be a share h of them among all
links to be found (`hidden`, or less where more of the pairs at the top are known links), and c = 1 - h. Where every
pair is a link, a share c is labelled so, and which ones is chance. The second model would order pairs by that chance. A
pair that is labelled a link with probability p is one, known or not, with probability t = p / c, and if it is not
labelled so, with probability r = h·t / (1 - c·t) (Elkan and Noto 2008). So a third model is fitted to the same rows, in
which a non-link counts as r links and 1 - r non-links, p being that of a model of the other half of the rows: one step
of expectation maximisation. Where t is near 1 all rows are links, chance is gone, and what orders the pairs is what
leads to the region. Log odds are the mean of both models, with a scale and a shift for the labels as they are.

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
from vgae.stack.blend import MIX, Blend, Rows, calibrated, fit_blend
from vgae.stack.logistic import Arrays, Doubles, Evidence, sigmoid
from vgae.stack.options import MetaOptions
from vgae.stack.trees import KINDS

FEWEST = 500  # links, and as many non-links, that a second look takes
SMALLER = {"num_trees": 60, "num_leaves": 8}  # trees of it, at most
LEAF_ROWS = 300  # pairs in a leaf of it, at least
SUREST = 0.995  # probability of a link at the second look, at most
SECOND, THRESHOLD = ("second.", "hidden."), "threshold"  # the models of the second look, and from where on they are


@dataclass(frozen=True, eq=False)
class MetaModel:
    """A fitted meta-model; it says the same about a pair whatever other pairs are asked about."""

    first: Blend
    second: tuple[Blend, ...] = ()  # whose log odds are averaged
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
    trees = options.num_trees * options.num_boosted
    node = sum(np.dtype(kind).itemsize for kind in KINDS.values())
    return 8 + (1 + len(SECOND)) * (
        8 * (3 + 1 + num_columns * (len(logistic.NAMES) + 2 * options.num_knots) + trees + 1)
        + trees * (2 * options.num_leaves - 1) * node
    )


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
    most = {name: min(getattr(options, name), number) for name, number in SMALLER.items()}
    smooth = replace(options, **most, leaf_rows=max(options.leaf_rows, LEAF_ROWS), balance=0.0)
    second = fit_blend(best, smooth, seed, tree_balance=0.0)
    if not options.hidden:
        return MetaModel(first, (second,), threshold)
    third = fit_blend(_with_hidden(best, smooth, seed), smooth, seed, tree_balance=0.0)
    both = (second.log_odds(best.x) + third.log_odds(best.x)) / 2
    return MetaModel(first, tuple(each.scaled(*calibrated(both, best)) for each in (second, third)), threshold)


def _with_hidden(rows: Rows, options: MetaOptions, seed: int) -> Rows:
    """The same rows, of whose non-links each counts as a link by the probability that it is a hidden one."""
    log_odds = _crossed(rows, options, seed)
    known = max(1 - options.hidden, _surely_known(rows, log_odds))
    is_link = rows.y == 1
    labelled = np.minimum(sigmoid(log_odds[~is_link]), known * SUREST)
    share = (1 - known) / known * labelled / (1 - labelled)
    others = rows[~is_link]
    as_links = Rows(others.x, np.ones(len(share)), others.weights * share)
    as_non_links = Rows(others.x, others.y, others.weights * (1 - share))
    return Rows.joined([rows[is_link], as_links, as_non_links])


def _crossed(rows: Rows, options: MetaOptions, seed: int) -> Doubles:
    """The log odds of each half of the rows, by a model of the other half: no label has a say in its own."""
    half = np.random.default_rng(seed).permutation(len(rows.y)) % 2 == 0
    found = np.empty(len(half))
    for part in (half, ~half):
        found[part] = fit_blend(rows[~part], options, seed, tree_balance=0.0).log_odds(rows.x[part])
    return found


def _surely_known(rows: Rows, log_odds: Doubles) -> float:
    """The share of links at the top, less two standard errors: no more of them than the rest can be hidden."""
    top = np.argsort(-log_odds, kind="stable")[:FEWEST]
    found = float(np.average(rows.y[top], weights=rows.weights[top]))
    return found - 2 * float(np.sqrt(found * (1 - found) / len(top)))


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
