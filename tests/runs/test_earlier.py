"""What version 0.1.0 has written: runs are read, checkpoints continued.

In tests/runs/data, made by that version: `complete/` by `vgae train` with the options below, `unfinished/` by the same,
interrupted after iteration 12 of 30, and in `expected.npz` what it then said of the complete run.
"""

import hashlib
import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import vgae
from command import run_vgae
from vgae.runs.checkpoint import saved_iteration
from vgae.train.config import Config

DATA = Path(__file__).with_name("data")
OPTIONS = [
    "--features", "nodes.csv", "--weight", "weight", "--standardise", "--hidden-dim", "4", "--latent-dim", "2",
    "--iterations", "30", "--eval-every", "5", "--val", "0.1", "--test", "0.2", "--seed", "7", "--split-seed", "5",
    "--device", "cpu", "--objective", "exact",
]  # fmt: skip
CONFIG = Config(hidden_dim=4, latent_dim=2, iterations=30, eval_every=5, seed=7, device="cpu", objective="exact")


@pytest.fixture
def expected() -> dict[str, Any]:
    with np.load(DATA / "expected.npz") as content:
        return dict(content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(DATA, tmp_path / "data"))


def content(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir() if path.is_file()}


def _is_meant(metric: str, held_out: vgae.HeldOut) -> bool:
    """Whether a metric says something: Hits@K of fewer than K non-links was stored as 1 then."""
    return not metric.startswith("hits@") or int(metric.removeprefix("hits@")) <= len(held_out.non_links)


def test_complete_run_says_what_it_said(expected: dict[str, Any]) -> None:
    model = vgae.load(DATA / "complete")
    assert isinstance(model, vgae.VGAE)
    assert model.config_ == CONFIG
    assert model.transform().tobytes() == expected["embeddings"].tobytes()
    pairs = model.run_.split.test.pairs
    np.testing.assert_allclose(model.logits(pairs), expected["logits"], rtol=1e-6, atol=1e-7)
    assert model.calibration() == replace(model.run_, saved_calibration=None).calibration  # it holds none
    order = np.argsort(model.logits(pairs), kind="stable")
    assert (np.diff(model.predict_proba(pairs)[order]) >= 0).all()
    np.testing.assert_array_equal(model.recommend(5).pairs, expected["recommended"])
    stored = json.loads((DATA / "complete" / "metrics.json").read_text())
    assert model.run_.metrics == stored
    for name, held_out in (("validation", model.run_.split.val), ("test", model.run_.split.test)):
        meant = {each: value for each, value in stored[name].items() if _is_meant(each, held_out)}
        assert vgae.evaluate(model, held_out) == pytest.approx(meant, rel=1e-12)
    assert [entry.iteration for entry in model.history_] == [1, 5, 10, 15, 20, 25, 30]


def test_encoder_of_a_complete_run_makes_its_embeddings_again(expected: dict[str, Any]) -> None:
    """From the weights that are saved, by dense matrices."""
    graph, weights = vgae.load(DATA / "complete").graph_, load_file(DATA / "complete" / "model.safetensors")
    with_loops = graph.weighted_adjacency.toarray() + np.eye(20)
    scale = np.diag(with_loops.sum(axis=1) ** -0.5)
    propagation = scale @ with_loops @ scale
    hidden = np.maximum(propagation @ np.asarray(graph.features) @ weights["encoder.input_weight"], 0)
    found = propagation @ hidden @ weights["encoder.head_weights.mean"]
    np.testing.assert_allclose(found, expected["embeddings"], atol=1e-5)


def test_complete_run_is_saved_again_as_it_was_but_for_what_is_new(tmp_path: Path) -> None:
    vgae.load(DATA / "complete").save(tmp_path / "copy")
    old, new = content(DATA / "complete"), content(tmp_path / "copy")
    assert {name for name in old if old[name] != new[name]} == {"config.json"}
    before, after = (json.loads((run / "config.json").read_text()) for run in (DATA / "complete", tmp_path / "copy"))
    added = {name: after["config"].pop(name) for name in set(after["config"]) - set(before["config"])}
    assert Config.from_json({**before["config"], **added}) == CONFIG  # the parts that a VGAE has anyway
    assert before["config"] == after["config"]
    for name in ("facts", "split_hash", "recipe", "files"):
        assert after[name] == before[name]


def test_complete_run_is_not_trained_again(folder: Path) -> None:
    before = content(folder / "complete")
    done = run_vgae("train", "links.csv", *OPTIONS, "--out", "complete", "--resume", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert content(folder / "complete") == before
    other = run_vgae(
        "train", "links.csv", *OPTIONS, "--learning-rate", "0.02", "--out", "complete", "--resume", cwd=folder
    )
    assert other.returncode == 2
    assert "learning_rate 0.01, not 0.02" in other.stderr


def test_unfinished_run_is_continued_to_the_same_end(folder: Path, expected: dict[str, Any]) -> None:
    assert saved_iteration(folder / "unfinished" / "checkpoint") == 12
    done = run_vgae("train", "links.csv", *OPTIONS, "--out", "unfinished", "--resume", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "continuing after iteration 12" in done.stderr
    model, whole = vgae.load(folder / "unfinished"), vgae.load(DATA / "complete")
    np.testing.assert_allclose(model.transform(), expected["embeddings"], rtol=0, atol=1e-4)
    assert model.config_ == CONFIG
    assert model.recipe_ == whole.recipe_
    assert model.run_.split.content_hash == whole.run_.split.content_hash
    losses = [[entry.loss for entry in each.history_] for each in (model, whole)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    assert not (folder / "unfinished" / "checkpoint").exists()


def test_unfinished_run_of_other_options_is_refused(folder: Path) -> None:
    before = content(folder / "unfinished" / "checkpoint")
    done = run_vgae("train", "links.csv", *OPTIONS, "--model", "gae", "--out", "unfinished", "--resume", cwd=folder)
    assert done.returncode == 2
    assert "model vgae, not gae" in done.stderr
    assert content(folder / "unfinished" / "checkpoint") == before
