"""`vgae plan`."""

from dataclasses import dataclass
from importlib import import_module

from vgae.cli.loading import loading
from vgae.cli.opening import SplitOptions, open_graph
from vgae.cli.options import GraphName, Json, TableOptions, given_options
from vgae.cli.preset import PresetOptions, plan_config
from vgae.machine import describe_machine
from vgae.objective.cost import duration
from vgae.options import Options, option
from vgae.report.console import print_json, print_table
from vgae.screen import note, print_line
from vgae.train.config import Config, choose_device
from vgae.train.job import Job
from vgae.train.plan import plan_training
from vgae.words import count


@dataclass(frozen=True)
class GroupOptions(Options):
    """In how many processes it would train, and how fast their messages are."""

    processes: int | None = option(
        None,
        least=1,
        most=4096,
        help="Plan for so many processes, each on a machine or GPU like this one; on one machine they share its cores "
        "(docs/scale.md).  [default: one]",
    )
    bandwidth: float = option(
        10.0, above=0, most=10**6, help="Gigabytes per second that a process can send, with --processes."
    )


def plan(
    graph: GraphName,
    config: Config,
    preset: PresetOptions,
    split: SplitOptions,
    tables: TableOptions,
    group: GroupOptions,
    as_json: Json = False,
) -> None:
    """Estimate what a training would cost, by the exact and by the sampled objective, and by steps over some nodes.

    For a file of your own, options that are not given have values tuned on real graphs; --preset paper takes the
    defaults below. With --processes, memory is that of each process, and what the busiest of them sends is told.
    """
    config = preset.apply_file(config)
    choose_device(config.device)
    opened = open_graph(graph, tables, split.time)
    # The whole graph, unless it is said how to split it: what is held out by default makes no difference to a plan.
    planned = split.apply(opened).train if given_options(split) else opened.graph
    num_links = int(split.val * opened.graph.num_links)
    config = plan_config(graph, config, preset, num_links, quiet=as_json)
    # Made without the checks of `Job.of`: nothing is held out for a plan, and early stopping still counts.
    job = Job(config.view(planned), config)
    if group.processes is not None:
        _plan_in_group(job, opened.name, group, as_json=as_json)
        return
    found = plan_training(job)
    if as_json:
        described: dict[str, dict[str, float]] = {}
        for cost in found.costs:
            facts = {"seconds": cost.seconds, "bytes": cost.memory.largest}
            if cost.batch_size is not None:
                facts["batch_size"] = cost.batch_size
            described["parts" if cost.objective in described else cost.objective] = facts
        available = found.room.device or found.room.host
        print_json({"dataset": opened.name, "auto": found.choice.objective, "available_bytes": available, **described})
        return
    note(f"{opened.name}: {planned} · on {describe_machine()}")
    titles = ("objective", "per iteration", count(config.iterations, "iteration"), "memory", "fits")
    rows = []
    for cost in found.costs:
        fits = "yes" if cost.memory.fits(found.room) else "no"
        whole = duration(config.iterations * cost.seconds)
        name = cost.objective if cost.batch_size is None else f"{cost.objective}, --batch-size {cost.batch_size}"
        rows.append((name, duration(cost.seconds), whole, f"{cost.memory.largest / 1e9:.2f} GB", fits))
    print_table(titles, rows, numbers=titles[1:])
    print_line(f"--objective auto chooses {found.choice.objective}: {found.choice.reason}")


def _plan_in_group(job: Job, name: str, group: GroupOptions, *, as_json: bool) -> None:
    """The same for several processes: what each of them takes and sends."""
    with loading():
        planning = import_module("vgae.train.group_plan")
    processes, config = group.processes or 1, job.config
    found = planning.plan_in_group(job, processes, 1e9 * group.bandwidth)
    if as_json:
        described = {
            each.cost.objective: {
                "seconds": each.cost.seconds,
                "bytes": each.cost.memory.largest,
                "bytes_sent": each.sent,
                "halo": each.halo,
            }
            for each in found.costs
        }
        available = found.room.device or found.room.host
        common = {"dataset": name, "processes": processes, "auto": found.choice.objective}
        print_json({**common, "available_bytes": available, **described})
        return
    where = f"{count(processes, 'process', 'processes')}, each on {describe_machine()}"
    note(f"{name}: {job.graph} · {where}, messages at {group.bandwidth:g} GB/s")
    titles = ("objective", "per iteration", count(config.iterations, "iteration"), "memory", "sent", "fits")
    rows = []
    for each in found.costs:
        cost = each.cost
        fits = "yes" if cost.memory.fits(found.room) else "no"
        whole = duration(config.iterations * cost.seconds)
        size, sent = f"{cost.memory.largest / 1e9:.2f} GB", f"{each.sent / 1e6:.2f} MB"
        rows.append((cost.objective, duration(cost.seconds), whole, size, sent, fits))
    print_table(titles, rows, numbers=titles[1:])
    print_line("Memory is that of the process that takes most, and sent what one sends in an iteration.")
    print_line(f"--objective auto chooses {found.choice.objective}: {found.choice.reason}")
