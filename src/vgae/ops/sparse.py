"""Products of a constant sparse matrix with a dense one, forward and backward.

    Y = M·H,   ∂L/∂H = Mᵀ·∂L/∂Y

The matrix never changes during training, so its transpose is laid out once, and a symmetric matrix is its own. That
is all the backward pass needs: no gather, no scatter, no atomics, and the same bits every time.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.machine import is_in_one_thread
from vgae.ops.chunks import Chunks
from vgae.ops.dispatch import HAS_NUMBA, HAS_TRITON

LARGE = 2**24  # numbers of a dense matrix, which no cache holds


@dataclass(frozen=True, eq=False)
class Rows:
    """A sparse matrix by rows (CSR): row i holds `values[starts[i]:starts[i + 1]]` at `columns[…]`."""

    starts: Tensor
    columns: Tensor
    values: Tensor
    chunks: Chunks | None = None  # where Triton's kernels multiply: on a GPU

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device) -> Rows:
        """Those of a matrix, on a device."""
        small = max(matrix.nnz, *matrix.shape) < 2**31
        kind = torch.int32 if small else torch.int64
        starts = torch.tensor(matrix.indptr, dtype=kind, device=device)
        return cls(
            starts=starts,
            columns=torch.tensor(matrix.indices, dtype=kind, device=device),
            values=torch.tensor(matrix.data, device=device),
            chunks=Chunks.of(starts) if HAS_TRITON and device.type == "cuda" else None,
        )

    @cached_property
    def arrays(self) -> tuple[Any, Any, Any]:
        """The three as arrays of NumPy's, on the CPU."""
        return self.starts.numpy(), self.columns.numpy(), self.values.detach().numpy()

    def times(self, dense: Tensor, *, often: bool = False, onto: Tensor | None = None) -> Tensor:
        """A weighted bag of rows of `dense` for each row: twice as fast on a CPU as the sparse-matrix product.

        With `onto`, the product is added to what is there.

        For products that are taken `often` there are kernels, which take a while to load and have the same bits: they
        are faster in steps of one thread, small ones and those of processes side by side, and where no cache holds the
        dense matrix. On a GPU, where a bag is one thread's work, Triton's kernels divide long rows.
        """
        if self.chunks is not None and dense.dtype in (torch.float32, torch.bfloat16):
            kernels = import_module("vgae.ops.triton_entries")
            product: Tensor = kernels.multiply(self.columns, self.values, self.chunks, dense, len(self.starts) - 1)
            return product if onto is None else onto.add_(product)
        if often and HAS_NUMBA and (dense.numel() >= LARGE or is_in_one_thread()):
            kernels = import_module("vgae.ops.product_kernels")
            if kernels.suits(dense):
                given = self.starts, self.columns, self.values, dense, onto
                fused: Tensor = kernels.multiply(*given, early=dense.numel() >= LARGE)
                return fused
        bags: Tensor = torch.nn.functional.embedding_bag(
            self.columns,
            dense,
            self.starts,
            mode="sum",
            per_sample_weights=self.values.to(dense.dtype),
            include_last_offset=True,
        )
        return bags if onto is None else onto.add_(bags)


class SparseMatrix:
    """A constant sparse matrix on a device; `matrix @ dense` is differentiable in `dense`."""

    def __init__(self, matrix: sp.csr_array, *, device: torch.device | str = "cpu", symmetric: bool = False) -> None:
        matrix = sp.csr_array(matrix, dtype=np.float32)
        target = torch.device(device)
        self.shape = (int(matrix.shape[0]), int(matrix.shape[1]))
        self.rows = Rows.of(matrix, target)
        self.rows_of_transpose = self.rows if symmetric else Rows.of(matrix.T.tocsr(), target)

    def with_values(self, values: Tensor) -> SparseMatrix:
        """The matrix with other values at the same places; those of a symmetric one have to be symmetric too."""
        other = copy(self)
        other.rows = other.rows_of_transpose = replace(self.rows, values=values)
        if self.rows_of_transpose is not self.rows:
            other.rows_of_transpose = replace(self.rows_of_transpose, values=values[self._order_of_transpose])
        return other

    def transposed(self) -> SparseMatrix:
        """Mᵀ, which is laid out already."""
        other = copy(self)
        other.__dict__.pop("_order_of_transpose", None)  # that of this matrix
        other.shape = (self.shape[1], self.shape[0])
        other.rows, other.rows_of_transpose = self.rows_of_transpose, self.rows
        return other

    @cached_property
    def _order_of_transpose(self) -> Tensor:
        """Which entry of the matrix each entry of its transpose is: by columns, and by rows within them."""
        return torch.argsort(self.rows.columns, stable=True)

    def __matmul__(self, dense: Tensor) -> Tensor:
        result: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return result


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.rows.times(dense, often=ctx.needs_input_grad[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.rows_of_transpose.times(upstream.contiguous(), often=True), None
