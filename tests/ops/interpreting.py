"""Triton's interpreter, made faster: it reduces with a function of ours number by number, and here slice by slice.

Numbers are combined in the same order, so that the results have the same bits (tests/ops/test_fused.py compares).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from triton.runtime.interpreter import ReduceOps

number_by_number = ReduceOps.generic_reduce


def slice_by_slice(self: Any, given: Any) -> list[Any]:
    """What `generic_reduce` gives along an axis: the first slice combined with the second, and so on."""
    if self.axis is None or self.keep_dims or given[0].handle.data.ndim < 2:
        found: list[Any] = number_by_number(self, given)
        return found
    slices = [
        [self.to_tensor(part, each.dtype) for part in np.moveaxis(each.handle.data, self.axis, 0)] for each in given
    ]
    first, *others = zip(*slices, strict=True)
    for other in others:
        combined = self.combine_fn.fn(*first, *other)
        first = combined if isinstance(combined, tuple) else (combined,)
    return list(first)


@contextmanager
def reducing_slice_by_slice() -> Iterator[None]:
    """While this is entered, kernels are interpreted with it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ReduceOps, "generic_reduce", slice_by_slice)
        yield
