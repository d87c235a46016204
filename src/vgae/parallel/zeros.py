"""Zeros of a matrix that one process would draw, by those who have their rows.

A draw takes one zero from each of M parts of the zeros in their order (vgae.ops.zeros), so that those in own rows are a
contiguous part of it: a process draws these, and passes over the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.ops.entries import Ones
from vgae.ops.zeros import zeros_among
from vgae.parallel.draws import RowGenerator
from vgae.parallel.halo import Halo

OFTEN = 16  # a share of all nodes from which on it pays to mark them instead of sorting


@dataclass(frozen=True, eq=False)
class Drawn:
    """Zeros that a step has drawn: those in own rows."""

    pairs: Tensor  # M×2: the own row, and the place of the column among own rows and those of the halo
    halo: Halo  # the other ends
    first: int  # the number of the first pair among those of all processes


class Zeros:
    """The zeros in own rows, of which a step draws some: those that one process would draw, in the same order."""

    def __init__(self, halo: Halo, rows: sp.csr_array, num_zeros: int, num_pairs: int, *, asks: bool) -> None:
        group, own, num_nodes = halo.group, halo.shards.own, halo.shards.num_nodes
        self.halo, self.num_zeros, self.num_pairs = halo, num_zeros, num_pairs
        self.asks = asks  # for the other ends; else the halo has them all
        ones = Ones.of(rows, group.device, symmetric=True)
        self.ones = replace(ones, num_columns=num_nodes)
        counts = group.gather(torch.tensor([rows.nnz], device=group.device), [1] * group.size)
        before = own.start * num_nodes - int(counts[: group.rank].sum())
        self.numbers = range(before, before + self.ones.num_zeros)  # of own zeros, row by row
        # The places of the draw that can lead to them.
        first, last = (self._place(number) for number in (self.numbers.start, self.numbers.stop))
        self.places = range(max(0, first - 1), min(num_pairs, last + 2))

    def _place(self, number: int) -> int:
        return number * self.num_pairs // self.num_zeros

    def draw(self, generator: torch.Generator) -> Drawn:
        """The next draw; where they ask for rows, all processes agree on which each needs."""
        if not isinstance(generator, RowGenerator):
            raise TypeError("Processes draw the zeros of their rows from a generator by rows.")
        places = generator.some(self.places, self.num_pairs, torch.float64)
        places += torch.arange(self.places.start, self.places.stop, device=places.device)
        chosen = places.mul_(self.num_zeros / self.num_pairs).long().clamp_(max=self.num_zeros - 1)
        bounds = torch.tensor([self.numbers.start, self.numbers.stop], device=places.device)
        begin, end = torch.searchsorted(chosen, bounds).tolist()
        sources, nodes = zeros_among(self.ones, chosen[begin:end] - self.numbers.start).unbind(dim=1)
        own, halo, nodes = self.halo.shards.own, self.halo, nodes.long()
        before, behind = nodes < own.start, nodes >= own.stop
        if self.asks:
            outside = before | behind
            needed, at = _distinct(nodes[outside], halo.shards.num_nodes)
            halo = Halo.of(halo.group, halo.shards, needed.cpu().numpy())
            targets = nodes - own.start
            targets[outside] = len(own) + at
        else:  # own nodes, those before them, and those behind
            targets = torch.where(behind, nodes, torch.where(before, nodes + len(own), nodes - own.start))
        return Drawn(torch.stack([sources.long(), targets]).T, halo, self.places.start + begin)


def _distinct(nodes: Tensor, num_nodes: int) -> tuple[Tensor, Tensor]:
    """The nodes that occur, sorted, and the place of each given one among them."""
    if len(nodes) * OFTEN < num_nodes:
        found, places = torch.unique(nodes, return_inverse=True)
        return found, places
    marks = torch.zeros(num_nodes, dtype=torch.bool, device=nodes.device)
    marks[nodes.long()] = True
    return marks.nonzero()[:, 0], marks.cumsum(0)[nodes.long()] - 1
