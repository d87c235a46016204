"""Which defaults `vgae train` and `vgae plan` take: the paper's for its datasets, tuned ones for a file."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae
from vgae.train.presets import TUNED, TUNED_TO_STOP

SHORT = ("--iterations", "4", "--no-verdict")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files: a graph with words as features, the same with noise, and a small one without features."""
    place = tmp_path_factory.mktemp("graphs")
    graph = vgae.stochastic_block_model(300, 3, degree_within=10, degree_between=2, feature_dim=60, seed=0)
    noise = np.random.default_rng(0).normal(size=(300, 2)).astype(np.float32)
    vgae.write_graph(place / "words.npz", graph)
    vgae.write_graph(place / "noise.npz", graph.with_parts(features=noise))
    vgae.write_graph(place / "small.npz", vgae.stochastic_block_model(60, 2, seed=0))
    return place


def config_of(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "config.json").read_text())["config"]
    return found


def trained(folder: Path, tmp_path: Path, graph: str, *options: str) -> tuple[dict[str, Any], str]:
    """The configuration that a training was made with, and what the command said."""
    given = str(folder / graph) if graph.endswith("npz") else graph
    result = run_vgae("train", given, *options, "--out", "run", "--overwrite", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    return config_of(tmp_path / "run"), result.stderr


def test_a_dataset_has_the_papers_defaults_and_a_file_the_tuned_ones(folder: Path, tmp_path: Path) -> None:
    paper, said = trained(folder, tmp_path, "cora", *SHORT)
    assert (paper["hidden_dim"], paper["latent_dim"], paper["early_stopping"]) == (32, 16, None)
    assert "tuned" not in said
    own, said = trained(folder, tmp_path, "words.npz", *SHORT)
    assert {name: own[name] for name in TUNED} == TUNED
    assert (own["early_stopping"], own["stop_by"], own["iterations"]) == (300, "top", 4)
    line = next(line for line in said.splitlines() if "tuned" in line)
    assert line == (
        "defaults tuned on real graphs, for a graph of your own: hidden_dim 128, latent_dim 64, early_stopping 300 by "
        "top, features normalized by rows; --preset paper takes the paper's"
    )


def test_tuned_defaults_of_a_dataset_and_of_a_small_graph(folder: Path, tmp_path: Path) -> None:
    own, said = trained(folder, tmp_path, "cora", *SHORT, "--preset", "tuned", "--no-features")
    assert own["hidden_dim"] == TUNED["hidden_dim"]
    assert "defaults tuned on real graphs, asked for: " in said
    small, said = trained(folder, tmp_path, "small.npz", "--no-verdict")
    assert (small["hidden_dim"], small["early_stopping"], small["iterations"]) == (TUNED["hidden_dim"], None, 200)
    links = len(vgae.load(tmp_path / "run").fitted_.run.split.val.links)
    assert f"200 iterations, no early stopping ({links} validation links, fewer than 50)" in said


def test_options_that_are_given_win_even_at_the_papers_defaults(folder: Path, tmp_path: Path) -> None:
    options = ("--latent-dim", "16", "--early-stopping", "7", "--stop-by", "scores", "--normalize", "none")
    found, said = trained(folder, tmp_path, "words.npz", *SHORT, *options, "--keep-features")
    assert (found["latent_dim"], found["early_stopping"], found["stop_by"]) == (16, 7, "scores")
    assert "tuned on real graphs, for a graph of your own: hidden_dim 128; --preset" in said
    features = vgae.load(tmp_path / "run").graph_.features
    assert (features != vgae.read_graph(folder / "words.npz").features).nnz == 0


def test_the_papers_preset_gives_the_bits_of_the_papers_defaults(folder: Path, tmp_path: Path) -> None:
    found, said = trained(folder, tmp_path, "words.npz", "--preset", "paper", "--no-verdict")
    assert "tuned" not in said
    assert found == json.loads(json.dumps(vgae.load(tmp_path / "run").fitted_.run.config.to_json()))
    split = vgae.split_links(vgae.read_graph(folder / "words.npz"), seed=0)
    model = vgae.VGAE().fit(split.train, validation=split.val)
    assert (model.transform() == vgae.load(tmp_path / "run").transform()).all()


def test_features_that_hurt_are_left_out_unless_they_are_to_be_kept(folder: Path, tmp_path: Path) -> None:
    options = ("--hidden-dim", "16", "--latent-dim", "8", "--no-verdict", "--iterations", "100")
    found, said = trained(folder, tmp_path, "noise.npz", *options)
    assert found["features"] is False
    assert "trying 100 iterations with features and without; --keep-features skips this" in said
    assert "so features are left out (--keep-features uses them)" in said
    found, said = trained(folder, tmp_path, "noise.npz", *options, "--keep-features")
    assert found["features"] is True
    assert "trying" not in said
    found, said = trained(folder, tmp_path, "words.npz", *options)
    assert found["features"] is True
    assert "so features are used" in said


def test_json_names_the_preset_and_the_trial(folder: Path, tmp_path: Path) -> None:
    arguments = ("train", str(folder / "words.npz"), *SHORT, "--json", "--out", "run")
    result = run_vgae(*arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found["preset"] == "tuned"
    assert set(found["trial"]) == {"with_features", "without"}
    paper = json.loads(run_vgae("train", "cora", *SHORT, "--json", "--out", "cora", cwd=tmp_path).stdout)
    assert (paper["preset"], paper["trial"]) == ("paper", None)


def test_resuming_needs_no_second_trial_and_the_same_preset(folder: Path, tmp_path: Path) -> None:
    options = ("--hidden-dim", "16", "--latent-dim", "8", "--no-verdict", "--iterations", "100")
    arguments = ("train", str(folder / "noise.npz"), *options, "--out", "run")
    assert run_vgae(*arguments, cwd=tmp_path).returncode == 0
    again = run_vgae(*arguments, "--resume", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert "this run is complete; there is nothing to resume" in again.stderr
    assert "trying" not in again.stderr
    assert_refused(run_vgae(*arguments, cwd=tmp_path), "run", "already used")  # before anything is tried
    other = run_vgae(*arguments, "--resume", "--preset", "paper", "--json", cwd=tmp_path)
    assert_refused(other, "of another training", "early_stopping")


def test_an_unfinished_training_is_continued_with_the_features_that_it_had(folder: Path, tmp_path: Path) -> None:
    graph = vgae.read_graph(folder / "noise.npz").normalized("rows")
    split = vgae.split_links(graph, seed=0)
    run = tmp_path / "run"
    begun = vgae.VGAE.for_graph(split.train, validation=split.val, hidden_dim=16, latent_dim=8, iterations=6)
    begun.set_params(features=False)
    begun.fit(split.train, validation=split.val, checkpoint=run / "checkpoint", checkpoint_every=0)
    options = ("--hidden-dim", "16", "--latent-dim", "8", "--no-verdict", "--iterations", "6")
    result = run_vgae("train", str(folder / "noise.npz"), *options, "--out", "run", "--resume", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "trying" not in result.stderr

    assert (vgae.load(run).transform() == begun.transform()).all()


def test_a_training_that_was_started_with_the_papers_defaults_is_continued_with_them(
    folder: Path, tmp_path: Path
) -> None:
    split = vgae.split_links(vgae.read_graph(folder / "words.npz"), seed=0)
    begun = vgae.VGAE(iterations=6).fit(
        split.train, validation=split.val, checkpoint=tmp_path / "run" / "checkpoint", checkpoint_every=0
    )
    arguments = ("train", str(folder / "words.npz"), "--iterations", "6", "--no-verdict", "--out", "run", "--resume")
    for _ in range(2):  # first unfinished, then complete
        result = run_vgae(*arguments, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert "tuned" not in result.stderr
        assert (vgae.load(tmp_path / "run").transform() == begun.transform()).all()
    assert_refused(
        run_vgae(*arguments, "--preset", "tuned", "--json", cwd=tmp_path), "of another training", "hidden_dim"
    )


def test_new_nodes_get_features_of_unit_length_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    links = [(i, int(j)) for i in range(40) for j in rng.choice(40, 4, replace=False) if i != j]
    (tmp_path / "links.csv").write_text("source,target\n" + "".join(f"n{i},n{j}\n" for i, j in links))
    rows = "".join(f"n{i},{x},{y}\n" for i, (x, y) in enumerate(rng.uniform(1, 9, size=(40, 2))))
    (tmp_path / "nodes.csv").write_text("id,x,y\n" + rows)
    (tmp_path / "more.csv").write_text("id,x,y\nnew,30,40\n")
    (tmp_path / "new.csv").write_text("source,target\nnew,n1\n")
    result = run_vgae("train", "links.csv", "--features", "nodes.csv", *SHORT, "--out", "run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    features = vgae.load(tmp_path / "run").graph_.features
    assert np.linalg.norm(features, axis=1) == pytest.approx(np.ones(40), abs=1e-6)
    found = vgae.load(tmp_path / "run").fitted_.run.recipe
    assert found is not None
    assert found.normalization.how == "rows"
    arguments = ("predict", "run", "new.csv", "--new-links", "new.csv", "--features", "more.csv", "--json")
    assert run_vgae(*arguments, cwd=tmp_path).returncode == 0


def test_a_plan_is_of_the_training_that_would_be_made(folder: Path, tmp_path: Path) -> None:
    path = str(folder / "words.npz")
    tuned, paper = (run_vgae("plan", path, *more, cwd=tmp_path) for more in ((), ("--preset", "paper")))
    assert f"{TUNED_TO_STOP['iterations']:,} iterations" in tuned.stdout
    assert "defaults tuned on real graphs" in tuned.stderr
    assert "200 iterations" in paper.stdout
    assert "tuned" not in paper.stderr


def test_an_unknown_preset_is_refused(folder: Path, tmp_path: Path) -> None:
    result = run_vgae("train", str(folder / "small.npz"), "--preset", "best", "--json", cwd=tmp_path)
    assert_refused(result, "preset", "auto, paper, accurate, tuned")
