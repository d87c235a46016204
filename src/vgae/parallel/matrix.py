"""A symmetric sparse matrix of which each process has the rows of its own nodes.

    Y_own = M_inside·H_own + M_outside·H_halo,   ∂L/∂H_own = M_inside·∂L/∂Y_own + M_outside·∂L/∂Y_halo

The way back is the way there, because M is symmetric: rows of gradients are sent in the place of rows of H. While those
of the halo are under way, the product with own rows is computed. Encoders multiply by it as by any `SparseMatrix`.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.ops.sparse import Rows, SparseMatrix
from vgae.parallel.halo import Halo
from vgae.parallel.shards import Shards

if TYPE_CHECKING:
    from vgae.parallel.group import Group


class ShardedMatrix(SparseMatrix):
    """Rows of a constant symmetric matrix; `matrix @ dense` takes own rows and gives own rows."""

    def __init__(self, rows: sp.csr_array, shards: Shards, group: Group) -> None:
        own = shards.own
        is_own = (rows.indices >= own.start) & (rows.indices < own.stop)
        self.halo = Halo.of(group, shards, np.unique(rows.indices[~is_own]).astype(np.int64))
        self.shape = (len(own), len(own))
        inside, outside = divided(rows, self.halo)
        self.inside = SparseMatrix(inside, device=group.device, symmetric=True)
        self.outside = Rows.of(sp.csr_array(outside, dtype=np.float32), group.device)

    def with_parts(self, inside: Tensor, outside: Tensor) -> ShardedMatrix:
        """The matrix with other values at the same places, in the order that `divided` has them in."""
        other = copy(self)
        other.inside, other.outside = self.inside.with_values(inside), replace(self.outside, values=outside)
        return other

    def __matmul__(self, dense: Tensor) -> Tensor:
        result: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return result

    def times(self, dense: Tensor, *, often: bool) -> Tensor:
        """The product, without gradients."""
        message = self.halo.send(dense)
        product = self.inside.rows.times(dense, often=often)
        return self.outside.times(message.wait(), often=often, onto=product)


def divided(rows: sp.csr_array, halo: Halo) -> tuple[sp.csr_array, sp.csr_array]:
    """Own rows by the columns of own nodes, and by those of the halo."""
    num_own = len(halo.shards.own)
    columns = halo.places(rows.indices.astype(np.int64))
    inside = columns < num_own
    return _part(rows, columns, inside, num_own), _part(rows, columns - num_own, ~inside, len(halo.needed))


def _part(rows: sp.csr_array, columns: Any, kept: Any, width: int) -> sp.csr_array:
    """The entries that are kept, at other columns."""
    starts = np.concatenate([[0], np.cumsum(kept)])[rows.indptr]
    part = sp.csr_array((rows.data[kept], columns[kept], starts), shape=(rows.shape[0], width))
    part.sort_indices()
    return part


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: ShardedMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.times(dense, often=ctx.needs_input_grad[0])

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.times(upstream.contiguous(), often=True), None
