"""Folds of a stack in a folder of checkpoints: a fitting that was interrupted continues with the next fold.

    fold-N.safetensors    evidence about the pairs of fold N, whether each is a link, and how many pairs it stands for
    checkpoint.json       the fitting's fingerprint, the number of threads, and the hashes of the folds that are done

A fold is written first, then checkpoint.json is replaced in one step. A process that is killed at any moment leaves
the folds that were done. Nothing that is loaded can execute code.
"""

from __future__ import annotations

import hashlib
import time
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize

from vgae.errors import InputError, TrainingError
from vgae.graph.graph import Graph
from vgae.io.atomic import atomic_write
from vgae.io.json_files import hash_json, read_json, write_json
from vgae.io.plain import read_plain
from vgae.runs.checkpoint import (
    DESCRIPTION,
    FORMAT,
    damaged,
    has_checkpoint,
    read_threads,
    remove_checkpoint,
    writing_to,
)
from vgae.runs.checks import HEADER, check_keys, check_version, is_number
from vgae.runs.fingerprint import require_no_difference
from vgae.stack.config import StackConfig
from vgae.stack.contenders import FoldEvidence, most_listed
from vgae.stack.strata import SampleSizes
from vgae.train.callbacks import Callback, Warnings
from vgae.train.config import choose_device
from vgae.train.threads import same_threads
from vgae.version import __version__
from vgae.visible import visible

KEYS = {"format", "vgae", "torch", "numpy", "owner", "threads", "seconds", "sha256", "hash"}
UNREADABLE = (ArithmeticError, LookupError, MemoryError, OSError, RuntimeError, SafetensorError, TypeError, ValueError)


