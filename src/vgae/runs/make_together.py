"""Training in a group of processes, into one run folder.

The first process leads: it holds the folder's lock, says what happens, and writes the run. The others follow: they
train their part and write their part of each checkpoint. Both ask the group the same things in the same order.
"""

from __future__ import annotations

from dataclasses import replace

from vgae.errors import InputError
from vgae.parallel.agreement import gather_json
from vgae.parallel.group import Group
from vgae.parallel.splitting import PartSplit
from vgae.runs.checkpoint import has_checkpoint
from vgae.runs.files import CHECKPOINT
from vgae.runs.fingerprint import Fingerprint
from vgae.runs.folder import finished_run, new_run_folder, require_same_run
from vgae.runs.group_checkpoint import GroupCheckpointer, checkpointer_for
from vgae.runs.make import PATIENCE, Destination, Reporter, Source
from vgae.runs.run import Run
from vgae.train.callbacks import Callbacks
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.together import require_shardable


def lead_run(group: Group, source: Source, config: Config, to: Destination, reporter: Reporter) -> Run:
    """Train a model and save it as a run, in the first process; the others call `follow_run`."""
    split = source.split
    job = _job(group, source, config)
    run = finished_run(to.folder) if to.resume and not to.overwrite else None
    if run is not None:
        require_same_run(to.folder, run, config, split)
        reporter.on_complete(to.folder)
    if group.share(run is not None) and run is not None:
        return run
    with new_run_folder(to.folder, overwrite=to.overwrite, resume=to.resume) as writer:
        reporter.on_ready(fresh=not has_checkpoint(writer.checkpoint))
        with checkpointer_for(
            group,
            writer.checkpoint,
            Fingerprint.of(job),
            every=to.checkpoint_every,
            callback=reporter,
            is_locked=True,
        ) as checkpointer:
            writer.checkpointer = checkpointer
            trained = train(job, Callbacks(reporter, *to.trackers), checkpointer, group=group)
        if isinstance(split, PartSplit):  # of which a run has all
            split = split.gathered() or split
            trained = replace(trained, job=replace(trained.job, graph=config.view(split.train)))
        run = Run.of(trained, dataset=source.dataset, recipe=source.recipe).scored_on(split)
        writer.write(run, patience=PATIENCE, report=reporter.on_waiting)
    return run


def follow_run(group: Group, source: Source, config: Config, to: Destination) -> None:
    """What the other processes do while the first one is in `lead_run`."""
    job = _job(group, source, config)
    if group.share(None):
        return
    with GroupCheckpointer(
        group, to.folder / CHECKPOINT, Fingerprint.of(job), every=to.checkpoint_every
    ) as checkpointer:
        train(job, None, checkpointer, group=group)
    if isinstance(source.split, PartSplit):
        source.split.gathered()


def require_same_training(group: Group, job: Job) -> None:
    """Refuse to train where processes were given different options or have read different graphs."""
    own = Fingerprint.of(job)
    every = [Fingerprint.from_json(each, job.config.objective) for each in gather_json(group, own.to_json())]
    for rank, each in enumerate(every):
        found = each.differences(every[0])
        if found:
            raise InputError(
                f"Rank {rank} was started with another training than rank 0 ({'; '.join(found)}); give all processes "
                "the same options and the same files."
            )


def _job(group: Group, source: Source, config: Config) -> Job:
    """The training, if it can be made in this group."""
    job = Job.of(source.split.train, config, source.split.val or None)
    require_same_training(group, job)
    if group.size > 1:
        require_shardable(job, group.size)
    return job
