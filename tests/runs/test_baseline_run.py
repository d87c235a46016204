"""The run folder of a baseline: what it may hold, and what is refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import vgae
from helpers import message_of
from vgae.io.json_files import hash_json
from vgae.runs.baseline_run import BaselineConfig, BaselineRun
from vgae.runs.files import DESCRIBED, read_any_run, read_run
from vgae.runs.opened import file_hash


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    split = vgae.split_links(vgae.stochastic_block_model(200, 4, seed=0), seed=0)
    vgae.Baseline("sc").fit(split.train, validation=split.val).save(tmp_path / "run", split=split)
    return tmp_path / "run"


def edit(folder: Path, **changes: Any) -> None:
    """Change config.json, and make it fit its own hashes."""
    path = folder / "config.json"
    content = json.loads(path.read_text()) | changes
    content["files"] = {name: file_hash(folder / name) for name in content["files"]}
    content["config_hash"] = hash_json({name: content[name] for name in DESCRIBED if name in content})
    path.write_text(json.dumps(content))


def test_a_run_of_a_baseline_is_no_run_of_a_model(folder: Path) -> None:
    run = read_any_run(folder)
    assert isinstance(run, BaselineRun)
    assert run.config == BaselineConfig("sc", 0, 128)
    assert run.calibration.is_fitted
    assert "the baseline sc, which has no training" in message_of(lambda: read_run(folder))
    assert set(run.metrics) == {"validation", "test"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"baseline": {"method": "sc", "seed": 0, "dim": 64}}, "not the embedding of the baseline"),
        ({"baseline": {"method": "ra", "seed": 0, "dim": 0}}, "model.safetensors"),
        ({"baseline": {"method": "magic", "seed": 0, "dim": 128}}, "'magic', which this version of vgae does not know"),
        ({"baseline": {"method": "", "seed": 0, "dim": 128}}, "the name of one is needed"),
        ({"baseline": {"method": "sc", "seed": -1, "dim": 128}}, "seed"),
        ({"baseline": {"method": "sc", "seed": 0, "dim": 128, "more": 1}}, "more: not known"),
        ({"baseline": []}, "a JSON object is needed"),
        ({"facts": {}}, "facts"),
        ({"config": {}}, "config: missing or not known"),
    ],
)
def test_a_changed_description_is_refused(folder: Path, changes: dict[str, Any], words: str) -> None:
    edit(folder, **changes)
    assert words in message_of(lambda: vgae.load(folder))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_an_embedding_that_is_not_finite_is_refused(folder: Path, value: float) -> None:
    save_file({"embedding": torch.full((200, 128), value)}, folder / "model.safetensors")
    edit(folder)
    assert "finite float32 numbers" in message_of(lambda: vgae.load(folder))


def test_a_damaged_file_is_refused(folder: Path) -> None:
    data = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(data[:-4] + b"\0\0\0\1")
    assert "does not match the hash" in message_of(lambda: vgae.load(folder))
