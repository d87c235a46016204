"""A run: the folder that keeps one trained model.

    config.json         the configuration, where the graph came from, versions, the recipe of the features if they came
                        from a node table, and the hashes of the other files
    model.safetensors   the weights, and the posterior's parameters over the training graph
    split.npz           the training graph's links with their weights and directions, the held-out pairs, the nodes' ids
                        and labels
    history.jsonl       the logged iterations
    metrics.json        the scores on the held-out pairs

What is read is not trusted: hashes must match, files must be plain ones in the folder, shapes must be those that the
configuration asks for before any memory is taken for them. Nothing that is loaded can execute code. How a run folder
comes into being is told in vgae.train.folder.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from safetensors.torch import save as serialize
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.files import atomic_write, hash_json, read_json, write_json
from vgae.graph.graph import Graph
from vgae.graph.nodes import FeatureRecipe
from vgae.graph.pairs import check_pairs
from vgae.graph.split import LinkSplit
from vgae.model.autoencoder import AutoEncoder
from vgae.train.config import Config
from vgae.train.trainer import LogEntry
from vgae.version import __version__

FORMAT = 2
FILES = ("model.safetensors", "split.npz", "features.safetensors", "history.jsonl", "metrics.json")
CONFIG = "config.json"
PICTURES = (".png", ".svg", ".pdf")  # what vgae plot writes, and a run folder may hold beside its files
CHECKPOINT = "checkpoint"  # the folder of a training that is under way
LATENT = "latent."
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
DESCRIBED = ("config", "facts", "split_hash", "recipe")  # the last only where features came from a table
KEYS = {"format", "vgae", "torch", "numpy", "config", "facts", "split_hash", "config_hash", "files"}


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

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Facts:
        """Facts out of a run's config.json; ValueError where one of them cannot be."""
        facts = cls(**values)
        texts = (facts.dataset or "", facts.graph_hash, facts.objective_reason)
        counts = (facts.num_features, facts.best_iteration)
        if (
            not all(isinstance(text, str) for text in texts)
            or not all(type(count) is int and 0 <= count <= 2**40 for count in counts)
            or not (type(facts.seconds) in (int, float) and math.isfinite(facts.seconds))
            or facts.objective not in ("exact", "sampled")
        ):
            raise ValueError("config.json holds facts that cannot be")
        return facts


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


def write_run(folder: Path, run: Run) -> None:
    """Write all files of a run into an existing folder; config.json last, with the hashes of the others."""
    weights = {name: tensor.detach().cpu().contiguous() for name, tensor in run.model.state_dict().items()}
    latent = {LATENT + name: tensor.detach().cpu().contiguous() for name, tensor in run.latent.items()}
    with atomic_write(folder / "model.safetensors") as file:
        file.write(serialize(weights | latent))
    run.split.save(folder / "split.npz")
    with atomic_write(folder / "features.safetensors") as file:
        file.write(serialize(_pack_features(run.split.train)))
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
        "config_hash": hash_json(described),
        "files": {name: _sha256(folder / name) for name in FILES},
    }
    write_json(folder / "config.json", content)


