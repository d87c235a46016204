"""Runs from strangers: whatever was done to one, it is refused in a sentence, and nothing in it is executed."""

import hashlib
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import vgae
from helpers import message_of
from vgae.graph.files import hash_json
from vgae.train.run import FILES


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("honest") / "run"
    split = vgae.split_links(vgae.stochastic_block_model(120, 3, feature_dim=30, seed=5), seed=2)
    model = vgae.VGAE(iterations=5, hidden_dim=8, latent_dim=4).fit(split.train, validation=split.val)
    model.save(folder, split=split)
    return folder


@pytest.fixture
def run(tmp_path: Path, honest: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    for path in honest.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder


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
    described = {name: content[name] for name in ("config", "facts", "split_hash")}
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
    "a list of scores": change_text("metrics.json", lambda _: '{"test": [1, 2]}'),
    **{f"a link for {name}": link_away(name) for name in (*FILES, "config.json")},
}


@pytest.mark.parametrize("how", TAMPERED)
def test_tampered_run_is_refused_and_executes_nothing(run: Path, how: str) -> None:
    TAMPERED[how](run)
    said = message_of(lambda: vgae.load(run))
    assert str(run) in said
    assert "\n" not in said
    assert not (run.parent / "executed").exists()


@pytest.mark.parametrize(
    ("how", "command", "words"),
    [
        (pickled_weights, ["evaluate", "run"], "damaged"),
        (pickled_ids, ["embed", "run", "--out", "z.csv"], "Python objects"),
        (change_config(facts__num_features=10**12), ["evaluate", "run"], "not the weights of the model"),
    ],
)
def test_command_refuses_a_tampered_run(run: Path, how: Callable[[Path], None], command: list[str], words: str) -> None:
    how(run)
    done = subprocess.run(
        [sys.executable, "-m", "vgae", *command], cwd=run.parent, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("vgae: run")
    assert words in done.stderr
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_honest_run_is_read(run: Path) -> None:
    """The tools above, used without a change, leave a run that is read: what they refuse is the change."""
    change_tensor(WEIGHT, lambda tensor: tensor)(run)
    change_split(train=lambda pairs: pairs)(run)
    change_features(lambda parts: parts)(run)
    change_text("history.jsonl", lambda text: text)(run)
    assert vgae.load(run).score(vgae.load(run).run_.split.test)["auc"] > 0  # type: ignore[union-attr]


def test_run_may_be_reached_through_a_link(run: Path) -> None:
    (run.parent / "link").symlink_to(run)
    np.testing.assert_array_equal(vgae.load(run.parent / "link").transform(), vgae.load(run).transform())


@pytest.mark.skipif(torch.cuda.is_available(), reason="it is about machines without a GPU")
@pytest.mark.parametrize("device", ["cuda", "cuda:3"])
def test_run_from_a_gpu_is_used_without_one(run: Path, device: str) -> None:
    expected = vgae.load(run)
    edit(run, config__device=device)
    model = vgae.load(run)
    assert (model.device, model.config_.device) == ("auto", device)
    graph = vgae.stochastic_block_model(40, 2, feature_dim=30, seed=1)
    np.testing.assert_array_equal(model.transform(graph), expected.transform(graph))
    model.save(run.parent / "copy")
    copy = (run.parent / "copy" / "config.json").read_text()
    assert json.loads(copy) == json.loads((run / "config.json").read_text())
