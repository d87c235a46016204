"""What `vgae train` says about a model, as a person sees it: its words, its exit code."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from processes import hear_ctrl_c


def vgae_in(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command, called in a folder."""
    return run_vgae(*arguments, cwd=folder)


def write_links(path: Path, links: list[tuple[str, str]]) -> None:
    path.write_text("source,target\n" + "".join(f"{i},{j}\n" for i, j in links))


def block_graph(path: Path, features: Any = None) -> str:
    """Twelve blocks of fifty nodes, which neighbours tell well."""
    graph = vgae.stochastic_block_model(600, 12, degree_within=10, degree_between=1, seed=0)
    vgae.write_graph(path, graph.with_parts(features=features))
    return path.name


def rows_of(text: str) -> dict[str, list[str]]:
    """The rows of the last table in a text, by their names."""
    found = re.findall(r"^(\S.*?) {2,}([\d.–]+(?: +[\d.–]+)*)$", text.split("\n\n")[-1], re.MULTILINE)
    return {name: numbers.split() for name, numbers in found}


def test_a_model_stands_beside_the_best_heuristics_and_chance(tmp_path: Path) -> None:
    asked = ("train", block_graph(tmp_path / "blocks.npz"), "--iterations", "200", "--out", "run")
    command = [sys.executable, "-m", "vgae", *asked]  # in a process of its own
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    rows = rows_of(result.stdout)
    assert next(iter(rows)) == "VGAE"
    assert list(rows)[-1] == "random"
    assert rows["random"][:2] == ["50.0", "50.0"]
    assert len(rows) in (3, 4)
    scores = result.stdout.split("\n\n")[0]
    assert re.search(rf"^test +{rows['VGAE'][0]} +{rows['VGAE'][1]}$", scores, re.MULTILINE)
    assert "On 335 test links and 335 non-links; P@K: how many of the K best new pairs are test links" in result.stdout
    assert "The model ranks better than every heuristic: AUC" in result.stdout
    plain = vgae_in(tmp_path, *asked, "--resume", "--no-verdict")
    assert plain.stdout == scores + "\n"


def test_json_has_the_verdict_as_data(tmp_path: Path) -> None:
    name = block_graph(tmp_path / "blocks.npz")
    result = vgae_in(tmp_path, "train", name, "--iterations", "20", "--json", "--out", "run")
    found = strict_json(result.stdout)
    verdict = found["verdict"]
    assert verdict["model"]["auc"] == pytest.approx(found["test"]["auc"], abs=1e-12)
    assert set(verdict["heuristics"]) == {"cn", "aa", "ra", "pa"}
    assert verdict["differences"]["auc"]["heuristic"] in verdict["heuristics"]
    assert verdict["standard_errors"]["auc"] > 0
    assert verdict["sentences"]
    assert (
        vgae_in(tmp_path, "train", name, "--iterations", "20", "--json", "--out", "run", "--resume").stdout
        == result.stdout
    )
    model = vgae.load(tmp_path / "run")
    again = vgae.verdict(model, model.run_.split).to_json()
    for part in ("model", "heuristics", "random", "differences", "standard_errors", "collapsed"):
        assert again[part] == verdict[part]


def test_a_collapsed_model(tmp_path: Path) -> None:
    name = block_graph(tmp_path / "zeros.npz", np.zeros((600, 4), dtype=np.float32))
    result = vgae_in(tmp_path, "train", name, "--preset", "paper", "--iterations", "20", "--out", "run")
    assert result.returncode == 0, result.stderr
    assert "The model has collapsed: its logits are the same for nearly all pairs (about 0)" in result.stdout
    assert "--normalize rows" in result.stdout
    assert "vgae train zeros.npz --preset paper --iterations 20 --out run --compare --resume" in result.stdout
    assert rows_of(result.stdout)["VGAE"][:2] == ["50.0", "50.0"]


