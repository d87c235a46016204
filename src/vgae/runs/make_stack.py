"""Stacks as `vgae train --model stack` fits them: on a split, into a run folder, continued fold by fold."""

from __future__ import annotations

import time
from pathlib import Path

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit
from vgae.runs.checkpoint import has_checkpoint
from vgae.runs.files import read_any_run
from vgae.runs.fold_store import FolderFolds, StackFingerprint
from vgae.runs.folder import is_finished, new_run_folder, require_no_other
from vgae.runs.make import PATIENCE, Destination, Reporter, Source
from vgae.runs.stack_run import StackRun
from vgae.stack.config import StackConfig
from vgae.stack.fit import Progress, fit_stack
from vgae.train.job import Job
from vgae.train.plan import require_room


class StackReporter(Reporter, Progress):
    """Receives what happens while a stack is fitted, and to its folder; this one ignores all but warnings."""


def make_stack_run(
    source: Source, config: StackConfig, to: Destination, progress: StackReporter | None = None
) -> StackRun:
    """Fit a stack and save it as a run; a complete run of the same stack is not fitted again on `resume`."""
    progress = progress or StackReporter()
    split = source.split
    run = finished_stack(to.folder) if to.resume and not to.overwrite else None
    if run is not None:
        require_same_stack(to.folder, run, config, split)
        progress.on_complete(to.folder)
        return run
    fingerprint = StackFingerprint.of(split.train, config)
    require_room_for(config, split.train)
    with new_run_folder(to.folder, overwrite=to.overwrite, resume=to.resume) as writer:
        progress.on_ready(fresh=not has_checkpoint(writer.checkpoint))
        started = time.perf_counter()
        with FolderFolds(writer.checkpoint, fingerprint, callback=progress, is_locked=True) as store:
            writer.checkpointer = store
            stack = fit_stack(split.train, config, store, progress)
            seconds = store.seconds_before + time.perf_counter() - started
            made = StackRun.of(stack, split, seconds=seconds, dataset=source.dataset, recipe=source.recipe)
            run = made.calibrated()
        writer.write(run, patience=PATIENCE, report=progress.on_waiting)
    return run


def finished_stack(folder: Path) -> StackRun | None:
    """The stack in a folder if it is complete and nothing else is under way."""
    if not is_finished(folder):
        return None
    run = read_any_run(folder)
    if not isinstance(run, StackRun):
        raise InputError(
            f"{folder}: the run there is complete, but not of a stack; choose another folder, or --overwrite it."
        )
    return run


def require_same_stack(folder: Path, run: StackRun, config: StackConfig, split: LinkSplit) -> None:
    """Refuse to take a complete stack for one of another config, graph or split."""
    found = list(run.config.differences(config))
    graph = split.train if config.features or split.train.features is None else split.train.without_features()
    if run.split.content_hash != split.content_hash or run.facts.graph_hash != graph.content_hash:
        found.append("another graph or another split of it")
    require_no_other(folder, found)


def require_room_for(config: StackConfig, graph: Graph) -> None:
    """Refuse a stack of which a base does not fit into the memory there is."""
    seen = config.view(graph)
    for base in config.bases_for(seen):
        if base.config is not None:
            require_room(Job.of(seen, base.config))
