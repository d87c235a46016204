"""The all-pairs op across processes: blocks of factors travel round a ring, and gradients travel with them.

    V = Σ_ij softplus(q_i·k_j + r_i + c_j)

In step s = 0, 1, … process p computes its own rows against the block of process p - s. While it does, that block is on
its way to process p + 1, and the next one comes from p - 1. The gradient in the factors of a block follows it: each
process adds its part to what the one before it has sent, and the last sends the sum home.

Of symmetric logits each pair of blocks is computed once, so that half of the way round is enough. With an even number
of processes the two that are opposite meet in both: of blocks a < b, process a takes the first half of b's rows and
process b the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.ops.dispatch import all_pairs_gradients, fastest
from vgae.ops.factors import Factors
from vgae.ops.pages import scaled
from vgae.parallel.shards import Shards

if TYPE_CHECKING:
    from vgae.parallel.group import Group

BLOCK, GRADIENT = 0, 1  # tags of what travels


@dataclass(frozen=True)
class Ring:
    """The all-pairs op of factors of which each process has the rows of its own nodes."""

    group: Group
    shards: Shards
    precision: str = "highest"

    def softplus(self, factors: Factors, *, value: bool = True) -> Tensor:
        """This process's part of V, NaN without `value`; whoever multiplies it has the same number in all processes."""
        result: Tensor = _Softplus.apply(  # type: ignore[no-untyped-call]
            factors.q, factors.k, factors.row_bias, factors.column_bias, self, value
        )
        return result


class _Softplus(torch.autograd.Function):
    """As in the op of one process, the sweep that has the value has the gradients too."""

    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor | None,
        row_bias: Tensor | None,
        column_bias: Tensor | None,
        ring: Ring,
        value: bool,
    ) -> Tensor:
        ctx.mirrored = k is None and row_bias is column_bias
        ctx.joined = k is None and not ctx.mirrored  # two biases: gradients of both sides are q's
        factors = Factors(q, q if ctx.joined else k, row_bias, column_bias)
        sweep = _Sweep(factors, ring, value=value, gradient=any(ctx.needs_input_grad))
        ctx.save_for_backward(*sweep.run())
        return sweep.total.to(q.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        of_q, of_k, of_rows, of_columns = (
            None if each is None else scaled(each.contiguous(), upstream) for each in ctx.saved_tensors
        )
        if ctx.mirrored:
            return of_q, None, of_rows, None, None, None  # a bias of both ends is given its gradient once
        if ctx.joined and of_q is not None and of_k is not None:
            return of_q + of_k, None, of_rows, of_columns, None, None
        return of_q, of_k, of_rows, of_columns, None, None


class _Sweep:
    """One way round the ring: what each process adds to the value, and the gradients of its own factors."""

    def __init__(self, own: Factors, ring: Ring, *, value: bool, gradient: bool) -> None:
        self.own, self.ring, self.value, self.gradient = own, ring, value, gradient
        self.mirrored = own.k is None
        self.implementation = fastest(own.q, ring.shards.num_nodes)
        self.total = own.q.new_zeros((), dtype=torch.float64)
        # With its bias as the last column: what stays here, and what travels, whose gradients come home at the end.
        self.travelling = _joined(own.columns, own.column_bias)
        self.of_rows = torch.zeros_like(_joined(own.q, own.row_bias))

    def run(self) -> tuple[Tensor, Tensor | None, Tensor | None, Tensor | None]:
        """The gradients in q, k and the two biases, where there are any; of mirrored factors, in q and its bias."""
        group, counts = self.ring.group, self.ring.shards.counts
        size, rank = group.size, group.rank
        steps = size // 2 if self.mirrored else size - 1
        coming = group.shift(self.travelling, counts[rank - 1], tag=BLOCK) if steps else None
        home = self._own_block()
        carried = None
        for step in range(1, steps + 1):
            block = coming.wait() if coming is not None else self.travelling
            other, following = (rank - step) % size, counts[(rank - step - 1) % size]
            coming = group.shift(block, following, tag=BLOCK) if step < steps else None
            part = self._against(block, other, halved=self.mirrored and 2 * step == size)
            if not self.gradient:
                continue
            if carried is not None:
                part += carried.wait()
            if step < steps:
                carried = group.shift(part, following, tag=GRADIENT)
            else:
                home += group.shift(part, counts[rank], -steps, tag=GRADIENT).wait()
        if self.mirrored:
            of_q, of_bias = self._parts(self.of_rows + home, self.own.row_bias)
            return of_q, None, of_bias, None
        of_q, of_row_bias = self._parts(self.of_rows, self.own.row_bias)
        of_k, of_column_bias = self._parts(home, self.own.column_bias)
        return of_q, of_k, of_row_bias, of_column_bias

    def _own_block(self) -> Tensor:
        """The pairs of own nodes; returns the gradient of what travels."""
        found, of_q, of_k, of_row_bias, of_column_bias = self._sums(self.own)
        self.total += found
        if not self.gradient:
            return torch.zeros_like(self.travelling)
        self.of_rows += _joined(of_q, of_row_bias if self.own.row_bias is not None else None)
        if self.mirrored:
            return torch.zeros_like(self.travelling)
        return _joined(of_k, of_column_bias if self.own.column_bias is not None else None)

    def _against(self, block: Tensor, other: int, *, halved: bool) -> Tensor:
        """The pairs of own nodes and those of another process; returns the gradient of its block."""
        own, width, counts = self.own, self.own.q.shape[1], self.ring.shards.counts
        rows, columns = slice(0, len(own.q)), slice(0, len(block))
        if halved:
            rank = self.ring.group.rank
            middle = counts[max(rank, other)] // 2
            rows, columns = (rows, slice(0, middle)) if rank < other else (slice(middle, len(own.q)), columns)
        part, times = torch.zeros_like(block), 2 if self.mirrored else 1  # mirrored pairs count both ways round
        if rows.start == rows.stop or columns.start == columns.stop:
            return part
        factors = Factors(
            own.q[rows],
            block[columns, :width].contiguous(),
            None if own.row_bias is None else own.row_bias[rows],
            None if own.column_bias is None else block[columns, width].contiguous(),
        )
        found, of_q, of_k, of_row_bias, of_column_bias = self._sums(factors)
        self.total += times * found
        if self.gradient:
            self.of_rows[rows] += times * _joined(of_q, of_row_bias if own.row_bias is not None else None)
            part[columns] = times * _joined(of_k, of_column_bias if own.column_bias is not None else None)
        return part

    def _sums(self, factors: Factors) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        return all_pairs_gradients(
            factors,
            value=self.value,
            gradient=self.gradient,
            implementation=self.implementation,
            precision=self.ring.precision,
        )

    def _parts(self, joined: Tensor, bias: Tensor | None) -> tuple[Tensor, Tensor | None]:
        """Gradients of factors and of their bias, which `_joined` put side by side."""
        width = self.own.q.shape[1]
        return joined[:, :width], None if bias is None else joined[:, width]


def _joined(factors: Tensor, bias: Tensor | None) -> Tensor:
    """Factors with their bias as the last column, as they travel."""
    return factors if bias is None else torch.cat([factors, bias[:, None]], dim=1)
