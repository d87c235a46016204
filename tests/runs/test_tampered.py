"""Runs from strangers: whatever was done to one, it is refused in a sentence, and nothing in it is executed."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tampering import (
    TAMPERED,
    WEIGHT,
    change_config,
    change_features,
    change_split,
    change_tensor,
    change_text,
    edit,
    pickled_ids,
    pickled_weights,
)

import vgae
from command import assert_refused, run_vgae
from helpers import message_of, put_odd
from vgae.evaluation.evaluate import evaluate_split
from vgae.io.json_files import hash_json
from vgae.io.tables import read_any
from vgae.runs.files import DESCRIBED
from vgae.runs.folder import Stage, finished_run, new_run_folder, stage_of
from vgae.runs.opened import FILES
from vgae.train.config import Config


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


@pytest.mark.parametrize("how", TAMPERED)
def test_tampered_run_is_refused_and_executes_nothing(run: Path, how: str) -> None:
    TAMPERED[how](run)
    said = message_of(lambda: vgae.load(run))
    assert str(run) in said
    assert "\n" not in said
    assert not (run.parent / "executed").exists()


VALUES = [None, True, "x", "", [], {}, [1], {"a": 1}, -1, 0, 1.5, -1.5, 1e308, 10**30, 10**400, "9" * 10_000, "\ud800"]
HARMLESS = {  # what a value may also be: another run, but a possible one
    ("torch", "x"), ("torch", ""), ("torch", "9" * 10_000), ("torch", "\ud800"),
    ("numpy", "x"), ("numpy", ""), ("numpy", "9" * 10_000), ("numpy", "\ud800"),
    ("facts__dataset", None), ("facts__dataset", "x"), ("facts__dataset", ""), ("facts__dataset", "9" * 10_000),
    ("facts__dataset", "\ud800"), ("facts__objective_reason", "x"), ("facts__objective_reason", ""),
    ("facts__objective_reason", "9" * 10_000), ("facts__objective_reason", "\ud800"), ("facts__best_iteration", 0),
    ("facts__seconds", 0), ("facts__seconds", 1.5), ("facts__seconds", 1e308), ("facts__seconds", 10**30),
    ("config__features", True), ("config__learning_rate", 1.5), ("config__learning_rate", 1e308),
    ("config__learning_rate", 10**30), ("config__num_negatives", None), ("config__batch_size", None),
    ("config__early_stopping", None),
    ("config__seed", 0), ("config__device", "x"), ("config__device", ""), ("config__device", "9" * 10_000),
    ("config__device", "\ud800"), ("config__eval_every", 10**30),
    ("config__beta", 0), ("config__beta", 1.5), ("config__free_bits", 0), ("config__free_bits", 1.5),
    ("config__warm_up", 0), ("config__mask_links", 0), ("config__diagonal", True),
    ("config__encoder", None), ("config__posterior", None), ("config__prior", None), ("config__decoder", None),
}  # fmt: skip


def fields_of(content: dict[str, Any]) -> list[str]:
    inner = [f"{part}__{name}" for part in ("config", "facts", "files") for name in content[part]]
    return [name for name in content if name != "config_hash"] + inner


def test_every_field_of_the_description_is_checked(run: Path) -> None:
    """Each replaced by each of many values, each left out, and each doubled under another name."""
    before = (run / "config.json").read_text()
    accepted, config = set(), vgae.load(run).config_
    for field in fields_of(json.loads(before)):
        for value in VALUES:
            (run / "config.json").write_text(before)
            if field.startswith("files") or field in ("config_hash", "files"):
                content = json.loads(before)
                (content["files"] if "__" in field else content)[field.split("__")[-1]] = value
                (run / "config.json").write_text(json.dumps(content))
            else:
                edit(run, **{field: value})
            said = sentence_of(run)
            if said is None:
                accepted.add((field, json.dumps(value)))
        for name in ("left out", "doubled"):
            content = json.loads(before)
            part = content[field.split("__")[0]] if "__" in field else content
            value = part[field.split("__")[-1]] if name == "doubled" else part.pop(field.split("__")[-1])
            part |= {"x" + field: value} if name == "doubled" else {}
            described = {key: content[key] for key in DESCRIBED if key in content}
            (run / "config.json").write_text(json.dumps({**content, "config_hash": hash_json(described)}))
            said = sentence_of(run)
            if said is None:  # as an earlier version has written it, which did not know this option yet
                assert name == "left out", field
                if field == "calibration":  # it is fitted again
                    continue
                changed = {field.removeprefix("config__"): getattr(Config(), field.removeprefix("config__"))}
                assert vgae.load(run).config_ == replace(config, **changed), field
    assert accepted <= {(field, json.dumps(value)) for field, value in HARMLESS}


def sentence_of(run: Path) -> str | None:
    """What is said against a run; None if it can be loaded and used."""
    try:
        vgae.load(run).transform()
    except vgae.InputError as error:
        said = str(error)
    else:
        return None
    assert str(run) in said
    assert "\n" not in said
    assert said.endswith((".", ".)"))
    assert len(said) < 1000
    return said


@pytest.mark.parametrize("name", ["metrics.json", "history.jsonl"])
def test_every_score_and_every_logged_number_is_checked(run: Path, name: str) -> None:
    before = (run / name).read_text()
    numbers = list(re.finditer(r'"([\w@]+)": ([\d.e-]+)', before))
    assert len(numbers) >= 8
    for number in numbers:
        for value in ("null", "true", '"x"', "[]", "{}", "NaN", "Infinity", "-Infinity", "1e999", "-1e300", "9" * 5000):
            (run / name).write_text(before[: number.start(2)] + value + before[number.end(2) :])
            edit(run)
            assert sentence_of(run), f"{number[1]}: {value}"
    for change in (
        lambda text: text[:-3],
        lambda _: "",
        lambda _: "[" * 10**5,
        lambda text: text.replace(":", ": 1,", 1),
    ):
        (run / name).write_text(change(before))
        edit(run)
        assert sentence_of(run)


@pytest.mark.parametrize("version", ["99.0.0", "0.1.1.0.1", "1.0", "0.2.0rc1"])
def test_run_of_a_newer_version_says_so(run: Path, version: str) -> None:
    edit(run, vgae=version)
    said = message_of(lambda: vgae.load(run))
    assert f"it was written by a newer vgae ({version})" in said


@pytest.mark.parametrize("version", ["0.0.9", "0.1.0", "0.1.0.dev3", "unknown"])
def test_run_of_an_older_version_is_read(run: Path, version: str) -> None:
    edit(run, vgae=version)
    assert sentence_of(run) is None


@pytest.mark.skipif(sys.platform == "win32", reason="FIFOs and devices as POSIX has them")
@pytest.mark.parametrize("kind", ["fifo", "folder", "/dev/zero", "loop", "nowhere", "sparse"])
@pytest.mark.parametrize("name", [*FILES, "config.json"])
def test_nothing_but_plain_files_of_a_sane_size_is_opened(run: Path, name: str, kind: str) -> None:
    """Neither to read the run nor to find out whether it may be replaced."""
    (run / name).unlink()
    put_odd(run / name, kind)
    if (name, kind) == ("split.npz", "sparse"):
        return  # its size is bounded by the memory there is, and by what it unpacks to
    assert sentence_of(run)
    graph = vgae.stochastic_block_model(20, 2, seed=1)
    model = vgae.GAE(iterations=1, device="cpu").fit(graph)
    assert "\n" not in message_of(lambda: model.save(run))
    assert stage_of(run) is (Stage.NOT_A_RUN if name == "config.json" else Stage.COMPLETE)


@pytest.mark.parametrize("kind", ["fifo", "/dev/zero", "loop", "sparse"])
@pytest.mark.parametrize(
    "place", ["checkpoint/checkpoint.json", "checkpoint/run/config.json", "checkpoint/run/split.npz"]
)
def test_odd_files_of_an_unfinished_run_do_no_harm(run: Path, place: str, kind: str) -> None:
    path = run / place
    path.parent.mkdir(parents=True)
    put_odd(path, kind)
    assert sentence_of(run) is None
    model = vgae.GAE(iterations=1, device="cpu").fit(vgae.stochastic_block_model(20, 2, seed=1))
    model.save(run, overwrite=True)
    np.testing.assert_array_equal(vgae.load(run).transform(), model.transform())


def test_staged_files_that_a_power_cut_emptied_are_not_a_run(run: Path, honest: Path) -> None:
    """As older versions left them: config.json is there, and the files that it names are empty."""
    staging = run / "checkpoint" / "run"
    staging.mkdir(parents=True)
    for name in FILES:
        (staging / name).touch()
    content = json.loads((honest / "config.json").read_text())
    content["files"] = dict.fromkeys(FILES, "0" * 64)
    (staging / "config.json").write_text(json.dumps(content))
    assert stage_of(run) is Stage.COMPLETE
    assert finished_run(run) is not None
    assert sentence_of(run) is None


@pytest.mark.parametrize("change", ["fewer columns", "a missing name", "a mean that is text", "fewer categories"])
def test_recipe_that_does_not_make_the_features_is_refused(tmp_path: Path, change: str) -> None:
    (tmp_path / "links.csv").write_text("".join(f"{i},{(i + step) % 40}\n" for i in range(40) for step in (1, 2)))
    (tmp_path / "nodes.csv").write_text("id,x,kind\n" + "".join(f"{i},{i * i},{'ab'[i % 2]}\n" for i in range(40)))
    reading = read_any(tmp_path / "links.csv", features=tmp_path / "nodes.csv", standardise=True)
    split, run = vgae.split_links(reading.graph), tmp_path / "run"
    fitted = vgae.GAE(iterations=1, device="cpu").fit(split.train)
    with new_run_folder(run) as place:
        place.write(replace(fitted.to_run(split), recipe=reading.recipe))
    edit(run)
    assert sentence_of(run) is None
    recipe = json.loads((run / "config.json").read_text())["recipe"]
    if change == "fewer columns":
        recipe.pop()
    elif change == "a missing name":
        del recipe[0]["name"]
    elif change == "a mean that is text":
        recipe[0]["mean"] = "0"
    else:
        recipe[1]["categories"].pop()
    edit(run, recipe=recipe)
    assert "recipe: " in str(sentence_of(run))


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
    done = run_vgae(*command, cwd=run.parent)
    assert_refused(done, words)
    assert done.stderr.startswith("vgae: run")
    assert [path.name for path in run.parent.iterdir()] == ["run"]


def test_honest_run_is_read(run: Path) -> None:
    """The tools above, used without a change, leave a run that is read: what they refuse is the change."""
    before = vgae.load(run)
    change_tensor(WEIGHT, lambda tensor: tensor)(run)
    change_split(train=lambda pairs: pairs)(run)
    change_features(lambda parts: parts)(run)
    change_text("history.jsonl", lambda text: text)(run)
    after = vgae.load(run)
    np.testing.assert_array_equal(after.transform(), before.transform())
    assert after.run_.metrics == before.run_.metrics == evaluate_split(after, after.run_.split)


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
