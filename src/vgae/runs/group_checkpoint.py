"""Checkpoints of a group of processes: each writes the rows of its own nodes, and the first the record of them all.

    state-N-R.safetensors   the rows of process R after iteration N, written by that process
    state-N.safetensors     what is the same in all processes, written by the first one
    checkpoint.json         as for one process, with the ranges of the nodes and the hashes of all these files

checkpoint.json is replaced, in one step, when the files of all processes are written and flushed, and only then do the
files of the checkpoint before go. So whichever process is killed, at whatever moment, one checkpoint or the other is
whole. The folder has to be one that all processes see: on several machines, on a file system that they share.
"""

from __future__ import annotations

import hashlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

import torch
from safetensors.torch import save as serialize

from vgae.errors import InputError, TrainingError
from vgae.io.atomic import atomic_write
from vgae.parallel.agreement import gather_json
from vgae.parallel.group import Group
from vgae.runs.checkpoint import (
    FolderCheckpointer,
    has_checkpoint,
    is_finite,
    read_checkpoint,
    read_description,
    saved_iteration,
    write_checkpoint,
)
from vgae.runs.fingerprint import Fingerprint
from vgae.runs.parts import Parts, num_bytes_of, state_name
from vgae.runs.schedule import Schedule
from vgae.train.callbacks import Callback
from vgae.train.state import Layouts, Sharding, TrainingState


class _Silent(Callback):
    """The first process says what there is to say."""

    def on_warning(self, text: str) -> None:
        """Say nothing."""


class GroupCheckpointer(FolderCheckpointer):
    """Saves the state of a training in a group; every process makes one, and only the first holds the folder's lock."""

    def __init__(
        self,
        group: Group,
        folder: Path,
        fingerprint: Fingerprint,
        *,
        every: float | None = None,
        callback: Callback | None = None,
        is_locked: bool = False,
    ) -> None:
        heard = callback if group.is_first else _Silent()
        super().__init__(folder, fingerprint, every=every, callback=heard, is_locked=is_locked)
        self.group, self.num_processes = group, group.size
        self.sharding: Sharding | None = None

    def __enter__(self) -> Self:
        if self.group.is_first:
            super().__enter__()
        else:
            self.open.enter_context(self.stop)
        require_shared(self.group, self.folder)
        return self

    def on_shards(self, sharding: Sharding) -> None:
        """Learn which rows of which tensors this process has."""
        self.sharding = sharding

    def load(self, layouts: Layouts) -> TrainingState | None:
        """The state that is saved in the folder, checked, with the rows of this process; None if there is none."""
        sharding = self._sharding()
        self.schedule = Schedule(max(map(num_bytes_of, layouts.values())), every=self.every, clock=self.clock)
        first = self.group.is_first
        content = self.group.share(read_description(self.folder) if first and has_checkpoint(self.folder) else None)
        if content is None:
            return None
        return self._continued(read_checkpoint(self.folder, self.fingerprint, layouts, sharding, content))

    def save_last(self) -> bool:
        """Whether the state after the last iteration is saved; the first process cannot save that of the others."""
        return self.last is not None and saved_iteration(self.folder) == self.last().iteration

    def _agreed(self) -> tuple[bool, bool]:
        """Whether anybody was asked to stop, and whether a checkpoint is due by the clock of the first process."""
        is_due = self.group.is_first and self.schedule.due()
        stops, due = self.group.sum(torch.tensor([self.stop.asked, is_due], dtype=torch.int64)).tolist()
        return bool(stops), bool(due)

    def _write(self, state: TrainingState) -> bool:
        """Write the rows of this process and, in the first one, the rest; whether that was possible for all."""
        sharding = self._sharding()
        if self.group.any(not is_finite(state)):
            return False
        name = state_name(state.iteration, self.group.rank)
        rows = {each: tensor for each, tensor in state.tensors.items() if each in sharding.names}
        wrote: dict[str, Any] = {"threads": state.threads}
        try:
            data = serialize(rows)
            with atomic_write(self.folder / name, durable=True, follow_links=False) as file:
                file.write(data)
            wrote["sha256"] = hashlib.sha256(data).hexdigest()
        except OSError as error:
            wrote["failure"] = error.strerror or str(error)
        every = gather_json(self.group, wrote)
        failure = next(
            (f"rank {rank}: {each['failure']}" for rank, each in enumerate(every) if "failure" in each), None
        )
        if failure is None and self.group.is_first:
            failure = self._write_record(state, sharding, every)
        failure = self.group.share(failure)
        if failure is not None:
            with suppress(OSError):
                (self.folder / name).unlink(missing_ok=True)
        return self._wrote(state, failure)

    def _write_record(self, state: TrainingState, sharding: Sharding, every: list[dict[str, Any]]) -> str | None:
        """Write what all processes share, and checkpoint.json; why that was not possible, if it was not."""
        shared = {name: tensor for name, tensor in state.tensors.items() if name not in sharding.names}
        parts = Parts(
            sharding.shards.bounds,
            sharding.names,
            tuple(each["sha256"] for each in every),
            tuple(each["threads"] or 1 for each in every),
        )
        try:
            write_checkpoint(self.folder, self.fingerprint, replace(state, tensors=shared), parts)
        except OSError as error:
            return error.strerror or str(error)
        return None

    def _remove(self) -> None:
        if self.group.is_first:
            super()._remove()

    def _sharding(self) -> Sharding:
        if self.sharding is None:
            raise TrainingError("The nodes are not divided among the processes yet.")
        return self.sharding


def require_shared(group: Group, folder: Path) -> None:
    """Refuse a folder that the first process has made and others do not see."""
    group.barrier()  # it is made by now
    blind = [rank for rank, sees in enumerate(gather_json(group, folder.is_dir())) if not sees]
    if blind:
        raise InputError(
            f"{folder}: rank {blind[0]} does not see this folder, which the first process has made; with several "
            "machines, choose a folder on a file system that they share."
        )


def checkpointer_for(
    group: Group | None,
    folder: Path,
    fingerprint: Fingerprint,
    *,
    every: float | None,
    callback: Callback,
    is_locked: bool = False,
) -> FolderCheckpointer:
    """What saves the state of a training of one process, or of a group."""
    if group is None or group.size == 1:
        return FolderCheckpointer(folder, fingerprint, every=every, callback=callback, is_locked=is_locked)
    return GroupCheckpointer(group, folder, fingerprint, every=every, callback=callback, is_locked=is_locked)
