"""The paper's experiments, run again and written up: `vgae reproduce` and `vgae report`."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, TypeVar

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from vgae.cli.exits import same_command
from vgae.cli.options import Json
from vgae.errors import InputError, StoppedError
from vgae.experiments import reproduce as experiment
from vgae.experiments.accuracy import EXPERIMENT as ACCURACY
from vgae.experiments.models import EXPERIMENT as MODELS
from vgae.experiments.reproduce import METHODS, list_tasks, paper_store, summarise
from vgae.experiments.results import DATASETS, Archive, Task
from vgae.experiments.store import Store
from vgae.io.exports import write_text
from vgae.report.accuracy import accuracy_page
from vgae.report.console import print_json, progress_console
from vgae.report.models import models_page
from vgae.report.page import results_page
from vgae.report.results import FIGURES, cells_of, draw_figure_1, write_results
from vgae.report.tables import print_table_1, table_1
from vgae.screen import note

Done = TypeVar("Done")


def reproduce(
    dataset: Annotated[
        list[str] | None, typer.Option(help="One of the datasets; may be repeated.  [default: all]")
    ] = None,
    model: Annotated[
        list[str] | None, typer.Option(help=f"{', '.join(METHODS)}; may be repeated.  [default: all]")
    ] = None,
    runs: Annotated[int, typer.Option(help="Runs per cell; run i has seed i.")] = 10,
    splits: Annotated[int, typer.Option(help="Different splits; run i uses split i mod this number.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="One run per cell.")] = False,
    figure: Annotated[str, typer.Option(help="Figure 1 by tsne or pca, of a 2d latent space, or none.")] = "tsne",
    out: Annotated[Path, typer.Option(help="Folder for the results.")] = Path("results"),
    as_json: Json = False,
) -> None:
    """Run the paper's experiments again and write the results to a folder."""
    if figure not in FIGURES:
        raise InputError(f"figure: {figure!r} is not one of {', '.join(FIGURES)}.")
    tasks = list_tasks(dataset or DATASETS, model or METHODS, runs=1 if quick else runs, splits=splits)
    store = paper_store(out, splits=splits)
    with progress_hint(tasks, store):
        results = watch(
            experiment.reproduce(tasks, store),
            total=len(tasks),
            quiet=as_json,
            table=lambda found: table_1(summarise(found)),
        )
        table = summarise(results)
        written = write_results(store, results)
        if figure != "none" and "VGAE" in table.get("cora", {}):
            written += draw_figure_1(out, figure)
        if as_json:
            print_json(cells_of(table))
        else:
            print_table_1(table)
            note(f"saved in {out}: {', '.join(written)}")


def report(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULTS...", help="results.json of one or more reproductions, or one models.json or accuracy.json."
        ),
    ],
    figure: Annotated[Path | None, typer.Option(help="A picture to show, as a path relative to the page.")] = None,
    out: Annotated[Path, typer.Option(help="The page, in Markdown.")] = Path("results.md"),
) -> None:
    """Write a page with tables, hardware and time, and where the results differ from the paper's and why.

    Of the results of vgae models and accuracy, the tables of a page that is there are written anew, and its text stays.
    """
    archives = [Archive.read(path) for path in files]
    kinds = {archive.experiment for archive in archives}
    pages = {MODELS: models_page, ACCURACY: accuracy_page}
    if kinds & set(pages):
        if len(archives) > 1:
            raise InputError(
                "results: a page is about reproductions of the paper, or about one models.json or accuracy.json."
            )
        page = pages[kinds.pop()](archives[0], out.read_text(encoding="utf-8") if out.exists() else None)
    else:
        page = results_page(archives, figure)
    write_text(out, page)
    note(f"wrote {out}")


@contextmanager
def progress_hint(tasks: Sequence[Task], store: Store) -> Iterator[None]:
    """On Ctrl-C, say how much of a reproduction is stored, and which command continues."""
    try:
        yield
    except KeyboardInterrupt:
        count = f"{store.count(tasks)} of {len(tasks)} {'result is' if len(tasks) == 1 else 'results are'} stored"
        raise StoppedError(f"Interrupted; {count} in {store.folder}. To continue, run: {same_command()}") from None


def watch(
    results: Generator[Done], *, total: int, quiet: bool, table: Callable[[Sequence[Done]], RenderableType]
) -> list[Done]:
    """All results, shown on a terminal as they come: the table as far as it is known, and the time left."""
    found: list[Done] = []
    bar = Progress(
        TextColumn("{task.completed}/{task.total} runs"), BarColumn(), TimeRemainingColumn(elapsed_when_finished=True)
    )
    task = bar.add_task("", total=total)
    with closing(results), Live(console=progress_console(quiet=quiet), refresh_per_second=2) as live:
        for result in results:
            found.append(result)
            bar.update(task, completed=len(found))
            live.update(Group(table(found), bar))
    return found
