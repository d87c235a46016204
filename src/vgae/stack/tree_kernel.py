"""The sum over trees, compiled by numba (imported only when used): in the order of the trees, so the same bits."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from numba import njit

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def _compiled(kernel: Kernel) -> Kernel:
    try:
        return cast("Kernel", njit(kernel, cache=True, nogil=True))
    except RuntimeError:  # no folder to keep compiled code in
        return cast("Kernel", njit(kernel, nogil=True))


@_compiled
def add_values(evidence: Any, trees: Any, found: Any) -> None:
    """Add the value of the leaf of every tree, in their order, to what is found for each row."""
    starts, feature, threshold, missing_left, left, right, value = trees
    for row in range(len(evidence)):
        total = found[row]
        for tree in range(len(starts) - 1):
            node = starts[tree]
            while left[node] != node:
                asked = evidence[row, feature[node]]
                if asked <= threshold[node] or (np.isnan(asked) and missing_left[node] > 0):
                    node = left[node]
                else:
                    node = right[node]
            total += value[node]
        found[row] = total
