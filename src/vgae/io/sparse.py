"""Matrices out of files: what their entries mean, and whether they are better sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.words import shown

SPARSE_SHARE = 0.1  # of entries that are not 0, up to which features are sparse
VALUE = "value"  # what the weights of a matrix are called: its entries have no name


def sparse_if_few(matrix: Any) -> Any:
    """A matrix of numbers, sparse if few of its entries are not 0."""
    if sp.issparse(matrix) or matrix.ndim != 2:
        return matrix
    few = np.count_nonzero(matrix) < SPARSE_SHARE * matrix.size
    return sp.csr_array(matrix) if few else matrix


def require_weight_of_matrix(weight: str | None) -> bool:
    """Whether the entries of a matrix are weights; they have no other name than value."""
    if weight not in (None, VALUE):
        raise InputError(f"weight: the entries of a matrix are its weights; ask for {VALUE}, not {shown(weight)}.")
    return weight is not None
