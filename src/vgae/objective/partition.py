"""All nodes in parts of nearly the same size, a part for each step and another random partition for each epoch.

With n parts of b_p nodes each, a node is in the part of a step with probability 1/n, and two nodes are in it together
with probability Σ_p b_p (b_p - 1) / (n N (N - 1)). What a step sums up is divided by these.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.objective.variate import FEWEST_PAIRS

STATE = torch.Size([2])
SEEDS = 2**31  # torch's generator knows only 32 bits of a seed
MOST_SWEPT = 8192  # nodes of a part, up to which all of its pairs are summed up


@dataclass(frozen=True)
class BatchOptions:
    """How steps over parts of a graph are made."""

    size: int
    num_negatives: int | None = None  # None: all pairs of a part that is small
    control_variate: bool = True
    ones: float = 1.0  # of A, that a step takes for each of its nodes

    def sweeps(self, *, factorised: bool) -> bool:
        """Whether all zeros of a part are summed up."""
        return factorised and self.num_negatives is None and self.size <= MOST_SWEPT

    @property
    def num_pairs(self) -> int:
        """M, where zeros are drawn."""
        return self.num_negatives or max(self.size, FEWEST_PAIRS)


class Partition:
    """Random partitions of N nodes into parts of at most `batch_size`."""

    def __init__(self, num_nodes: int, batch_size: int) -> None:
        self.num_nodes = num_nodes
        self.num_parts = -(-num_nodes // batch_size)
        self.ends = [(part * num_nodes) // self.num_parts for part in range(self.num_parts + 1)]
        # The seed of this epoch's partition and the next part of it: what the next step depends on.
        self.state = torch.zeros(STATE, dtype=torch.int64)
        self.made: tuple[int, Tensor] | None = None

    @property
    def times(self) -> float:
        """What a node counts for: one over the probability that it is in the part of a step."""
        return float(self.num_parts)

    @property
    def times_pair(self) -> float:
        """What a pair of two nodes counts for."""
        sizes = [end - start for start, end in pairwise(self.ends)]
        together = sum(size * (size - 1) for size in sizes)
        return self.num_parts * self.num_nodes * (self.num_nodes - 1) / together

    def following(self, generator: torch.Generator) -> npt.NDArray[np.int64]:
        """The nodes of the next part, in order; all of them are there before any comes again."""
        if self.num_parts == 1:
            return np.arange(self.num_nodes)
        seed, part = self.state.tolist()
        if part == 0:
            drawn = torch.randint(SEEDS, (1,), generator=generator, device=generator.device)
            seed = int(drawn.item())
        if self.made is None or self.made[0] != seed:  # the latter also where a training is continued
            order = torch.randperm(self.num_nodes, generator=torch.Generator().manual_seed(seed))
            self.made = seed, order
        self.state[0], self.state[1] = seed, (part + 1) % self.num_parts
        return np.sort(self.made[1][self.ends[part] : self.ends[part + 1]].numpy())
