"""A run made by its parts: what `vgae train` does, with the moments in between at hand."""

from pathlib import Path

import vgae
from vgae.runs.folder import RunWriter
from vgae.runs.make import Destination, Source, make_run
from vgae.runs.run import Run
from vgae.train.callbacks import Callback
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train


def make(folder: Path, split: vgae.LinkSplit, config: Config, *, overwrite: bool = False, resume: bool = False) -> Run:
    """A whole run, with a checkpoint after every iteration."""
    to = Destination(folder, overwrite=overwrite, resume=resume, checkpoint_every=0)
    return make_run(Source(split), config, to)


def train_in(writer: RunWriter, split: vgae.LinkSplit, config: Config, *, every: float | None = 0) -> Run:
    """A training with checkpoints in the folder of a writer; its run is not written yet."""
    job, callback = Job.of(split.train, config, split.val), Callback()
    with writer.checkpoints(job, every=every, callback=callback) as checkpointer:
        trained = train(job, callback, checkpointer)
    return Run.of(trained).scored_on(split)
