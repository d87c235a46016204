"""The pairs with the highest logits, exactly, a block of rows at a time: N×N is never built.

Higher logits come first; of equal ones the pair with the smaller row, then the smaller column. Pairs that are known
and pairs of a node with itself are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vgae.ops.dispatch import check_factors

BLOCK = 4_000_000  # logits held at a time


@dataclass(frozen=True, eq=False)
class TopPairs:
    """Pairs (M×2) and their logits, best first; by row, the rows in the order they were asked for."""

    pairs: Tensor
    logits: Tensor


def top_of_each_row(
    q: Tensor,
    k: Tensor | None,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    *,
    top: int,
    rows: Sequence[int],
    known: tuple[Tensor, Tensor],
) -> TopPairs:
    """The best `top` columns of each of these rows; `known` is a CSR structure (starts, columns) of pairs left out."""
    blocks = [
        _best(_logits(q, k, row_bias, column_bias, block, known), top, block)
        for block in torch.split(torch.tensor(list(rows), device=q.device), max(1, BLOCK // len(q if k is None else k)))
    ]
    return TopPairs(torch.cat([pairs for pairs, _ in blocks]), torch.cat([logits for _, logits in blocks]))


def top_of_all(
    q: Tensor,
    k: Tensor | None,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    *,
    top: int,
    symmetric: bool,
    known: tuple[Tensor, Tensor],
    block_size: int = BLOCK,
) -> TopPairs:
    """The best `top` pairs of all; symmetric logits are those of undirected pairs, row before column."""
    pairs, logits = q.new_empty(0, 2, dtype=torch.int64), q.new_empty(0)
    num_columns = len(q if k is None else k)
    for rows in torch.split(torch.arange(len(q), device=q.device), max(1, block_size // num_columns)):
        block = _logits(q, k, row_bias, column_bias, rows, known)
        if symmetric:
            block = block.masked_fill(torch.arange(num_columns, device=q.device) <= rows[:, None], -torch.inf)
        found, values = _best(block.view(1, -1), top, rows[:1])
        places = found[:, 1]  # in the block, row by row: earlier places are smaller pairs
        columns = places % num_columns
        found = torch.stack([rows[0] + places.div(num_columns, rounding_mode="floor"), columns], dim=1)
        pairs, logits = torch.cat([pairs, found]), torch.cat([logits, values])
        order = logits.argsort(descending=True, stable=True)[:top]
        pairs, logits = pairs[order], logits[order]
    return TopPairs(pairs, logits)


def known_pairs(pairs: np.ndarray, num_nodes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """A CSR structure of pairs, in both directions."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    starts = np.searchsorted(both[:, 0], np.arange(num_nodes + 1))
    return torch.tensor(starts, device=device), torch.tensor(np.ascontiguousarray(both[:, 1]), device=device)


def _logits(
    q: Tensor,
    k: Tensor | None,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    rows: Tensor,
    known: tuple[Tensor, Tensor],
) -> Tensor:
    """All logits of some rows, minus infinity where a pair is left out."""
    check_factors(q, k, row_bias, column_bias, None)
    logits = q[rows] @ (q if k is None else k).T
    if row_bias is not None:
        logits += row_bias[rows, None]
    if column_bias is not None:
        logits += column_bias
    starts, columns = known
    counts = starts[rows + 1] - starts[rows]
    places = torch.arange(len(rows), device=q.device).repeat_interleave(counts)
    first = starts[rows] - torch.cat([counts.new_zeros(1), counts.cumsum(0)[:-1]])
    entries = torch.arange(len(places), device=q.device) + first[places]
    logits[places, columns[entries]] = -torch.inf
    logits[torch.arange(len(rows), device=q.device), rows] = -torch.inf
    return logits


def _best(logits: Tensor, top: int, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The best places of each row, best first, those at minus infinity left out; equal logits in order of place."""
    values, places = logits.topk(min(top, logits.shape[1]), dim=1)
    last = values[:, -1:]
    cut = (logits == last).sum(dim=1) > (values == last).sum(dim=1)
    for row in torch.nonzero(cut & torch.isfinite(last[:, 0]))[:, 0].tolist():  # ties across the cut: the first of them
        above = torch.nonzero(logits[row] > last[row])[:, 0]
        tied = torch.nonzero(logits[row] == last[row])[:, 0][: places.shape[1] - len(above)]
        places[row] = torch.cat([above, tied])
    places = places.sort(dim=1).values
    values = logits.gather(1, places)
    order = values.argsort(dim=1, descending=True, stable=True)
    places, values = places.gather(1, order), values.gather(1, order)
    keep = values > -torch.inf
    return torch.stack([rows[:, None].expand_as(places)[keep], places[keep]], dim=1), values[keep]
