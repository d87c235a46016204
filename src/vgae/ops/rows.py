"""The logits of all pairs, a block of rows at a time: N×N is never built.

Whatever scores pairs of N nodes can give the logits of some rows and all columns: factors by a product of matrices, a
heuristic by a sparse product, any other decoder pair by pair. Pairs that cannot be new links are left out of a block:
the known ones, those of a node with itself and, where nodes have sides, those of two nodes of one side.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

BLOCK = 1_000_000  # logits held at a time
LEFT_OUT = -torch.inf


class LogitRows(Protocol):
    """Logits of pairs of N nodes, by rows."""

    @property
    def num_nodes(self) -> int:
        """N."""

    @property
    def device(self) -> torch.device:
        """Where blocks are made."""

    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        """Logits of these rows and all columns from the first on: float32, fresh, for the caller to overwrite."""


@dataclass(frozen=True, eq=False)
class Excluded:
    """Pairs that are no candidates: known ones as rows of a CSR structure, and pairs within a side if there are any."""

    starts: Tensor
    columns: Tensor
    sides: Tensor | None = None  # the side of each node

    @classmethod
    def of(
        cls,
        pairs: np.ndarray,
        num_nodes: int,
        device: torch.device,
        sides: np.ndarray | None = None,
        *,
        ordered: bool = False,
    ) -> Excluded:
        """These pairs, in both directions unless they are ordered; a pair may be given more than once."""
        both = pairs if ordered else np.concatenate([pairs, pairs[:, ::-1]])
        both = both[np.lexsort((both[:, 1], both[:, 0]))]
        starts = np.searchsorted(both[:, 0], np.arange(num_nodes + 1))
        return cls(
            torch.tensor(starts, device=device),
            torch.tensor(np.ascontiguousarray(both[:, 1]), device=device),
            None if sides is None else torch.tensor(sides, device=device),
        )

    def leave_out(self, block: Tensor, rows: Tensor, first: int = 0) -> Tensor:
        """The block with minus infinity at pairs that are no candidates."""
        places, reached = self.pairs_in(rows)
        reached = reached - first
        inside = reached >= 0
        block[places[inside], reached[inside]] = LEFT_OUT
        own = rows - first
        inside = own >= 0
        block[torch.arange(len(rows), device=rows.device)[inside], own[inside]] = LEFT_OUT
        if self.sides is not None:
            block.masked_fill_(self.sides[rows, None] == self.sides[first:], LEFT_OUT)
        return block

    def pairs_in(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """The known pairs of some rows: the place of the row among them, and the column."""
        counts = self.starts[rows + 1] - self.starts[rows]
        places = torch.arange(len(rows), device=rows.device).repeat_interleave(counts)
        offset = self.starts[rows] - torch.cat([counts.new_zeros(1), counts.cumsum(0)[:-1]])
        return places, self.columns[torch.arange(len(places), device=rows.device) + offset[places]]


@dataclass(frozen=True, eq=False)
class Block:
    """Logits of consecutive rows, from a column on; minus infinity where a pair is no candidate."""

    rows: Tensor
    first: int
    logits: Tensor

    def pairs_at(self, places: Tensor) -> Tensor:
        """The pairs at places of the flattened block."""
        width = self.logits.shape[1]
        return torch.stack([self.rows[0] + places // width, self.first + places % width], dim=1)


def blocks_of(
    source: LogitRows, excluded: Excluded, *, symmetric: bool, rows: range | None = None, block_size: int = BLOCK
) -> Iterator[Block]:
    """All candidate pairs in order, or those of some rows; of symmetric logits each pair once, row before column."""
    wanted = range(source.num_nodes) if rows is None else rows
    start = wanted.start
    while start < wanted.stop:
        first = start if symmetric else 0
        height = max(1, block_size // max(1, source.num_nodes - first))
        block_rows = torch.arange(start, min(start + height, wanted.stop), device=source.device)
        logits = excluded.leave_out(source.block(block_rows, first), block_rows, first)
        if symmetric:
            square = logits[:, : len(block_rows)]
            square.masked_fill_(torch.ones_like(square, dtype=torch.bool).tril(), LEFT_OUT)
        yield Block(block_rows, first, logits)
        start += height
