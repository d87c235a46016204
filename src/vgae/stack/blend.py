"""One model of log odds out of evidence: a logistic regression and boosted trees, averaged.

    log odds = scale · [(1 - s) · logistic regression + s · boosted trees] + shift

It learns from labelled pairs that stand for a population: a pair of weight w stands for w pairs. Weights may differ by
factors of 10⁴ and links be one pair in 10⁵, and the log odds are those of the population all the same. Let W₊ and W₋ be
the weights of all links and of all non-links. Fitted to non-links of weight w·(W₊ / W₋)^β, log odds come out higher by
β·log(W₋ / W₊) whatever the evidence, and that is taken off again. With β = 1, links and non-links have the same weight;
with β = 0 there is most to learn where links are as frequent as non-links. Scale and shift are at last fitted to the
population itself: they leave the order of pairs as it is, and make probabilities sum up to the number of links.

Trees are grown by scikit-learn, on columns that are divided into bins here: at quantiles of the links and of the
non-links, half of the bins each, and of these again half far out in the tails, where the top of the list is decided.
Its own bins are quantiles by weight in newer versions, nearly none of which would be where the links are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError, TrainingError
from vgae.graph.checks import MAX_SEED
from vgae.stack import logistic
from vgae.stack.logistic import (
    Arrays,
    Doubles,
    Evidence,
    Logistic,
    Weighted,
    fit_logistic,
    newton,
    sigmoid,
    spread_rows,
)
from vgae.stack.options import MetaOptions
from vgae.stack.trees import KINDS, Trees

MOST_BINS = 255  # that scikit-learn takes
COMPARED = 5_000  # links, and as many non-links, that stand for the population in explanations
CHECKED = 200  # rows on which trees that were read off are compared with scikit-learn's own
LEAST_SCALE = 0.5  # of calibrated log odds; at most its inverse
TREES, LOGISTIC, MIX = "trees.", "logistic.", "mix"
NAMES = {*(LOGISTIC + name for name in logistic.NAMES), *(TREES + name for name in ("starts", *KINDS)), MIX}


@dataclass(frozen=True, eq=False)
class Blend:
    """Regression and trees, fitted; the same bits for a row whatever other rows there are."""

    logistic: Logistic
    trees: Trees
    boosting: float  # s
    scale: float
    shift: float

    @property
    def num_columns(self) -> int:
        """C, how many columns of evidence it takes."""
        return self.trees.num_columns

    def log_odds(self, x: Evidence) -> Doubles:
        """The log odds of a link for each row of evidence (M×C); NaN is evidence that is missing."""
        found = np.full(len(x), self.shift)
        if self.boosting < 1:
            found += self.scale * (1 - self.boosting) * self.logistic.sums(x)
        if self.boosting > 0:
            found += self.scale * self.boosting * self.trees.sums(x)
        return found

    def contributions(self, x: Evidence) -> Doubles:
        """What each column adds to the log odds, M×C; the sum over the columns and `base` are the log odds.

        For the regression it is exact, coefficient times difference from the population's mean; for the trees it is
        divided along the way of the pair through each tree (see vgae.stack.trees).
        """
        linear, boosted = self.logistic.contributions(x), self.trees.contributions(x)
        return self.scale * ((1 - self.boosting) * linear + self.boosting * boosted)

    @property
    def base(self) -> float:
        """The mean of the log odds over the population."""
        return self.shift + self.scale * ((1 - self.boosting) * self.logistic.base + self.boosting * self.trees.base)

    def scaled(self, scale: float, shift: float) -> Blend:
        """The model whose log odds are these times `scale`, and `shift` more."""
        return replace(self, scale=scale * self.scale, shift=scale * self.shift + shift)

    # ------------------------------------------------------------------------------------------------- as it is stored

    def tensors(self) -> Arrays:
        """All numbers of the model by name, for safetensors."""
        return {
            **{LOGISTIC + name: array for name, array in self.logistic.tensors().items()},
            **{TREES + name: array for name, array in self.trees.tensors().items()},
            MIX: np.array([self.boosting, self.scale, self.shift]),
        }

    @classmethod
    def from_tensors(cls, tensors: Arrays, num_columns: int) -> Blend:
        """The model of these numbers, if they can be one; InputError says what is wrong."""
        odd = set(tensors) ^ NAMES
        if odd:
            raise InputError(f"meta-model: {', '.join(sorted(map(str, odd)))[:200]}: missing or not known.")
        mix = tensors[MIX]
        if mix.dtype != np.float64 or mix.shape != (3,) or not (np.abs(mix) <= logistic.LARGEST).all():
            raise InputError(f"{MIX}: three finite numbers are needed.")
        if not 0 <= mix[0] <= 1 or mix[1] <= 0:
            raise InputError(f"{MIX}: a share from 0 to 1 and a scale above 0 are needed.")
        linear, trees = (
            {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
            for prefix in (LOGISTIC, TREES)
        )
        return cls(Logistic.from_tensors(linear, num_columns), Trees.from_tensors(trees, num_columns), *map(float, mix))


# ------------------------------------------------------------------------------------------------------------- fitting


@dataclass(frozen=True, eq=False)
class Rows:
    """What a model learns from: evidence (M×C), labels (0 or 1), and how many pairs each row stands for."""

    x: Evidence
    y: Doubles
    weights: Doubles

    def __getitem__(self, chosen: npt.NDArray[np.bool_]) -> Rows:
        return Rows(self.x[chosen], self.y[chosen], self.weights[chosen])

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        """All rows of the parts, in their order."""
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("x", "y", "weights")))

    @property
    def num_links(self) -> int:
        """How many of the rows are links."""
        return int(self.y.sum())


def fit_blend(rows: Rows, options: MetaOptions, seed: int, *, tree_balance: float) -> Blend:
    """Fit regression and trees; `tree_balance` is β of the trees."""
    x, y = rows.x, rows.y
    population = rows.weights / rows.weights[y == 1].mean()  # links count one each: penalties are in units of links
    odds = population[y == 1].sum() / population[y == 0].sum()
    balanced = np.where(y == 1, population, population * odds**options.balance)
    linear = fit_logistic(x, Weighted(y, balanced, population), options.ridge, options.num_knots)
    trees, start = Trees.none(x.shape[1]), 0.0
    if options.boosting > 0 and x.shape[1]:
        weights = np.where(y == 1, population, population * odds**tree_balance)
        trees, start = _fit_trees(x, y, weights, population, options, seed)
    share = options.boosting if trees.num_trees else 0.0
    start = share * (start + tree_balance * np.log(odds)) + (1 - share) * options.balance * np.log(odds)
    found = Blend(linear, trees, share, 1.0, float(start))
    return found.scaled(*calibrated(found.log_odds(x), rows))


def calibrated(log_odds: Doubles, rows: Rows) -> tuple[float, float]:
    """The scale and shift that make the labels most likely; the shift alone where too few rows mislead the scale."""
    labels, population = rows.y, rows.weights / rows.weights[rows.y == 1].mean()
    shift, scale = newton(log_odds[:, None], labels, population, 0.0).tolist()
    if LEAST_SCALE <= scale <= 1 / LEAST_SCALE:
        return scale, shift
    low, high, links = -50.0, 50.0, float(population @ labels)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if population @ sigmoid(log_odds + middle) > links else (middle, high)
    return 1.0, (low + high) / 2


def _fit_trees(
    x: Evidence, y: Doubles, weights: Doubles, population: Doubles, options: MetaOptions, seed: int
) -> tuple[Trees, float]:
    """Boosted trees, averaged over models of different seeds, and what their sums start from."""
    edges = [_edges(x[:, column], y) for column in range(x.shape[1])]
    bins = np.stack([_bins(x[:, column], edges[column]) for column in range(x.shape[1])], axis=1)
    ensemble = import_module("sklearn.ensemble")  # takes seconds to import
    found: list[Arrays] = []
    start = 0.0
    for number in range(options.num_boosted):
        model = ensemble.HistGradientBoostingClassifier(
            learning_rate=options.tree_rate,
            max_iter=options.num_trees,
            max_leaf_nodes=options.num_leaves,
            min_samples_leaf=options.leaf_rows,
            l2_regularization=options.leaf_ridge,
            max_features=options.column_share,
            max_bins=MOST_BINS,
            early_stopping=False,
            random_state=(seed + number) % MAX_SEED,
        ).fit(bins, y, sample_weight=weights)
        grown, first = _read_off(model, bins)
        found += grown
        start += first / options.num_boosted
    for tree in found:
        inner = tree["left"] > 0
        threshold = [
            edges[column][int(place)] if np.isfinite(place) else np.finfo(np.float32).max
            for column, place in zip(tree["feature"][inner], tree["threshold"][inner], strict=True)
        ]
        tree["threshold"][inner] = threshold
        tree["value"] = tree["value"] / options.num_boosted
    trees = Trees.joined(x.shape[1], found)
    return _with_means(trees, x, y, population), start


def _edges(values: Evidence, labels: Doubles) -> npt.NDArray[np.float32]:
    """Where bins end: halfway between values, at quantiles of the links and of the non-links."""
    present = ~np.isnan(values)
    every = np.unique(values[present])
    picked = every
    if len(every) > MOST_BINS:
        even = np.linspace(0, 1, MOST_BINS // 4 + 1)[1:-1]
        quantiles = np.concatenate([even, sigmoid(np.linspace(-9, 9, MOST_BINS // 4))])  # down to one row in 10⁴
        kinds = [values[present & (labels == label)] for label in (0, 1)]
        picked = np.unique(
            np.concatenate([np.quantile(kind, quantiles, method="inverted_cdf") for kind in kinds if len(kind)])
        )
    place = np.searchsorted(every, picked)
    place = place[place < len(every) - 1]
    middle = every[place] / 2 + every[place + 1] / 2
    return np.unique(np.where(middle < every[place + 1], middle, every[place]).astype(np.float32))


def _bins(values: Evidence, edges: npt.NDArray[np.float32]) -> Evidence:
    """The bin of each value: how many edges are below it; NaN stays NaN."""
    found = np.searchsorted(edges, values, side="left").astype(np.float32)
    missing = np.isnan(values)
    found[missing] = 0 if missing.all() else np.nan  # scikit-learn needs one value at least
    return found


def _read_off(model: Any, bins: Evidence) -> tuple[list[Arrays], float]:
    """The trees of a fitted model, thresholds in bins, and what their sums start from."""
    version = import_module("sklearn").__version__
    problem = (
        f"The trees of scikit-learn {version} are not as this version of vgae knows them; use scikit-learn 1.6 to 1.9."
    )
    try:
        nodes = [stage[0].nodes for stage in model._predictors]
        trees = [
            {
                "feature": np.where(each["is_leaf"], 0, each["feature_idx"]),
                "threshold": np.where(each["is_leaf"], 0.0, each["num_threshold"]),
                "missing_left": np.where(each["is_leaf"], 0, each["missing_go_to_left"]),
                "left": np.where(each["is_leaf"], 0, each["left"]),
                "right": np.where(each["is_leaf"], 0, each["right"]),
                "value": np.where(each["is_leaf"], each["value"], 0.0),
            }
            for each in nodes
        ]
    except (AttributeError, LookupError, TypeError, ValueError):
        raise TrainingError(problem) from None
    expected = model.decision_function(bins[:CHECKED])
    difference = expected - Trees.joined(bins.shape[1], trees).sums(bins[:CHECKED], implementation="numpy")
    if np.ptp(difference) > 1e-6 * (1 + np.abs(expected).max()):
        raise TrainingError(problem)
    return trees, float(difference[0])


def _with_means(trees: Trees, x: Evidence, y: Doubles, population: Doubles) -> Trees:
    """The same trees, in which the value of a node that is no leaf is the mean of its leaves over the population.

    Some of the rows, links and non-links, stand for it: the values say what a pair is compared with, no more.
    """
    some = spread_rows(y, COMPARED)
    weights = population[some].copy()
    for label in (0, 1):
        weights[y[some] == label] *= population[y == label].sum() / population[some][y[some] == label].sum()
    leaves = trees.leaves(x[some])
    weight = np.bincount(leaves.ravel(), np.repeat(weights, trees.num_trees), minlength=len(trees.left))
    return trees.with_means(weight.astype(np.float64))