def test_harmful_features(tmp_path: Path) -> None:
    features = np.random.default_rng(0).lognormal(0, 3, (600, 30)).astype(np.float32)
    asked = ("train", block_graph(tmp_path / "noisy.npz", features), "--model", "gae", "--iterations", "100")
    tuned = vgae_in(tmp_path, *asked, "--out", "tuned")
    assert "so features are left out (--keep-features uses them)" in tuned.stderr
    assert "The model ranks better than every heuristic" in tuned.stdout
    first = vgae_in(tmp_path, *asked, "--preset", "paper")
    assert first.returncode == 0, first.stderr
    assert re.search(
        r"The model is beaten by .*: AUC [\d.]+ against [\d.]+ \([\d.]+ points, standard error", first.stdout
    )
    offered = "vgae train noisy.npz --model gae --iterations 100 --preset paper --compare --resume"
    assert (
        f"Features may be the cause. To see the same model without them and with scaled ones: {offered}" in first.stdout
    )
    compared = vgae_in(tmp_path, *offered.split()[1:])
    assert compared.returncode == 0, compared.stderr
    assert "this run is complete" in compared.stderr
    rows = rows_of(compared.stdout)
    assert float(rows["without features"][0]) > float(rows["GAE"][0]) + 5
    assert "with features of unit length" in rows
    found = re.search(r"the features as they are hurt\. To train that: vgae (train .*)$", compared.stdout, re.MULTILINE)
    assert found is not None, compared.stdout
    advised = vgae_in(tmp_path, *found[1].split())
    assert advised.returncode == 0, advised.stderr
    assert rows_of(advised.stdout)["GAE"][0] in (rows["without features"][0], rows["with features of unit length"][0])
    used = re.search(r"To use it instead: vgae (baseline .*)$", first.stdout, re.MULTILINE)
    assert used is not None
    assert vgae_in(tmp_path, *used[1].split()).returncode == 0
    assert vgae_in(tmp_path, "recommend", used[1].split()[-1]).returncode == 0


def test_comparing_needs_features(tmp_path: Path) -> None:
    name = block_graph(tmp_path / "blocks.npz")
    assert_refused(vgae_in(tmp_path, "train", name, "--compare", "--json"), "--compare", "no features")
    assert not (tmp_path / "runs").exists()


def test_a_star(tmp_path: Path) -> None:
    write_links(tmp_path / "star.csv", [("hub", f"leaf{number}") for number in range(150)])
    result = vgae_in(tmp_path, "train", "star.csv", "--iterations", "20")
    assert result.returncode == 0, result.stderr
    expected = (
        "Of the 15 test links, 15 have an end without any link in the training graph, so that nothing is known of it."
    )
    assert expected in result.stdout


def test_a_graph_of_five_nodes(tmp_path: Path) -> None:
    write_links(tmp_path / "five.csv", [("ann", "bob"), ("bob", "cid"), ("cid", "dan"), ("dan", "eve")])
    refused = vgae_in(tmp_path, "train", "five.csv")
    assert refused.returncode == 2
    assert "0.05 of the graph's 4 links is less than one link; increase val, or set it to 0" in refused.stderr
    result = vgae_in(tmp_path, "train", "five.csv", "--val", "0", "--test", "0.5", "--iterations", "20")
    assert result.returncode == 0, result.stderr
    expected = (
        "With 2 test links no score says much about the model; a graph of 4 links is too small to judge a model by."
    )
    assert expected in result.stdout
    assert "cannot be told apart" in result.stdout


def test_a_complete_graph(tmp_path: Path) -> None:
    write_links(tmp_path / "all.csv", [(f"n{i}", f"n{j}") for i in range(12) for j in range(i)])
    refused = vgae_in(tmp_path, "train", "all.csv")
    assert refused.returncode == 2
    assert "The graph is complete: every pair is a link" in refused.stderr
    result = vgae_in(tmp_path, "train", "all.csv", "--val", "0", "--test", "0", "--iterations", "20", "--out", "run")
    assert result.returncode == 0, result.stderr
    assert "Every pair of nodes is a link already, so there is no new link to recommend." in result.stdout
    assert "collapsed" not in result.stdout
    assert json.loads(vgae_in(tmp_path, "recommend", "run", "--json").stdout) == {"links": []}


def test_no_test_links(tmp_path: Path) -> None:
    name = block_graph(tmp_path / "blocks.npz")
    validated = vgae_in(tmp_path, "train", name, "--test", "0", "--iterations", "5", "--out", "validated")
    assert "On 167 validation links and 167 non-links" in validated.stdout
    nothing = vgae_in(tmp_path, "train", name, "--test", "0", "--val", "0", "--iterations", "5", "--out", "nothing")
    assert nothing.returncode == 0, nothing.stderr
    assert (
        nothing.stdout
        == "Nothing was held out to judge the model by; hold out links with --test 0.1 (in Python, test=0.1).\n"
    )


