"""A run: the folder that keeps one trained model.

    config.json         the configuration, where the graph came from, versions, the recipe of the features if they came
                        from a node table, and the hashes of the other files
    model.safetensors   the weights, and the posterior's parameters over the training graph
    split.npz           the training graph's links with their weights and directions, the held-out pairs, the nodes' ids
                        and labels
    history.jsonl       the logged iterations
    metrics.json        the scores on the held-out pairs

A run is written under a temporary name and renamed when it is complete. Nothing that is loaded can execute code.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.files import atomic_write, read_json, write_json
from vgae.graph.nodes import FeatureRecipe
from vgae.graph.split import LinkSplit
from vgae.model.autoencoder import AutoEncoder
from vgae.train.config import Config
from vgae.train.trainer import LogEntry
from vgae.version import __version__

FORMAT = 1
FILES = ("model.safetensors", "split.npz", "history.jsonl", "metrics.json")
PICTURES = (".png", ".svg", ".pdf")  # what vgae plot writes, and a run folder may hold beside its files
LATENT = "latent."


@dataclass(frozen=True)
class Facts:
    """What was found out about a run beside its configuration."""

    dataset: str | None
    num_features: int
    graph_hash: str
    objective: str
    objective_reason: str
    best_iteration: int
    seconds: float


@dataclass(frozen=True, eq=False)
class Run:
    """All that a run folder holds."""

    config: Config
    model: AutoEncoder
    latent: dict[str, Tensor]
    split: LinkSplit
    history: list[LogEntry]
    metrics: dict[str, dict[str, float]]
    facts: Facts
    recipe: FeatureRecipe | None = None  # how a node table became the features


@contextmanager
def new_run_folder(folder: Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A staging folder that becomes `folder` when the block succeeds, and vanishes when it fails.

    Whether that will be possible is checked before the block runs, so that no training is lost to a bad path.
    """
    made: list[Path] = []
    try:
        target = folder.resolve()
        _require_replaceable(target, overwrite)
        made = [parent for parent in target.parents if not parent.exists()]
        target.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    except OSError as error:
        raise InputError(f"{folder}: the folder cannot be written ({error.strerror}); choose another.") from None
    try:
        yield staging
        staging.chmod(0o755)
        _require_replaceable(target, overwrite)  # somebody else may have been faster
        _swap(staging, target)
    except BaseException:
        shutil.rmtree(staging, ignore_errors=True)
        for parent in made:
            if parent.exists() and not any(parent.iterdir()):
                parent.rmdir()
        raise


