"""What a training in several processes would cost: time, memory of each process, and what they tell each other.

    time      that of the process with the largest share, each as fast as this one; messages on top of it, where it is
              known how fast they are
    memory    of the process that takes most
    sent      by the process that sends most, in an iteration

Halos are counted in the graph itself; the arithmetic is that of `vgae.objective.group_cost`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vgae.objective.cost import Cost, Rates, room_on
from vgae.objective.group_cost import GroupWorkload, shares_of
from vgae.objective.workload import Workload
from vgae.parallel.shards import Shards
from vgae.train.job import Job, workload
from vgae.train.plan import BOTH, Plan, decide
from vgae.train.together import costs_of_nodes, require_shardable
from vgae.train.trial import measure


@dataclass(frozen=True, kw_only=True)
class SharedCost(Cost):
    """What an iteration costs in several processes: of one process its memory, and the bytes that it sends."""

    sent: float
    halo: int  # rows of others that a process needs, at most


def plan_together(job: Job, processes: int, bytes_per_second: float = math.inf) -> Plan:
    """The costs of a training that so many processes would make, and what they would decide."""
    require_shardable(job, processes)
    job.config.check_nodes(job.graph.num_nodes)
    work = workload(job, checkpoints=True)
    rates = {objective: measure(job, work, objective) for objective in BOTH}
    costs = tuple(
        estimate_together(job, work, rates[objective], objective, processes, bytes_per_second) for objective in BOTH
    )
    return Plan(costs, decide(work, job, rates["exact"], processes=processes), room_on(job.device))


def estimate_together(
    job: Job, work: Workload, rates: Rates, objective: str, processes: int, bytes_per_second: float = math.inf
) -> SharedCost:
    """The cost of an objective in so many processes."""
    shards = Shards.balanced(costs_of_nodes(job, objective), processes, 0)
    divided = GroupWorkload(work, shares_of(job.graph, shards.bounds))
    cost, sent = divided.estimate(rates, objective, job.device, bytes_per_second)
    halo = max(share.halo for share in divided.shares)
    return SharedCost(objective, cost.seconds, cost.memory, sent=sent, halo=halo)
