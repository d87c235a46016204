"""The life of a run folder: nothing, unfinished, complete.

    RUN/checkpoint/vgae.lock   held by the process that writes, whether a run or only checkpoints; gone when it ends
    RUN/checkpoint/            the training under way: its checkpoints, and in run/ the files of the finished run
    RUN/config.json, …         the complete run

Files are written into checkpoint/run/ and flushed to the disk, then config.json with their hashes. From then on the new
run is complete, and what follows can be repeated until it is done: the files move up, then config.json, then
checkpoint/ goes, each step flushed before the next. A process that is killed, or a power cut, leaves the old run, or an
unfinished one that can be resumed, or the new run. The old run can be read until the files of the new one move, and the
new one from then on. What counts as complete is not that config.json is there, but that all files match their hashes.

Files in the folder under other names are not vgae's: they are neither touched nor a reason to refuse.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from vgae.errors import InputError, SaveError
from vgae.graph.split import LinkSplit
from vgae.io.atomic import make_folder, sync_folder
from vgae.io.json_files import read_json
from vgae.runs.baseline_run import BaselineRun
from vgae.runs.checkpoint import (
    DESCRIPTION,
    LOCK,
    OLD_LOCK,
    FolderCheckpointer,
    has_checkpoint,
    is_own,
    remove_checkpoint,
    saved_iteration,
)
from vgae.runs.files import CHECKPOINT, STAGING, read_run, staging_of, write_run
from vgae.runs.fingerprint import Fingerprint
from vgae.runs.lock import locked
from vgae.runs.opened import CONFIG, FILES, file_hash, hashes_in
from vgae.runs.run import Run
from vgae.train.callbacks import Callback
from vgae.train.config import Config
from vgae.train.job import Job

if TYPE_CHECKING:
    from vgae.runs.stack_run import StackRun

NAMES = (*FILES, CONFIG)
STAGED_NAME = re.compile("|".join(rf"{re.escape(name)}|\.{re.escape(name)}\..*" for name in NAMES))
POLL = 5.0  # seconds between two attempts to write a run for which there was no room


class Stage(Enum):
    """What a folder is to vgae."""

    EMPTY = "nothing yet"
    UNFINISHED = "a training to continue, beside a complete run or alone"
    COMPLETE = "a run"
    NOT_A_RUN = "something else, which is never touched"


class SavesLast(Protocol):
    """What saves the state of a training, or the folds of a stack."""

    def save_last(self) -> bool:
        """Save what is not saved yet; whether all is saved then."""


class RunWriter:
    """Makes a run in a folder: its checkpoints while it trains, then its files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkpoint = folder / CHECKPOINT
        self.staging = self.checkpoint / STAGING
        self.checkpointer: SavesLast | None = None

    def checkpoints(self, job: Job, *, every: float | None, callback: Callback) -> FolderCheckpointer:
        """What saves the state of the training whose run this will be; the folder is locked already."""
        fingerprint = Fingerprint.of(job)
        checkpointer = FolderCheckpointer(self.checkpoint, fingerprint, every=every, callback=callback, is_locked=True)
        self.checkpointer = checkpointer
        return checkpointer

    def write(
        self, run: Run | BaselineRun | StackRun, *, patience: float = 0.0, report: Callable[[str], None] | None = None
    ) -> None:
        """Write the finished run.

        If there is no room for it, its training is saved as a checkpoint. If there is no room for that either, try
        again for so many seconds, and `report` that.
        """
        deadline = time.monotonic() + patience
        while True:
            try:
                write_run(self.staging, run)
            except OSError as error:
                _remove_staged(self.staging)  # which makes room
                failure = f"{self.folder}: the run cannot be written there ({error.strerror or error})"
            else:
                return
            if self.checkpointer is not None and self.checkpointer.save_last():
                raise SaveError(f"{failure}, but its training is saved; make room, and use --resume to finish.")
            if time.monotonic() >= deadline:
                raise SaveError(f"{failure}; {self._what_is_saved()}")
            if report is not None:
                report(f"{failure}; make room: it is tried again every {POLL:.0f} s for {patience / 60:.0f} minutes")
                report = None
            time.sleep(POLL)

    def _what_is_saved(self) -> str:
        if self.checkpointer is None:
            return "the model is still in memory: make room, or save it elsewhere."
        iteration = saved_iteration(self.checkpoint)
        if iteration is None:
            return "nothing of its training is saved; make room, and start it again."
        return f"its training is saved up to iteration {iteration}; make room, and use --resume to continue."