def write_run(folder: Path, run: Run) -> None:
    """Write all files of a run into an existing folder; config.json last, with the hashes of the others."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in run.model.state_dict().items()}
    latent = {LATENT + name: tensor.detach().cpu().contiguous() for name, tensor in run.latent.items()}
    with atomic_write(folder / "model.safetensors") as file:
        file.write(serialize(weights | latent))
    run.split.save(folder / "split.npz")
    with atomic_write(folder / "history.jsonl") as file:
        file.writelines(json.dumps(asdict(entry)).encode() + b"\n" for entry in run.history)
    write_json(folder / "metrics.json", run.metrics)
    described: dict[str, Any] = {"config": asdict(run.config), "facts": asdict(run.facts)}
    described["split_hash"] = run.split.content_hash
    if run.recipe is not None:
        described["recipe"] = run.recipe.to_json()
    content = {
        "format": FORMAT,
        "vgae": __version__,
        "torch": torch.__version__,
        "numpy": np.__version__,
        **described,
        "config_hash": _hash_json(described),
        "files": {name: _sha256(folder / name) for name in FILES},
    }
    write_json(folder / "config.json", content)


def read_run(folder: Path) -> Run:
    """Read a run; any file that is missing, damaged or of another version gets one sentence."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such run folder.")
    if not (folder / "config.json").exists():
        raise InputError(f"{folder}: this is not a run folder, or its config.json is missing.")
    content = read_json(folder / "config.json")
    if content.get("format") != FORMAT:
        raise InputError(f"{folder / 'config.json'}: not a run that this version of vgae reads (format {FORMAT}).")
    try:
        described = {name: content[name] for name in ("config", "facts", "split_hash")}
        if "recipe" in content:
            described["recipe"] = content["recipe"]
        if _hash_json(described) != content["config_hash"]:
            raise InputError("config.json does not match its own hash; it is damaged or was edited")
        _check_files(folder, content["files"])
        config = Config.from_json(content["config"])
        facts = Facts(**content["facts"])
        recipe = FeatureRecipe.from_json(content["recipe"]) if "recipe" in content else None
        split = LinkSplit.load(folder / "split.npz")
        if split.content_hash != content["split_hash"]:
            raise InputError("split.npz is not the split that config.json names")
        tensors = load_file(folder / "model.safetensors")
        latent = {name.removeprefix(LATENT): tensor for name, tensor in tensors.items() if name.startswith(LATENT)}
        model = _restore_model(config, facts.num_features or split.train.num_nodes, tensors)
        lines = (folder / "history.jsonl").read_text().splitlines()
        history = [LogEntry(**json.loads(line)) for line in lines]
        metrics = read_json(folder / "metrics.json")
        _check_latent(model, latent, split)
    except InputError as error:
        where = "" if str(folder) in str(error) else f"{folder}: "
        raise InputError(f"{where}{error}") from None
    except (AttributeError, KeyError, TypeError, ValueError, RuntimeError, OSError, SafetensorError) as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{folder}: the run is damaged ({detail}); train it again.") from None
    return Run(config, model, latent, split, history, metrics, facts, recipe)


def _require_replaceable(folder: Path, overwrite: bool) -> None:
    """A new or empty folder always passes; a run of vgae if overwriting was asked for; nothing else ever."""
    if folder == Path.cwd():
        raise InputError(f"{folder}: the working folder itself cannot become a run; name a folder in it.")
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return
    if not overwrite:
        raise InputError(
            f"{folder}: this folder is already used; choose another, or --overwrite (overwrite=True) the run in it."
        )
    if not folder.is_dir() or not _is_run(folder):
        raise InputError(f"{folder}: this is not a run of vgae, so it is not overwritten; choose another folder.")


def _is_run(folder: Path) -> bool:
    """Whether the folder was written by vgae and holds nothing but a run and pictures of it."""
    try:
        content = read_json(folder / "config.json")
    except InputError:
        return False
    expected = {"config.json", *FILES}
    others = [path for path in folder.iterdir() if path.name not in expected and path.suffix not in PICTURES]
    return {"format", "vgae", "files"} <= set(content) and not others


def _swap(staging: Path, folder: Path) -> None:
    """Put the new folder in place; the old one is deleted only after that."""
    if not folder.exists():
        staging.rename(folder)
        return
    old = staging.with_name(f"{staging.name}.old")
    folder.rename(old)
    staging.rename(folder)
    shutil.rmtree(old)


def _check_files(folder: Path, hashes: dict[str, str]) -> None:
    for name in FILES:
        path = folder / name
        if not path.is_file():
            raise InputError(f"{path}: the file is missing from the run; train it again.")
        if _sha256(path) != hashes.get(name):
            raise InputError(f"{path}: the file does not match the hash in config.json; it is damaged or was replaced.")


def _restore_model(config: Config, input_dim: int, tensors: dict[str, Tensor]) -> AutoEncoder:
    model = AutoEncoder.from_paper(config.model, input_dim, config.hidden_dim, config.latent_dim, torch.Generator())
    model.load_state_dict({name: tensor for name, tensor in tensors.items() if not name.startswith(LATENT)})
    return model


def _check_latent(model: AutoEncoder, latent: dict[str, Tensor], split: LinkSplit) -> None:
    expected = (split.train.num_nodes, model.encoder.latent_dim)
    for head in model.posterior.heads:
        if head not in latent or tuple(latent[head].shape) != expected:
            raise InputError(f"model.safetensors: {LATENT}{head} should be {expected[0]}×{expected[1]}.")


def _hash_json(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