# --------------------------------------------------------------------------------------------------------------- seeds


def test_several_seeds_have_a_mean_and_an_error(tmp_path: Path) -> None:
    name = block_graph(tmp_path / "blocks.npz")
    arguments = ("train", name, "--iterations", "20", "--seed", "3", "--seeds", "3", "--out", "runs")
    result = vgae_in(tmp_path, *arguments, "--json")
    found = strict_json(result.stdout)
    assert sorted(path.name for path in (tmp_path / "runs").iterdir()) == ["seed-3", "seed-4", "seed-5"]
    assert found["seeds"] == [3, 4, 5]
    assert len({run["split"] for run in found["runs"]}) == 1, "all seeds are trained on one split"
    for part in ("validation", "test"):
        values = np.array([run[part]["auc"] for run in found["runs"]])
        assert found["mean"][part]["auc"] == pytest.approx(values.mean(), rel=1e-12)
        assert found["standard_error"][part]["auc"] == pytest.approx(values.std(ddof=1) / np.sqrt(3), rel=1e-9)
    scores = {run["run"]: run["validation"]["auc"] for run in found["runs"]}
    assert found["best"] == max(scores, key=scores.__getitem__)
    assert found["verdict"]["model"]["auc"] == pytest.approx(
        next(run["test"]["auc"] for run in found["runs"] if run["run"] == found["best"])
    )
    alone = vgae_in(tmp_path, "train", name, "--iterations", "20", "--seed", "4", "--out", "alone", "--json")
    assert strict_json(alone.stdout)["test"] == found["runs"][1]["test"]
    shown = run_vgae(*arguments, "--resume", cwd=tmp_path)
    table = shown.stdout.split("\n\n")[0]
    assert re.search(rf"^mean .* {100 * found['mean']['test']['auc']:.1f} ", table, re.MULTILINE)
    assert "standard error" in table
    assert f"{found['best']}: best by validation" in table
    assert shown.stderr.count("this run is complete") == 3
    assert_refused(run_vgae(*arguments, "--json", cwd=tmp_path), "runs/seed-3", "already used", "--resume")


def test_seeds_are_continued_where_they_were_left(tmp_path: Path) -> None:
    name = block_graph(tmp_path / "blocks.npz")
    arguments = ["train", name, "--iterations", "50", "--seeds", "3", "--out", "runs"]
    command = [sys.executable, "-m", "vgae", *arguments, "--checkpoint-every", "0"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c) as process:
        assert process.stderr is not None
        lines = (line for line in process.stderr if line.startswith("objective"))
        next(lines)
        next(lines)  # the second seed has begun
        process.send_signal(signal.SIGINT)
        said = process.stderr.read()
    assert process.returncode == 130, said
    assert re.search(
        r"Interrupted in seed 1; 1 of 3 runs complete\. To continue, run: vgae .* --seeds 3 .* --resume$", said.strip()
    )
    finished = (tmp_path / "runs/seed-0/config.json").stat().st_mtime_ns
    resumed = vgae_in(tmp_path, *arguments, "--resume", "--json")
    assert resumed.returncode == 0, resumed.stderr
    assert (tmp_path / "runs/seed-0/config.json").stat().st_mtime_ns == finished
    whole = vgae_in(tmp_path, *arguments[:-1], "whole", "--json")
    assert strict_json(resumed.stdout)["mean"] == strict_json(whole.stdout)["mean"]


def test_a_run_is_not_taken_for_a_folder_of_seeds(tmp_path: Path) -> None:
    name = block_graph(tmp_path / "blocks.npz")
    assert vgae_in(tmp_path, "train", name, "--iterations", "2", "--out", "run").returncode == 0
    arguments = ("train", name, "--iterations", "2", "--seeds", "2", "--out", "run", "--json")
    assert_refused(vgae_in(tmp_path, *arguments), "run", "a run is there", "choose another")
    assert vgae_in(tmp_path, *arguments[:-2], "many", "--json").returncode == 0
    assert_refused(vgae_in(tmp_path, "recommend", "many"), "many", "many/seed-0")
