"""`vgae train`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from vgae.callbacks import check_target
from vgae.cli.exits import same_command
from vgae.cli.opening import SplitOptions, can_open_in_parts, open_graph, open_in_parts
from vgae.cli.options import PICTURES, GraphName, Json, TableOptions
from vgae.cli.preset import PresetOptions, settle
from vgae.cli.processes import ProcessOptions
from vgae.cli.seeds import train_seeds
from vgae.cli.summary import paper_scores, run_summary
from vgae.cli.verdict import Asked, judge_run, print_verdict
from vgae.errors import StoppedError
from vgae.options import Options, option
from vgae.parallel.environment import num_restarts
from vgae.report.collapse import collapse_sentence
from vgae.report.console import print_json, print_scores
from vgae.runs.checkpoint import check_pause, saved_iteration
from vgae.runs.files import CHECKPOINT
from vgae.runs.folder import Stage, stage_of
from vgae.runs.make import Destination, Reporter, Source, make_run
from vgae.runs.make_together import follow_run, lead_run, require_same_training
from vgae.runs.opened import CONFIG
from vgae.runs.run import Run
from vgae.screen import note, print_line, visible
from vgae.train.config import Config, choose_device
from vgae.train.job import Job
from vgae.train.named import NAMED
from vgae.train.progress import ProgressBar

if TYPE_CHECKING:
    from vgae.parallel.group import Group


MakeRun = Callable[[Source, Config, Destination, Reporter], Run]


@dataclass(frozen=True)
class FolderOptions(Options):
    """Where a run is saved, and what may become of what is there already."""

    out: Path | None = option(
        None, convert=Path, help="Run folder.  [default: runs/GRAPH-MODEL, or runs/GRAPH-MODEL-PRESET]"
    )
    overwrite: bool = option(False, help="Replace the run in that folder.")
    resume: bool = option(False, help="Continue an interrupted training in that folder.")
    checkpoint_every: float | None = option(
        None, help="Seconds between checkpoints; 0 saves one after every iteration.  [default: 1% of the time]"
    )
    log_to: str | None = option(
        None,
        convert=check_target,
        help="Another program to follow the training: tensorboard:FOLDER, mlflow or mlflow:EXPERIMENT.",
    )


@dataclass(frozen=True)
class MakingOptions(ProcessOptions, FolderOptions):
    """Where a run is saved, and how many processes make it."""


@dataclass(frozen=True)
class JudgingOptions(Options):
    """How a training is judged."""

    seeds: int | None = option(
        None,
        least=1,
        most=1000,
        help="Train from so many seeds (--seed, the next, …) on the same split, into OUT/seed-N; "
        "gives means and standard errors.  [default: one training]",
    )
    verdict: bool = option(True, flag="--no-verdict", help="Leave out the comparison with cheap heuristics.")
    compare: bool = option(
        False, help="Train the same model without features and with scaled ones too, to see whether features help."
    )


def train(
    graph: GraphName,
    config: Config,
    preset: PresetOptions,
    split: SplitOptions,
    output: MakingOptions,
    judging: JudgingOptions,
    tables: TableOptions,
    as_json: Json = False,
) -> None:
    """Train a model on a graph, score it, save it, and say how it compares.

    For a file of your own, options that are not given have values tuned on real graphs; --preset paper takes the
    defaults below.
    """
    config = preset.apply_file(config)
    choose_device(config.device)
    check_pause(output.checkpoint_every)
    output.require_alone(
        seeds=judging.seeds is not None, compare=judging.compare, batch_size=config.batch_size is not None
    )
    output.run(partial(_train, graph, config, preset, split, output, judging, tables, as_json), config.device)


def _train(
    graph: str,
    config: Config,
    preset: PresetOptions,
    split: SplitOptions,
    output: FolderOptions,
    judging: JudgingOptions,
    tables: TableOptions,
    as_json: bool,
    group: Group | None,
) -> None:
    """Train in this process, or as one of a group."""
    several = group is not None and group.size > 1 and _in_parts(graph, config, preset, split, tables)
    part = open_in_parts(graph, tables, group) if several and group is not None else None
    opened = part or open_graph(graph, tables, split.time)
    made = split.apply(opened) if part is None else split.apply_in_parts(part)
    asked = Asked(graph, split, tables, opened, made, config=config)
    to = _destination(_folder(asked, output, preset, judging), output, group)
    if group is not None:
        require_same_training(group, Job.of(asked.split.train, config, asked.split.val or None))
    settled = settle(asked, preset, to, quiet=as_json, group=group)
    asked = settled.asked
    source = Source(asked.split, visible(opened.name), asked.opened.recipe)
    if group is not None and not group.is_first:
        follow_run(group, source, asked.config, to)
        return
    if judging.compare:
        asked.require_features()
    make = make_run if group is None else partial(lead_run, group)
    train_one = partial(_quietly if as_json else _on_screen, make)
    if judging.seeds is not None:
        _train_seeds(asked, to, judging, as_json, lambda *each: train_one(source, asked, *each))
        return
    with resume_hint(to.folder):
        run = train_one(source, asked, asked.config, to)
        asked = replace(asked, split=run.split)  # which is whole where each process had a part
        if not as_json:
            print_scores(run.metrics, paper_scores(run), ("auc", "ap"))
        found = judge_run(run, asked, with_variants=judging.compare) if judging.verdict or judging.compare else None
    if as_json:
        print_json(run_summary(to.folder, run) | settled.to_json() | {"verdict": found.to_json() if found else None})
    elif found:
        print_verdict(found)
    elif (words := collapse_sentence(run)) is not None:
        print_line(words)


def _in_parts(graph: str, config: Config, preset: PresetOptions, split: SplitOptions, tables: TableOptions) -> bool:
    """Whether each process of a group reads a part of the graph, which not every training can do with."""
    masks = config.mask_links or NAMED.get(preset.name_for(graph), {}).get("mask_links")
    return can_open_in_parts(graph, tables) and split.in_parts and not masks and not config.soft_labels


def _folder(asked: Asked, output: FolderOptions, preset: PresetOptions, judging: JudgingOptions) -> Path:
    suffix = "" if asked.config.features else "-no-features"
    seeds = "" if judging.seeds is None else "-seeds"
    return output.out or Path("runs") / f"{asked.stem}-{asked.config.model}{preset.suffix}{suffix}{seeds}"


def _destination(folder: Path, output: FolderOptions, group: Group | None) -> Destination:
    """Where the run goes; processes that torchrun has started again continue what they had begun."""
    again = group is not None and group.any(num_restarts() > 0)
    return Destination(folder, output.overwrite, output.resume or again, output.checkpoint_every, output.log_to)


def _quietly(make: MakeRun, source: Source, asked: Asked, config: Config, to: Destination) -> Run:
    """Train, and print nothing."""
    del asked
    return make(source, config, to, QuietReporter())


def _on_screen(make: MakeRun, source: Source, asked: Asked, config: Config, to: Destination) -> Run:
    """Train, and show the progress."""
    graph = asked.opened.graph
    cannot_tell = Job(config.view(asked.split.train), config).cannot_tell
    lines = [
        f"{asked.opened.name}: {graph} · {graph.cleaning}",
        *asked.remarks,
        *([cannot_tell] if cannot_tell else []),
    ]
    with ScreenReporter(config, to, lines) as reporter:
        run = make(source, config, to, reporter)
    if reporter.trained:
        note(f"trained {config.model.upper()} in {run.facts.seconds:.1f} s, saved in {to.folder}")
        for picture in (to.folder / f"{kind}.png" for kind in PICTURES):
            if picture.exists():
                note(f"{picture}: this picture is of the previous run; vgae plot draws it again")
    return run


def _train_seeds(
    asked: Asked,
    to: Destination,
    judging: JudgingOptions,
    as_json: bool,
    train_one: Callable[[Config, Destination], Run],
) -> None:
    """Train from several seeds; the verdict is on the run that is best by validation."""
    found = train_seeds(judging.seeds or 1, asked.config, to, train_one)
    if not as_json:
        found.print()
    best = found.runs[found.best]
    verdict = judge_run(best, asked, with_variants=judging.compare) if judging.verdict or judging.compare else None
    if as_json:
        runs = [run_summary(folder, run) for folder, run in found.runs.items()]
        print_json(found.to_json() | {"runs": runs, "verdict": verdict.to_json() if verdict else None})
    elif verdict:
        print_verdict(verdict)


class QuietReporter(Reporter):
    """Prints only what a person has to do something about."""

    def on_waiting(self, text: str) -> None:
        """Say why the run is not saved yet."""
        note(text)


class FolderReporter(QuietReporter):
    """Prints what happens to the folder of a run; lines on what the training is about come first."""

    to: Destination
    first_lines: Sequence[str]
    trained = False  # whether it was trained now, and not complete before

    def on_ready(self, *, fresh: bool) -> None:
        """Say what the training is about and, if it was to be resumed, that there is nothing to resume."""
        self.trained = True
        for line in self.first_lines:
            note(line)
        if self.to.resume and fresh:
            note(f"{self.to.folder}: nothing to resume, so training starts from the beginning")

    def on_complete(self, folder: Path) -> None:
        """Say that there is nothing to do."""
        note(f"{folder}: this run is complete; there is nothing to resume")


class ScreenReporter(ProgressBar, FolderReporter):
    """Shows the progress of a training, and prints what happens to its folder."""

    def __init__(self, config: Config, to: Destination, first_lines: Sequence[str]) -> None:
        super().__init__(config.iterations)
        self.to, self.first_lines = to, first_lines


def after_iteration(folder: Path) -> str:
    """How far a training has come that is not finished, in words; empty where that is not known."""
    iteration = saved_iteration(folder / CHECKPOINT)
    return "" if iteration is None else f" after iteration {iteration}"


@contextmanager
def resume_hint(folder: Path, how_far: Callable[[Path], str] = after_iteration) -> Iterator[None]:
    """On Ctrl-C, say what the run folder holds and, if the training can be continued, which command does."""
    before = _identity(folder / CONFIG)
    try:
        yield
    except KeyboardInterrupt:
        if stage_of(folder) is Stage.UNFINISHED:
            words = f"Interrupted{how_far(folder)}. To continue, run: {same_command('--resume')}"
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
