"""`vgae plan`."""

from vgae.cli.opening import SplitOptions, open_graph
from vgae.cli.options import GraphName, Json, TableOptions, given_options
from vgae.cli.preset import PresetOptions, plan_config
from vgae.machine import describe_machine
from vgae.objective.cost import duration
from vgae.report.console import print_json, print_table
from vgae.screen import note, print_line
from vgae.train.config import Config, choose_device
from vgae.train.job import Job
from vgae.train.plan import plan_training
from vgae.words import count


def plan(
    graph: GraphName,
    config: Config,
    preset: PresetOptions,
    split: SplitOptions,
    tables: TableOptions,
    as_json: Json = False,
) -> None:
    """Estimate what a training would cost, by the exact and by the sampled objective, and by steps over some nodes.

    For a file of your own, options that are not given have values tuned on real graphs; --preset paper takes the
    defaults below.
    """
    config = preset.apply_file(config)
    choose_device(config.device)
    opened = open_graph(graph, tables, split.time)
    # The whole graph, unless it is said how to split it: what is held out by default makes no difference to a plan.
    planned = split.apply(opened).train if given_options(split) else opened.graph
    num_links = int(split.val * opened.graph.num_links)
    config = plan_config(graph, config, preset, num_links, quiet=as_json)
    # Made without the checks of `Job.of`: nothing is held out for a plan, and early stopping still counts.
    found = plan_training(Job(config.view(planned), config))
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