@dataclass(frozen=True)
class StackFingerprint:
    """What tells the fitting of one stack from another: folds are of no use to any but their own."""

    stack: StackConfig
    graph_hash: str
    device: str
    bases: dict[str, Any]  # the columns of each, or the options of an auto-encoder
    num_links: int

    @classmethod
    def of(cls, graph: Graph, config: StackConfig) -> StackFingerprint:
        """That of a stack to be fitted on a training graph."""
        seen = config.view(graph)
        bases = {
            base.text: list(base.columns) if base.config is None else base.config.to_json()
            for base in config.bases_for(seen)
        }
        for options in bases.values():
            if isinstance(options, dict):
                del options["device"]  # which kind it is, is said above, and no more matters
        return cls(config, seen.content_hash, choose_device(config.device).type, bases, seen.num_links)

    @property
    def num_columns(self) -> int:
        """Columns of evidence."""
        return sum(1 if isinstance(each, dict) else len(each) for each in self.bases.values())

    def to_json(self) -> dict[str, Any]:
        """As checkpoint.json has it."""
        return {**vars(self), "stack": self.stack.to_json()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> StackFingerprint:
        """The inverse of `to_json`."""
        check_keys(values, (field.name for field in fields(cls)), "owner")
        return cls(**{**values, "stack": StackConfig.from_json(dict(values["stack"]))})

    def require_same(self, theirs: StackFingerprint) -> None:
        """Refuse what belongs to the fitting of another stack, and say in what it differs."""
        found = list(theirs.stack.differences(self.stack))
        if theirs.device != self.device:
            found.append(f"device {theirs.device}, not {self.device}")
        if theirs.graph_hash != self.graph_hash:
            found.append("another training graph")
        elif not found and theirs.bases != self.bases:
            found.append("bases as another version of vgae has them")
        require_no_difference(found)


class FolderFolds:
    """Saves folds in a folder while it is entered; one process at a time.

    `is_locked` says that whoever makes this holds the folder's lock already.
    """

    def __init__(
        self,
        folder: Path,
        fingerprint: StackFingerprint,
        *,
        callback: Callback | None = None,
        is_locked: bool = False,
    ) -> None:
        self.folder, self.fingerprint, self.is_locked = folder, fingerprint, is_locked
        self.callback = callback or Warnings()
        self.open = ExitStack()
        self.hashes: dict[str, str] = {}
        self.seconds_before = 0.0  # that the folds which were there have taken
        self.started = time.perf_counter()
        self.is_failing = False

    def __enter__(self) -> Self:
        self.open.enter_context(writing_to(self.folder, "folds", is_locked=self.is_locked))
        try:
            if has_checkpoint(self.folder):
                self._read_description()
        except BaseException:
            self.open.close()
            raise
        self.started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, TrainingError):
            remove_checkpoint(self.folder)
        self.open.close()

    def save_last(self) -> bool:
        """Whether all folds are saved, which is everything that a fitting continues from."""
        return len(self.hashes) == self.fingerprint.stack.folds

    # ----------------------------------------------------------------------------------------------------------- folds

    def load(self, fold: int) -> FoldEvidence | None:
        """The fold, if it is there; one that is damaged is refused."""
        if str(fold) not in self.hashes:
            return None
        try:
            return self._read_fold(fold)
        except UNREADABLE as error:
            raise InputError(damaged(self.folder, str(error) or type(error).__name__)) from None

    def save(self, fold: int, found: FoldEvidence) -> None:
        """Save a fold; where that is not possible, fitting continues without it."""
        data = serialize({name: torch.from_numpy(np.ascontiguousarray(each)) for name, each in vars(found).items()})
        try:
            with atomic_write(self.folder / _name(fold), durable=True, follow_links=False) as file:
                file.write(data)
            self._write_description(self.hashes | {str(fold): hashlib.sha256(data).hexdigest()})
        except OSError as error:
            if not self.is_failing:
                self.callback.on_warning(
                    f"{self.folder}: fold {fold + 1} cannot be saved ({error.strerror}); fitting continues without it"
                )
            self.is_failing = True
            return
        self.is_failing = False

    def _read_fold(self, fold: int) -> FoldEvidence:
        name = _name(fold)
        owner = self.fingerprint
        sizes = SampleSizes()
        most = owner.num_links + sizes.two_hop + sizes.others + most_listed(owner.num_columns)
        try:
            data = read_plain(self.folder / name, HEADER + most * (4 * owner.num_columns + 1 + 8))
        except (InputError, FileNotFoundError):
            raise ValueError(f"{name} is missing, a link, or larger than a fold can be") from None
        if hashlib.sha256(data).hexdigest() != self.hashes[str(fold)]:
            raise ValueError(f"{name} does not match its hash")
        arrays = {key: tensor.clone().numpy() for key, tensor in deserialize(data).items()}
        if set(arrays) != {each.name for each in fields(FoldEvidence)}:
            raise ValueError(f"{name} holds other arrays than a fold has")
        found = FoldEvidence(**arrays)
        rows = len(found.labels)
        layout = {key: (each.shape, each.dtype.name) for key, each in arrays.items()}
        if layout != {
            "evidence": ((rows, owner.num_columns), "float32"),
            "labels": ((rows,), "uint8"),
            "weights": ((rows,), "float64"),
        }:
            raise ValueError(f"{name} holds arrays of another form than this stack has")
        if (found.labels > 1).any() or not (np.isfinite(found.weights) & (found.weights > 0)).all():
            raise ValueError(f"{name} holds labels or weights that cannot be")
        return found

    # ----------------------------------------------------------------------------------------------------- description

    def _write_description(self, hashes: dict[str, str]) -> None:
        content = {
            "format": FORMAT,
            "vgae": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "owner": self.fingerprint.to_json(),
            "threads": torch.get_num_threads(),
            "seconds": self.seconds_before + time.perf_counter() - self.started,
            "sha256": hashes,
        }
        described = {**content, "hash": hash_json(content)}
        write_json(self.folder / DESCRIPTION, described, durable=True, follow_links=False)
        self.hashes = hashes

    def _read_description(self) -> None:
        try:
            self._check_description()
        except InputError as error:
            where = "" if visible(str(self.folder)) in str(error) else f"{self.folder}: "
            raise InputError(f"{where}{str(error).rstrip('.')}.") from None
        except UNREADABLE as error:
            raise InputError(damaged(self.folder, str(error) or type(error).__name__)) from None

    def _check_description(self) -> None:
        try:
            content = read_json(self.folder / DESCRIPTION, follow_links=False)
        except InputError:
            raise ValueError(f"{DESCRIPTION} is not readable") from None
        if type(content.get("format")) is not int or content["format"] != FORMAT:
            raise InputError(f"{self.folder}: a checkpoint that this version of vgae does not read; --overwrite it.")
        check_version(content.get("vgae"))
        if isinstance(content.get("owner"), dict) and "config" in content["owner"]:
            require_no_difference(["a model, not a stack"])
        try:
            check_keys(content, KEYS, DESCRIPTION)
        except InputError as error:
            raise ValueError(str(error)) from None
        given_hash = content.pop("hash")
        if hash_json(content) != given_hash:
            raise ValueError(f"{DESCRIPTION} does not match its own hash")
        self.fingerprint.require_same(StackFingerprint.from_json(content["owner"]))
        hashes, seconds = content["sha256"], content["seconds"]
        names = {str(fold) for fold in range(self.fingerprint.stack.folds)}
        if not isinstance(hashes, dict) or not set(hashes) <= names or not is_number(seconds):
            raise ValueError("its list of folds or its seconds are not valid")
        if self.fingerprint.device == "cpu":
            self.open.enter_context(same_threads(read_threads(content), self.callback))
        self.hashes, self.seconds_before = hashes, max(0.0, seconds)


def _name(fold: int) -> str:
    return f"fold-{fold}.safetensors"
