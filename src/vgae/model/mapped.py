"""Arrays that lie in a file and are read from there when they are needed: features that need not fit into memory.

`np.load("features.npy", mmap_mode="r")` and `np.memmap(…, mode="r")` give such arrays. What is computed from one has
the same size: it goes to a file without a name in the folder for temporary files, and is gone with the process.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

FloatArray = npt.NDArray[np.float32]
BLOCK = 2**22  # numbers that are computed at a time


def is_mapped(array: Any) -> bool:
    """Whether an array, or the one that it is a view of, lies in a file."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return True
        array = array.base
    return False


def like(array: FloatArray) -> FloatArray:
    """An array of the same shape, in memory or in a file as the one that is given."""
    if not is_mapped(array):
        return np.empty(array.shape, np.float32)
    with tempfile.TemporaryFile(prefix="vgae-features-") as file:
        return np.memmap(file, dtype=np.float32, mode="w+", shape=array.shape)


def blocks(array: FloatArray) -> Iterator[slice]:
    """Ranges of rows."""
    num = max(1, BLOCK // array.shape[1])
    return (slice(start, start + num) for start in range(0, len(array), num))


def unit_rows(array: FloatArray) -> FloatArray:
    """Rows divided by their lengths, some at a time; rows of zeros stay."""
    result = like(array)
    for rows in blocks(array):
        lengths = np.sqrt(np.square(array[rows], dtype=np.float64).sum(axis=1, keepdims=True))
        result[rows] = array[rows] / np.where(lengths > 0, lengths, 1.0)
    return result


def product(matrix: sp.csr_array, array: FloatArray) -> FloatArray:
    """A sparse matrix times an array, some rows at a time."""
    result = like(array)
    for rows in blocks(array):
        result[rows] = matrix[rows] @ array
    return result


def as_tensor(array: FloatArray) -> Tensor:
    """The array itself as a tensor, without a copy; nothing may be written to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
