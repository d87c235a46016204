"""Which objective a training takes, and whether it fits: one answer for `fit` and for `vgae plan`."""

from __future__ import annotations

from dataclasses import dataclass

from vgae.errors import InputError
from vgae.objective.cost import (
    Choice,
    Cost,
    Rates,
    choose_objective,
    estimate,
    require_memory,
    room_on,
)
from vgae.objective.workload import Memory, Workload
from vgae.train.job import Job, workload
from vgae.train.trial import measure

BOTH = ("exact", "sampled")


@dataclass(frozen=True)
class Plan:
    """What a training would cost with either objective, which of them `auto` is, and the memory that is free."""

    costs: tuple[Cost, ...]
    choice: Choice
    room: Memory


def objectives_of(job: Job) -> tuple[str, ...]:
    """Those that a training may end up with."""
    asked = job.config.objective
    if job.batch is not None:
        return ("sampled",)
    if job.outline.decoder.factorised:
        return BOTH if asked == "auto" else (asked,)
    if asked == "exact":
        raise InputError(
            f"objective: the decoder {job.config.value_of('decoder')} has no factors, which the exact objective needs; "
            "use sampled or auto."
        )
    return ("sampled",)


def require_room(job: Job, *, checkpoints: bool = False) -> None:
    """Refuse a training that does not fit into the memory there is, before anything of it is allocated."""
    require_memory(workload(job, checkpoints=checkpoints), objectives_of(job), job.device, room_on(job.device))


def decide(work: Workload, job: Job, rates: Rates | None = None, *, processes: int = 1) -> Choice:
    """The objective of a training, and why; what the machine can do is measured unless it is given.

    Several processes are taken to be as many times as fast as one.
    """
    if job.config.objective != "auto":
        return Choice(job.config.objective, "as asked for")
    if job.config.batch_size is not None:
        return Choice("sampled", f"by steps of {job.config.batch_size} nodes")
    if objectives_of(job) != BOTH:
        return Choice(
            "sampled", f"the decoder {job.config.value_of('decoder')} has no factors, which the exact one needs"
        )
    return choose_objective(
        work,
        job.config.iterations,
        job.device,
        lambda: (rates or measure(job, work, "exact")).times(processes),
    )


def plan_training(job: Job) -> Plan:
    """The costs of a training that the command would make, and what it would decide."""
    job.config.check_nodes(job.graph.num_nodes)
    work = workload(job, checkpoints=True)
    possible = BOTH if job.outline.decoder.factorised and job.batch is None else ("sampled",)
    rates = {objective: measure(job, work, objective) for objective in possible}
    costs = tuple(estimate(work, rates[objective], objective, job.device) for objective in possible)
    return Plan(costs, decide(work, job, rates.get("exact")), room_on(job.device))
