"""Features brought to scale.

rows      each row divided by its length ‖x_i‖₂: a long text then weighs no more than a short one
columns   each column divided by its largest magnitude max_i |x_ij|, so that its values lie between -1 and 1

Neither moves a zero, so that sparse features stay sparse; what is 0 throughout stays 0. A `Normalization` does to other
rows what was done to the first ones: lengths are each row's own, the columns' magnitudes those of the first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.convert import to_matrix
from vgae.graph.scales import NORMALIZATIONS
from vgae.options import one_of
from vgae.words import count

LARGE = 30.0  # length of a row, above which features may be why a training diverges
BLOCK = 2**20  # numbers of dense features that are looked at together
UNEVEN = 100.0  # times the median magnitude, from which on a column is far larger than the others
FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Normalization:
    """How features are brought to scale; `scales` is what each column is divided by."""

    how: str = "none"
    scales: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        one_of(self.how, "normalize", NORMALIZATIONS)

    @classmethod
    def fit(cls, features: Any, how: str) -> Normalization:
        """The normalization of this name, for these features and others like them."""
        return cls(how) if how != "columns" else cls.of_columns(largest_in_columns(features))

    @classmethod
    def of_columns(cls, largest: npt.NDArray[np.float64]) -> Normalization:
        """Columns divided by their largest magnitudes."""
        return cls("columns", tuple(np.where(largest > 0, largest, 1.0).tolist()))

    def apply(self, features: Any) -> FloatArray | sp.csr_array:
        """Features brought to this scale, float32, dense or sparse as they were."""
        matrix = _to_matrix(features)
        if self.how == "rows":
            return _divided(matrix, row_lengths(matrix), axis=0)
        if self.how == "columns" and self.scales is not None:
            if len(self.scales) != matrix.shape[1]:
                found = count(matrix.shape[1], "column")
                raise InputError(f"features: {found} given, but {len(self.scales)} were normalized before.")
            return _divided(matrix, np.array(self.scales), axis=1)
        unchanged: FloatArray | sp.csr_array = matrix
        return unchanged


def normalize(features: Any, how: str) -> FloatArray | sp.csr_array:
    """Features with rows of unit length, with columns between -1 and 1, or as they are."""
    return Normalization.fit(features, how).apply(features)


def csr_pieces(features: Any) -> Iterator[tuple[npt.NDArray[Any], str]]:
    """The arrays of features as a CSR array has them, with their types in a hash; dense ones by some rows at a time."""
    if sp.issparse(features):
        yield from ((features.indptr, "<i8"), (features.indices, "<i8"), (features.data, "<f4"))
        return
    step = max(1, BLOCK // max(1, features.shape[1]))
    blocks = [slice(first, first + step) for first in range(0, features.shape[0], step)]
    counts = [np.count_nonzero(features[block], axis=1) for block in blocks]
    yield np.cumsum(np.concatenate([[0], *counts])), "<i8"
    for block in blocks:
        yield np.nonzero(features[block])[1], "<i8"
    for block in blocks:
        yield features[block][features[block] != 0], "<f4"


def remedy_for(features: Any) -> str | None:
    """Which normalization fits features that are too large for training; None where they are not large.

    Rows, as of word counts; columns where a few of them are far larger than the others, as of mixed measurements.
    """
    matrix = _to_matrix(features)
    if not row_lengths(matrix).max(initial=0) > LARGE:
        return None
    scales = np.array(Normalization.fit(matrix, "columns").scales)
    return "columns" if scales.max() > UNEVEN * np.median(scales) else "rows"


def largest_in_columns(features: Any) -> npt.NDArray[np.float64]:
    """max_i |x_ij| of each column."""
    matrix = _to_matrix(features)
    largest: Any = abs(matrix).max(axis=0) if matrix.shape[0] else np.zeros(matrix.shape[1])
    return (largest.toarray() if sp.issparse(largest) else np.asarray(largest)).ravel().astype(np.float64)


def row_lengths(features: Any) -> npt.NDArray[np.float64]:
    """‖x_i‖₂ of each row, in double precision, where no square is too large."""
    if sp.issparse(features):
        squares = np.square(features.data, dtype=np.float64)
        return np.sqrt(np.bincount(_rows_of(features), squares, minlength=features.shape[0]))
    lengths: npt.NDArray[np.float64] = np.sqrt(np.square(features, dtype=np.float64).sum(axis=1))
    return lengths


def _divided(matrix: Any, by: npt.NDArray[np.float64], axis: int) -> FloatArray | sp.csr_array:
    """Rows (axis 0) or columns (axis 1) divided, each by its own number; what would be divided by 0 stays."""
    by = np.where(by > 0, by, 1.0)
    if sp.issparse(matrix):
        divisors = by[_rows_of(matrix) if axis == 0 else matrix.indices]
        with np.errstate(invalid="ignore"):  # what is infinite is found and named by the graph
            values = (matrix.data / divisors).astype(np.float32)
        return sp.csr_array((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    with np.errstate(invalid="ignore"):  # what is infinite is found and named by the graph
        dense: FloatArray = (matrix / (by[:, None] if axis == 0 else by)).astype(np.float32)
    return dense


def _rows_of(matrix: Any) -> npt.NDArray[np.int64]:
    """The row of each stored entry."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _to_matrix(features: Any) -> Any:
    """Features as a matrix whose entries are stored once."""
    matrix = to_matrix(features)
    if sp.issparse(matrix) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix
