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

import hashlib
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from importlib import import_module
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import scipy.sparse as sp
import torch
from safetensors import SafetensorError
from safetensors.torch import load as deserialize
from safetensors.torch import save as serialize
from torch import Tensor

from vgae.errors import InputError, TrainingError
from vgae.evaluation.calibration import Calibration
from vgae.graph.graph import Graph
from vgae.graph.pairs import check_pairs
from vgae.graph.split import LinkSplit
from vgae.io.atomic import atomic_write, sync_folder
from vgae.io.json_files import hash_json, json_limit, json_line, parse_json, write_json
from vgae.io.plain import open_plain, read_open
from vgae.io.splits import read_split, write_split
from vgae.memory import bytes_free
from vgae.model.autoencoder import AutoEncoder
from vgae.runs.baseline_run import (
    BaselineFacts,
    BaselineRun,
    embedding_limit,
    embedding_of,
    read_config,
)
from vgae.runs.checks import (
    LATENT,
    check_history,
    check_keys,
    check_latent,
    check_metrics,
    check_recipe,
    check_version,
    check_weights,
    features_limit,
    has_finite_logits,
    history_limit,
    model_limit,
    restore_model,
)
from vgae.runs.run import Facts, Run
from vgae.train.config import Config
from vgae.version import __version__
from vgae.visible import visible

FORMAT = 2
FILES = ("model.safetensors", "split.npz", "features.safetensors", "history.jsonl", "metrics.json")
CONFIG = "config.json"
CHECKPOINT = "checkpoint"  # the folder of a training that is under way
STAGING = "run"  # in it, the folder of a run that is complete but not yet in its place
ATTEMPTS, PAUSE = 200, 0.01  # how often a run that is being replaced is read again, and the seconds between
LONGEST_METRICS = 2**16  # bytes
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
DESCRIBED = ("config", "baseline", "facts", "split_hash", "recipe", "calibration")  # as far as there are any
KEYS = {"format", "vgae", "torch", "numpy", "config", "facts", "split_hash", "config_hash", "files"}


def write_run(folder: Path, run: Run | BaselineRun) -> None:
    """Write all files of a run into an existing folder; config.json last, with the hashes of the others.

    When config.json is there, all of them outlast a power cut.
    """
    tensors = run.tensors() if isinstance(run, BaselineRun) else _tensors_of(run)
    with atomic_write(folder / "model.safetensors") as file:
        file.write(serialize(tensors))
    write_split(folder / "split.npz", run.split)
    with atomic_write(folder / "features.safetensors") as file:
        file.write(serialize(_pack_features(run.split.train)))
    with atomic_write(folder / "history.jsonl") as file:
        file.writelines(json_line(entry.to_json()) for entry in ([] if isinstance(run, BaselineRun) else run.history))
    write_json(folder / "metrics.json", run.metrics)
    described = run.described() if isinstance(run, BaselineRun) else _described(run)
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


def _tensors_of(run: Run) -> dict[str, Tensor]:
    """The weights, and the posterior over the training graph."""
    if not has_finite_logits(run.model, run.latent):
        raise TrainingError("Training has diverged: embeddings are so large that logits are infinite; lower the rate.")
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in run.model.state_dict().items()}
    return weights | {LATENT + name: tensor.detach().cpu().contiguous() for name, tensor in run.latent.items()}


def _described(run: Run) -> dict[str, Any]:
    """What config.json says about a trained model."""
    recipe = {} if run.recipe is None else {"recipe": run.recipe.to_json()}
    return {"config": run.config.to_json(), "facts": asdict(run.facts), **recipe}


def read_run(folder: Path) -> Run:
    """Read the run of a trained model; any file that is missing, damaged or of another version gets one sentence."""
    run = read_any_run(folder)
    if isinstance(run, BaselineRun):
        what = f"the baseline {run.config.method}, which has no training and no latent space"
        raise InputError(f"{folder}: this run is of {what}.")
    return run


def read_any_run(folder: Path) -> Run | BaselineRun:
    """Read a run, of a trained model or of a baseline."""
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


def hashes_in(content: dict[str, Any]) -> dict[str, str]:
    """The hashes of a run's files out of its config.json."""
    hashes = content["files"]
    if not isinstance(hashes, dict) or set(hashes) != set(FILES):
        raise InputError(f"config.json names other files than {', '.join(FILES)}; it is damaged or was edited")
    return hashes


def file_hash(path: Path) -> str:
    """SHA-256 of a plain file."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def _read_either(folder: Path) -> Run | BaselineRun:
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


def _read_from(folder: Path, places: Sequence[Path]) -> Run | BaselineRun:
    try:
        with ExitStack() as opened:
            return _read(_Opened(places, opened))
    except InputError as error:
        where = "" if visible(str(folder)) in str(error) else f"{folder}: "
        raise InputError(f"{where}{_shortened(str(error)).rstrip('.')}.") from None
    except UNREADABLE as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{folder}: the run is damaged ({_shortened(detail)}); train it again.") from None


def _shortened(text: str) -> str:
    """A sentence that may quote what somebody has put into a file."""
    return text if len(text) <= LONGEST_SENTENCE else f"{text[: LONGEST_SENTENCE // 2]}…{text[-50:]}"


class _Opened:
    """The files of a run, each opened at once, and read once: what is checked is what is used.

    config.json comes from the first of the places, each other file from the first that has it as config.json says.
    """

    def __init__(self, places: Sequence[Path], opened: ExitStack) -> None:
        self.path = places[0] / CONFIG
        try:
            config = opened.enter_context(open_plain(self.path))
        except FileNotFoundError:
            raise InputError(f"{self.path}: the file is missing from the run; train it again.") from None
        self.files = {name: _open_first(places, name, opened) for name in FILES}
        self.content = parse_json(read_open(config, self.path, json_limit()), self.path)

    def read(self, name: str, at_most: float) -> bytes:
        """The bytes of a file, if their size can be and their hash is that in config.json."""
        expected, path = hashes_in(self.content)[name], self.files[name][0][0]
        for path, file in self.files[name]:
            data = read_open(file, path, at_most)
            if hashlib.sha256(data).hexdigest() == expected:
                return data
        raise InputError(f"{path}: the file does not match the hash in config.json; it is damaged or was replaced.")


def _open_first(places: Sequence[Path], name: str, opened: ExitStack) -> list[tuple[Path, BinaryIO]]:
    """A file of the run, opened in all places that have it."""
    found: list[tuple[Path, BinaryIO]] = []
    for place in places:
        try:
            found.append((place / name, opened.enter_context(open_plain(place / name))))
        except FileNotFoundError:
            continue
    if not found:
        raise InputError(f"{places[-1] / name}: the file is missing from the run; train it again.")
    return found


def _read(run: _Opened) -> Run | BaselineRun:
    content = run.content
    if type(content.get("format")) is not int or content["format"] != FORMAT:
        raise InputError(f"{run.path}: not a run that this version of vgae reads (format {FORMAT}).")
    check_version(content.get("vgae"))
    is_baseline = "baseline" in content
    keys = KEYS - {"config"} | {"baseline"} if is_baseline else KEYS
    check_keys(content, keys, str(run.path), optional=["recipe", "calibration"])
    if not all(isinstance(content[name], str) for name in ("torch", "numpy")):
        raise ValueError("the versions of torch and NumPy are no text")
    described = {name: content[name] for name in DESCRIBED if name in content}
    if hash_json(described) != content["config_hash"]:
        raise InputError("config.json does not match its own hash; it is damaged or was edited.")
    return _read_baseline(run) if is_baseline else _read_model_run(run)


def _read_baseline(run: _Opened) -> BaselineRun:
    content = run.content
    config, facts = read_config(content["baseline"]), BaselineFacts.from_json(content["facts"])
    split = _read_split(run, content["split_hash"])
    num_nodes = split.train.num_nodes
    tensors = deserialize(run.read("model.safetensors", embedding_limit(config, num_nodes)))
    embedding = embedding_of(config, tensors, num_nodes)
    split = _with_features(split, run, facts)
    metrics = check_metrics(parse_json(run.read("metrics.json", LONGEST_METRICS), Path("metrics.json")), split)
    return BaselineRun(config, embedding, split, metrics, facts, _read_calibration(content) or Calibration())


def _read_model_run(run: _Opened) -> Run:
    content = run.content
    if not isinstance(content["config"], dict):
        raise InputError("config: a JSON object is needed.")
    config, facts = Config.from_json(content["config"]), Facts.from_json(content["facts"])
    recipe = None
    if "recipe" in content:  # what reads it takes its time to import, and few runs have one
        recipe = import_module("vgae.io.recipe").FeatureRecipe.from_json(content["recipe"])
    if recipe is not None:
        check_recipe(recipe, facts.num_features)
    split = _read_split(run, content["split_hash"])
    config.loss_options.observed.labels(split.train)  # which refuses weights that are no labels
    model, latent = _read_model(run, config, facts, split)
    split = _with_features(split, run, facts)
    lines = run.read("history.jsonl", history_limit(config)).splitlines()
    history = check_history([json.loads(line) for line in lines], config)
    if facts.best_iteration > history[-1].iteration:
        raise ValueError("the best iteration comes after the last")
    metrics = check_metrics(parse_json(run.read("metrics.json", LONGEST_METRICS), Path("metrics.json")), split)
    return Run(config, model, latent, split, history, metrics, facts, recipe, _read_calibration(content))


def _read_calibration(content: dict[str, Any]) -> Calibration | None:
    return Calibration.from_json(content["calibration"]) if "calibration" in content else None


def _read_split(run: _Opened, split_hash: Any) -> LinkSplit:
    data = run.read("split.npz", bytes_free() / 2)
    split = read_split(run.files["split.npz"][-1][0], content=data)
    if split.content_hash != split_hash:
        raise InputError("split.npz is not the split that config.json names")
    for name, held_out in (("validation", split.val), ("test", split.test)):
        check_pairs(held_out.pairs, split.train.num_nodes, f"split.npz, {name}")
    return split


def _read_model(run: _Opened, config: Config, facts: Facts, split: LinkSplit) -> tuple[AutoEncoder, dict[str, Tensor]]:
    num_nodes = split.train.num_nodes
    tensors = deserialize(run.read("model.safetensors", model_limit(config, num_nodes, facts.num_features)))
    check_weights(tensors)
    latent = {name.removeprefix(LATENT): tensor for name, tensor in tensors.items() if name.startswith(LATENT)}
    model = restore_model(config, facts.num_features or num_nodes, tensors)
    check_latent(config, model, latent, num_nodes)
    return model, latent


def _pack_features(graph: Graph) -> dict[str, Tensor]:
    features: Any = graph.features
    if features is None:
        return {}
    if sp.issparse(features):
        parts = {"data": features.data, "indices": features.indices, "indptr": features.indptr}
        return {name: torch.tensor(part) for name, part in parts.items()}
    return {"features": torch.tensor(features)}


def _with_features(split: LinkSplit, run: _Opened, facts: Facts | BaselineFacts) -> LinkSplit:
    """The split with the features of its training graph, which then has to be the one that was trained on."""
    shape = (split.train.num_nodes, facts.num_features)
    tensors = deserialize(run.read("features.safetensors", features_limit(*shape)))
    parts = {name: tensor.numpy() for name, tensor in tensors.items()}
    features: Any = parts.pop("features", None)
    if parts:
        features = sp.csr_array((parts.pop("data"), parts.pop("indices"), parts.pop("indptr")), shape=shape)
    graph = split.train.with_parts(features=features)
    if parts or graph.content_hash != facts.graph_hash:
        raise InputError("features.safetensors: these are not the features that the model was trained on.")
    return replace(split, train=graph)
