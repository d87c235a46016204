"""What a training step costs each process of a group, from counts alone: its share of the work, memory and messages.

A process has n of N nodes, the entries of Ã in their rows, and a halo of H nodes of others that its own are linked to;
S of its own rows are in the halos of others. With P processes, c columns that are multiplied by Ã in a step, f numbers
that a node's factors have, w weights that all share and M sampled zeros, a process sends in bytes

    halo      8·c·S                              rows to those who need them, and rows of gradients
    ones      4·f·S, and 4·f·H back where logits are not symmetric
    exact     8·f·r·n                            blocks round a ring and their gradients, r = ⌊P/2⌋, else P - 1
    sampled   4·f·((P - 1)·n + N - n)            up to 65,536 nodes: all factors to all, which serve the ones too
              (8·f + 4)·Z                        beyond: Z rows that the zeros need, Z ≤ M/P, and the ones as above
    sums      8·(P - 1) bytes for each of about 2·f² numbers of the control variate
    weights   4·(P - 1)·w up to 256 KB, 8·w·(P - 1)/P beyond

Rows that travel on the ring are taken to be as many as a process has itself. Memory is that of a workload of its own
nodes and entries, with the rows of the halo and the blocks of the ring; on a CPU also the messages that are under way
in shared memory, and on a GPU the noise and the zeros of all nodes, which it draws at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch

from vgae.graph.graph import Graph
from vgae.objective.cost import Cost, Rates, memory_on
from vgae.objective.sharded import GATHERED
from vgae.objective.workload import FLOAT, INT, Memory, Workload
from vgae.parallel.group import SMALL
from vgae.parallel.memory import SLOTS
from vgae.parallel.shards import Shards

DOUBLE = 8


@dataclass(frozen=True)
class Share:
    """What one process has of a graph."""

    num_nodes: int
    entries: int  # of Ã, in the rows of its nodes
    halo: int  # nodes of others that they are linked to
    wanted: int  # rows of its own that others need, once for each of them


def shares_of(graph: Graph, bounds: Sequence[int]) -> list[Share]:
    """The shares of processes that have the nodes between these bounds."""
    shards = Shards(tuple(bounds), 0)
    owners, size, num_nodes = shards.owners(np.arange(graph.num_nodes)), shards.size, graph.num_nodes
    entries = np.bincount(owners, 1 + graph.degrees(), minlength=size)
    both = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    across = both[owners[both[:, 0]] != owners[both[:, 1]]]
    needed = np.unique(owners[across[:, 0]] * num_nodes + across[:, 1])  # by process, the nodes that it needs
    halos = np.bincount(needed // num_nodes, minlength=size)
    wanted = np.bincount(owners[needed % num_nodes], minlength=size)
    return [Share(*(int(each) for each in found)) for found in zip(shards.counts, entries, halos, wanted, strict=True)]


def random_shares(num_nodes: int, degree: float, num_processes: int) -> list[Share]:
    """Those that are expected of a graph that is not at hand, whose nodes have that many links and no order."""
    here = num_nodes / num_processes
    halo = (num_nodes - here) * (1 - (1 - 1 / num_processes) ** degree)
    share = Share(round(here), round(here * (1 + degree)), round(halo), round(halo))
    return [share] * num_processes


@dataclass(frozen=True)
class GroupWorkload:
    """The workload of a training, divided among the processes of a group."""

    whole: Workload
    shares: Sequence[Share]

    @property
    def size(self) -> int:
        """P, the number of processes."""
        return len(self.shares)

    @cached_property
    def factor_columns(self) -> int:
        """Numbers that travel for the factors of a node, its bias among them."""
        decoder = self.whole.composition.outline(self.whole.input_dim).decoder
        factors = decoder.factors(torch.empty(2, self.whole.latent_dim, device="meta"))
        if factors is None:
            return self.whole.latent_dim
        return factors.columns.shape[1] + (factors.column_bias is not None)

    @cached_property
    def num_shared_weights(self) -> int:
        """Weights that all processes have; without features, all but the rows of W₀ that belong to nodes."""
        if self.whole.num_features:
            return self.whole.num_weights
        outline = self.whole.composition.outline(self.whole.input_dim)
        return sum(each.numel() for each in outline.parameters() if self.whole.num_nodes not in each.shape[:1])

    @property
    def mirrored(self) -> bool:
        """Whether logits are symmetric."""
        return self.whole.symmetric and self.whole.mirrored

    def sent(self, share: Share, objective: str) -> float:
        """Bytes that a process sends in a step."""
        if self.size == 1:
            return 0.0
        row, gathered = FLOAT * self.factor_columns, self.whole.num_nodes <= GATHERED
        total = 2 * FLOAT * self.whole.encoder.propagated * share.wanted
        total += self._summed(self.num_shared_weights, FLOAT)
        if objective == "exact" or not gathered:
            total += row * (share.wanted + (0 if self.mirrored else share.halo))
        if objective == "exact":
            steps = self.size // 2 if self.mirrored else self.size - 1
            return total + 2 * row * steps * share.num_nodes
        if gathered:
            total += row * ((self.size - 1) * share.num_nodes + self.whole.num_nodes - share.num_nodes)
        else:
            total += (2 * row + INT // 2) * self._zeros_elsewhere(share) + INT * (self.size - 1)
        sides = 1 if self.mirrored else 2
        sums = sides * 2 * (self.factor_columns**2 + self.factor_columns) + 12
        return total + self._summed(sums, DOUBLE)

    def _zeros_elsewhere(self, share: Share) -> float:
        """Distinct nodes of others that the zeros in own rows have as their other ends, of as many as are expected."""
        others = self.whole.num_nodes - share.num_nodes
        own_zeros = self.whole.num_negatives * share.num_nodes / self.whole.num_nodes
        return others * -float(np.expm1(-own_zeros / self.whole.num_nodes))

    def _summed(self, number: int, size: int) -> float:
        """Bytes that a process sends for a sum over all of so many numbers."""
        if number * size <= SMALL:
            return (self.size - 1) * number * size
        return 2 * (self.size - 1) / self.size * number * size

    def part(self, share: Share) -> Workload:
        """The workload of one process without its messages: a graph of its nodes and entries."""
        edges = max(0, share.entries - share.num_nodes) // 2
        number = share.num_nodes / self.whole.num_nodes
        return replace(
            self.whole,
            num_nodes=share.num_nodes,
            num_edges=edges,
            feature_entries=round(number * self.whole.feature_entries),
            num_negatives=max(1, round(number * self.whole.num_negatives)),
            divided=self.size > 1,
        )

    def memory(self, share: Share, objective: str, device: torch.device, *, first: bool = False) -> Memory:
        """What a process takes beside itself and its graph; the first has the embeddings of all nodes at the end."""
        here = memory_on(self.part(share), objective, device)
        if self.size == 1:
            return here
        if first:
            here = replace(here, host=here.host + self._gathered)
        rows, widest = share.halo + share.wanted, max(self._columns, self.factor_columns)
        extra = float(FLOAT * rows * widest + INT * share.wanted)
        if objective == "exact":
            extra += 5 * FLOAT * self.factor_columns * share.num_nodes  # two blocks, and gradients of three
        elif self.whole.num_nodes <= GATHERED:
            extra += 2 * FLOAT * self.factor_columns * self.whole.num_nodes
        else:
            extra += (2 * FLOAT * self.factor_columns + 2 * INT) * self._zeros_elsewhere(share)
        if device.type == "cpu":
            return Memory(host=here.host + extra + SLOTS * self.largest_message(share, objective))
        drawn = 0 if self.whole.composition.posterior.deterministic else FLOAT * self.whole.latent_dim
        extra += drawn * self.whole.num_nodes  # noise, which a GPU draws for all nodes at once (vgae.parallel.draws)
        if objective == "sampled":
            extra += DOUBLE * self.whole.num_negatives  # and so the zeros
        return Memory(host=here.host, device=here.device + extra)

    def largest_message(self, share: Share, objective: str) -> float:
        """Bytes of the largest message by shared memory; on the ring messages go another way."""
        row, others = FLOAT * self.factor_columns, self.whole.num_nodes - share.num_nodes
        largest = FLOAT * max(self._columns * share.wanted, self.num_shared_weights)
        if objective == "exact":
            return max(largest, row * share.wanted)
        if self.whole.num_nodes <= GATHERED:
            return max(largest, row * max(share.num_nodes, others))
        return max(largest, row * share.wanted, row * self._zeros_elsewhere(share))

    @property
    def _columns(self) -> int:
        """Columns that are multiplied by Ã at a time: those of all heads, or of a layer before them."""
        heads = sum(self.whole.composition.heads.values())
        return max(heads, self.whole.composition.hidden_dim if self.whole.encoder.propagated > heads else 0)

    @property
    def _gathered(self) -> float:
        """Bytes of the posterior of all nodes, and of the weights that belong to nodes."""
        heads = sum(self.whole.composition.heads.values())
        return FLOAT * (self.whole.num_nodes * heads + self.whole.num_weights - self.num_shared_weights)

    def estimate(
        self, rates: Rates, objective: str, device: torch.device, bytes_per_second: float
    ) -> tuple[Cost, float]:
        """Time per iteration and memory of the process that takes most of each, and the bytes that it sends.

        Each process computes as fast as the rates say; messages are taken to come on top.
        """
        seconds, sent = 0.0, 0.0
        for share in self.shares:
            part = self.part(share)
            took = rates.seconds_per_step + part.numbers_moved(objective) / rates.numbers_per_second
            if objective == "exact":
                took += self.whole.all_pairs / self.size / rates.pairs_per_second
            going = self.sent(share, objective)
            seconds, sent = max(seconds, took + going / bytes_per_second), max(sent, going)
        memories = [self.memory(share, objective, device, first=not rank) for rank, share in enumerate(self.shares)]
        most = Memory(max(each.host for each in memories), max(each.device for each in memories))
        return Cost(objective, seconds, most), sent