@contextmanager
def new_run_folder(
    folder: Path, *, overwrite: bool = False, resume: bool = False, checkpoint: Path | None = None
) -> Iterator[RunWriter]:
    """A place to make a run in, which becomes the run when the block succeeds; if it fails, only checkpoints stay.

    Whether that will be possible is checked before the block runs, so that no training is lost to a bad path. What is
    unfinished in the folder is continued if `resume` is asked for, and removed if only `overwrite` is. Where the run
    is of the training whose checkpoints are in the folder, `checkpoint` names theirs: they stay until it is complete.
    """
    target = _real_path(folder)
    place = RunWriter(target)
    is_own_training = checkpoint == place.checkpoint
    with ExitStack() as held:
        try:
            resume = resume or (is_own_training and not _is_run(target))
            if (stage := stage_of(target)) is not Stage.UNFINISHED:  # that one may be in the making: the lock knows
                _require_usable(folder, stage, overwrite=overwrite, resume=resume)
            made = make_folder(place.checkpoint)
            held.callback(_remove_empty, [place.checkpoint, *made])
            held.enter_context(_writing(folder, target))
            if (overwrite or resume) and _is_promised(target):
                _promote(target)
            _require_usable(folder, stage_of(target), overwrite=overwrite, resume=resume)
            _require_free_names(folder, target)
            if not (resume or is_own_training):
                remove_checkpoint(place.checkpoint)
            _remove_staged(place.staging)
            make_folder(place.staging)
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            words = getattr(error, "strerror", None) or error
            raise InputError(f"{folder}: the folder cannot be written ({words}); choose another.") from None
        try:
            yield place
        except BaseException:
            if not _is_promised(target):
                _remove_staged(place.staging)
            raise
        try:
            _promote(target)
        except OSError as error:
            raise SaveError(
                f"{folder}: the run is complete, but cannot be moved to its place ({error.strerror}); "
                "when that is possible again, use --resume to finish."
            ) from None


def finished_run(folder: Path) -> Run | None:
    """The run of a trained model in a folder, if it is complete and no other is under way."""
    return read_run(folder) if is_finished(folder) else None


def is_finished(folder: Path) -> bool:
    """Whether a folder holds a complete run and none under way; the moves of a killed process are done first."""
    target = _real_path(folder)
    try:
        if _is_promised(target):
            with _writing(folder, target):
                _promote(target)
            _remove_empty([target / CHECKPOINT])
        is_complete = stage_of(target) is Stage.COMPLETE
        if is_complete and (target / CHECKPOINT).is_dir():
            _remove_remains(folder, target)
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be used ({error.strerror}); choose another.") from None
    return is_complete


@dataclass(frozen=True)
class SavedTraining:
    """What a training in a folder was made of."""

    config: Config
    graph_hash: str  # of what the model saw of its training graph

    def to_json(self) -> dict[str, Any]:
        """As one process tells others."""
        return {"config": self.config.to_json(), "graph_hash": self.graph_hash}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> SavedTraining:
        """The inverse of `to_json`."""
        return cls(Config(**values["config"]), values["graph_hash"])


def saved_training(folder: Path) -> SavedTraining | None:
    """The training that is saved in a folder, finished or not, as far as that can be read."""
    for path in (folder / CHECKPOINT / DESCRIPTION, folder / CHECKPOINT / STAGING / CONFIG, folder / CONFIG):
        with suppress(InputError, OSError, LookupError, TypeError):
            content = read_json(path, follow_links=False)
            owner = content.get("owner") or content["facts"] | {"config": content["config"]}
            objective = content.get("objective") or owner.get("objective")
            config = Config.from_json(owner["config"], trained_with=objective)
            return SavedTraining(config, str(owner["graph_hash"]))
    return None


def require_same_run(folder: Path, run: Run, config: Config, split: LinkSplit) -> None:
    """Refuse to take a complete run for one of another config, graph or split."""
    if config.objective == "auto" and config.batch_size is None:
        config = replace(config, batch_size=run.config.batch_size)  # which was chosen with the objective
    found = list(run.config.differences(config))
    graph_hash = config.view(split.train).content_hash
    if run.split.content_hash != split.content_hash or run.facts.graph_hash != graph_hash:
        found.append("another graph or another split of it")
    require_no_other(folder, found)


def require_no_other(folder: Path, found: Sequence[str]) -> None:
    """Refuse a complete run that differs in these from the one that is asked for."""
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
        return Stage.NOT_A_RUN
    names = {path.name for path in folder.iterdir()} - _remains(folder)
    if CHECKPOINT in names and not _is_checkpoint(folder / CHECKPOINT):
        return Stage.NOT_A_RUN
    promised, complete = _is_promised(folder), _is_run(folder)
    if not (promised or complete) and not names.isdisjoint(NAMES):
        return Stage.NOT_A_RUN  # somebody else's files under the names of ours
    if promised or has_checkpoint(folder / CHECKPOINT):
        return Stage.UNFINISHED
    if complete:
        return Stage.COMPLETE
    return Stage.NOT_A_RUN if names - {CHECKPOINT} else Stage.EMPTY


def is_refused(folder: Path, *, overwrite: bool, resume: bool) -> bool:
    """Whether `new_run_folder` would refuse a folder, as far as that can be seen without writing into it."""
    try:
        _require_usable(folder, stage_of(_real_path(folder)), overwrite=overwrite, resume=resume)
    except (InputError, OSError):
        return True
    return False


