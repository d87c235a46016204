"""`vgae train` as a person uses it: its exit code, its files, its words."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import vgae
from command import Trained, assert_refused, run_vgae, train_cora
from processes import hear_ctrl_c


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cora(tmp_path_factory.mktemp("trained"))


def small_graph(path: Path, **changes: Any) -> str:
    """A ring of twelve nodes with two feature columns, as an npz file, with some arrays changed or (None) left out."""
    ring = np.array([(node, (node + 1) % 12) for node in range(12)])
    arrays: dict[str, Any] = {"edges": ring, "num_nodes": 12, "features": np.ones((12, 2), dtype=np.float32)} | changes
    np.savez(path, allow_pickle=True, **{name: array for name, array in arrays.items() if array is not None})
    return str(path)


def test_train_ends_with_the_scores_and_the_papers_beside_them(trained: Trained) -> None:
    _, result = trained
    assert result.returncode == 0, result.stderr
    rows = {line.rsplit(maxsplit=2)[0]: line.split()[-2:] for line in result.stdout.splitlines()[1:4]}
    assert rows["paper, test"] == ["91.4", "92.6"]
    assert float(rows["test"][0]) == pytest.approx(91.4, abs=2.5)
    assert "2,708 nodes, 5,278 edges, 1,433 sparse features, 7 classes" in result.stderr
    assert "151 reversed links merged" in result.stderr
    assert "objective: exact (3.7 million pairs" in result.stderr


def test_scores_of_another_model_than_the_papers_stand_alone(tmp_path: Path) -> None:
    result = run_vgae("train", "cora", "--posterior", "delta", "--iterations", "1", "--out", "run", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    scores = result.stdout.split("\n\n")[0]
    assert [line.split()[0] for line in scores.splitlines()] == ["protocol", "validation", "test"]


def test_json_of_train_is_one_object_and_repeats_bit_for_bit(tmp_path: Path) -> None:
    results = [
        run_vgae("train", "cora", "--iterations", "20", "--json", "--out", name, cwd=tmp_path) for name in ("a", "b")
    ]
    first, second = (json.loads(result.stdout) for result in results)
    assert first["run"] == "a"
    assert (first["model"], first["dataset"], first["objective"]) == ("vgae", "cora", "exact")
    assert 0 < first["seconds"] < 600
    for part in ("validation", "test"):
        assert first[part] == second[part]
        assert 0.4 < first[part]["auc"] < 1
        assert 0.4 < first[part]["ap"] < 1
    assert (tmp_path / "a/model.safetensors").read_bytes() == (tmp_path / "b/model.safetensors").read_bytes()
    assert all(result.stderr == "" for result in results)


def test_own_graph_in_an_npz_file_is_trained(tmp_path: Path) -> None:
    graph = vgae.stochastic_block_model(200, 2, feature_dim=20, seed=0)
    vgae.write_graph(tmp_path / "mine.npz", graph)
    result = run_vgae(
        "train", "mine.npz", "--model", "gae", "--no-features", "--iterations", "5", "--json", cwd=tmp_path
    )
    assert result.returncode == 0, result.stderr
    summary = json.loads(result.stdout)
    assert (summary["dataset"], summary["run"]) == ("mine.npz", "runs/mine-gae-no-features")
    assert summary["features"] is False
    assert vgae.load(tmp_path / summary["run"]).graph_.num_nodes == 200


def test_graphml_is_trained(tmp_path: Path) -> None:
    ring = nx.circulant_graph(30, [1, 2])
    nx.set_node_attributes(ring, {node: float(node % 5) for node in ring}, "size")
    nx.write_graphml(ring, tmp_path / "ring.graphml")
    arguments = ("train", "ring.graphml", "--node-attributes", "--iterations", "5", "--out", "run")
    result = run_vgae(*arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Graph(30 nodes, 60 edges, 1 dense feature)" in result.stderr
    assert_refused(run_vgae("train", "ring.graphml", "--weight", "w", cwd=tmp_path), "ring.graphml", "no attribute 'w'")


def test_own_file_is_not_taken_for_a_dataset_of_the_paper(tmp_path: Path) -> None:
    vgae.write_graph(str(tmp_path / "cora.npz"), vgae.stochastic_block_model(200, 2, seed=0))
    result = run_vgae("train", "cora.npz", "--iterations", "2", "--out", "a[bold]b", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "paper, test" not in result.stdout
    assert "saved in a[bold]b" in result.stderr


def test_nothing_held_out_is_null_in_json(tmp_path: Path) -> None:
    arguments = ("train", "cora", "--val", "0", "--test", "0", "--iterations", "2", "--json")
    found = json.loads(run_vgae(*arguments, cwd=tmp_path).stdout)
    assert (found["validation"], found["test"]) == (None, None)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", ["the file is empty"]),
        (b"id,x\n1,2\n2\n", ["line 3 has 1 column"]),
        (b"id,x\n1,2\n1,3\n", ["row 1 and row 2 are both about the node '1'"]),
    ],
)
def test_bad_tables_of_nodes_are_refused(tmp_path: Path, content: bytes, words: list[str]) -> None:
    (tmp_path / "links.csv").write_text("1,2\n2,3\n")
    (tmp_path / "nodes.csv").write_bytes(content)
    assert_refused(run_vgae("train", "links.csv", "--features", "nodes.csv", cwd=tmp_path), "nodes.csv", *words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links.csv", "nodes.csv"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["karate"], ["karate", "cora, citeseer, pubmed"]),
        (["cora", "--hidden-dim", "0"], ["hidden_dim", "0"]),
        (["cora", "--latent-dim", "-4"], ["latent_dim", "-4"]),
        (["cora", "--latent-dim", "many"], ["--latent-dim"]),
        (["cora", "--val", "0.6", "--test", "0.4"], ["val + test", "0.6 + 0.4"]),
        (["cora", "--test", "-0.1"], ["test", "-0.1"]),
        (["cora", "--objective", "dense"], ["objective", "exact, sampled, auto"]),
        (["cora", "--device", "cuda:99"], ["device", "cuda:99"]),
        (["cora", "--val", "0", "--early-stopping", "10"], ["early_stopping"]),
        (["cora", "--no-such-option"], ["--no-such-option"]),
        ([], ["GRAPH"]),
    ],
)
def test_bad_options_are_refused(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    assert_refused(run_vgae("train", *arguments, "--json", cwd=tmp_path), *words)
    assert list(tmp_path.rglob("*.safetensors")) == []
    assert list(tmp_path.rglob(".*")) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"features": np.full((12, 2), np.nan)}, ["features", "row 0, column 0 is nan"]),
        ({"features": np.where(np.arange(24).reshape(12, 2) == 7, np.inf, 1)}, ["row 3, column 1 is inf"]),
        ({"features": np.ones((9, 2))}, ["features", "9 rows for 12 nodes"]),
        ({"edges": np.array([[0, 1], [3, 12]])}, ["edges", "row 1 is (3, 12)", "0 to 11"]),
        ({"edges": np.array([[0, -1]])}, ["row 0 is (0, -1)"]),
        ({"edges": np.empty((0, 2), dtype=int)}, ["no links"]),
        ({"edges": np.array([[3, 3], [4, 4]])}, ["no links", "2 self-loops dropped"]),
        ({"edges": np.array([[0, 1, 2]])}, ["edges", "two endpoints"]),
        ({"edges": None}, ["no array called edges"]),
        ({"edges": np.stack(np.triu_indices(12, 1), axis=1)}, ["complete", "no new link", "val and test 0"]),
        ({"edges": np.array([[0, 1], [1, 2]])}, ["val", "less than one link"]),
        ({"labels": np.array([{}, 1], dtype=object)}, ["bad.npz"]),
    ],
)
def test_bad_graphs_are_refused(tmp_path: Path, changes: dict[str, Any], words: list[str]) -> None:
    path = small_graph(tmp_path / "bad.npz", **changes)
    assert_refused(run_vgae("train", path, "--val", "0.1", "--test", "0.1", cwd=tmp_path), *words)
    assert [found.name for found in tmp_path.iterdir()] == ["bad.npz"]


def test_missing_file_and_text_file_are_refused(tmp_path: Path) -> None:
    assert_refused(run_vgae("train", "nowhere.npz", cwd=tmp_path), "nowhere.npz", "no such file")
    (tmp_path / "text.npz").write_text("0 1\n1 2\n")
    assert_refused(run_vgae("train", "text.npz", cwd=tmp_path), "text.npz", "not an npz file")


def test_used_output_folder_is_refused_and_overwrite_replaces_it(trained: Trained) -> None:
    folder, _ = trained
    before = (folder / "runs/cora/model.safetensors").read_bytes()
    arguments = ("train", "cora", "--out", "runs/cora", "--iterations", "2", "--model", "gae")
    assert_refused(run_vgae(*arguments, cwd=folder), "runs/cora", "already used", "overwrite")
    assert (folder / "runs/cora/model.safetensors").read_bytes() == before
    copy = run_vgae(*arguments[:3], "runs/other", *arguments[4:], cwd=folder)
    assert copy.returncode == 0
    again = run_vgae(*arguments[:3], "runs/other", *arguments[4:], "--overwrite", cwd=folder)
    assert again.returncode == 0
    assert sorted(path.name for path in (folder / "runs").iterdir()) == ["cora", "other"]


def test_unwritable_output_folder_is_refused_before_training(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert_refused(run_vgae("train", "cora", "--out", "file/run", cwd=tmp_path), "file/run", "cannot be written")
    assert_refused(run_vgae("train", "cora", "--out", "file", cwd=tmp_path), "file", "already used")
    assert (tmp_path / "file").read_text() == "in the way"


def test_ctrl_c_keeps_the_state_and_says_how_to_continue(tmp_path: Path) -> None:
    path = small_graph(tmp_path / "ring.npz")
    arguments = ["train", path, "--val", "0.1", "--test", "0.1", "--iterations", "1000000", "--out", "new/run"]
    command = [sys.executable, "-m", "vgae", *arguments]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c) as process:
        assert process.stderr is not None
        assert any(line.startswith("objective") for line in process.stderr)  # from here on Ctrl-C is heard
        assert_refused(run_vgae(*arguments, cwd=tmp_path), "new/run", "another process is writing this run")
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130
    found = re.search(
        r"^vgae: Interrupted after iteration (\d+)\. To continue, run: (vgae .* --resume)$", said, re.MULTILINE
    )
    assert found is not None, said
    assert found[2].split() == ["vgae", *arguments, "--resume"]
    kept = json.loads((tmp_path / "new/run/checkpoint/checkpoint.json").read_text())
    assert kept["iteration"] == int(found[1])
    assert sorted(path.name for path in (tmp_path / "new/run").iterdir()) == ["checkpoint"]
    assert_refused(
        run_vgae(*arguments, cwd=tmp_path), "new/run", "an unfinished run is there", "--resume", "--overwrite"
    )
    other = run_vgae(*arguments, "--seed", "7", "--resume", "--json", cwd=tmp_path)
    assert_refused(other, "new/run/checkpoint", "seed 0, not 7")


def test_resume_starts_where_nothing_is_and_ends_where_all_is_done(tmp_path: Path) -> None:
    path = small_graph(tmp_path / "ring.npz")
    arguments = ["train", path, "--val", "0.1", "--test", "0.1", "--iterations", "3", "--out", "run", "--resume"]
    first = run_vgae(*arguments, cwd=tmp_path)
    assert first.returncode == 0, first.stderr
    assert "run: nothing to resume, so training starts from the beginning" in first.stderr
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    again = run_vgae(*arguments, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert "run: this run is complete; there is nothing to resume" in again.stderr
    assert_refused(run_vgae(*arguments, "--latent-dim", "3", cwd=tmp_path), "complete", "latent_dim 64, not 3")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_failure_on_good_input_exits_with_1_and_debug_shows_where(tmp_path: Path) -> None:
    path = small_graph(tmp_path / "huge.npz", features=np.full((12, 2), 1e25))
    arguments = ("train", path, "--val", "0.1", "--test", "0.1", "--preset", "paper")
    result = run_vgae(*arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert "Training has diverged" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert "Traceback" in run_vgae(*arguments, "--debug", cwd=tmp_path).stderr
    assert [found.name for found in tmp_path.iterdir()] == ["huge.npz"]
