"""Splitting samples of links again and again, as scikit-learn's `cv` has it: K folds, or random shares.

Links and non-links are dealt out separately, so that each test set has its share of both. What is dealt out is the
pair, not the row: a pair that is there twice, or in both directions, never is in training and test at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.checks import MAX_SEED
from vgae.graph.pairs import IntArray, as_pairs, distinct
from vgae.graph.samples import Labels, check_labels, codes_of, refuse_contradictions
from vgae.graph.split import TEST_FRACTION
from vgae.options import whole_number
from vgae.words import shown

Rows = tuple[IntArray, IntArray]  # of training and test


class _Splitter:
    """What scikit-learn asks of every splitter."""

    n_splits: int

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:  # noqa: ARG002, N803 - scikit-learn's
        """How often is split."""
        return self.n_splits


@dataclass(frozen=True)
class LinkKFold(_Splitter):
    """K folds of links and non-links; each fold is the test set once, the others are for training.

    >>> import vgae
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = vgae.link_samples(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    >>> cross_val_score(vgae.GAE(iterations=20, seed=0), X, y, cv=vgae.LinkKFold(3, seed=0)).shape
    (3,)
    """

    n_splits: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number(self.n_splits, "n_splits", 2)
        whole_number(self.seed, "seed", 0, MAX_SEED)

    def split(self, X: Any, y: npt.ArrayLike | None = None, groups: Any = None) -> Iterator[Rows]:  # noqa: ARG002, N803
        """Indices of the rows for training and for test, K times."""
        codes, labels = _codes_and_labels(X, y)
        generator = np.random.default_rng(self.seed)
        fold = np.empty(len(codes), dtype=np.int64)
        for name, chosen in _kinds(labels):
            found = distinct(codes[chosen])
            if len(found) < self.n_splits:
                raise InputError(
                    f"n_splits: {self.n_splits} folds need at least {self.n_splits} {name}, and there are {len(found)}."
                )
            of_pair = generator.permutation(len(found)) % self.n_splits
            fold[chosen] = of_pair[np.searchsorted(found, codes[chosen])]
        for number in range(self.n_splits):
            yield np.flatnonzero(fold != number), np.flatnonzero(fold == number)


@dataclass(frozen=True)
class LinkShuffleSplit(_Splitter):
    """Random shares of links and non-links as test set, the rest for training, each time drawn anew.

    Of so many links a share of `test` is taken, rounded down, but at least one; of the non-links too.

    >>> import vgae
    >>> X, y = vgae.link_samples(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    >>> splits = vgae.LinkShuffleSplit(2, test=0.1, seed=0)
    >>> [float(y[test].mean()) for train, test in splits.split(X, y)]
    [0.5, 0.5]
    """

    n_splits: int = 5
    test: float = TEST_FRACTION
    seed: int = 0

    def __post_init__(self) -> None:
        whole_number(self.n_splits, "n_splits", 1)
        if not isinstance(self.test, float | np.floating) or not 0 < self.test < 1:
            raise InputError(f"test: a fraction above 0 and below 1 is needed, got {shown(self.test)}.")
        whole_number(self.seed, "seed", 0, MAX_SEED)

    def split(self, X: Any, y: npt.ArrayLike | None = None, groups: Any = None) -> Iterator[Rows]:  # noqa: ARG002, N803
        """Indices of the rows for training and for test, `n_splits` times."""
        codes, labels = _codes_and_labels(X, y)
        generator = np.random.default_rng(self.seed)
        found = {name: distinct(codes[chosen]) for name, chosen in _kinds(labels)}
        for name, pairs in found.items():
            if len(pairs) < 2:
                raise InputError(f"test: at least 2 {name} are needed to take a share of them, got {len(pairs)}.")
        for _ in range(self.n_splits):
            in_test = np.zeros(len(codes), dtype=bool)
            for name, chosen in _kinds(labels):
                num_test = max(1, int(self.test * len(found[name]) + 1e-9))  # 0.29·100 comes out as 28.999999999999996
                drawn = np.zeros(len(found[name]), dtype=bool)
                drawn[generator.permutation(len(drawn))[:num_test]] = True
                in_test[chosen] = drawn[np.searchsorted(found[name], codes[chosen])]
            yield np.flatnonzero(~in_test), np.flatnonzero(in_test)


def _codes_and_labels(pairs: Any, y: npt.ArrayLike | None) -> tuple[IntArray, Labels]:
    """What tells pairs apart, and which of them are links."""
    checked = as_pairs(pairs, "X")
    labels = check_labels(y, len(checked))
    refuse_contradictions(checked, labels)
    return codes_of(checked), labels


def _kinds(labels: Labels) -> tuple[tuple[str, Labels], tuple[str, Labels]]:
    return ("links", labels), ("non-links", ~labels)
