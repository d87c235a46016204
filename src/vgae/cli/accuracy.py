"""`vgae accuracy`: how accurate models, the stack and baselines are, run for the tables of docs/accuracy.md."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vgae.cli.models import columns_of, require_all, results_among
from vgae.cli.options import Json
from vgae.cli.paper import progress_hint, watch
from vgae.experiments.accuracy import (
    Setting,
    accuracy_store,
    archive_of,
    facts_of,
    find_sources,
    limited_threads,
    list_tasks,
    merge,
    read_results,
    run_accuracy,
)
from vgae.experiments.methods import chosen_methods
from vgae.experiments.results import Archive, Failure, Task
from vgae.experiments.store import Store, run_tasks
from vgae.options import Options, option
from vgae.report.accuracy import scores_for_json, table_of_scores
from vgae.report.console import print_json, print_table, rich_table
from vgae.screen import note
from vgae.train.config import choose_device
from vgae.words import count

ARCHIVE = "accuracy.json"


@dataclass(frozen=True)
class RunOptions(Options):
    """How many runs there are, and where they run."""

    runs: int | None = option(
        None, help="Splits; run i has seed i and split i.  [default: 10 of cora, citeseer and pubmed, 5 of others]"
    )
    device: str = option("auto", help="auto, cpu or cuda.")
    workers: int | None = option(None, least=1, help="Runs at a time.  [default: one per core]")
    threads: int = option(1, least=1, help="Threads of each run.")


def accuracy(
    how: RunOptions,
    graph: Annotated[
        list[str] | None,
        typer.Option(help="A dataset, or the file of a graph; may be repeated.  [default: all datasets]"),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="gae, vgae, accurate, stack, with * without features; or a baseline: sc, dw, cn, aa, ra, pa …; "
            "may be repeated.  [default: all]"
        ),
    ] = None,
    merged: Annotated[
        list[Path] | None,
        typer.Option(
            "--merge",
            help="A folder or an accuracy.json of another machine, whose results are taken over; nothing is run.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results-accuracy"),
    as_json: Json = False,
) -> None:
    """Score methods on splits of graphs and write the results to a folder; what is there is not computed again."""
    failures: list[Failure] = []
    if merged:
        others = [read_results(path) for path in merged]
        store = accuracy_store(out)
        for path, other in zip(merged, others, strict=True):
            note(f"{path}: {count(merge(store, other), 'new result')}")
    else:
        setting = Setting(str(choose_device(how.device)), how.threads, find_sources(graph))
        methods, left_out = chosen_methods(method)
        for line in left_out:
            note(line)
        facts = {name: facts_of(source.load()) for name, source in setting.sources.items()}
        tasks = list_tasks(facts, methods, how.runs)
        store = accuracy_store(out)
        for name, each in facts.items():
            store.add_graph(name, each)
        failures = _run(tasks, store, setting, how.workers, quiet=as_json)
    archive, num_left_out = archive_of(store)
    if num_left_out:
        note(f"{count(num_left_out, 'result')} of methods that have changed since are left out")
    if archive is not None:
        archive.write(out / ARCHIVE)
        _show(archive, out, as_json=as_json)
    require_all(failures)


def _run(tasks: Sequence[Task], store: Store, setting: Setting, workers: int | None, *, quiet: bool) -> list[Failure]:
    """Run what is missing, and say what failed."""
    with progress_hint(tasks, store), limited_threads(setting.threads):
        found = watch(
            run_tasks(partial(run_accuracy, setting=setting), tasks, store, workers=workers, prepare=None),
            total=len(tasks),
            quiet=quiet,
            table=lambda done: rich_table(*columns_of(table_of_scores(results_among(done)))),
        )
    return [each for each in found if isinstance(each, Failure)]


def _show(archive: Archive, out: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(scores_for_json(archive))
        return
    titles, *rows = table_of_scores(archive.results)
    print_table(titles, rows, numbers=titles[1:])
    note(f"saved in {out}: {ARCHIVE}; to write the page, run: vgae report {out / ARCHIVE} --out accuracy.md")
