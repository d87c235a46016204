"""The life of a run folder: nothing, unfinished, complete.

    RUN/lock               held by the process that writes, gone when it ends
    RUN/checkpoint/        the training that is under way: its checkpoints, and in run/ the files of the finished run
    RUN/config.json, …     the complete run

Files are written into checkpoint/run/, config.json last. From then on the new run is complete, and what follows can be
repeated until it is done: the old config.json goes if there was one, the files move up, config.json last, and
checkpoint/ goes. A process that is killed leaves the old run, or an unfinished one that can be resumed, or the new run;
an old run stays as it is until the new one is complete.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from vgae.errors import InputError
from vgae.graph.files import read_json, sync_folder
from vgae.graph.split import LinkSplit
from vgae.train.checkpoint import DESCRIPTION, LOCK, OWN_NAME, has_checkpoint
from vgae.train.config import Config, differences
from vgae.train.lock import locked
from vgae.train.run import CHECKPOINT, CONFIG, FILES, PICTURES, Run, read_run

STAGING = "run"
STAGED_NAME = re.compile("|".join(rf"\.?{re.escape(name)}(\..*)?" for name in (*FILES, CONFIG)))


class Stage(Enum):
    """What a folder is to vgae."""

    EMPTY = "nothing yet"
    UNFINISHED = "a training to go on with, beside a complete run or alone"
    COMPLETE = "a run"
    FOREIGN = "something else, which is never touched"


@dataclass(frozen=True)
class Workplace:
    """Where a run is made: its checkpoints, and the folder for its files."""

    checkpoint: Path
    staging: Path


@contextmanager
def new_run_folder(folder: Path, *, overwrite: bool = False, resume: bool = False) -> Iterator[Workplace]:
    """A place to make a run in, which becomes the run when the block succeeds; if it fails, only checkpoints stay.

    Whether that will be possible is checked before the block runs, so that no training is lost to a bad path. What is
    unfinished in the folder is gone on with if `resume` is asked for, and removed if only `overwrite` is.
    """
    target = folder.resolve()
    made: list[Path] = []
    try:
        with ExitStack() as held:
            try:
                if (stage := stage_of(target)) is not Stage.UNFINISHED:  # that one may be in the making: the lock knows
                    _require_usable(folder, stage, overwrite=overwrite, resume=resume)
                made = [path for path in (target, *target.parents) if not path.exists()]
                target.mkdir(parents=True, exist_ok=True)
                held.enter_context(_writing(folder))
                if _is_promised(target) and (overwrite or resume):
                    _promote(target)
                _require_usable(folder, stage_of(target), overwrite=overwrite, resume=resume)
                place = _prepare(target, resume=resume)
            except OSError as error:
                words = f"the folder cannot be written ({error.strerror}); choose another"
                raise InputError(f"{folder}: {words}.") from None
            try:
                yield place
            except BaseException:
                useless = place.staging if has_checkpoint(place.checkpoint) else place.checkpoint
                shutil.rmtree(useless, ignore_errors=True)
                raise
            _promote(target)
    except BaseException:
        for path in made:
            with suppress(OSError):
                path.rmdir()  # unless something is in it
        raise


def finished_run(folder: Path) -> Run | None:
    """The run in a folder if it is complete and no other is under way; the moves of a killed process are done first."""
    if stage_of(folder) is Stage.UNFINISHED and _is_promised(folder):
        with _writing(folder):
            _promote(folder)
    return read_run(folder) if stage_of(folder) is Stage.COMPLETE else None


def require_same_run(folder: Path, run: Run, config: Config, split: LinkSplit) -> None:
    """Refuse to take a complete run for one of another config, graph or split."""
    found = differences(run.config, config)
    graph = split.train if config.features else split.train.without_features()
    if run.split.content_hash != split.content_hash or run.facts.graph_hash != graph.content_hash:
        found.append("another graph or another split of it")
    if found:
        raise InputError(
            f"{folder}: the run there is complete, but of another training ({'; '.join(found)}); "
            "choose another folder, or --overwrite it."
        )


def stage_of(folder: Path) -> Stage:
    """What is in a folder."""
    if not folder.exists():
        return Stage.EMPTY
    if not folder.is_dir():
        return Stage.FOREIGN
    names = {path.name for path in folder.iterdir()} - {LOCK}
    if CHECKPOINT in names and not _is_checkpoint(folder / CHECKPOINT):
        return Stage.FOREIGN
    files = names - {CHECKPOINT}
    strange = [name for name in files - {CONFIG, *FILES} if Path(name).suffix not in PICTURES]
    promised, complete = _is_promised(folder), _is_run(folder)
    if strange or (files and not (promised or complete)):
        return Stage.FOREIGN
    if promised or has_checkpoint(folder / CHECKPOINT):
        return Stage.UNFINISHED
    return Stage.COMPLETE if complete else Stage.EMPTY


def _require_usable(folder: Path, stage: Stage, *, overwrite: bool, resume: bool) -> None:
    """A new or empty folder always passes; a run of vgae if overwriting or resuming was asked for; nothing else."""
    if folder.resolve() == Path.cwd():
        raise InputError(f"{folder}: the working folder itself cannot become a run; name a folder in it.")
    if stage is Stage.EMPTY or (stage is Stage.UNFINISHED and resume):
        return
    if stage is Stage.FOREIGN and (overwrite or resume):
        raise InputError(f"{folder}: this is not a run of vgae, so it is not overwritten; choose another folder.")
    if overwrite:
        return
    if stage is Stage.UNFINISHED:
        raise InputError(
            f"{folder}: an unfinished run is there; --resume to go on with it, or --overwrite to start again."
        )
    raise InputError(
        f"{folder}: this folder is already used; choose another, or --overwrite (overwrite=True) the run in it."
    )


def _writing(folder: Path) -> AbstractContextManager[None]:
    refusal = f"{folder}: another process is writing this run; wait for it to end, or choose another folder."
    return locked(folder / LOCK, refusal)


def _prepare(folder: Path, *, resume: bool) -> Workplace:
    checkpoint = folder / CHECKPOINT
    staging = checkpoint / STAGING
    if not resume:
        (checkpoint / DESCRIPTION).unlink(missing_ok=True)  # first, so that half of a checkpoint is never taken for one
    shutil.rmtree(staging if resume else checkpoint, ignore_errors=True)
    staging.mkdir(parents=True)
    return Workplace(checkpoint, staging)


def _promote(folder: Path) -> None:
    """Move the finished files up; if that is cut short, doing it again completes it."""
    checkpoint = folder / CHECKPOINT
    staging = checkpoint / STAGING
    for path in staging.iterdir():
        with path.open("r+b") as file:
            os.fsync(file.fileno())
    for path in [folder / CONFIG, *(path for path in folder.iterdir() if path.suffix in PICTURES)]:
        path.unlink(missing_ok=True)
    for name in FILES:
        if (staging / name).exists():
            (staging / name).replace(folder / name)
    (checkpoint / DESCRIPTION).unlink(missing_ok=True)
    (staging / CONFIG).replace(folder / CONFIG)
    sync_folder(folder)
    shutil.rmtree(checkpoint)


def _is_promised(folder: Path) -> bool:
    """Whether the files of a finished run are waiting to be moved up."""
    return (folder / CHECKPOINT / STAGING / CONFIG).is_file()


def _is_run(folder: Path) -> bool:
    """Whether config.json was written by vgae."""
    try:
        return {"format", "vgae", "files"} <= set(read_json(folder / CONFIG))
    except InputError:
        return False


def _is_checkpoint(folder: Path) -> bool:
    """Whether a folder holds nothing but what checkpoints and unfinished runs leave there."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    staging = folder / STAGING
    if staging.is_symlink() or (staging.exists() and not staging.is_dir()):
        return False
    staged = [path.name for path in staging.iterdir()] if staging.exists() else []
    names = [path.name for path in folder.iterdir() if path != staging]
    return all(OWN_NAME.fullmatch(name) for name in names) and all(STAGED_NAME.fullmatch(name) for name in staged)
