"""The pairs with the highest logits, exactly, a block of rows at a time.

Higher logits come first; of equal ones the pair with the smaller row, then the smaller column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.ops.rows import BLOCK, LEFT_OUT, Block, Excluded, LogitRows, blocks_of


@dataclass(frozen=True, eq=False)
class TopPairs:
    """Pairs (M×2) and their logits, best first; by row, the rows in the order they were asked for."""

    pairs: Tensor
    logits: Tensor


class Best:
    """The best pairs of all blocks so far; blocks come in order.

    With `ties`, `num_ties` counts the pairs that are as good as the worst of them and are not among them.
    """

    def __init__(self, top: int, device: torch.device, *, ties: bool = False) -> None:
        self.top, self.ties, self.num_ties = top, ties, 0
        self.pairs = torch.empty(0, 2, dtype=torch.int64, device=device)
        self.logits = torch.empty(0, device=device)

    def add(self, block: Block) -> None:
        """Take what is better than the worst that is kept; what equals it comes after it."""
        values = block.logits.view(-1)
        is_full = len(self.logits) == self.top
        worst = self.logits[-1] if is_full else None
        if worst is None:
            places = _best(values[None], self.top, block.rows[:1])[0][:, 1]
        else:
            places = torch.nonzero(values > worst)[:, 0]
        if len(places):
            logits = torch.cat([self.logits, values[places]])
            order = logits.argsort(descending=True, stable=True)
            taken, left = order[: self.top], order[self.top :]
            self.pairs = torch.cat([self.pairs, block.pairs_at(places)])[taken]
            self.logits = logits[taken]
        if not self.ties or len(self.logits) < self.top:
            return
        if worst is None:  # those of this block that _best has left out are not in `left`
            equal = int((values == self.logits[-1]).sum()) - int((values[places] == self.logits[-1]).sum())
            self.num_ties = equal + int((logits[left] == self.logits[-1]).sum())
            return
        stays = bool(self.logits[-1] == worst)
        self.num_ties = self.num_ties + int((values == worst).sum()) if stays else 0
        if len(places):
            self.num_ties += int((logits[left] == self.logits[-1]).sum())

    @classmethod
    def of(cls, pairs: Tensor, logits: Tensor, top: int) -> Best:
        """The best of some pairs (M×2), each of them there once, in whatever order; ties are counted."""
        best = cls(top, logits.device, ties=True)
        by_pair = torch.argsort(pairs[:, 1], stable=True)
        by_pair = by_pair[torch.argsort(pairs[by_pair, 0], stable=True)]
        order = by_pair[torch.argsort(logits[by_pair], descending=True, stable=True)]
        best.pairs, best.logits = pairs[order[:top]], logits[order[:top]]
        if len(order) > top:
            best.num_ties = int((logits[order[top:]] == best.logits[-1]).sum())
        return best

    def found(self) -> TopPairs:
        """The best of all."""
        return TopPairs(self.pairs, self.logits)


def top_of_each_row(source: LogitRows, *, top: int, rows: Sequence[int], excluded: Excluded) -> TopPairs:
    """The best `top` columns of each of these rows."""
    height = max(1, BLOCK // source.num_nodes)
    found = [
        _best(excluded.leave_out(source.block(block), block), top, block)
        for block in torch.split(torch.tensor(list(rows), device=source.device), height)
    ]
    return TopPairs(torch.cat([pairs for pairs, _ in found]), torch.cat([logits for _, logits in found]))


def top_of_all(
    source: LogitRows, *, top: int, symmetric: bool, excluded: Excluded, block_size: int = BLOCK
) -> TopPairs:
    """The best `top` pairs of all; symmetric logits are those of undirected pairs, row before column."""
    best = Best(top, source.device)
    for block in blocks_of(source, excluded, symmetric=symmetric, block_size=block_size):
        best.add(block)
    return best.found()


def _best(logits: Tensor, top: int, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The best places of each row, best first, those that are left out not among them; equal logits by place."""
    width = min(top, logits.shape[1])
    values, places = logits.topk(min(top + 1, logits.shape[1]), dim=1)  # one more, to see a tie across the cut
    last, places = values[:, width - 1 : width], places[:, :width].clone()
    cut = (values[:, width:] == last).any(dim=1)
    for row in torch.nonzero(cut & torch.isfinite(last[:, 0]))[:, 0].tolist():  # ties across the cut: the first of them
        above = torch.nonzero(logits[row] > last[row])[:, 0]
        tied = torch.nonzero(logits[row] == last[row])[:, 0][: places.shape[1] - len(above)]
        places[row] = torch.cat([above, tied])
    places = places.sort(dim=1).values
    values = logits.gather(1, places)
    order = values.argsort(dim=1, descending=True, stable=True)
    places, values = places.gather(1, order), values.gather(1, order)
    keep = values > LEFT_OUT
    return torch.stack([rows[:, None].expand_as(places)[keep], places[keep]], dim=1), values[keep]
