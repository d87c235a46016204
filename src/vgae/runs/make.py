"""Training as `vgae train` does it: on a split, into a run folder, with checkpoints, and resumed where it was left."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vgae.callbacks import Tracker, tracker_for
from vgae.graph.split import LinkSplit
from vgae.runs.checkpoint import check_pause, has_checkpoint
from vgae.runs.folder import finished_run, new_run_folder, require_same_run
from vgae.runs.run import Run
from vgae.train.callbacks import Callbacks, Warnings
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.plan import fitted, require_room

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe

PATIENCE = 600.0  # seconds that a finished run waits for room on the disk


@dataclass(frozen=True)
class Destination:
    """The folder of a run, and what may be done to what is there already."""

    folder: Path
    overwrite: bool = False
    resume: bool = False
    checkpoint_every: float | None = None  # seconds; None: as often as costs one percent of the time
    log_to: str | None = None  # which other program follows the training, as --log-to has it
    title: str | None = None  # what that program calls it; None: the folder's name

    def __post_init__(self) -> None:
        check_pause(self.checkpoint_every)

    @property
    def trackers(self) -> list[Tracker]:
        """What else follows the training."""
        return [] if self.log_to is None else [tracker_for(self.log_to, self.title or self.folder.name)]


@dataclass(frozen=True, eq=False)
class Source:
    """The graph that a training is about, split, with the name it is known by and the recipe of its features."""

    split: LinkSplit
    dataset: str | None = None
    recipe: FeatureRecipe | None = None


class Reporter(Warnings):
    """A callback that also receives what happens to the folder; this one ignores it."""

    def on_ready(self, *, fresh: bool) -> None:
        """The folder can be written, and training begins; `fresh` says that there is nothing to resume in it."""

    def on_complete(self, folder: Path) -> None:
        """The run in the folder is complete already, and is returned as it is."""

    def on_waiting(self, text: str) -> None:
        """The finished run cannot be written yet; it is tried again."""


def make_run(source: Source, config: Config, to: Destination, reporter: Reporter | None = None) -> Run:
    """Train a model and save it as a run; a complete run of the same training is not trained again on `resume`."""
    reporter = reporter or Reporter()
    split = source.split
    run = finished_run(to.folder) if to.resume and not to.overwrite else None
    if run is not None:
        require_same_run(to.folder, run, config, split)
        reporter.on_complete(to.folder)
        return run
    callback = Callbacks(reporter, *to.trackers)
    with new_run_folder(to.folder, overwrite=to.overwrite, resume=to.resume) as writer:
        reporter.on_ready(fresh=not has_checkpoint(writer.checkpoint))
        job = fitted(Job.of(split.train, config, split.val or None), checkpoints=True)
        require_room(job, checkpoints=True)
        with writer.checkpoints(job, every=to.checkpoint_every, callback=reporter) as checkpointer:
            trained = train(job, callback, checkpointer)
        run = Run.of(trained, dataset=source.dataset, recipe=source.recipe).scored_on(split)
        writer.write(run, patience=PATIENCE, report=reporter.on_waiting)
    return run
