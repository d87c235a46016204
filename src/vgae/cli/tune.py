"""`vgae tune`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import MofNCompleteColumn, TextColumn, TimeRemainingColumn

from vgae.cli.exits import same_command
from vgae.cli.opening import SplitOptions, open_graph
from vgae.cli.options import AwareOptions, GraphName, Json, TableOptions
from vgae.errors import InputError, StoppedError
from vgae.options import Options, as_arguments, option
from vgae.report.console import print_json, print_table, progress_console
from vgae.report.figures import save_figure
from vgae.report.tuning import best_rows, history_figure, importance_figure, title_of
from vgae.screen import note, print_line, shell_line
from vgae.search.finals import ROUNDS
from vgae.search.folder import BEST, PICTURES, TRIALS, SearchFolder
from vgae.search.result import SearchResult
from vgae.search.space import Wishes
from vgae.search.study import TrialResult, require_optuna
from vgae.search.trial import COMPLETE
from vgae.search.tune import SearchOptions, SearchReporter, run_search
from vgae.train.config import Config, choose_device
from vgae.train.presets import ENOUGH_TO_STOP
from vgae.train.progress import Bar
from vgae.words import count


@dataclass(frozen=True)
class TuneOptions(AwareOptions, SearchOptions):
    """How long a search is and what it goes by; knows which options have one value because they were given."""


@dataclass(frozen=True)
class SearchFolderOptions(Options):
    """Where a search is stored, and what may become of what is there already."""

    out: Path | None = option(None, convert=Path, help="Folder of the search.  [default: runs/GRAPH-tune]")
    overwrite: bool = option(False, help="Begin the search in that folder again.")
    resume: bool = option(False, help="Continue the search in that folder, after an interruption or with more trials.")


def tune(
    graph: GraphName,
    searching: TuneOptions,
    config: Config,
    split: SplitOptions,
    output: SearchFolderOptions,
    tables: TableOptions,
    search: Annotated[
        list[str] | None,
        typer.Option(
            metavar="OPTION=VALUES",
            help="What an option is searched in: encoder=gcn,mlp or latent_dim=16..64 or encoder__dropout=0..0.5; may "
            "be repeated.  [default: all parts, and each option in the range that it has]",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Search for the parts and options that predict the validation links best; test links are not looked at.

    Options that are given have one value in all trials. The best are written to OUT/best.json, for vgae train --config.
    """
    require_optuna()
    choose_device(config.device)
    wishes = Wishes({name: config.value_of(name) for name in searching.given[Config]}, _narrowed(search or []))
    opened = open_graph(graph, tables, split.time)
    folder = SearchFolder(
        output.out or Path("runs") / f"{Path(opened.name).stem}-tune", output.overwrite, output.resume
    )
    folder.require_usable()
    made = split.apply(opened)
    lines = [f"{opened.name}: {opened.graph} · {count(len(made.val.links), 'validation link')}"]
    if 0 < len(made.val.links) < ENOUGH_TO_STOP:
        lines.append(f"fewer than {ENOUGH_TO_STOP} validation links: differences between trials are mostly chance")
    with _resume_hint(folder, searching), ScreenReporter(searching, folder, lines, quiet=as_json) as reporter:
        result = run_search(made, searching, wishes, folder, reporter)
    train = ["vgae", "train", graph, *as_arguments(split), *as_arguments(tables), "--config", str(folder.path / BEST)]
    best = result.best  # which says why, if there is none
    if as_json:
        _draw(result, folder.path)
        print_json(_summary(result, folder.path) | {"train": shell_line(train)})
        return
    titles, rows = best_rows(result)
    print_table(titles, rows, numbers=titles[1:-1])
    print_line(_sentence(result, best))
    written = [TRIALS, BEST, *_draw(result, folder.path)]
    note(f"saved in {folder.path}: {', '.join(written)}")
    print_line(f"To train it, run: {shell_line(train)}")


