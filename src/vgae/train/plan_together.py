"""What a training in several processes would cost: time, memory of each process, and what they tell each other.

    time      compute is divided by P; messages are not counted, and are hidden by it where the network is fast enough
    memory    what has a row for each node is divided by P; weights that all share are in every process
    sent      by the process that sends the most, in an iteration; docs/scale.md has the terms

H, the halo of a process, is counted in the graph itself: the nodes of others that its own are linked to.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vgae.graph.graph import Graph
from vgae.objective.cost import Cost, Rates, estimate, room_on
from vgae.objective.workload import FIXED_BYTES, FLOAT, Memory, Workload
from vgae.parallel.shards import Shards
from vgae.train.job import Job, workload
from vgae.train.plan import BOTH, Plan, decide
from vgae.train.together import costs_of_nodes, require_shardable
from vgae.train.trial import measure

MOMENTS = 2  # Adam's, beside a weight and its gradient


@dataclass(frozen=True, kw_only=True)
class SharedCost(Cost):
    """What an iteration costs in several processes: of one process its memory, and the bytes that it sends."""

    sent: float
    halo: int  # rows of others that a process needs, at most


def plan_together(job: Job, processes: int) -> Plan:
    """The costs of a training that so many processes would make, and what they would decide."""
    require_shardable(job, processes)
    work = workload(job, checkpoints=True)
    rates = {objective: measure(job, work, objective) for objective in BOTH}
    costs = tuple(estimate_together(job, work, rates[objective], objective, processes) for objective in BOTH)
    return Plan(costs, decide(work, job, rates["exact"], processes=processes), room_on(job.device))


def estimate_together(job: Job, work: Workload, rates: Rates, objective: str, processes: int) -> SharedCost:
    """The cost of an objective in so many processes."""
    whole = estimate(work, rates.times(processes), objective, job.device)
    shards = Shards.balanced(costs_of_nodes(job, objective), processes, 0)
    halo = max(halo_sizes(job.graph, shards))
    shared = shared_weights(job)
    largest = max(shards.counts) / work.num_nodes
    copied = FLOAT * halo * (work.encoder.propagated + 2 * work.latent_dim)
    replicated = FLOAT * (2 + MOMENTS) * shared

    def part(of_all: float) -> float:
        alike = replicated + FIXED_BYTES
        return max(of_all - alike, 0.0) * largest + alike + copied if of_all else 0.0

    memory = Memory(host=part(whole.memory.host), device=part(whole.memory.device))
    numbers = numbers_sent(work, objective, processes, halo, shared)
    return SharedCost(objective, whole.seconds, memory, sent=FLOAT * numbers, halo=halo)


def numbers_sent(work: Workload, objective: str, processes: int, halo: int, shared: int) -> float:
    """Numbers that a process sends in an iteration, at most."""
    if processes == 1:
        return 0.0
    width, mirrored = work.latent_dim, work.symmetric and work.mirrored
    sent = 2.0 * halo * work.encoder.propagated + halo * width * (1 if mirrored else 2) + shared
    others = (processes - 1) / processes
    if objective == "exact":  # round the ring, or half of it, and gradients as far
        return sent + others * work.num_nodes * width * (1 if mirrored else 2)
    ends = others * work.num_negatives / processes  # of own zeros, whose other nodes are elsewhere
    return sent + 2 * width * ends + 2 * width**2


def halo_sizes(graph: Graph, shards: Shards) -> list[int]:
    """How many nodes of others the nodes of each process are linked to."""
    edges = np.concatenate([graph.edges, graph.edges[:, ::-1]])
    mine, theirs = shards.owners(edges[:, 0]), edges[:, 1]
    outside = mine != shards.owners(theirs)
    wanted = np.unique(mine[outside] * graph.num_nodes + theirs[outside])
    bounds = np.searchsorted(wanted, np.arange(shards.size + 1) * graph.num_nodes)
    return [int(last - first) for first, last in pairwise(bounds)]


def shared_weights(job: Job) -> int:
    """Weights that every process has: all that have no row for each node."""
    by_node = job.graph.num_nodes if job.graph.features is None else None
    weights = (weight for weight in job.outline.parameters() if not (weight.dim() > 1 and len(weight) == by_node))
    return sum(weight.numel() for weight in weights)