def _require_usable(folder: Path, stage: Stage, *, overwrite: bool, resume: bool) -> None:
    """A new or empty folder always passes; a run of vgae if overwriting or resuming was asked for; nothing else."""
    if Path(os.path.realpath(folder)) == Path.cwd():
        raise InputError(f"{folder}: the working folder itself cannot become a run; name a folder in it.")
    if stage is Stage.EMPTY or (stage is Stage.UNFINISHED and resume):
        return
    if stage is Stage.NOT_A_RUN and (overwrite or resume):
        raise InputError(f"{folder}: this is not a run of vgae, so it is not overwritten; choose another folder.")
    if overwrite:
        return
    if stage is Stage.UNFINISHED:
        raise InputError(
            f"{folder}: an unfinished run is there; --resume to continue it, or --overwrite to start again."
        )
    raise InputError(
        f"{folder}: this folder is already used; choose another, or --overwrite (overwrite=True) the run in it."
    )


def _real_path(folder: Path) -> Path:
    try:
        return Path(os.path.realpath(folder))
    except ValueError as error:
        raise InputError(f"{str(folder)!r}: this cannot be the name of a folder ({error}).") from None


def _require_free_names(folder: Path, target: Path) -> None:
    for name in NAMES:
        if (target / name).is_dir() and not (target / name).is_symlink():
            raise InputError(f"{folder / name}: this is a folder, where a file of the run goes; move it away.")


def _writing(folder: Path, target: Path) -> AbstractContextManager[None]:
    refusal = f"{folder}: another process is writing this run; wait for it to end, or choose another folder."
    return locked(target / CHECKPOINT / LOCK, refusal)


def _promote(folder: Path) -> None:
    """Move the finished files up; if that is cut short, doing it again completes it."""
    checkpoint = folder / CHECKPOINT
    staging = checkpoint / STAGING
    for name in FILES:
        if (staging / name).exists():
            (staging / name).replace(folder / name)
    sync_folder(folder)
    sync_folder(staging)
    (staging / CONFIG).replace(folder / CONFIG)
    sync_folder(folder)
    sync_folder(staging)
    remove_checkpoint(checkpoint)
    _remove_staged(staging)


def _is_promised(folder: Path) -> bool:
    """Whether a run waits to be moved up: the staged config.json is there, and all files that it names are whole."""
    staging = staging_of(folder)
    if staging is None:
        return False
    try:
        hashes = hashes_in(read_json(staging / CONFIG, follow_links=False))
    except (InputError, KeyError):
        return False
    return all(any(_matches(place / name, hashes[name]) for place in (staging, folder)) for name in FILES)


def _matches(path: Path, expected: str) -> bool:
    try:
        return file_hash(path) == expected
    except (InputError, OSError):
        return False


def _is_run(folder: Path) -> bool:
    """Whether config.json was written by vgae."""
    try:
        return {"format", "vgae", "files"} <= set(read_json(folder / CONFIG, follow_links=False))
    except InputError:
        return False


def _is_checkpoint(folder: Path) -> bool:
    """Whether a folder is one of checkpoints: it says so, or holds nothing but what they and unfinished runs leave."""
    staging = folder / STAGING
    if folder.is_symlink() or not folder.is_dir() or staging.is_symlink():
        return False
    if staging.exists() and not staging.is_dir():
        return False
    if staging.is_dir() and not all(STAGED_NAME.fullmatch(path.name) for path in staging.iterdir()):
        return False
    return _is_description(folder / DESCRIPTION) or all(is_own(path) for path in folder.iterdir() if path != staging)


def _is_description(path: Path) -> bool:
    try:
        return {"format", "vgae", "owner", "sha256"} <= set(read_json(path, follow_links=False))
    except InputError:
        return False


def _remains(folder: Path) -> set[str]:
    """What says nothing about a folder: the empty lock that an older version has left."""
    return {OLD_LOCK} if is_own(folder / OLD_LOCK) else set()


def _remove_staged(staging: Path) -> None:
    """Remove the files of a run that did not come about; whatever else is there stays."""
    with suppress(OSError):
        for path in [staging / CONFIG, *staging.iterdir()]:
            if STAGED_NAME.fullmatch(path.name):
                path.unlink(missing_ok=True)
        staging.rmdir()


def _remove_remains(folder: Path, target: Path) -> None:
    """Remove what a process that was killed at its very end has left beside a complete run, unless one is at work."""
    with suppress(InputError):
        with _writing(folder, target):
            if stage_of(target) is Stage.COMPLETE:
                remove_checkpoint(target / CHECKPOINT)
                _remove_staged(target / CHECKPOINT / STAGING)
        _remove_empty([target / CHECKPOINT])


def _remove_empty(folders: list[Path]) -> None:
    for path in folders:
        with suppress(OSError):
            path.rmdir()
