"""Logistic regression on evidence of any scale and with any tails.

    log odds = b + Σ_c β_c z_c + Σ_c γ_c [x_c is missing]
    z_c      = (t_c(x_c) - centre_c) / scale_c, 0 where x_c is missing

t_c is monotone: the value as it is or, to tame heavy tails, sign(x) log(1 + |x| / unit_c) with the median of |x| > 0 as
the unit, whichever alone explains the labels better. Centre and scale are the weighted mean and deviation. The weighted
log loss plus λ/2 (‖β‖² + ‖γ‖²) is minimised by Newton's method. Columns are added up one by one: the same bits for a
row, whatever other rows there are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError

Evidence = npt.NDArray[np.float32]  # M×C
Doubles = npt.NDArray[np.float64]
Arrays = dict[str, npt.NDArray[Any]]

STEPS = 100  # of Newton's method, which needs about ten
SMALL = 1e-9  # a gain of the loss, as a share of it, that ends the search
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
    """A fitted logistic regression; `reference` is the population's mean of z, `missing_share` of what is missing."""

    forms: Forms
    slope: Doubles
    missing: Doubles
    reference: Doubles
    missing_share: Doubles
    intercept: float

    def sums(self, evidence: Evidence) -> Doubles:
        """The log odds of each row."""
        found = np.full(len(evidence), self.intercept)
        for column in range(evidence.shape[1]):
            found += self.slope[column] * self.forms.of(evidence, column)
            found += self.missing[column] * np.isnan(evidence[:, column])
        return found

    def contributions(self, evidence: Evidence) -> Doubles:
        """What each column adds to the log odds of each row, M×C, relative to `base`."""
        found = np.empty(evidence.shape)
        for column in range(evidence.shape[1]):
            found[:, column] = self.slope[column] * (self.forms.of(evidence, column) - self.reference[column])
            absent = np.isnan(evidence[:, column])
            found[:, column] += self.missing[column] * (absent - self.missing_share[column])
        return found

    @property
    def base(self) -> float:
        """The mean of the log odds over the population."""
        return float(self.intercept + self.slope @ self.reference + self.missing @ self.missing_share)

    # ------------------------------------------------------------------------------------------------- as it is stored

    def tensors(self) -> Arrays:
        """The arrays by their names."""
        own = {each.name: getattr(self, each.name) for each in fields(self) if each.name not in ("forms", "intercept")}
        return own | vars(self.forms) | {"intercept": np.array([self.intercept])}

    @classmethod
    def from_tensors(cls, tensors: Arrays, num_columns: int) -> Logistic:
        """A regression out of arrays that somebody may have changed: what could not have been written is refused."""
        for name, array in tensors.items():
            length = 1 if name == "intercept" else num_columns
            kind = np.dtype(np.uint8 if name == "logarithmic" else np.float64)
            if array.dtype != kind or array.shape != (length,):
                raise InputError(f"logistic.{name}: {length} values of the type {kind} are needed.")
            if name == "logarithmic" and (array > 1).any():
                raise InputError("logistic.logarithmic: each must be 0 or 1.")
            if kind.kind == "f" and not (np.abs(array) <= LARGEST).all():
                raise InputError(f"logistic.{name}: all numbers must be finite.")
            if name in ("unit", "scale") and (array < 1 / LARGEST).any():
                raise InputError(f"logistic.{name}: all numbers must be above 0.")
        forms = Forms(*(tensors[each.name] for each in fields(Forms)))
        own = {name: tensors[name] for name in ("slope", "missing", "reference", "missing_share")}
        return cls(forms=forms, **own, intercept=float(tensors["intercept"][0]))


NAMES = ("slope", "missing", "reference", "missing_share", "intercept", *(each.name for each in fields(Forms)))


# ------------------------------------------------------------------------------------------------------------- fitting


def fit_logistic(evidence: Evidence, labels: Doubles, weights: Doubles, population: Doubles, ridge: float) -> Logistic:
    """Fit to weighted labels; what is shown relative to a reference is relative to the mean by `population`."""
    num_columns = evidence.shape[1]
    forms = _fit_forms(evidence, labels, weights)
    z = np.stack([forms.of(evidence, column) for column in range(num_columns)], axis=1)
    absent = np.isnan(evidence)
    has_absent = np.flatnonzero(absent.any(axis=0) & ~absent.all(axis=0))
    design = np.concatenate([z, absent[:, has_absent]], axis=1)
    coefficients = newton(design, labels, weights, ridge)
    missing = np.zeros(num_columns)
    missing[has_absent] = coefficients[1 + num_columns :]
    return Logistic(
        forms=forms,
        slope=coefficients[1 : 1 + num_columns].copy(),
        missing=missing,
        reference=np.average(z, axis=0, weights=population),
        missing_share=np.average(absent, axis=0, weights=population),
        intercept=float(coefficients[0]),
    )


def _fit_forms(evidence: Evidence, labels: Doubles, weights: Doubles) -> Forms:
    """For each column the form that alone has the smaller loss, by some of the rows."""
    some = spread_rows(labels, COMPARED)
    weights_of, labels_of = weights[some], labels[some]
    chosen = []
    for column in range(evidence.shape[1]):
        x = np.ascontiguousarray(evidence[:, column : column + 1])
        size = np.abs(x[np.isfinite(x) & (x != 0)]).astype(np.float64)
        unit = float(np.median(size)) if len(size) else 1.0
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


def newton(design: Doubles, labels: Doubles, weights: Doubles, ridge: float) -> Doubles:
    """Intercept and coefficients at the minimum of the weighted log loss plus λ/2 of their squares, intercept aside."""
    design = np.concatenate([np.ones((len(design), 1)), design], axis=1)
    penalty = np.full(design.shape[1], ridge)
    penalty[0] = 0
    mean = np.average(labels, weights=weights)
    coefficients = np.zeros(design.shape[1])
    coefficients[0] = np.log(mean / (1 - mean))
    current = _objective(design, labels, weights, penalty, coefficients)
    for _ in range(STEPS):
        p = sigmoid(design @ coefficients)
        gradient = design.T @ (weights * (p - labels)) + penalty * coefficients
        curvature = (design * (weights * p * (1 - p))[:, None]).T @ design + np.diag(penalty)
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


def _objective(design: Doubles, labels: Doubles, weights: Doubles, penalty: Doubles, coefficients: Doubles) -> float:
    return log_loss(design @ coefficients, labels, weights) + float(penalty @ coefficients**2) / 2
