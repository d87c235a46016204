"""`vgae train --model stack` and `vgae plan --model stack`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from vgae.cli.asked import AskedGraph
from vgae.cli.opening import SplitOptions, open_graph
from vgae.cli.options import GraphName, Json, TableOptions, given_options, same_option
from vgae.cli.preset import scaled
from vgae.cli.summary import run_summary
from vgae.cli.train import FolderOptions, FolderReporter, JudgingOptions, QuietReporter, resume_hint
from vgae.cli.verdict import print_verdict
from vgae.evaluation.all_pairs import FIRST_STAGE_RECALL
from vgae.evaluation.evaluate import linked_metrics, score_held_out
from vgae.evaluation.held_out import have_links
from vgae.graph.graph import Graph
from vgae.io.catalog import DATASETS
from vgae.machine import describe_machine
from vgae.objective.cost import duration
from vgae.options import Options, option
from vgae.report.console import print_json, print_scores, print_table
from vgae.report.verdict import Hints, Verdict, judge
from vgae.runs.files import CHECKPOINT
from vgae.runs.make import Destination, Source
from vgae.runs.make_stack import StackReporter, make_stack_run
from vgae.runs.stack_progress import StackBar
from vgae.runs.stack_run import StackRun
from vgae.screen import note, print_line, visible
from vgae.stack.config import StackConfig
from vgae.train.config import Config, choose_device
from vgae.train.job import Job
from vgae.train.plan import plan_training
from vgae.train.presets import TUNED_NORMALIZATION
from vgae.words import count

CANNOT_TELL = (
    "the links are directed, but a stack has one score for both ways: it cannot tell which way a link goes, and its "
    "AUC of links against reversed links is 50 by construction"
)
ModelName = Annotated[str, typer.Option("--model", help="stack; gae and vgae have other options (vgae train --help).")]


@dataclass(frozen=True)
class StackFolderOptions(Options):
    """Where a run is saved, and what may become of what is there already."""

    out: Path | None = option(None, convert=Path, help="Run folder.  [default: runs/GRAPH-stack]")
    overwrite: bool = same_option(FolderOptions, "overwrite")
    resume: bool = option(False, help="Continue an interrupted training in that folder, after its last fold.")


@dataclass(frozen=True)
class StackJudgingOptions(Options):
    """How a stack is judged."""

    verdict: bool = same_option(JudgingOptions, "verdict")


@dataclass(frozen=True, eq=False, kw_only=True)
class AskedStack(AskedGraph):
    """What the training of a stack was asked for."""

    config: StackConfig

    def scaled(self) -> AskedStack:
        """Features of a file with rows of unit length, as for other models, unless it was said how to scale them."""
        own = self.graph.lower() not in DATASETS
        if not (own and self.has_features and self.config.features and self.tables.normalize is None):
            return self
        opened, split = scaled(self.opened, self.split)
        tables = replace(self.tables, normalize=TUNED_NORMALIZATION)
        remark = f"features normalized by {TUNED_NORMALIZATION}; --normalize none takes them as they are"
        return replace(self, opened=opened, split=split, tables=tables, remarks=(remark,))

    def hints(self) -> Hints:
        """What to run next."""
        return self.hints_for(uses_features=self.config.features)


def train(
    graph: GraphName,
    config: StackConfig,
    split: SplitOptions,
    output: StackFolderOptions,
    judging: StackJudgingOptions,
    tables: TableOptions,
    model: ModelName = "stack",
    as_json: Json = False,
) -> None:
    """Train a stack on a graph, score it, save it, and say how it compares."""
    choose_device(config.device)
    opened = open_graph(graph, tables, split.time)
    asked = AskedStack(graph, split, tables, opened, split.apply(opened), config=config).scaled()
    suffix = "" if config.features else "-no-features"
    folder = output.out or Path("runs") / f"{asked.stem}-{model}{suffix}"
    to = Destination(folder, output.overwrite, output.resume)
    source = Source(asked.split, visible(opened.name), asked.opened.recipe)
    with resume_hint(folder, after_folds):
        run = make_stack_run(source, config, to, QuietStack()) if as_json else _on_screen(source, asked, to)
        linked = linked_scores(run)
        if not as_json:
            print_scores(run.metrics, None, ("auc", "ap"))
            print_linked(run, linked)
        found = judge_stack(run, asked) if judging.verdict else None
    if as_json:
        print_json(stack_summary(folder, run, linked, found))
    elif found:
        print_verdict(found)


def plan(
    graph: GraphName,
    config: StackConfig,
    split: SplitOptions,
    tables: TableOptions,
    model: ModelName = "stack",
    as_json: Json = False,
) -> None:
    """Estimate what the auto-encoders of a stack would cost."""
    del model
    choose_device(config.device)
    opened = open_graph(graph, tables, split.time)
    planned = config.view(split.apply(opened).train if given_options(split) else opened.graph)
    trainings = config.base_seeds * (config.folds + 1)
    bases = {base.text: base.config for base in config.bases_for(planned)}
    costs = {text: _cost(planned, each) for text, each in bases.items() if each is not None}
    total = trainings * sum(seconds for seconds, _ in costs.values())
    if as_json:
        each = {name: {"seconds": seconds, "bytes": memory} for name, (seconds, memory) in costs.items()}
        print_json({"dataset": opened.name, "trainings_of_each": trainings, "bases": each, "training_seconds": total})
        return
    note(f"{opened.name}: {planned} · on {describe_machine()}")
    titles = ("base", "one training", count(trainings, "training"), "memory")
    rows = [
        (name, duration(seconds), duration(trainings * seconds), f"{memory / 1e9:.2f} GB")
        for name, (seconds, memory) in costs.items()
    ]
    if rows:
        print_table(titles, rows, numbers=titles[1:])
    print_line(
        f"About {duration(total)} for the auto-encoders, {count(config.folds, 'fold')} and the whole graph, "
        f"{count(config.base_seeds, 'seed')} each; similarities, the meta-model and the calibration come on top, and "
        "may take as long again."
    )


def _cost(graph: Graph, config: Config) -> tuple[float, float]:
    """Seconds and bytes of one training of an auto-encoder, with the objective that it will have."""
    found = plan_training(Job(graph, config))
    objective = found.choice.objective if config.objective == "auto" else config.objective
    (cost,) = (each for each in found.costs if (each.objective, each.batch_size) == (objective, config.batch_size))
    return config.iterations * cost.seconds, cost.memory.largest


class QuietStack(QuietReporter, StackReporter):
    """Prints only what a person has to do something about."""


class StackScreen(StackBar, FolderReporter, StackReporter):
    """Shows the progress of a stack, and prints what happens to its folder."""

    def __init__(self, bases: Sequence[str], folds: int, to: Destination, first_lines: Sequence[str]) -> None:
        super().__init__(bases, folds)
        self.to, self.first_lines = to, first_lines


def _on_screen(source: Source, asked: AskedStack, to: Destination) -> StackRun:
    """Train, and show the progress."""
    config, graph = asked.config, asked.opened.graph
    bases = [base.text for base in config.bases_for(config.view(asked.split.train))]
    lines = [
        f"{asked.opened.name}: {graph} · {graph.cleaning}",
        *asked.remarks,
        *([CANNOT_TELL] if graph.directed else []),
        f"stack of {', '.join(bases)}; {count(config.folds, 'fold')}, {count(config.base_seeds, 'seed')} each",
    ]
    with StackScreen(bases, config.folds, to, lines) as reporter:
        run = make_stack_run(source, config, to, reporter)
    if reporter.trained:
        note(f"trained a stack in {run.facts.seconds:.1f} s, saved in {to.folder}")
    return run


def after_folds(folder: Path) -> str:
    """How far an interrupted stack has come."""
    return f" after {count(len(list((folder / CHECKPOINT).glob('fold-*.safetensors'))), 'fold')}"


def judge_stack(run: StackRun, asked: AskedStack) -> Verdict:
    """The verdict on a run of `vgae train --model stack`."""
    return judge("stack", run.stack, asked.split, {}, asked.hints())


def linked_scores(run: StackRun) -> dict[str, float]:
    """AUC and AP without the pairs of nodes that have no training links, of which it is known that they have others."""
    held_out = run.split.test or run.split.val
    if not (len(held_out.links) and len(held_out.non_links)):
        return {}
    return linked_metrics(score_held_out(run, held_out), held_out, run.split.train)


def print_linked(run: StackRun, found: dict[str, float]) -> None:
    """One line on what the protocol gives away; none where no pair is left out."""
    held_out = run.split.test or run.split.val
    number = int(have_links(run.split.train, held_out.pairs).sum())
    if number < len(held_out) and "auc_linked" in found:
        print_line(
            f"On the {number:,} of {len(held_out):,} pairs whose nodes all have training links (a node without any "
            f"gives away that it has a held-out one): AUC {100 * found['auc_linked']:.1f}, "
            f"AP {100 * found['ap_linked']:.1f}."
        )


def stack_summary(folder: Path, run: StackRun, linked: dict[str, float], found: Verdict | None) -> dict[str, Any]:
    """What a stack is and how well it does, for JSON; metrics that only stacks have are beside the others."""
    summary = run_summary(folder, run) | {"verdict": None if found is None else found.to_json()}
    key = "test" if run.split.test else "validation"
    if summary[key] is not None:
        recall = {} if found is None else found.comparison.model
        summary[key] |= linked | {name: value for name, value in recall.items() if name == FIRST_STAGE_RECALL}
    return summary
