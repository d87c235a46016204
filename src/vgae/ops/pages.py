"""Large tensors on pages of 2 MB, where the system has them: rows that are read in any order are found faster there.

Memory that is new comes from the system page by page, as it is first touched; 4 KB at a time that takes as long as the
sums that are written there. So what a step has freed is kept for the next one.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

LARGE = 2**23  # bytes, of which the pages at either end may stay small
PAGE = 4096
MADV_HUGEPAGE = 14
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT = 2**26  # bytes that are free and stay
SHARED = 2**25  # bytes, up to which a tensor has no memory of its own from the system


def empty(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """A tensor on the CPU that nothing has been written to."""
    tensor = torch.empty(shape, dtype=dtype)
    size = tensor.numel() * tensor.element_size()
    if size >= LARGE and sys.platform == "linux":
        first = -(-tensor.data_ptr() // PAGE) * PAGE
        # Whatever the answer is: without large pages it is as slow as it was.
        ctypes.CDLL(None).madvise(ctypes.c_void_p(first), ctypes.c_size_t(size - PAGE), MADV_HUGEPAGE)
    return tensor


@cache
def keep_freed() -> None:
    """Have memory that is freed stay with this process, where its library of C is glibc.

    By default it goes back, and comes again as new, where tensors of some megabytes are made and freed in turn.
    """
    if sys.platform == "linux":
        with suppress(AttributeError):  # another library
            adjust = ctypes.CDLL(None).mallopt
            adjust(M_MMAP_THRESHOLD, SHARED)
            adjust(M_TRIM_THRESHOLD, KEPT)


def is_large(tensor: Tensor) -> bool:
    """Whether it is on the CPU and as large as to gain by it."""
    return tensor.device.type == "cpu" and tensor.numel() * tensor.element_size() >= LARGE


def moved(tensor: Tensor) -> Tensor:
    """A large tensor on large pages; any other as it is."""
    return empty(*tensor.shape, dtype=tensor.dtype).copy_(tensor) if is_large(tensor) else tensor


def scaled(tensor: Tensor, scale: Tensor) -> Tensor:
    """The product with a number."""
    if not is_large(tensor):
        return scale * tensor
    return torch.mul(tensor, scale, out=empty(*tensor.shape, dtype=tensor.dtype))


def product(left: Tensor, right: Tensor) -> Tensor:
    """The product of an N×F matrix with a small one, differentiable in both."""
    if not is_large(left) or torch.compiler.is_compiling():
        return left @ right
    result: Tensor = _Product.apply(left, right)  # type: ignore[no-untyped-call]
    return result


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, left: Tensor, right: Tensor) -> Tensor:
        ctx.save_for_backward(left, right)
        return torch.mm(left, right, out=empty(len(left), right.shape[1], dtype=left.dtype))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, Tensor | None]:
        left, right = ctx.saved_tensors
        of_left = of_right = None
        if ctx.needs_input_grad[0]:
            of_left = torch.mm(upstream, right.T, out=empty(*left.shape, dtype=left.dtype))
        if ctx.needs_input_grad[1]:
            of_right = left.T @ upstream
        return of_left, of_right
