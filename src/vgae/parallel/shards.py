"""Which nodes each process has: contiguous ranges, balanced by what a node and its links cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError


@dataclass(frozen=True)
class Shards:
    """The ranges of nodes of the processes of a group: that of process p is bounds[p] up to bounds[p + 1]."""

    bounds: tuple[int, ...]
    rank: int  # this process

    @classmethod
    def balanced(cls, costs: npt.NDArray[np.float64], num_processes: int, rank: int) -> Shards:
        """Ranges of about the same cost, given that of each node; each has a node at least."""
        num_nodes = len(costs)
        if num_processes > num_nodes:
            raise InputError(
                f"processes: {num_processes} are more than the graph has nodes, {num_nodes}; use {num_nodes} or fewer."
            )
        total = np.concatenate([[0.0], np.cumsum(costs)])
        ends = np.searchsorted(total, total[-1] * np.arange(1, num_processes) / num_processes)
        bounds = [0]
        for rest, end in zip(range(num_processes - 1, 0, -1), ends.tolist(), strict=True):
            bounds.append(min(max(end, bounds[-1] + 1), num_nodes - rest))
        return cls((*bounds, num_nodes), rank)

    @classmethod
    def even(cls, num_nodes: int, num_processes: int, rank: int) -> Shards:
        """Ranges of about as many nodes; some have none where there are fewer nodes than processes."""
        return cls(tuple(num_nodes * process // num_processes for process in range(num_processes + 1)), rank)

    @property
    def num_nodes(self) -> int:
        """N, of all processes together."""
        return self.bounds[-1]

    @property
    def size(self) -> int:
        """How many processes there are."""
        return len(self.bounds) - 1

    @property
    def counts(self) -> list[int]:
        """How many nodes each process has."""
        return [last - first for first, last in zip(self.bounds, self.bounds[1:], strict=False)]

    @property
    def own(self) -> range:
        """The nodes of this process."""
        return range(self.bounds[self.rank], self.bounds[self.rank + 1])

    @property
    def others(self) -> npt.NDArray[np.int64]:
        """The nodes of all other processes."""
        return np.concatenate([np.arange(self.own.start), np.arange(self.own.stop, self.num_nodes)])

    def owners(self, nodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Which process has each node."""
        return np.searchsorted(np.array(self.bounds[1:]), nodes, side="right")

    def split(self, nodes: npt.NDArray[np.int64]) -> list[int]:
        """How many of these nodes, which are sorted, each process has."""
        found: list[int] = np.diff(np.searchsorted(nodes, np.array(self.bounds))).tolist()
        return found
