"""Presets by name: what `accurate` sets, on the command and in Python, and what wins over it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae
from helpers import message_of
from vgae.train.config import Config
from vgae.train.named import NAMED, TO_STOP, preset_values, with_preset
from vgae.train.presets import ACCURATE, ENOUGH_TO_STOP

SHORT = ("--iterations", "4", "--no-verdict")
OPTIONS = {name: value for name, value in ACCURATE.items() if name not in TO_STOP}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph with enough links to stop by, and one without."""
    place = tmp_path_factory.mktemp("graphs")
    graph = vgae.stochastic_block_model(300, 3, degree_within=10, degree_between=2, feature_dim=60, seed=0)
    vgae.write_graph(place / "words.npz", graph)
    vgae.write_graph(place / "small.npz", vgae.stochastic_block_model(60, 2, feature_dim=9, seed=0))
    return place


def config_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "config.json").read_text())["config"]
    return found


def values_of(config: Config, names: Any) -> dict[str, Any]:
    return {name: config.to_json()[name] for name in names}


def train(folder: Path, cwd: Path, *arguments: str, graph: str = "words.npz") -> str:
    result = run_vgae("train", str(folder / graph), "--preset", "accurate", *arguments, cwd=cwd)
    assert result.returncode == 0, result.stderr
    return result.stderr


def test_every_preset_is_a_configuration_and_accurate_is_variational() -> None:
    for name in NAMED:
        assert with_preset(Config(), name, (), ENOUGH_TO_STOP) == Config(**preset_values(name))
    assert with_preset(Config(), "paper", (), 0) == Config()
    accurate = Config(**ACCURATE)
    assert not accurate.value_of("posterior").deterministic
    assert accurate.beta > 0
    assert accurate.early_stopping is not None
    with pytest.raises(vgae.InputError, match="preset: 'best' is not one of paper, accurate"):
        preset_values("best")


def test_the_command_has_the_values_of_the_preset_and_says_which(folder: Path, tmp_path: Path) -> None:
    said = train(folder, tmp_path, *SHORT)
    found = config_of(tmp_path / "runs" / "words-vgae-accurate")  # a folder of its own
    expected = Config(**ACCURATE | {"iterations": 4})
    assert values_of(expected, ACCURATE) == {name: found[name] for name in ACCURATE}
    line = next(line for line in said.splitlines() if line.startswith("preset accurate: "))
    assert f"encoder {expected.value_of('encoder')}" in line
    assert f"latent_dim {ACCURATE['latent_dim']}" in line
    assert f"early_stopping {ACCURATE['early_stopping']} by" in line
    assert "iterations" not in line  # which was given
    assert line.endswith("--preset paper takes the paper's")
    assert "trying" not in said


def test_options_that_are_given_win_even_at_the_papers_defaults(folder: Path, tmp_path: Path) -> None:
    said = train(folder, tmp_path, *SHORT, "--latent-dim", "16", "--encoder", "gcn", "--model", "gae", "--out", "run")
    found = config_of(tmp_path / "run")
    assert (found["model"], found["latent_dim"], found["encoder"].partition(":")[0]) == ("gae", 16, "gcn")
    assert found["learning_rate"] == ACCURATE["learning_rate"]
    assert "latent_dim" not in said
    assert "encoder" not in said


@pytest.mark.parametrize("options", [(), ("--val", "0")])
def test_with_few_validation_links_or_none_the_number_of_iterations_is_fixed(
    folder: Path, tmp_path: Path, options: tuple[str, ...]
) -> None:
    said = train(folder, tmp_path, *options, "--latent-dim", "4", "--no-verdict", "--out", "run", graph="small.npz")
    found = config_of(tmp_path / "run")
    assert (found["early_stopping"], found["iterations"]) == (None, Config().iterations)
    assert {name: found[name] for name in OPTIONS if name != "latent_dim"} == {
        name: Config(**OPTIONS).to_json()[name] for name in OPTIONS if name != "latent_dim"
    }
    links = len(vgae.load(tmp_path / "run").run_.split.val.links)
    assert f"200 iterations, no early stopping ({links} validation links, fewer than 50)" in said


