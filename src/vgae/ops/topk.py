"""The pairs with the highest logits, exactly, a block of rows at a time: N×N is never built.

Higher logits come first; of equal ones the pair with the smaller row, then the smaller column. Pairs that are known
and pairs of a node with itself are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

BLOCK = 4_000_000  # logits held at a time


class LogitRows(Protocol):
    """N×N logits that can be had a block of rows at a time; `Factors` are."""

    @property
    def num_nodes(self) -> int:
        """N."""

    @property
    def device(self) -> torch.device:
        """Where blocks are computed."""

    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        """The logits of some rows, from the first column wanted on, in a tensor of their own."""


@dataclass(frozen=True, eq=False)
class TopPairs:
    """Pairs (M×2) and their logits, best first; by row, the rows in the order they were asked for."""

    pairs: Tensor
    logits: Tensor


def top_of_each_row(source: LogitRows, *, top: int, rows: Sequence[int], known: tuple[Tensor, Tensor]) -> TopPairs:
    """The best `top` columns of each of these rows; `known` is a CSR structure (starts, columns) of pairs left out."""
    blocks = [
        _best(_logits(source, block, known), top, block)
        for block in torch.split(torch.tensor(list(rows), device=source.device), _num_rows(source, BLOCK))
    ]
    return TopPairs(torch.cat([pairs for pairs, _ in blocks]), torch.cat([logits for _, logits in blocks]))


def top_of_all(
    source: LogitRows,
    *,
    top: int,
    symmetric: bool,
    known: tuple[Tensor, Tensor],
    block_size: int = BLOCK,
) -> TopPairs:
    """The best `top` pairs of all; symmetric logits are those of undirected pairs, row before column."""
    device = source.device
    pairs, logits = torch.empty(0, 2, dtype=torch.int64, device=device), torch.empty(0, device=device)
    for rows in torch.split(torch.arange(source.num_nodes, device=device), _num_rows(source, block_size)):
        first = int(rows[0]) if symmetric else 0
        block = _logits(source, rows, known, first)
        if symmetric:
            square = block[:, : len(rows)]
            square.masked_fill_(torch.ones_like(square, dtype=torch.bool).tril(), -torch.inf)
        values = block.view(-1)
        if len(logits) < top:
            places = _best(values[None], top, rows[:1])[0][:, 1]
        else:  # what equals the worst that is kept comes after it
            places = torch.nonzero(values > logits[-1])[:, 0]
        found = torch.stack([rows[0] + places // block.shape[1], first + places % block.shape[1]], dim=1)
        pairs, logits = torch.cat([pairs, found]), torch.cat([logits, values[places]])
        order = logits.argsort(descending=True, stable=True)[:top]
        pairs, logits = pairs[order], logits[order]
    return TopPairs(pairs, logits)


def known_pairs(pairs: np.ndarray, num_nodes: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """A CSR structure of pairs, in both directions."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    both = both[np.lexsort((both[:, 1], both[:, 0]))]
    starts = np.searchsorted(both[:, 0], np.arange(num_nodes + 1))
    return torch.tensor(starts, device=device), torch.tensor(np.ascontiguousarray(both[:, 1]), device=device)


def _num_rows(source: LogitRows, block_size: int) -> int:
    """Rows of a block of so many logits."""
    return max(1, block_size // source.num_nodes)


def _logits(source: LogitRows, rows: Tensor, known: tuple[Tensor, Tensor], first: int = 0) -> Tensor:
    """The logits of some rows, from the first column wanted on, minus infinity where a pair is left out."""
    logits, device = source.block(rows, first), source.device
    starts, columns = known
    counts = starts[rows + 1] - starts[rows]
    places = torch.arange(len(rows), device=device).repeat_interleave(counts)
    offset = starts[rows] - torch.cat([counts.new_zeros(1), counts.cumsum(0)[:-1]])
    reached = columns[torch.arange(len(places), device=device) + offset[places]] - first
    inside = reached >= 0
    logits[places[inside], reached[inside]] = -torch.inf
    logits[torch.arange(len(rows), device=device), rows - first] = -torch.inf
    return logits


def _best(logits: Tensor, top: int, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The best places of each row, best first, those at minus infinity left out; equal logits in order of place."""
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
    keep = values > -torch.inf
    return torch.stack([rows[:, None].expand_as(places)[keep], places[keep]], dim=1), values[keep]
