"""`vgae plan`."""

import math
from dataclasses import dataclass

from vgae.cli.opening import SplitOptions, open_graph
from vgae.cli.options import GraphName, Json, TableOptions, given_options, same_option
from vgae.cli.preset import PresetOptions, plan_config
from vgae.cli.processes import ProcessOptions
from vgae.machine import describe_machine
from vgae.objective.cost import duration
from vgae.objective.workload import Memory
from vgae.options import Options, option
from vgae.report.console import print_json, print_table
from vgae.screen import note, print_line
from vgae.train.config import Config, choose_device
from vgae.train.job import Job
from vgae.train.plan import plan_training
from vgae.train.plan_together import SharedCost, plan_together
from vgae.words import count


@dataclass(frozen=True)
class GroupOptions(Options):
    """How many processes would train, and how fast their messages are."""

    processes: int | None = same_option(ProcessOptions, "processes")
    bandwidth: float | None = option(
        None,
        above=0,
        most=10**6,
        help="Gigabytes per second that each of them can send: the time of messages is added.  [default: not counted]",
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
    job, processes = Job(config.view(planned), config), group.processes or 1
    if processes == 1:
        found = plan_training(job)
    else:
        found = plan_together(job, processes, math.inf if group.bandwidth is None else 1e9 * group.bandwidth)
    if as_json:
        described: dict[str, dict[str, float]] = {}
        for cost in found.costs:
            facts = {"seconds": cost.seconds, "bytes": cost.memory.largest}
            if cost.batch_size is not None:
                facts["batch_size"] = cost.batch_size
            if isinstance(cost, SharedCost):
                facts |= {"sent_bytes": cost.sent, "halo": cost.halo}
            described["parts" if cost.objective in described else cost.objective] = facts
        available = found.room.device or found.room.host
        of_group = {} if processes == 1 else {"processes": processes}
        about = {"dataset": opened.name, "auto": found.choice.objective, "available_bytes": available, **of_group}
        print_json(about | described)
        return
    note(f"{opened.name}: {planned} · on {describe_machine()}")
    titles = ["objective", "per iteration", count(config.iterations, "iteration"), "memory", "fits"]
    if processes > 1:
        titles[3:] = ["memory of each", f"{processes} fit here", "sent by each"]
    rows = []
    for cost in found.costs:
        needed = Memory(processes * cost.memory.host, processes * cost.memory.device)
        fits = "yes" if needed.fits(found.room) else "no"
        whole = duration(config.iterations * cost.seconds)
        name = cost.objective if cost.batch_size is None else f"{cost.objective}, --batch-size {cost.batch_size}"
        sent = [f"{cost.sent / 1e6:.2f} MB"] if isinstance(cost, SharedCost) else []
        memory = f"{cost.memory.largest / 1e9:.2f} GB"
        rows.append([name, duration(cost.seconds), whole, memory, fits, *sent])
    print_table(titles, rows, numbers=titles[1:])
    print_line(f"--objective auto chooses {found.choice.objective}: {found.choice.reason}")
