"""The files of a run, the folder that holds one trained model.

    config.json            the configuration, where the graph came from, versions, the recipe of the features if they
                           came from a node table, and the hashes of the other files
    model.safetensors      the weights, and the posterior's parameters over the training graph
    split.npz              the training graph's links with their weights and directions, the held-out pairs, the nodes'
                           ids and labels
    features.safetensors   the nodes' features, if the model uses any
    history.jsonl          the logged iterations
    metrics.json           the scores on the held-out pairs

What is read is not trusted: files must be plain ones in the folder, of a size that the configuration allows for, and
match their hashes; vgae.runs.checks says what they may hold. Nothing that is loaded can execute code.

Each file is read once, and what was read is what is checked and used. A run may be replaced meanwhile (see
vgae.runs.folder): config.json says which files belong together, and a set that does not is read again if anything in
the folder has changed. A run that is complete but still on its way from checkpoint/run/ into the folder is read from
both.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors import SafetensorError

from vgae.errors import InputError
from vgae.io.atomic import atomic_write, sync_folder
from vgae.io.json_files import hash_json, json_line, write_json
from vgae.io.splits import write_split
from vgae.io.tensors import write_tensors
from vgae.runs.baseline_run import BaselineRun
from vgae.runs.checks import check_keys, check_version
from vgae.runs.opened import CONFIG, FILES, RunFiles, file_hash, pack_features
from vgae.runs.run import Run
from vgae.version import __version__
from vgae.visible import visible

if TYPE_CHECKING:
    from vgae.runs.stack_run import StackRun

FORMAT = 2
CHECKPOINT = "checkpoint"  # the folder of a training that is under way
STAGING = "run"  # in it, the folder of a run that is complete but not yet in its place
ATTEMPTS, PAUSE = 200, 0.01  # how often a run that is being replaced is read again, and the seconds between
LONGEST_SENTENCE = 400  # characters
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,
    SafetensorError,
    TypeError,
    ValueError,
)
KINDS = ("config", "baseline", "stack")  # what a run is of: a trained model, a baseline or a stack; one of them
DESCRIBED = (*KINDS, "facts", "split_hash", "recipe", "calibration")  # as far as there are any
KEYS = {"format", "vgae", "torch", "numpy", "facts", "split_hash", "config_hash", "files"}


def write_run(folder: Path, run: Run | BaselineRun | StackRun) -> None:
    """Write all files of a run into an existing folder; config.json last, with the hashes of the others.

    When config.json is there, all of them outlast a power cut.
    """
    tensors = {name: tensor.numpy() for name, tensor in run.tensors().items()}
    with atomic_write(folder / "model.safetensors") as file:
        write_tensors(file, tensors)
    write_split(folder / "split.npz", run.split)
    with atomic_write(folder / "features.safetensors") as file:
        write_tensors(file, pack_features(run.split.train))
    with atomic_write(folder / "history.jsonl") as file:
        file.writelines(json_line(entry.to_json()) for entry in (run.history if isinstance(run, Run) else []))
    write_json(folder / "metrics.json", run.metrics)
    described = run.described()
    described["split_hash"] = run.split.content_hash
    if run.calibration.is_fitted:
        described["calibration"] = run.calibration.to_json()
    content = {
        "format": FORMAT,
        "vgae": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        **described,
        "config_hash": hash_json(described),
        "files": {name: file_hash(folder / name) for name in FILES},
    }
    sync_folder(folder)
    write_json(folder / CONFIG, content, durable=True)


def read_run(folder: Path) -> Run:
    """Read the run of a trained model; any file that is missing, damaged or of another version gets one sentence."""
    run = read_any_run(folder)
    if isinstance(run, Run):
        return run
    what = f"the baseline {run.config.method}" if isinstance(run, BaselineRun) else "a stack"
    raise InputError(f"{folder}: this run is of {what}, which has no training of its own and no latent space.")


def read_any_run(folder: Path) -> Run | BaselineRun | StackRun:
    """Read a run, of a trained model, of a baseline or of a stack."""
    try:
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such run folder.")
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be read ({error.strerror}).") from None
    for _ in range(ATTEMPTS):
        before = _marks(folder)
        try:
            return _read_either(folder)
        except InputError as error:
            failure = error
        if _marks(folder) == before:
            raise failure
        time.sleep(PAUSE)
    raise InputError(f"{folder}: this run is replaced again and again; wait for the process that writes it.")


def staging_of(folder: Path) -> Path | None:
    """Where a run folder keeps a run that is not yet in its place; a link could lead out of the folder."""
    checkpoint = folder / CHECKPOINT
    staging = checkpoint / STAGING
    return None if checkpoint.is_symlink() or staging.is_symlink() or not staging.is_dir() else staging


def _marks(folder: Path) -> list[tuple[int, ...] | None]:
    """What tells whether any file of a run was replaced between two looks."""
    names = (CONFIG, *FILES)
    return [_mark(place / name) for place in (folder, folder / CHECKPOINT / STAGING) for name in names]


def _mark(path: Path) -> tuple[int, ...] | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _read_either(folder: Path) -> Run | BaselineRun | StackRun:
    """The run in its place or, where files of it are not there yet or no longer, the one that is to take its place."""
    staging = staging_of(folder)
    staged = staging is not None and os.path.lexists(staging / CONFIG)
    if not os.path.lexists(folder / CONFIG) and not staged:
        if (folder / CHECKPOINT).is_dir():
            raise InputError(f"{folder}: this run is unfinished; vgae train with --resume continues it.")
        seeds = sorted(path.name for path in folder.glob("seed-*") if (path / CONFIG).is_file())
        if seeds:
            raise InputError(
                f"{folder}: there is a run for each of several seeds; name one, such as {folder / seeds[0]}."
            )
        raise InputError(f"{folder}: this is not a run folder, or its config.json is missing.")
    try:
        return _read_from(folder, [folder])
    except InputError as error:
        if staging is None or not staged:
            raise
        failure = error
    try:
        return _read_from(folder, [staging, folder])
    except InputError:
        raise failure from None


def _read_from(folder: Path, places: Sequence[Path]) -> Run | BaselineRun | StackRun:
    try:
        with ExitStack() as opened:
            return _read(RunFiles(places, opened))
    except InputError as error:
        where = "" if visible(str(folder)) in str(error) else f"{folder}: "
        raise InputError(f"{where}{_shortened(str(error)).rstrip('.')}.") from None
    except UNREADABLE as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{folder}: the run is damaged ({_shortened(detail)}); train it again.") from None


def _shortened(text: str) -> str:
    """A sentence that may quote what somebody has put into a file."""
    return text if len(text) <= LONGEST_SENTENCE else f"{text[: LONGEST_SENTENCE // 2]}…{text[-50:]}"


def _read(run: RunFiles) -> Run | BaselineRun | StackRun:
    content = run.content
    if type(content.get("format")) is not int or content["format"] != FORMAT:
        raise InputError(f"{run.path}: not a run that this version of vgae reads (format {FORMAT}).")
    check_version(content.get("vgae"))
    kind = next((name for name in reversed(KINDS) if name in content), KINDS[0])
    check_keys(content, KEYS | {kind}, str(run.path), optional=["recipe", "calibration"])
    if not all(isinstance(content[name], str) for name in ("torch", "numpy")):
        raise ValueError("the versions of torch and NumPy are no text")
    described = {name: content[name] for name in DESCRIBED if name in content}
    if hash_json(described) != content["config_hash"]:
        raise InputError("config.json does not match its own hash; it is damaged or was edited.")
    if kind == "stack":  # what it is made of is not needed for any other
        found: StackRun = import_module("vgae.runs.stack_run").StackRun.read(run)
        return found
    return BaselineRun.read(run) if kind == "baseline" else Run.read(run)
