"""The best of all pairs without a look at those that cannot be among them.

Where logits have factors, logit_ij ≤ |q_i|·|k_j| + r_i + c_j. In a graph with hubs a few nodes have by far the longest
factors: the best pairs of these few are soon found, and most rows then have no pair that could be better. Blocks that
are looked at are those of `blocks_of`, at the same places and with the same bits; the others hold nothing that is as
good as the worst of the best. A logit that is computed may differ from the exact one by SLACK of what it is a sum of.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from vgae.ops import Best, Block, Excluded, Factors, LogitRows, TopPairs, blocks_of
from vgae.ops.rows import BLOCK, LEFT_OUT

NUM_FIRST = 64  # rows with the longest factors, that are looked at first
LEAST_NODES = 20 * NUM_FIRST  # in a smaller graph there is little to be saved
SLACK = 0.01  # products on a GPU may have 11 bits


@torch.no_grad()
def best_of_all(source: LogitRows, *, top: int, symmetric: bool, excluded: Excluded) -> TopPairs:
    """What `vgae.ops.top_of_all` gives, bit for bit."""
    best = Best(top, source.device)
    for block in promising_blocks(source, excluded, symmetric=symmetric, top=top):
        best.add(block)
    return best.found()


def promising_blocks(
    source: LogitRows, excluded: Excluded, *, symmetric: bool, top: int, block_size: int = BLOCK
) -> Iterator[Block]:
    """Those of `blocks_of` that may hold one of the `top` best candidates, or one that is as good as these."""
    if not isinstance(source, Factors) or source.num_nodes < LEAST_NODES:
        yield from blocks_of(source, excluded, symmetric=symmetric, block_size=block_size)
        return
    bounds = _Bounds(source)
    enough = bounds.enough(excluded, symmetric=symmetric, top=top)
    promising = (~(bounds.of_rows(symmetric=symmetric) < enough)).cpu().numpy()  # also where a bound is undefined
    num_nodes, start = source.num_nodes, 0
    while start < num_nodes:
        height = max(1, block_size // max(1, num_nodes - (start if symmetric else 0)))
        stop = min(start + height, num_nodes)
        if promising[start:stop].any():
            rows = range(start, stop)
            yield from blocks_of(source, excluded, symmetric=symmetric, rows=rows, block_size=block_size)
        start = stop


class _Bounds:
    """What logits can be at most, by the lengths of their factors."""

    def __init__(self, factors: Factors) -> None:
        self.factors = factors
        nothing = torch.zeros(factors.num_nodes, dtype=torch.float64, device=factors.device)
        self.left, self.right = (each.double().norm(dim=1) for each in (factors.q, factors.columns))
        self.row_bias, self.column_bias = (
            nothing if bias is None else bias.double() for bias in (factors.row_bias, factors.column_bias)
        )

    def of_rows(self, *, symmetric: bool) -> Tensor:
        """For each row, what no logit of it exceeds; of symmetric ones, none from the diagonal on."""
        longest, largest = self._from_here(self.right, symmetric), self._from_here(self.column_bias, symmetric)
        loss = SLACK * (self.left * longest + self.row_bias.abs() + self._from_here(self.column_bias.abs(), symmetric))
        bound: Tensor = self.left * longest + self.row_bias + largest + loss
        return bound

    def enough(self, excluded: Excluded, *, symmetric: bool, top: int) -> float:
        """A logit that at least `top` candidates have, found among the rows with the highest bounds."""
        first = self.of_rows(symmetric=False).topk(min(NUM_FIRST, self.factors.num_nodes)).indices.sort().values
        best = torch.empty(0, dtype=torch.float64, device=self.factors.device)
        for rows in torch.split(first, max(1, BLOCK // self.factors.num_nodes)):
            logits = excluded.leave_out(self.factors.block(rows), rows)
            if symmetric:  # a pair of two of these rows counts once
                again = first[None, :] < rows[:, None]
                places = torch.nonzero(again)
                logits[places[:, 0], first[places[:, 1]]] = LEFT_OUT
            size = self.left[rows, None] * self.right + self.row_bias[rows, None].abs() + self.column_bias.abs()
            least = (logits.double() - SLACK * size).view(-1)
            best = torch.cat([best, least.topk(min(top, len(least))).values])
            best = best.topk(min(top, len(best))).values
        return float(best[-1]) if len(best) == top else -torch.inf

    def _from_here(self, values: Tensor, symmetric: bool) -> Tensor:
        """The largest of the values, or for each place the largest from there on."""
        return values.flip(0).cummax(0).values.flip(0) if symmetric else values.max().expand_as(values)
