"""Which objective a training takes, and whether it fits: one answer for `fit` and for `vgae plan`."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vgae.errors import InputError
from vgae.objective.cost import (
    SMALLEST_BATCH,
    Choice,
    Cost,
    Rates,
    can_have_parts,
    choose_objective,
    estimate,
    memory_on,
    parts_that_fit,
    require_memory,
    room_on,
    why_parts,
)
from vgae.objective.workload import Memory, Workload
from vgae.train.job import Job, workload
from vgae.train.trial import measure

BOTH = ("exact", "sampled")
TYPICAL_PARTS = 10  # of the nodes, for a plan that nobody has said a size for


@dataclass(frozen=True)
class Plan:
    """What a training would cost with either objective and by parts, which `auto` is, and the memory that is free."""

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


def fitted(job: Job, *, checkpoints: bool = False) -> Job:
    """The training as it can be made here: `auto` takes steps over parts of the nodes where all of them do not fit."""
    if job.config.objective != "auto" or job.batch is not None:
        return job
    work, room = workload(job, checkpoints=checkpoints), room_on(job.device)
    if any(memory_on(work, objective, job.device).fits(room) for objective in objectives_of(job)):
        return job
    size = parts_that_fit(work, job.device, room)
    return job if size is None else replace(job, config=replace(job.config, batch_size=size))


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
        why = why_parts(work, job.device, room_on(job.device))
        steps = f"by steps of {job.config.batch_size} nodes"
        return Choice("sampled", steps if why is None else f"{steps}: {why}")
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
    costs = [estimate(work, rates[objective], objective, job.device) for objective in possible]
    parts = _by_parts(job, work)
    if parts is not None:
        load = workload(parts, checkpoints=True)
        costs.append(estimate(load, measure(parts, load, "sampled"), "sampled", job.device))
    made = fitted(job, checkpoints=True)
    choice = decide(workload(made, checkpoints=True), made, rates.get("exact"))
    return Plan(tuple(costs), choice, room_on(job.device))


def _by_parts(job: Job, work: Workload) -> Job | None:
    """The same training by steps over parts: as large as would fit, or a tenth of the nodes; None if it has no such."""
    size = max(work.num_nodes // TYPICAL_PARTS, SMALLEST_BATCH)
    if job.batch is not None or job.config.objective == "exact" or not can_have_parts(work) or size >= work.num_nodes:
        return None
    fitting = fitted(job, checkpoints=True)
    return fitting if fitting.batch is not None else replace(job, config=replace(job.config, batch_size=size))
