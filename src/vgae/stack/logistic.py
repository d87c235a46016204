"""Logistic regression on evidence of any scale and with any tails, bent where the evidence says so.

    log odds = b + Σ_c f_c(x_c) + Σ_c γ_c [x_c is missing]
    f_c(x)   = β_c z_c + Σ_k α_ck max(0, z_c - κ_ck), 0 where x_c is missing
    z_c      = (t_c(x_c) - centre_c) / scale_c

t_c is monotone: the value as it is or, to tame heavy tails, sign(x) log(1 + |x| / unit_c) with a low quantile of |x| as
the unit, whichever alone explains the labels better. Centre and scale are the weighted mean and deviation. f_c is a
line with bends at the knots κ, quantiles of which links and non-links decide half each: evidence may count for much in
one range and for little in another, and beyond the last knot it continues as a line, where trees are constant. The
weighted log loss plus λ/2 of the squares of all coefficients, those of bends in units of their deviation, is minimised
by Newton's method. Columns are added up one by one: the same bits for a row, whatever other rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError

Evidence = npt.NDArray[np.float32]  # M×C
Doubles = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]

STEPS = 100  # of Newton's method, which needs about ten
SMALL = 1e-9  # a gain of the loss, as a share of it, that ends the search
LOW = 0.1  # the quantile of |x| > 0 that is the unit of a logarithm
CHUNK = 20_000  # rows in double precision at a time
COMPARED = 10_000  # links, and as many non-links, by which forms are compared
LARGEST = 1e30  # that a stored number may be: no finite evidence leads beyond float64


@dataclass(frozen=True, eq=False)
class Forms:
    """z_c(x_c) of every column."""

    logarithmic: npt.NDArray[np.uint8]
    unit: Doubles
    centre: Doubles
    scale: Doubles

    def of(self, evidence: Evidence, column: int) -> Doubles:
        """One column of z."""
        x = np.ascontiguousarray(evidence[:, column], dtype=np.float64)
        if self.logarithmic[column]:
            x = np.sign(x) * np.log1p(np.abs(x) / self.unit[column])
        z: Doubles = (x - self.centre[column]) / self.scale[column]
        z[np.isnan(z)] = 0
        return z


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted logistic regression; `reference` is the population's mean of f_c, `missing_share` of what is missing."""

    forms: Forms
    slope: Doubles
    knots: Doubles  # C×K, ascending
    bends: Doubles  # C×K
    missing: Doubles
    reference: Doubles
    missing_share: Doubles
    intercept: float

    def sums(self, evidence: Evidence) -> Doubles:
        """The log odds of each row."""
        found = np.full(len(evidence), self.intercept)
        for column in range(evidence.shape[1]):
            found += self.part(evidence, column)
            found += self.missing[column] * np.isnan(evidence[:, column])
        return found

    def part(self, evidence: Evidence, column: int) -> Doubles:
        """f_c of each row."""
        z = self.forms.of(evidence, column)
        found: Doubles = self.slope[column] * z
        for knot, bend in zip(self.knots[column], self.bends[column], strict=True):
            if bend:
                found += bend * np.maximum(z - knot, 0)
        found[np.isnan(evidence[:, column])] = 0
        return found

    def contributions(self, evidence: Evidence) -> Doubles:
        """What each column adds to the log odds of each row, M×C, relative to `base`."""
        found = np.empty(evidence.shape)
        for column in range(evidence.shape[1]):
            found[:, column] = self.part(evidence, column) - self.reference[column]
            absent = np.isnan(evidence[:, column])
            found[:, column] += self.missing[column] * (absent - self.missing_share[column])
        return found

    @property
    def base(self) -> float:
        """The mean of the log odds over the population."""
        return float(self.intercept + self.reference.sum() + self.missing @ self.missing_share)

    # ------------------------------------------------------------------------------------------------- as it is stored

    def tensors(self) -> Arrays:
        """The arrays by their names."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("forms", "intercept")}
        return own | vars(self.forms) | {"intercept": np.array([self.intercept])}

    @classmethod
    def from_tensors(cls, tensors: Arrays, num_columns: int) -> Logistic:
        """A regression out of arrays that somebody may have changed: what could not have been written is refused."""
        for name, array in tensors.items():
            kind = np.dtype(np.uint8 if name == "logarithmic" else np.float64)
            if name in BENT:
                is_shaped = array.ndim == 2 and array.shape == tensors["knots"].shape and len(array) == num_columns
                if array.dtype != kind or not is_shaped or array.shape[1] > MOST_KNOTS:
                    raise InputError(f"logistic.{name}: {num_columns} rows of the type {kind} are needed.")
            else:
                length = 1 if name == "intercept" else num_columns
                if array.dtype != kind or array.shape != (length,):
                    raise InputError(f"logistic.{name}: {length} values of the type {kind} are needed.")
            if name == "logarithmic" and (array > 1).any():
                raise InputError("logistic.logarithmic: each must be 0 or 1.")
            if kind.kind == "f" and not (np.abs(array) <= LARGEST).all():
                raise InputError(f"logistic.{name}: all numbers must be finite.")
            if name in ("unit", "scale") and (array < 1 / LARGEST).any():
                raise InputError(f"logistic.{name}: all numbers must be above 0.")
        forms = Forms(*(tensors[each.name] for each in fields(Forms)))
        own = {name: tensors[name] for name in OWN}
        return cls(forms=forms, **own, intercept=float(tensors["intercept"][0]))


BENT = ("knots", "bends")
OWN = ("slope", *BENT, "missing", "reference", "missing_share")
NAMES = (*OWN, "intercept", *(each.name for each in fields(Forms)))
MOST_KNOTS = 100


# ------------------------------------------------------------------------------------------------------------- fitting


@dataclass(frozen=True, eq=False)
class Weighted:
    """Labels, how much each row counts in fitting, and how many pairs of the population it stands for."""

    labels: Doubles
    weights: Doubles
    population: Doubles


def fit_logistic(evidence: Evidence, rows: Weighted, ridge: float, num_knots: int = 0) -> Logistic:
    """Fit to weighted labels; what is shown relative to a reference is relative to the mean over the population."""
    num_columns = evidence.shape[1]
    forms = _fit_forms(evidence, rows.labels, rows.weights)
    absent = np.isnan(evidence)
    has_absent = np.flatnonzero(absent.any(axis=0) & ~absent.all(axis=0))
    knots = np.zeros((num_columns, num_knots))
    deviations = np.ones((num_columns, num_knots))
    design = np.empty((len(evidence), num_columns * (1 + num_knots) + len(has_absent)), dtype=np.float32)
    for column in range(num_columns):
        z = forms.of(evidence, column)
        design[:, column] = z
        if num_knots:
            knots[column] = _knots(z[~absent[:, column]], rows.labels[~absent[:, column]], num_knots)
        for place, knot in enumerate(knots[column]):
            hinge = np.where(absent[:, column], 0.0, np.maximum(z - knot, 0))
            spread = float(
                np.sqrt(np.average((hinge - np.average(hinge, weights=rows.weights)) ** 2, weights=rows.weights))
            )
            deviations[column, place] = max(spread, 1e-6)
            design[:, num_columns + column * num_knots + place] = hinge / deviations[column, place]
    design[:, num_columns * (1 + num_knots) :] = absent[:, has_absent]
    coefficients = newton(design, rows.labels, rows.weights, ridge)
    bent = coefficients[1 + num_columns : 1 + num_columns * (1 + num_knots)].reshape(num_columns, num_knots)
    missing = np.zeros(num_columns)
    missing[has_absent] = coefficients[1 + num_columns * (1 + num_knots) :]
    fitted = Logistic(
        forms=forms,
        slope=coefficients[1 : 1 + num_columns].copy(),
        knots=knots,
        bends=bent / deviations,
        missing=missing,
        reference=np.zeros(num_columns),
        missing_share=np.average(absent, axis=0, weights=rows.population),
        intercept=float(coefficients[0]),
    )
    parts = [np.average(fitted.part(evidence, column), weights=rows.population) for column in range(num_columns)]
    return replace(fitted, reference=np.array(parts, dtype=np.float64))


def _knots(z: Doubles, labels: Doubles, num_knots: int) -> Doubles:
    """Quantiles of the mixture of links and non-links, half each, in ascending order; some may be equal."""
    counts = [max(1, int((labels == label).sum())) for label in (0, 1)]
    if not len(z):
        return np.zeros(num_knots)
    shares = np.where(labels == 1, 1 / counts[1], 1 / counts[0])
    order = np.argsort(z, kind="stable")
    passed = np.cumsum(shares[order])
    places: Doubles = np.interp((np.arange(num_knots) + 0.5) / num_knots * passed[-1], passed, z[order])
    return places


def _fit_forms(evidence: Evidence, labels: Doubles, weights: Doubles) -> Forms:
    """For each column the form that alone has the smaller loss, by some of the rows."""
    some = spread_rows(labels, COMPARED)
    weights_of, labels_of = weights[some], labels[some]
    chosen = []
    for column in range(evidence.shape[1]):
        x = np.ascontiguousarray(evidence[:, column : column + 1])
        size = np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64)
        unit = float(np.quantile(size, LOW)) if len(size) else 1.0
        found = []
        for logarithmic in (0, 1):
            form = _standardised(x, weights, logarithmic, unit)
            z = form.of(x[some], 0)[:, None]
            coefficients = newton(z, labels_of, weights_of, 1.0)
            found.append(
                (log_loss(coefficients[0] + z[:, 0] * coefficients[1], labels_of, weights_of), logarithmic, form)
            )
        chosen.append(min(found, key=lambda each: each[:2])[2])
    return Forms(
        *(
            np.concatenate([np.empty(0), *(getattr(form, each.name) for form in chosen)]).astype(kind)
            for each, kind in zip(fields(Forms), ("u1", "f8", "f8", "f8"), strict=True)
        )
    )


def _standardised(x: Evidence, weights: Doubles, logarithmic: int, unit: float) -> Forms:
    """A form with the centre and scale that make its mean 0 and its deviation 1."""
    plain = Forms(np.array([logarithmic], dtype=np.uint8), np.array([unit]), np.zeros(1), np.ones(1))
    there = ~np.isnan(x[:, 0]) & (weights > 0)
    if not there.any():
        return plain
    z, w = plain.of(x, 0)[there], weights[there]
    centre = float(np.average(z, weights=w))
    deviation = float(np.sqrt(np.average((z - centre) ** 2, weights=w)))
    scale = deviation if deviation > 1e-12 * max(1e-12, float(np.abs(z).max())) else 1.0
    return Forms(plain.logarithmic, plain.unit, np.array([centre]), np.array([scale]))


def newton(design: Doubles | npt.NDArray[np.float32], labels: Doubles, weights: Doubles, ridge: float) -> Doubles:
    """Intercept and coefficients at the minimum of the weighted log loss plus λ/2 of their squares, intercept aside."""
    penalty = np.full(1 + design.shape[1], ridge)
    penalty[0] = 0
    mean = np.average(labels, weights=weights)
    coefficients = np.zeros(1 + design.shape[1])
    coefficients[0] = np.log(mean / (1 - mean))
    current = _objective(design, labels, weights, penalty, coefficients)
    for _ in range(STEPS):
        gradient, curvature = penalty * coefficients, np.diag(penalty)
        for part in _parts(len(design)):
            rows = _with_ones(design[part])
            p = sigmoid(rows @ coefficients)
            gradient += rows.T @ (weights[part] * (p - labels[part]))
            curvature += (rows * (weights[part] * p * (1 - p))[:, None]).T @ rows
        step = np.linalg.lstsq(curvature, gradient, rcond=1e-12)[0]
        for _ in range(30):  # shorter, until it leads down
            following = _objective(design, labels, weights, penalty, coefficients - step)
            if following <= current:
                break
            step /= 2
        else:
            break
        coefficients -= step
        gain, current = current - following, following
        if gain <= SMALL * abs(current):
            break
    return coefficients


def _parts(num_rows: int) -> list[slice]:
    return [slice(start, start + CHUNK) for start in range(0, num_rows, CHUNK)]


def _with_ones(design: npt.NDArray[Any]) -> Doubles:
    """Some rows in double precision, a column of ones before them."""
    return np.concatenate([np.ones((len(design), 1)), design], axis=1)


def spread_rows(labels: Doubles, most: int) -> npt.NDArray[np.int64]:
    """Rows of each label, spread evenly over all of them; no more than `most` of each."""
    kinds = [np.flatnonzero(labels == label) for label in (0, 1)]
    return np.sort(np.concatenate([rows[:: max(1, -(-len(rows) // most))] for rows in kinds]))


def log_loss(log_odds: Doubles, labels: Doubles, weights: Doubles) -> float:
    """Σ w [log(1 + exp s) - y s]."""
    softplus = np.log1p(np.exp(-np.abs(log_odds))) + np.maximum(log_odds, 0)
    return float(weights @ (softplus - labels * log_odds))


def sigmoid(log_odds: Doubles) -> Doubles:
    """Probabilities, the smallest too as exact as float64 can have them."""
    smaller = np.exp(-np.abs(log_odds))
    probabilities: Doubles = np.where(log_odds < 0, smaller, 1.0) / (1 + smaller)
    return probabilities


def _objective(
    design: npt.NDArray[Any], labels: Doubles, weights: Doubles, penalty: Doubles, coefficients: Doubles
) -> float:
    loss = sum(
        log_loss(_with_ones(design[part]) @ coefficients, labels[part], weights[part]) for part in _parts(len(design))
    )
    return loss + float(penalty @ coefficients**2) / 2
