"""`vgae models`: what each part scores, run for the table of docs/models.md."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from vgae.cli.options import Json
from vgae.cli.paper import progress_hint, watch
from vgae.errors import TrainingError
from vgae.experiments.models import chosen_models, models_store, run_model
from vgae.experiments.results import DATASETS, Failure, Result, summarise
from vgae.experiments.store import list_tasks, run_tasks
from vgae.report.console import print_json, print_table, rich_table
from vgae.report.results import cells_of
from vgae.screen import note
from vgae.train.config import choose_device
from vgae.words import count

ARCHIVE = "models.json"


def models(
    dataset: Annotated[
        list[str] | None, typer.Option(help="One of the datasets; may be repeated.  [default: all]")
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            help="gae, vgae, accurate, vgae+decoder=distance …, or with *: 'vgae*'; may be repeated.  [default: all]"
        ),
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs per cell; run i has seed i and split i.")] = 10,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    jobs: Annotated[int | None, typer.Option(min=1, help="Runs at a time.  [default: one per core]")] = None,
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results-models"),
    as_json: Json = False,
) -> None:
    """Train every model on every split and write the results to a folder; what is there is not computed again."""
    kind = str(choose_device(device))
    chosen = chosen_models(model or ["*"])
    settings = {name: each.text for name, each in chosen.items()}
    tasks = list_tasks(dataset or DATASETS, list(chosen), known=list(chosen), runs=runs, splits=runs, settings=settings)
    store = models_store(out, runs=runs, device=kind)
    with progress_hint(tasks, store):
        work = partial(run_model, device=kind)
        found = watch(
            run_tasks(work, tasks, store, workers=jobs),
            total=len(tasks),
            quiet=as_json,
            table=lambda done: rich_table(*columns_of(_rows(results_among(done), list(chosen)))),
        )
        results = results_among(found)
        if results:
            store.archive(results).write(out / ARCHIVE)
    if as_json:
        print_json(cells_of(summarise(results, list(chosen))))
    elif results:
        titles, *rows = _rows(results, list(chosen))
        print_table(titles, rows, numbers=titles[1:])
        note(f"saved in {out}: {ARCHIVE}; to write the page, run: vgae report {out / ARCHIVE} --out models.md")
    require_all([each for each in found if isinstance(each, Failure)])


def results_among(found: Sequence[Result | Failure]) -> list[Result]:
    """What came to an end."""
    return [each for each in found if isinstance(each, Result)]


def require_all(failures: Sequence[Failure]) -> None:
    """Say which runs failed, each model once, after all others have been saved."""
    for each in {failure.task.method: failure for failure in failures}.values():
        note(f"{each.task}: {each.why}")
    if failures:
        raise TrainingError(f"{count(len(failures), 'run')} failed, and will be tried again by the same command.")


def _rows(results: Sequence[Result], names: Sequence[str]) -> list[list[str]]:
    """AUC / AP of each model, with titles."""
    table = summarise(results, names)
    rows = [
        [name, *(f"{cell.auc:.1f} / {cell.ap:.1f}" if (cell := cells.get(name)) else "–" for cells in table.values())]
        for name in names
        if any(name in cells for cells in table.values())
    ]
    return [["AUC / AP", *table], *rows]


def columns_of(rows: list[list[str]]) -> tuple[list[list[str]], list[bool]]:
    """Rows with titles, and which columns are numbers."""
    return rows, [number > 0 for number in range(len(rows[0]))]
