"""Rows that a process needs of others, its halo: which they are is agreed on once, and then they are exchanged.

    forward    the owners send the rows that others need, and each process has them in the order of their nodes
    backward   gradients of these rows go back to the owners, who add them up in the order of the ranks

By node, own rows come first and those of the halo behind them. The communication is an autograd function of its own:
what `torch.distributed` offers drops gradients without a word in several versions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.parallel.shards import Shards

if TYPE_CHECKING:
    from vgae.parallel.group import Group, Pending

Nodes = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Halo:
    """What this process needs of others, and others of it."""

    group: Group
    shards: Shards
    needed: Nodes  # of other processes, sorted
    received: list[int]  # how many of them each process has
    wanted: Tensor  # own rows that others need, one process after the other
    sent: list[int]  # how many of them each process needs

    @classmethod
    def of(cls, group: Group, shards: Shards, needed: Nodes) -> Halo:
        """Agreed on by all processes; what this one needs is sorted, and none of its own."""
        received = shards.split(needed)
        once = [1] * group.size
        counts = torch.tensor(received, device=group.device)
        sent = group.exchange(counts, once, once).wait().tolist()
        kind = torch.int32 if shards.num_nodes < 2**31 else torch.int64
        asked = torch.from_numpy(needed).to(group.device, kind)
        wanted = group.exchange(asked, received, sent).wait().long() - shards.own.start
        return cls(group, shards, needed, received, wanted, sent)

    @property
    def num_rows(self) -> int:
        """Own rows and those of the halo."""
        return len(self.shards.own) + len(self.needed)

    def places(self, nodes: Nodes) -> Nodes:
        """The row of each node, own rows before the halo's."""
        own = self.shards.own
        outside = len(own) + np.searchsorted(self.needed, nodes)
        return np.where((nodes >= own.start) & (nodes < own.stop), nodes - own.start, outside)

    def fetch(self, rows: Tensor) -> Tensor:
        """The rows of the halo, given own rows; differentiable in them."""
        result: Tensor = _Fetch.apply(rows, self)  # type: ignore[no-untyped-call]
        return result

    def extend(self, rows: Tensor) -> Tensor:
        """Own rows, and those of the halo behind them."""
        return torch.cat([rows, self.fetch(rows)])

    def send(self, rows: Tensor) -> Pending:
        """Begin to exchange rows of the halo, given own rows."""
        return self.group.exchange(rows, self.sent, self.received, self.wanted)

    def send_back(self, gradients: Tensor) -> Pending:
        """Begin to exchange the gradients of rows of the halo."""
        return self.group.exchange(gradients, self.received, self.sent)

    def add(self, returned: Tensor, onto: Tensor) -> Tensor:
        """Add what came back to own rows, one process after the other: no row is there twice in what one sends."""
        parts = zip(torch.split(self.wanted, self.sent), torch.split(returned, self.sent), strict=True)
        for rows, gradients in parts:
            onto.index_add_(0, rows, gradients)
        return onto


class _Fetch(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor, halo: Halo) -> Tensor:
        ctx.halo = halo
        return halo.send(rows).wait()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        halo: Halo = ctx.halo
        own = upstream.new_zeros(len(halo.shards.own), *upstream.shape[1:])
        return halo.add(halo.send_back(upstream).wait(), onto=own), None
