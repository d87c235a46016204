"""Checkpoints: the state of a training run in a folder, from which another process continues to the same bits.

    state-N.safetensors   the tensors after iteration N: weights, the best weights, Adam's moments, the generator,
                          and what the objective carries from step to step
    checkpoint.json       N, the objective, the history, the number of threads, the training's fingerprint, and hashes

The tensors are written first, under a name of their own; then checkpoint.json is replaced in one step, and only then do
the tensors of the checkpoint before go. A process that is killed at any moment leaves the one or the other. Nothing
that is loaded can execute code. A group of processes (vgae.runs.group_checkpoint) has more files of tensors, and one
checkpoint.json, which is written when all of them are there; vgae.runs.parts reads both kinds.

A checkpoint that cannot be written, for want of room on the disk or for any other reason, does not end the training:
training continues, warns once, and tries again when the next one is due.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
from safetensors import SafetensorError
from safetensors.torch import save as serialize

from vgae.errors import InputError, TrainingError
from vgae.io.atomic import atomic_write, make_folder, sync_folder
from vgae.io.json_files import hash_json, read_json, write_json
from vgae.options import number
from vgae.runs.checks import check_history, check_keys, check_version, is_number
from vgae.runs.fingerprint import Fingerprint, require_no_difference
from vgae.runs.lock import locked
from vgae.runs.parts import MOST_THREADS, Parts, num_bytes_of, read_state_tensors, state_name
from vgae.runs.schedule import Schedule
from vgae.train.callbacks import Callback, Checkpointer, Warnings
from vgae.train.interrupt import StopRequest
from vgae.train.state import Layouts, Sharding, TrainingState
from vgae.train.threads import same_threads
from vgae.version import __version__
from vgae.visible import visible
from vgae.words import count

FORMAT, FORMAT_IN_PARTS = 1, 2
DESCRIPTION = "checkpoint.json"
LOCK = "vgae.lock"
OLD_LOCK = "lock"  # of versions before 0.2, which a process that was killed has left
STORED = r"(checkpoint\.json|(state|fold)-\d+(-\d+)?\.safetensors)"  # folds are those of a stack
OWN_NAME = re.compile(rf"{re.escape(LOCK)}|{STORED}|\.{STORED}\..*")  # the last are temporary
KEYS = {"format", "vgae", "torch", "owner", "iteration", "seconds", "objective", "objective_reason"}
KEYS |= {"best_iteration", "best_score", "history", "sha256", "hash"}
LARGEST_STEP = 2**24  # Adam counts in float32, which counts no further


@contextmanager
def writing_to(folder: Path, what: str, *, is_locked: bool) -> Iterator[None]:
    """A folder to write checkpoints into, one process at a time; gone afterwards if it is new and nothing is in it.

    `is_locked` says that whoever asks holds the folder's lock already.
    """
    with ExitStack() as held:
        try:
            made = make_folder(folder)
            held.callback(_remove_empty, made)
            if not is_locked:
                refusal = f"{folder}: another process is writing there; wait for it to end, or choose another."
                held.enter_context(locked(folder / LOCK, refusal))
        except (OSError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            words = getattr(error, "strerror", None) or error
            raise InputError(f"{folder}: {what} cannot be written there ({words}).") from None
        yield


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()  # unless something is in it


class FolderCheckpointer(Checkpointer):
    """Saves the state of a training in a folder while it is entered; one process at a time.

    Ctrl-C is noticed between two iterations: the state is saved, and then KeyboardInterrupt is raised. A training that
    diverges takes its checkpoints with it. `is_locked` says that whoever makes this holds the folder's lock already.
    """

    num_processes = 1

    def __init__(
        self,
        folder: Path,
        fingerprint: Fingerprint,
        *,
        every: float | None = None,
        callback: Callback | None = None,
        clock: Callable[[], float] = time.monotonic,
        is_locked: bool = False,
    ) -> None:
        self.folder, self.fingerprint, self.is_locked = folder, fingerprint, is_locked
        self.every, self.clock = check_pause(every), clock
        self.callback = callback or Warnings()
        self.stop = StopRequest(self.callback.on_stop_request)
        self.open = ExitStack()
        self.schedule = Schedule(every=self.every, clock=clock)
        self.last: Callable[[], TrainingState] | None = None
        self.is_failing = self.has_warned = False

    def __enter__(self) -> Self:
        self.open.enter_context(writing_to(self.folder, "checkpoints", is_locked=self.is_locked))
        self.open.enter_context(self.stop)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TrainingError):
            self._remove()
        self.open.close()

    def _remove(self) -> None:
        remove_checkpoint(self.folder)

    def load(self, layouts: Layouts) -> TrainingState | None:
        """The state that is saved in the folder, checked; None if there is none."""
        self.schedule = Schedule(max(map(num_bytes_of, layouts.values())), every=self.every, clock=self.clock)
        if not has_checkpoint(self.folder):
            return None
        return self._continued(read_checkpoint(self.folder, self.fingerprint, layouts))

    def _continued(self, found: SavedState) -> TrainingState:
        """The state to continue from, with as many threads as there were, or a warning that bits may differ."""
        if found.num_processes != self.num_processes and not self.has_warned:
            self.has_warned = True
            self.callback.on_warning(
                f"this training had {count(found.num_processes, 'process', 'processes')} before and has "
                f"{self.num_processes} now: its result may differ in the last bits"
            )
        if found.num_processes == self.num_processes and self.fingerprint.device == "cpu":
            self.open.enter_context(same_threads(found.state.threads, self.callback))
        return found.state

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        """Write a checkpoint if one is due or Ctrl-C was pressed."""
        self.last = snapshot
        stops, is_due = self._agreed()
        if not stops and not is_due:
            return
        if self.fingerprint.device == "cuda":
            torch.cuda.synchronize()  # the steps that are still under way are not what writing costs
        began = self.clock()
        state = snapshot()
        self._write(state)
        self.schedule.wrote(self.clock() - began)
        if stops:
            raise KeyboardInterrupt(f"Training was stopped after iteration {state.iteration}.")

    def _agreed(self) -> tuple[bool, bool]:
        """Whether training is to stop, and whether a checkpoint is due."""
        return self.stop.asked, self.schedule.due()

    def save_last(self) -> bool:
        """Write the state after the last iteration unless it is saved already; whether it is saved then.

        That can be done after the training too, as long as nobody trains the model any further.
        """
        if self.last is None:
            return has_checkpoint(self.folder)
        state = self.last()
        return saved_iteration(self.folder) == state.iteration or self._write(state)

    def _write(self, state: TrainingState) -> bool:
        """Write a checkpoint; whether that was possible. The callback is warned when it stops or starts to be."""
        if not is_finite(state):  # training will notice at its next logged iteration
            return False
        try:
            write_checkpoint(self.folder, self.fingerprint, state)
        except OSError as error:
            return self._wrote(state, error.strerror or str(error))
        return self._wrote(state)

    def _wrote(self, state: TrainingState, failure: str | None = None) -> bool:
        """Note how writing went, and warn when that has changed."""
        if failure is not None and not self.is_failing:
            self.callback.on_warning(
                f"{self.folder}: the checkpoint after iteration {state.iteration} cannot be written "
                f"({failure}); training continues without it, and tries again later"
            )
        if failure is None and self.is_failing:
            self.callback.on_warning(f"{self.folder}: checkpoints can be written again")
        self.is_failing = failure is not None
        return failure is None


def check_pause(every: Any) -> float | None:
    """Seconds between two checkpoints, or None."""
    return None if every is None else number(every, "checkpoint_every", least=0)


def has_checkpoint(folder: Path) -> bool:
    """Whether a state is saved in a folder."""
    return (folder / DESCRIPTION).is_file()


def is_own(path: Path) -> bool:
    """Whether a name in a folder of checkpoints is one that vgae gives; an empty lock of an older version is, too."""
    if path.name == OLD_LOCK:
        return path.is_file() and not path.is_symlink() and path.stat().st_size == 0
    return bool(OWN_NAME.fullmatch(path.name))


def remove_checkpoint(folder: Path) -> None:
    """Remove what checkpoints have left in a folder, as far as possible; the lock and whatever else is in it stay.

    The description goes first and for good, so that half of a checkpoint is never taken for one.
    """
    with suppress(OSError):
        (folder / DESCRIPTION).unlink(missing_ok=True)
        sync_folder(folder)
        _remove(folder, all_but=(LOCK,))


def saved_iteration(folder: Path) -> int | None:
    """The iteration whose state is saved in a folder, as far as that can be read."""
    try:
        iteration = read_json(folder / DESCRIPTION, follow_links=False)["iteration"]
    except (InputError, KeyError):
        return None
    return iteration if isinstance(iteration, int) else None


def is_finite(state: TrainingState) -> bool:
    """Whether all weights are numbers."""
    weights = (tensor for name, tensor in state.tensors.items() if name.startswith(("weights.", "best.")))
    return all(bool(torch.isfinite(tensor).all()) for tensor in weights)


def write_checkpoint(folder: Path, fingerprint: Fingerprint, state: TrainingState, parts: Parts | None = None) -> None:
    """Save a state in place of the one before; of a group, the tensors that all share, its parts being there."""
    tensors = serialize(state.tensors)
    content = {
        "format": FORMAT if parts is None else FORMAT_IN_PARTS,
        "vgae": __version__,
        "torch": torch.__version__,
        "owner": fingerprint.to_json(),
        **{field.name: getattr(state, field.name) for field in fields(state) if field.name != "tensors"},
        "history": [entry.to_json() for entry in state.history],
        "sha256": hashlib.sha256(tensors).hexdigest(),
        **({} if parts is None else {"parts": parts.to_json()}),
    }
    name = state_name(state.iteration)
    try:
        with atomic_write(folder / name, durable=True, follow_links=False) as file:
            file.write(tensors)
        described = {**content, "hash": hash_json(content)}
        write_json(folder / DESCRIPTION, described, durable=True, follow_links=False)
    except OSError:
        if saved_iteration(folder) != state.iteration:
            with suppress(OSError):
                (folder / name).unlink(missing_ok=True)
        raise
    with suppress(OSError):
        of_parts = (state_name(state.iteration, part) for part in range(0 if parts is None else len(parts)))
        _remove(folder, all_but=(name, DESCRIPTION, LOCK, *of_parts))


@dataclass(frozen=True, eq=False)
class SavedState:
    """A state out of a checkpoint, and how many processes have saved it."""

    state: TrainingState
    num_processes: int


def read_checkpoint(
    folder: Path,
    fingerprint: Fingerprint,
    layouts: Layouts,
    sharding: Sharding | None = None,
    content: dict[str, Any] | None = None,
) -> SavedState:
    """The state that is saved in a folder, if it is whole and of the training with this fingerprint.

    In a group (`sharding`) it has the rows of this process, and `content` is what checkpoint.json holds.
    """
    try:
        return _read(folder, fingerprint, layouts, sharding, content)
    except InputError as error:
        where = "" if visible(str(folder)) in str(error) else f"{folder}: "
        raise InputError(f"{where}{str(error).rstrip('.')}.") from None
    except (ArithmeticError, LookupError, MemoryError, TypeError, ValueError, RuntimeError, OSError) as error:
        raise InputError(damaged(folder, str(error) or type(error).__name__)) from None
    except SafetensorError as error:
        raise InputError(damaged(folder, str(error))) from None


def read_description(folder: Path) -> dict[str, Any]:
    """What checkpoint.json holds, unchecked."""
    try:
        return read_json(folder / DESCRIPTION, follow_links=False)
    except InputError:
        raise InputError(damaged(folder, f"{DESCRIPTION} is not readable")) from None


def _read(
    folder: Path,
    fingerprint: Fingerprint,
    layouts: Layouts,
    sharding: Sharding | None,
    content: dict[str, Any] | None,
) -> SavedState:
    content = read_description(folder) if content is None else content
    if type(content.get("format")) is not int or content["format"] not in (FORMAT, FORMAT_IN_PARTS):
        raise InputError(f"{folder}: a checkpoint that this version of vgae does not read; --overwrite it.")
    check_version(content.get("vgae"))
    if isinstance(content.get("owner"), dict) and "stack" in content["owner"]:
        require_no_difference(["a stack, not a model"])
    try:
        in_parts = {"parts"} if content["format"] == FORMAT_IN_PARTS else set()
        check_keys(content, KEYS | in_parts, DESCRIPTION, optional=("threads",))  # not in those of earlier versions
    except InputError as error:
        raise InputError(damaged(folder, str(error))) from None
    given_hash = content.pop("hash")
    if hash_json(content) != given_hash:
        raise InputError(damaged(folder, f"{DESCRIPTION} does not match its own hash"))
    fingerprint.require_same(Fingerprint.from_json(content["owner"], content["objective"]))
    iteration = content["iteration"]
    if type(iteration) is not int or not 1 <= iteration <= fingerprint.config.iterations:
        raise ValueError(f"iteration {iteration!r}")
    history = check_history(content["history"], fingerprint.config, iteration)
    seconds, best_score, best_iteration = (content[name] for name in ("seconds", "best_score", "best_iteration"))
    most = 3 if fingerprint.config.stop_by == "top" else 2  # so many scores are added up
    if not is_number(seconds) or not is_number(best_score) or not -1 <= best_score <= most:
        raise ValueError("seconds or best_score is not a number that can be")
    if type(best_iteration) is not int or not 0 <= best_iteration <= iteration:
        raise ValueError(f"best_iteration {best_iteration!r}")
    if content["objective"] not in ("exact", "sampled") or not isinstance(content["objective_reason"], str):
        raise ValueError(f"objective {content['objective']!r}")
    parts = Parts.from_json(content["parts"]) if in_parts else None
    layout = layouts[content["objective"]]
    threads = read_threads(content)
    if parts is not None and sharding is not None and len(parts) == sharding.shards.size:
        threads = parts.threads[sharding.shards.rank]
    state = TrainingState(
        iteration=iteration,
        seconds=max(0.0, seconds),
        objective=content["objective"],
        objective_reason=content["objective_reason"],
        best_iteration=best_iteration,
        best_score=best_score,
        history=history,
        tensors=read_state_tensors(folder, iteration, content["sha256"], layout, parts, sharding),
        threads=threads,
    )
    steps = {float(tensor) for name, tensor in state.tensors.items() if name.endswith(".step")}
    if steps != {float(min(iteration, LARGEST_STEP))} or not is_finite(state):
        raise ValueError("the tensors do not fit the iteration")
    torch.Generator(fingerprint.device).set_state(state.tensors["generator"])  # raises where it is none
    return SavedState(state, 1 if parts is None else len(parts))


def read_threads(content: dict[str, Any]) -> int | None:
    """How many threads there were; checkpoints of earlier versions do not say it."""
    threads = content.get("threads")
    if threads is not None and (type(threads) is not int or not 1 <= threads <= MOST_THREADS):
        raise ValueError(f"threads {threads!r}")
    return threads


def _remove(folder: Path, all_but: tuple[str, ...]) -> None:
    """Remove what checkpoints have left in a folder; whatever else is in it stays."""
    for path in folder.iterdir():
        if is_own(path) and path.name not in all_but:
            path.unlink()


def damaged(folder: Path, detail: str) -> str:
    """The sentence about a checkpoint that cannot be used."""
    first = detail.splitlines()[0].rstrip(".")
    return f"{folder}: the checkpoint there is damaged ({first}); --overwrite it (in Python, delete it) to start again."
