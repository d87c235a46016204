"""What a training in several processes would cost each of them (docs/scale.md), with either objective."""

from __future__ import annotations

from dataclasses import dataclass

from vgae.objective.cost import Choice, Cost, room_on
from vgae.objective.group_cost import GroupWorkload, shares_of
from vgae.objective.workload import Memory
from vgae.parallel.shards import Shards
from vgae.train.job import Job, workload
from vgae.train.plan import BOTH, decide
from vgae.train.together import costs_of_nodes, require_shardable
from vgae.train.trial import measure


@dataclass(frozen=True)
class GroupCost:
    """The price of an objective to the process that pays most: time and memory, and bytes sent in an iteration."""

    cost: Cost
    sent: float
    halo: int  # nodes of others that it needs


@dataclass(frozen=True)
class GroupPlan:
    """What a training would cost with either objective, which of them `auto` is, and the memory that is free here."""

    costs: tuple[GroupCost, ...]
    choice: Choice
    room: Memory


def plan_in_group(job: Job, processes: int, bytes_per_second: float) -> GroupPlan:
    """The costs of a training by so many processes, each of which has a machine or a GPU like this one."""
    require_shardable(job, processes)
    job.config.check_nodes(job.graph.num_nodes)
    work = workload(job, checkpoints=True)
    rates = {objective: measure(job, work, objective) for objective in BOTH}
    costs = []
    for objective in BOTH:
        bounds = Shards.balanced(costs_of_nodes(job, objective), processes, 0).bounds
        divided = GroupWorkload(work, shares_of(job.graph, bounds))
        cost, sent = divided.estimate(rates[objective], objective, job.device, bytes_per_second)
        costs.append(GroupCost(cost, sent, max(share.halo for share in divided.shares)))
    return GroupPlan(tuple(costs), decide(work, job, rates["exact"], processes=processes), room_on(job.device))