def _narrowed(texts: list[str]) -> dict[str, str]:
    """What options are searched in, by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, values = text.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise InputError(f"search: {text!r} is not understood; write encoder=gcn,mlp or latent_dim=16..64.")
        if name in found:
            raise InputError(f"search: {name} is given twice.")
        found[name] = values.strip()
    return found


def _sentence(result: SearchResult, best: TrialResult) -> str:
    """How the search went, and what came out."""
    counts = result.counts()
    went = f"{count(len(result.trials), 'trial')}: {counts['complete']} complete, {counts['pruned']} stopped early, "
    went += f"{counts['failed']} failed"
    paper = result.preset("paper")
    beside = ""
    if paper is not None and paper.score is not None:
        beside = f", {100 * ((best.score or 0) - paper.score):+.1f} compared with the preset paper"
    mean = result.mean(best)
    how = "" if mean is None else f" and {ROUNDS} other sets of links (mean {100 * mean:.1f})"
    score = f"{100 * (best.score or 0):.1f} on the validation links"
    return f"{went}. Best by validation {title_of(result.by)}{how}: trial {best.number}, {score}{beside}."


def _summary(result: SearchResult, folder: Path) -> dict[str, Any]:
    best = result.best
    presets = {each.preset: each.metrics for each in result.trials if each.preset is not None}
    return {
        "out": str(folder),
        "by": result.by,
        "trials": len(result.trials),
        **result.counts(),
        "best": {
            "trial": best.number,
            "validation": best.metrics,
            "mean": result.mean(best),
            "seconds": best.outcome.seconds,
            "options": best.config.to_json(),
        },
        "presets": presets,
        "importance": result.importances,
        "config": str(folder / BEST),
    }


def _draw(result: SearchResult, folder: Path) -> list[str]:
    """Draw the pictures that can be drawn; their names."""
    importances = result.importances
    try:
        save_figure(history_figure(result), folder / PICTURES[0])
        if importances:
            save_figure(importance_figure(importances), folder / PICTURES[1])
    except InputError as error:  # no matplotlib, which is no reason to lose a search
        note(f"no pictures: {error}")
        return []
    return list(PICTURES if importances else PICTURES[:1])


class ScreenReporter(Bar, SearchReporter):
    """Shows the progress of a search: on a terminal a bar, else a line for each trial that is the best so far."""

    def __init__(self, options: SearchOptions, folder: SearchFolder, first_lines: list[str], *, quiet: bool) -> None:
        self.by, self.folder, self.first_lines, self.quiet = title_of(options.by), folder, first_lines, quiet
        self.best, self.compared = -1.0, False
        self.console = progress_console(quiet=quiet)
        status = TextColumn("trials{task.fields[status]}", markup=False)
        self.begin_bar(options.trials, MofNCompleteColumn(), status, TimeRemainingColumn(), console=self.console)

    def on_begin(self, done: list[TrialResult], total: int, workers: int) -> None:
        """Say what is searched, and where an earlier search is continued."""
        if self.quiet:
            return
        for line in self.first_lines:
            note(line)
        if done:
            note(f"continuing after {count(len(done), 'trial')} of {total}")
        elif self.folder.resume:
            note(f"{self.folder.path}: nothing to resume, so the search starts from the beginning")
        note(f"searching: {count(total, 'trial')}, {workers} at a time")
        self.best = max((each.score or 0.0 for each in done if each.state == COMPLETE), default=-1.0)
        self.bar.reset(self.task, completed=len(done))

    def on_trial(self, result: SearchResult) -> None:
        """Move the bar."""
        ranked = result.ranked()
        status = f" · best {self.by} {100 * (ranked[0].score or 0):.1f} (trial {ranked[0].number})" if ranked else ""
        self.bar.update(self.task, completed=len(result.trials), status=status)
        if ranked and (ranked[0].score or 0.0) > self.best:
            self.best = ranked[0].score or 0.0
            if self.console.quiet and not self.quiet:
                note(f"trial {ranked[0].number}: validation {self.by} {100 * self.best:.1f}, the best so far")

    def on_final(self, left: int) -> None:
        """Say that the best are compared once more."""
        words = "the best trials again, on other links"
        if not self.compared and not self.quiet and self.console.quiet:
            note(f"comparing {words}: {count(left, 'training')}")
        self.compared = True
        self.bar.update(self.task, status=f" · {words}: {left} left")


@contextmanager
def _resume_hint(folder: SearchFolder, options: SearchOptions) -> Iterator[None]:
    """On Ctrl-C, say which command continues."""
    try:
        yield
    except KeyboardInterrupt:
        if not folder.has_search:
            raise StoppedError("Interrupted; nothing was saved.") from None
        number = folder.stored
        stored = f"after {number} of {count(options.trials, 'trial')}" if number else "before a trial ended"
        raise StoppedError(
            f"Interrupted {stored}; the search is stored in {folder.path}. To continue, run: {same_command('--resume')}"
        ) from None
