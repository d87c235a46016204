"""`vgae train`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from vgae.cli.exits import same_command
from vgae.cli.opening import OpenedGraph, SplitOptions, open_graph
from vgae.cli.options import PICTURES, GraphName, Json, TableOptions
from vgae.cli.summary import paper_scores, run_summary
from vgae.errors import StoppedError
from vgae.estimators.base import ESTIMATORS
from vgae.graph.split import LinkSplit
from vgae.options import Options, option
from vgae.report.console import print_json, print_scores
from vgae.runs.checkpoint import has_checkpoint, kept_iteration
from vgae.runs.folder import Stage, finished_run, new_run_folder, require_same_run, stage_of
from vgae.runs.run import CHECKPOINT, CONFIG, Run
from vgae.screen import note, visible
from vgae.train.config import Config, choose_device

PATIENCE = 600.0  # seconds that a finished run waits for room on the disk


@dataclass(frozen=True)
class FolderOptions(Options):
    """Where a run is saved, and what may become of what is there already."""

    out: Path | None = option(None, convert=Path, help="Run folder.  [default: runs/GRAPH-MODEL]")
    overwrite: bool = option(False, help="Replace the run in that folder.")
    resume: bool = option(False, help="Continue an interrupted training in that folder.")
    checkpoint_every: float | None = option(
        None, help="Seconds between checkpoints; 0 saves one after every iteration.  [default: 1% of the time]"
    )


def train(
    graph: GraphName,
    config: Config,
    split: SplitOptions,
    output: FolderOptions,
    tables: TableOptions,
    as_json: Json = False,
) -> None:
    """Train a model on a graph, score it and save it."""
    choose_device(config.device)
    opened = open_graph(graph, tables)
    links = split.apply(opened.graph)
    suffix = "" if config.features else "-no-features"
    folder = output.out or Path("runs") / f"{Path(opened.name).stem}-{config.model}{suffix}"
    with resume_hint(folder):
        run = _make_run(folder, opened, links, config, output, quiet=as_json)
        if as_json:
            print_json(run_summary(folder, run))
        else:
            print_scores(run.metrics, paper_scores(run), ("auc", "ap"))


def _make_run(
    folder: Path, opened: OpenedGraph, split: LinkSplit, config: Config, output: FolderOptions, *, quiet: bool
) -> Run:
    """Train and save the run, or read it where it is complete and was to be resumed."""
    say: Callable[[str], None] = _ignore if quiet else note
    run = finished_run(folder) if output.resume and not output.overwrite else None
    if run is not None:
        require_same_run(folder, run, config, split)
        say(f"{folder}: this run is complete; there is nothing to resume")
        return run
    with new_run_folder(folder, overwrite=output.overwrite, resume=output.resume) as place:
        say(f"{opened.name}: {opened.graph} · {opened.graph.cleaning}")
        if output.resume and not has_checkpoint(place.checkpoint):
            say(f"{folder}: nothing to resume, so training starts from the beginning")
        parameters = asdict(config)
        estimator = ESTIMATORS[parameters.pop("model")](**parameters, progress=not quiet)
        validation = split.val if len(split.val) else None
        estimator.fit(split.train, validation=validation, checkpoint=place, checkpoint_every=output.checkpoint_every)
        run = estimator.to_run(split, dataset=visible(opened.name), recipe=opened.recipe)
        place.write(run, patience=PATIENCE, tell=note)
    say(f"trained {config.model.upper()} in {run.facts.seconds:.1f} s, saved in {folder}")
    for picture in (folder / f"{kind}.png" for kind in PICTURES):
        if picture.exists():
            say(f"{picture}: this picture is of the previous run; vgae plot draws it again")
    return run


def _ignore(_: str) -> None:
    """What `note` becomes where only JSON is wanted."""


@contextmanager
def resume_hint(folder: Path) -> Iterator[None]:
    """On Ctrl-C, say what the run folder holds and, if the training can be continued, which command does."""
    before = _identity(folder / CONFIG)
    try:
        yield
    except KeyboardInterrupt:
        if stage_of(folder) is Stage.UNFINISHED:
            iteration = kept_iteration(folder / CHECKPOINT)
            when = "" if iteration is None else f" after iteration {iteration}"
            words = f"Interrupted{when}. To continue, run: {same_command('--resume')}"
        elif _identity(folder / CONFIG) != before:
            words = f"Interrupted, but the run is complete in {folder}."
        elif before is not None:
            words = f"Interrupted; nothing was saved, and the run in {folder} is as it was."
        else:
            words = "Interrupted; nothing was saved."
        raise StoppedError(words) from None


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file has a name: another one after it was replaced."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns
