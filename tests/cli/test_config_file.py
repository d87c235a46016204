"""`--config FILE`: the same training as by options, which win over the file; other files are refused in a sentence."""

import json
from pathlib import Path
from typing import Any

import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from vgae.options import as_arguments
from vgae.runs.config_file import read_config, write_config
from vgae.train.config import Config

OPTIONS: dict[str, Any] = {
    "encoder": "normalized:hops=2,unit_rows=true",
    "posterior": "power_spherical",
    "prior": "vamp:components=3",
    "decoder": "scaled:scale=5,node_bias=true",
    "latent_dim": 6,
    "iterations": 7,
    "learning_rate": 0.03,
    "mask_links": 0.2,
    "early_stopping": 5,
    "diagonal": False,
    "seed": 3,
}
CONFIG = Config(**OPTIONS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("graphs")
    vgae.write_graph(place / "words.npz", vgae.stochastic_block_model(80, 2, feature_dim=12, seed=0))
    write_config(place / "mine.json", CONFIG, remark="anything")
    return place


def train(folder: Path, *arguments: str) -> Any:
    result = run_vgae("train", "words.npz", "--no-verdict", "--json", *arguments, cwd=folder)
    assert result.returncode == 0, result.stderr
    return strict_json(result.stdout)


def test_the_weights_are_those_of_the_same_options(folder: Path) -> None:
    by_file = train(folder, "--config", "mine.json")
    assert by_file["preset"] == "config"
    train(folder, "--preset", "paper", *as_arguments(CONFIG), "--out", "runs/options")
    one, other = vgae.load(folder / "runs" / "words-vgae-mine"), vgae.load(folder / "runs" / "options")
    assert (one.transform() == other.transform()).all()
    assert one.fitted_.run.config == other.fitted_.run.config == CONFIG


def test_options_on_the_command_line_win(folder: Path) -> None:
    train(folder, "--config", "mine.json", "--latent-dim", "4", "--posterior", "normal", "--out", "runs/won")
    found = vgae.load(folder / "runs" / "won").fitted_.run.config
    assert (found.latent_dim, found.value_of("posterior").name, found.learning_rate) == (4, "normal", 0.03)
    write_config(folder / "points.json", Config(model="gae", iterations=3))
    train(folder, "--config", "points.json", "--model", "vgae", "--out", "runs/vgae")
    assert vgae.load(folder / "runs" / "vgae").fitted_.run.config == Config(iterations=3)
    train(folder, "--config", "points.json")
    assert vgae.load(folder / "runs" / "words-gae-points").fitted_.run.config == Config(model="gae", iterations=3)


def test_a_file_may_hold_some_options_only(folder: Path) -> None:
    (folder / "few.json").write_text(json.dumps({"format": 1, "options": {"latent_dim": 3, "encoder": "linear"}}))
    assert read_config(folder / "few.json").keys() == {"latent_dim", "encoder"}
    planned = run_vgae("plan", "words.npz", "--config", "few.json", "--iterations", "123", cwd=folder)
    assert planned.returncode == 0, planned.stderr
    assert "123 iterations" in planned.stdout


def test_every_option_that_makes_another_training_is_in_the_file(folder: Path) -> None:
    content = json.loads((folder / "mine.json").read_text())
    assert (content["format"], content["vgae"]) == (1, vgae.__version__)
    assert set(content["options"]) == set(CONFIG.to_json()) - {"device"}
    assert Config(**read_config(folder / "mine.json")) == CONFIG


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "not readable as JSON"),
        ("[1]", "expected a JSON object"),
        ("{}", "not a configuration, which has a format and options"),
        ('{"format": 1, "config": {}}', "not a configuration"),
        ('{"format": 2, "vgae": "9.9", "options": {}}', "has the format 2, written by vgae '9.9', and vgae"),
        ('{"format": true, "options": {}}', "has the format True"),
        ('{"format": 1, "options": {"width": 3}}', "the option 'width' is not known to vgae"),
        ('{"format": 1, "options": {"latent_dim": 0}}', "latent_dim: a whole number"),
        ('{"format": 1, "options": {"encoder": "gnc"}}', "encoder: 'gnc' is not one of"),
        ('{"format": 1, "options": {"encoder": 3}}', "encoder: the name of one is needed"),
        ('{"format": 1, "options": {"prior": "uniform_sphere"}}', "prior: uniform_sphere cannot be used"),
    ],
)
@pytest.mark.parametrize("command", ["train", "plan"])
def test_a_file_that_is_none_is_one_sentence(folder: Path, command: str, content: str, words: str) -> None:
    (folder / "bad.json").write_text(content)
    assert_refused(run_vgae(command, "words.npz", "--config", "bad.json", "--json", cwd=folder), "bad.json: ", words)


def test_what_does_not_go_with_a_file(folder: Path) -> None:
    def refused(*arguments: str) -> Any:
        return run_vgae("train", "words.npz", "--config", *arguments, "--json", cwd=folder)

    assert_refused(refused("missing.json"), "missing.json: there is no such file")
    assert_refused(refused("mine.json", "--preset", "accurate"), "config and preset: give one of the two")
    assert_refused(refused("mine.json", "--keep-features"), "config and keep_features: give one of the two")
    assert_refused(refused("mine.json", "--prior", "mixture"), "mine.json: prior: mixture cannot be used")