def test_what_cannot_go_together_names_the_preset(folder: Path, tmp_path: Path) -> None:
    arguments = ("train", str(folder / "words.npz"), "--preset", "accurate", "--prior", "uniform_sphere", "--json")
    result = run_vgae(*arguments, cwd=tmp_path)
    assert_refused(result, "prior: uniform_sphere cannot be used with the posterior normal", "power_spherical")
    assert not (tmp_path / "runs").exists()


def test_a_plan_and_json_know_the_preset(folder: Path, tmp_path: Path) -> None:
    planned = run_vgae("plan", str(folder / "words.npz"), "--preset", "accurate", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert "preset accurate: encoder" in planned.stderr
    assert f"{ACCURATE['iterations']:,} iterations" in planned.stdout
    done = run_vgae("train", "cora", "--preset", "accurate", *SHORT, "--latent-dim", "4", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["preset"], found["trial"]) == ("accurate", None)
    shown = " ".join(run_vgae("train", "--help", cwd=tmp_path).stdout.split())
    assert "accurate, the parts with the best scores" in shown


def test_resuming_needs_the_same_preset(folder: Path, tmp_path: Path) -> None:
    split = vgae.split_links(vgae.read_graph(folder / "words.npz"), seed=0)
    run = tmp_path / "run"
    begun = vgae.VGAE.preset("accurate", latent_dim=4, iterations=6)
    begun.fit(split.train, validation=split.val, checkpoint=run / "checkpoint", checkpoint_every=0)
    options = ("--latent-dim", "4", "--iterations", "6", "--no-verdict", "--out", "run", "--resume")
    other = run_vgae("train", str(folder / "words.npz"), "--preset", "paper", *options, "--json", cwd=tmp_path)
    assert_refused(other, "of another training", "encoder normalized", "not gcn")
    train(folder, tmp_path, *options)
    assert (vgae.load(run).transform() == begun.transform()).all()
    assert "nothing to resume" in train(folder, tmp_path, *options)


def test_an_estimator_has_the_parameters_of_a_preset() -> None:
    model = vgae.VGAE.preset("accurate", latent_dim=8, progress=False)
    for name, value in ACCURATE.items():
        if name not in ("model", "latent_dim"):
            assert getattr(model, name) == value
    assert model.latent_dim == 8
    assert model.get_params()["encoder__unit_rows"] is True
    assert vgae.VGAE.preset("paper").get_params() == vgae.VGAE().get_params()
    assert vgae.GAE.preset("accurate")._config().value_of("posterior").name == "delta"
    with pytest.raises(TypeError, match="no parameter widths"):
        vgae.VGAE.preset("accurate", widths=3)
    with pytest.raises(vgae.InputError, match="preset: 'best'"):
        vgae.VGAE.preset("best")


def test_the_preset_needs_no_features_of_unit_length(folder: Path) -> None:
    split = vgae.split_links(vgae.read_graph(folder / "words.npz"), seed=0)
    settings: dict[str, Any] = {"latent_dim": 4, "iterations": 5}
    raw = vgae.VGAE.preset("accurate", **settings).fit(split.train, validation=split.val).transform()
    train = split.train.normalized("rows")
    scaled = vgae.VGAE.preset("accurate", **settings).fit(train, validation=split.val).transform()
    np.testing.assert_allclose(raw, scaled, rtol=1e-3, atol=1e-5)


def test_early_stopping_without_validation_says_what_to_do(folder: Path) -> None:
    graph = vgae.read_graph(folder / "small.npz")
    words = message_of(lambda: vgae.VGAE.preset("accurate").fit(graph))
    assert "early_stopping: there is nothing to stop by" in words
    assert "early_stopping=None" in words
    vgae.VGAE.preset("accurate", early_stopping=None, iterations=2, latent_dim=4).fit(graph)
