"""A run made by its parts: what `vgae train` does, with the moments in between at hand; and what is small to make."""

from pathlib import Path
from typing import Any

import vgae
from vgae.runs.folder import RunWriter
from vgae.runs.make import Destination, Source, make_run
from vgae.runs.opened import FILES
from vgae.runs.run import Run
from vgae.train.callbacks import Warnings
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

NAMES = ("config.json", *FILES)
SETTINGS: dict[str, Any] = {"iterations": 3, "eval_every": 1, "hidden_dim": 4, "latent_dim": 2, "device": "cpu"}
CONFIG = Config(**SETTINGS)


def small_split() -> vgae.LinkSplit:
    """Thirty nodes in two blocks, with features, validation and test pairs."""
    return vgae.split_links(vgae.stochastic_block_model(30, 2, feature_dim=5, seed=5), val=0.2, test=0.2, seed=2)


def model(seed: int = 0) -> vgae.VGAE:
    """One that is trained in a moment."""
    return vgae.VGAE(**SETTINGS, seed=seed)


def content(folder: Path) -> dict[str, bytes]:
    """All files in a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def make(folder: Path, split: vgae.LinkSplit, config: Config, *, overwrite: bool = False, resume: bool = False) -> Run:
    """A whole run, with a checkpoint after every iteration."""
    to = Destination(folder, overwrite=overwrite, resume=resume, checkpoint_every=0)
    return make_run(Source(split), config, to)


def train_in(writer: RunWriter, split: vgae.LinkSplit, config: Config, *, every: float | None = 0) -> Run:
    """A training with checkpoints in the folder of a writer; its run is not written yet."""
    job, callback = Job.of(split.train, config, split.val), Warnings()
    with writer.checkpoints(job, every=every, callback=callback) as checkpointer:
        trained = train(job, callback, checkpointer)
    return Run.of(trained).scored_on(split)