def read_run(folder: Path) -> Run:
    """Read a run; any file that is missing, damaged or of another version gets one sentence."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such run folder.")
    if not (folder / CONFIG).exists():
        if (folder / CHECKPOINT).is_dir():
            raise InputError(f"{folder}: this run is unfinished; vgae train with --resume goes on with it.")
        raise InputError(f"{folder}: this is not a run folder, or its config.json is missing.")
    try:
        return _read(folder)
    except InputError as error:
        where = "" if str(folder) in str(error) else f"{folder}: "
        raise InputError(f"{where}{error}") from None
    except UNREADABLE as error:
        detail = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{folder}: the run is damaged ({detail}); train it again.") from None


def _read(folder: Path) -> Run:
    _require_plain(folder / CONFIG)
    content = read_json(folder / CONFIG)
    if content.get("format") != FORMAT:
        raise InputError(f"{folder / CONFIG}: not a run that this version of vgae reads (format {FORMAT}).")
    odd = (set(content) ^ KEYS) - {"recipe"}
    if odd:
        raise InputError(f"{folder / CONFIG}: {', '.join(sorted(odd))}: missing or not known.")
    described = {name: content[name] for name in DESCRIBED if name in content}
    if hash_json(described) != content["config_hash"]:
        raise InputError("config.json does not match its own hash; it is damaged or was edited")
    _check_files(folder, content["files"])
    config = Config.from_json(content["config"])
    facts = Facts.from_json(content["facts"])
    recipe = FeatureRecipe.from_json(content["recipe"]) if "recipe" in content else None
    split = LinkSplit.load(folder / "split.npz")
    if split.content_hash != content["split_hash"]:
        raise InputError("split.npz is not the split that config.json names")
    for name, held_out in (("validation", split.val), ("test", split.test)):
        check_pairs(held_out.pairs, split.train.num_nodes, f"split.npz, {name}")
    tensors = load_file(folder / "model.safetensors")
    _check_numbers(tensors)
    latent = {name.removeprefix(LATENT): tensor for name, tensor in tensors.items() if name.startswith(LATENT)}
    model = _restore_model(config, facts.num_features or split.train.num_nodes, tensors)
    _check_latent(model, latent, split)
    split = _with_features(split, load_file(folder / "features.safetensors"), facts)
    history = [LogEntry.from_json(json.loads(line)) for line in (folder / "history.jsonl").read_text().splitlines()]
    if not history:
        raise ValueError("history.jsonl is empty")
    return Run(config, model, latent, split, history, _read_metrics(folder / "metrics.json"), facts, recipe)


def _check_files(folder: Path, hashes: dict[str, str]) -> None:
    if set(hashes) != set(FILES):
        raise InputError(f"config.json names other files than {', '.join(FILES)}; it is damaged or was edited.")
    for name in FILES:
        path = folder / name
        if not path.exists():
            raise InputError(f"{path}: the file is missing from the run; train it again.")
        _require_plain(path)
        if _sha256(path) != hashes.get(name):
            raise InputError(f"{path}: the file does not match the hash in config.json; it is damaged or was replaced.")


def _require_plain(path: Path) -> None:
    """A link could lead out of the folder, to what nobody meant to give away."""
    if path.is_symlink() or not path.is_file():
        raise InputError(f"{path}: not a plain file; a run's files are in its folder, not linked to.")


def _check_numbers(tensors: dict[str, Tensor]) -> None:
    for name, tensor in tensors.items():
        if tensor.dtype != torch.float32 or not bool(torch.isfinite(tensor).all()):
            raise InputError(f"model.safetensors: {name} should hold finite float32 numbers.")


def _restore_model(config: Config, input_dim: int, tensors: dict[str, Tensor]) -> AutoEncoder:
    weights = {name: tensor for name, tensor in tensors.items() if not name.startswith(LATENT)}
    refusal = "model.safetensors: these are not the weights of the model in config.json."
    layers = (input_dim * config.hidden_dim, config.hidden_dim * config.latent_dim)
    if max(layers) > sum(tensor.numel() for tensor in weights.values()):  # before any memory is taken for them
        raise InputError(refusal)
    model = AutoEncoder.from_paper(config.model, input_dim, config.hidden_dim, config.latent_dim, torch.Generator())
    try:
        model.load_state_dict(weights)
    except RuntimeError:
        raise InputError(refusal) from None
    return model


def _check_latent(model: AutoEncoder, latent: dict[str, Tensor], split: LinkSplit) -> None:
    expected = (split.train.num_nodes, model.encoder.latent_dim)
    if set(latent) != set(model.posterior.heads):
        raise InputError(f"model.safetensors: {LATENT}* should be {', '.join(model.posterior.heads)}.")
    for head, tensor in latent.items():
        if tuple(tensor.shape) != expected:
            raise InputError(f"model.safetensors: {LATENT}{head} should be {expected[0]}×{expected[1]}.")


def _pack_features(graph: Graph) -> dict[str, Tensor]:
    features: Any = graph.features
    if features is None:
        return {}
    if sp.issparse(features):
        parts = {"data": features.data, "indices": features.indices, "indptr": features.indptr}
        return {name: torch.tensor(part) for name, part in parts.items()}
    return {"features": torch.tensor(features)}


def _with_features(split: LinkSplit, tensors: dict[str, Tensor], facts: Facts) -> LinkSplit:
    """The split with the features of its training graph, which then has to be the one that was trained on."""
    parts = {name: tensor.numpy() for name, tensor in tensors.items()}
    features: Any = parts.pop("features", None)
    if parts:
        shape = (split.train.num_nodes, facts.num_features)
        features = sp.csr_array((parts.pop("data"), parts.pop("indices"), parts.pop("indptr")), shape=shape)
    graph = replace(split.train, features=features)
    if parts or graph.content_hash != facts.graph_hash:
        raise InputError("features.safetensors: these are not the features that the model was trained on.")
    return replace(split, train=graph)


def _read_metrics(path: Path) -> dict[str, dict[str, float]]:
    metrics = read_json(path)
    values = [value for part in metrics.values() for value in part.values()]
    known = set(metrics) <= {"validation", "test"}
    if not known or not all(type(value) in (int, float) and math.isfinite(value) for value in values):
        raise ValueError("metrics.json holds something other than scores")
    return metrics


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
