"""The rows of a sparse matrix divided among the programs of a GPU: what depends on the pattern alone, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

LONGEST = 128  # entries of a piece: a hub has many, most rows are one
STEP = 8  # entries of a piece that are taken at a time


@dataclass(frozen=True, eq=False)
class Chunks:
    """Pieces of rows with at most LONGEST entries each, and the rows that have several.

    The sum of a piece goes to the place of its row where it is all of it, else to a place of its own behind the N rows,
    and those of a row are added up in their order. Pieces that take as many steps stand together, the longest first,
    and otherwise in the order of their rows: a program takes several at a time, and waits for the longest of them.
    """

    pieces: Tensor  # 4×K: the row, the first entry, the end, and the place of the sum
    divided: Tensor  # 3×S: the row, its first place, and how many it has

    @classmethod
    def of(cls, starts: Tensor) -> Chunks:
        """Those of rows that begin and end where `starts` (N+1) says; this waits for the device."""
        kind, starts, longest = starts.dtype, starts.long(), LONGEST
        num_rows = len(starts) - 1
        counts = starts.diff().add_(longest - 1).div_(longest, rounding_mode="floor").clamp_(min=1)
        rows = torch.arange(num_rows, device=starts.device).repeat_interleave(counts)
        before = counts.cumsum(0).sub_(counts)
        ranks = torch.arange(len(rows), device=starts.device).sub_(before[rows])
        firsts = ranks.mul_(longest).add_(starts[rows])
        ends = torch.minimum(firsts + longest, starts[rows + 1])
        several = counts > 1
        own = several[rows]
        places = torch.where(own, own.cumsum(0) + (num_rows - 1), rows)
        steps = (ends - firsts + (STEP - 1)).div_(STEP, rounding_mode="floor")
        order = steps.argsort(stable=True, descending=True)
        found = several.nonzero()[:, 0]
        numbers = counts[found]
        return cls(
            pieces=torch.stack([part[order].to(kind) for part in (rows, firsts, ends, places)]),
            divided=torch.stack([found, numbers.cumsum(0) - numbers + num_rows, numbers]).to(kind),
        )


def by_ends(sources: Tensor, targets: Tensor, num_nodes: int) -> tuple[Tensor, Tensor, Tensor]:
    """Starts and columns of pairs by rows, and which pair each entry is.

    Shapes depend on the number of pairs alone, and nothing waits for the device.
    """
    small = max(len(sources), num_nodes) < 2**31
    kind = torch.int32 if small else torch.int64
    bounds = torch.arange(num_nodes + 1, dtype=kind, device=sources.device)
    rows, order = sources.to(kind).sort(stable=True)
    return torch.searchsorted(rows, bounds, out_int32=small), targets.index_select(0, order).to(kind), order
