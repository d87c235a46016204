"""What somebody who means harm does to a run: each changes files, and has config.json vouch for them."""

import hashlib
import json
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from vgae.io.json_files import hash_json
from vgae.runs.files import DESCRIBED
from vgae.runs.opened import FILES


def edit(run: Path, **changes: Any) -> None:
    """Change config.json (`config__seed=1` inside a part) and have it vouch for itself and for all files."""
    content = json.loads((run / "config.json").read_text())
    for name, value in changes.items():
        *parts, last = name.split("__")
        inner = content
        for part in parts:
            inner = inner[part]
        inner[last] = value
    content["files"] |= {name: hashlib.sha256((run / name).read_bytes()).hexdigest() for name in FILES}
    described = {name: content[name] for name in DESCRIBED if name in content}
    (run / "config.json").write_text(json.dumps({**content, "config_hash": hash_json(described)}))


def change_config(**changes: Any) -> Callable[[Path], None]:
    return lambda run: edit(run, **changes)


def change_tensor(name: str, change: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        tensors = load_file(run / "model.safetensors")
        tensors[name] = change(tensors[name]).contiguous()
        save_file(tensors, run / "model.safetensors")
        edit(run)

    return tamper


def change_features(change: Callable[[dict[str, torch.Tensor]], dict[str, torch.Tensor]]) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        save_file(change(load_file(run / "features.safetensors")), run / "features.safetensors")
        edit(run)

    return tamper


def change_split(**changes: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Change arrays of split.npz, with its own hash and those of config.json made to fit."""

    def tamper(run: Path) -> None:
        with np.load(run / "split.npz") as archive:
            arrays = dict(archive)
        for name, change in changes.items():
            arrays[name] = change(arrays[name])
        digest = hashlib.sha256(str(int(arrays["num_nodes"])).encode())
        for name in ("train", "val_links", "val_non_links", "test_links", "test_non_links"):
            digest.update(f"{name},{len(arrays[name])}".encode())
            digest.update(arrays[name].tobytes())
        arrays["content_hash"] = np.array(digest.hexdigest())
        np.savez(run / "split.npz", allow_pickle=True, **arrays)
        edit(run, split_hash=digest.hexdigest())

    return tamper


def change_text(name: str, change: Callable[[str], str]) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        (run / name).write_text(change((run / name).read_text()))
        edit(run)

    return tamper


def replace_config(text: str) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        (run / "config.json").write_text(text)

    return tamper


def link_away(name: str) -> Callable[[Path], None]:
    def tamper(run: Path) -> None:
        (run / name).rename(run.parent / "elsewhere")
        (run / name).symlink_to(run.parent / "elsewhere")

    return tamper


class Trap:
    """Touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.marker,)


def pickled_weights(run: Path) -> None:
    (run / "model.safetensors").write_bytes(pickle.dumps(Trap(run.parent / "executed")))
    edit(run)


def pickled_ids(run: Path) -> None:
    change_split(num_nodes=lambda number: number)(run)
    with np.load(run / "split.npz") as archive:
        arrays = dict(archive)
    traps = np.array([Trap(run.parent / "executed")] * 120, dtype=object)
    np.savez(run / "split.npz", allow_pickle=True, **arrays, node_ids=traps)
    edit(run)


def endless_array(run: Path) -> None:
    """An array that says it is larger than any memory."""
    path = run / "split.npz"
    with np.load(path) as archive:
        arrays = dict(archive)
    np.savez(path, allow_pickle=True, **arrays)
    shape = f"({len(arrays['train'])}, 2), "
    data = path.read_bytes()
    assert shape.encode() in data
    path.write_bytes(
        data.replace(f"{shape}}}{' ' * 12}".encode(), f"({10**15}, 2), }}".ljust(len(shape) + 13).encode())
    )
    edit(run)


WEIGHT = "encoder.input_weight"
TAMPERED: dict[str, Callable[[Path], None]] = {
    "weights of another shape": change_tensor(WEIGHT, lambda tensor: tensor[:-1]),
    "weights of another type": change_tensor(WEIGHT, lambda tensor: tensor.double()),
    "whole numbers for weights": change_tensor(WEIGHT, lambda tensor: tensor.long()),
    "nan in the weights": change_tensor(WEIGHT, lambda tensor: tensor * torch.nan),
    "infinite weights": change_tensor(WEIGHT, lambda tensor: tensor / 0),
    "latent of other nodes": change_tensor("latent.mean", lambda tensor: tensor[:-1]),
    "nan in the latent": change_tensor("latent.log_std", lambda tensor: tensor * torch.nan),
    "no features": change_features(lambda _: {}),
    "features that were changed": change_features(lambda parts: {**parts, "data": parts["data"] + 1}),
    "features of other columns": change_features(lambda parts: {**parts, "indices": parts["indices"] + 10**6}),
    "features in a loop": change_features(lambda parts: {**parts, "indptr": parts["indptr"].flip(0).contiguous()}),
    "nan in the features": change_features(lambda parts: {**parts, "data": parts["data"] * torch.nan}),
    "further tensors": change_features(lambda parts: {**parts, "more": parts["data"].clone()}),
    "a pickle for weights": pickled_weights,
    "pickles for ids": pickled_ids,
    "an array without end": endless_array,
    "links to other nodes": change_split(test_links=lambda pairs: pairs + 100),
    "links before the first node": change_split(val_non_links=lambda pairs: pairs - 100),
    "links in one row": change_split(test_links=lambda pairs: pairs.ravel()),
    "training links in one row": change_split(train=lambda pairs: pairs.ravel()),
    "absurdly many nodes": change_split(num_nodes=lambda _: np.array(10**15)),
    "fewer nodes": change_split(num_nodes=lambda _: np.array(119)),
    "a negative width": change_config(config__hidden_dim=-8),
    "a huge width": change_config(config__hidden_dim=2**16, config__latent_dim=2**16),
    "an absurd width": change_config(config__hidden_dim=10**18),
    "absurdly many features": change_config(facts__num_features=10**12),
    "negative features": change_config(facts__num_features=-30),
    "a huge number": change_config(config__learning_rate=10**400),
    "an infinite number": change_config(facts__seconds=float("inf")),
    "a path for a model": change_config(config__model="../../evil"),
    "a list for a dataset": change_config(facts__dataset=["/etc/passwd"]),
    "a further option": change_config(config__execute="rm"),
    "a further fact": change_config(facts__execute="rm"),
    "a further key": change_config(execute="rm"),
    "a further file": lambda run: edit(run, **{"files__../evil": "0" * 64}),
    "no facts": change_config(facts=None),
    "files that are none": change_config(config=[]),
    "another format": change_config(format=1),
    "a number with too many digits": replace_config('{"format": ' + "9" * 5000 + "}"),
    "deep nesting": replace_config("[" * 200_000),
    "an empty history": change_text("history.jsonl", lambda _: ""),
    "words in the history": change_text("history.jsonl", lambda text: re.sub('"loss": [^,]*', '"loss": "low"', text)),
    "a history of text": change_text("history.jsonl", lambda text: text.replace('"iteration": 1', '"iteration": "1"')),
    "an infinite history": change_text("history.jsonl", lambda text: re.sub('"kl": [^,]*', '"kl": 1e999', text)),
    "infinite scores": change_text("metrics.json", lambda text: re.sub('"auc": [^,]*', '"auc": 1e999', text)),
    "scores above 1": change_text("metrics.json", lambda text: re.sub('"auc": [^,]*', '"auc": 5.5', text)),
    "negative scores": change_text("metrics.json", lambda text: re.sub('"ap": [^,]*', '"ap": -0.5', text)),
    "no auc": change_text("metrics.json", lambda text: re.sub('"auc": [^,]*,', "", text)),
    "no scores": change_text("metrics.json", lambda _: "{}"),
    "a score for a score": change_text("metrics.json", lambda text: text.replace("auc", "evil")),
    "a latent whose logits are infinite": change_tensor("latent.mean", lambda tensor: tensor * 0 + 3e38),
    "a latent whose squares overflow": change_tensor("latent.mean", lambda tensor: tensor * 0 + 1e19),
    "a spread beyond all numbers": change_tensor("latent.log_std", lambda tensor: tensor * 0 + 100),
    "a format that is no whole number": change_config(format=2.0),
    "a true format": change_config(format=True),
    "no version": change_config(vgae=""),
    "a version of other words": change_config(vgae="newest"),
    "a path for torch": change_config(torch=["torch"]),
    "a gap in the history": change_text("history.jsonl", lambda text: text.splitlines()[-1] + "\n"),
    "a short history": change_text("history.jsonl", lambda text: text.splitlines()[0] + "\n"),
    "a long history": change_text("history.jsonl", lambda text: text.replace('"iteration": 5', '"iteration": 50')),
    "a history without end": change_text("history.jsonl", lambda text: text + " " * 2**24),
    "scores without end": change_text("metrics.json", lambda text: text + " " * 2**24),
    "a best iteration to come": change_config(facts__best_iteration=6),
    "a negative time": change_config(facts__seconds=-1.0),
    "a recipe for a run without tables": change_config(recipe=[]),
    "a recipe that divides by nothing": change_config(recipe={"columns": [], "normalize": "columns", "scales": []}),
    "a recipe that divides by 0": change_config(recipe={"columns": [], "normalize": "columns", "scales": [0.0] * 30}),
    "a list of scores": change_text("metrics.json", lambda _: '{"test": [1, 2]}'),
    **{f"a link for {name}": link_away(name) for name in (*FILES, "config.json")},
}
