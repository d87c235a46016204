"""`vgae baseline`: scores, a table of all, and runs that the other commands take."""

import csv
import json
import sys
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from vgae.baselines import BASELINES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a graph, the run of a heuristic and that of an embedding."""
    folder = tmp_path_factory.mktemp("baselines")
    graph = vgae.stochastic_block_model(300, 6, degree_within=9, degree_between=1, feature_dim=60, seed=1)
    vgae.write_graph(folder / "blocks.npz", graph.with_parts(node_ids=np.array([f"n{i}" for i in range(300)])))
    for method in ("ra", "sc"):
        result = run_vgae("baseline", method, "blocks.npz", "--out", f"runs/{method}", cwd=folder)
        assert result.returncode == 0, result.stderr
        assert f"in runs/{method}" in result.stderr
    return folder


def test_all_are_scored_on_one_split(folder: Path) -> None:
    found = strict_json(run_vgae("baseline", "all", "blocks.npz", "--json", cwd=folder).stdout)
    split = vgae.split_links(vgae.read_graph(folder / "blocks.npz"))
    assert found["split"] == split.content_hash
    assert list(found["baselines"]) == list(BASELINES)
    for name, scores in found["baselines"].items():
        alone = strict_json(run_vgae("baseline", name, "blocks.npz", "--json", cwd=folder).stdout)
        assert {metric: scores[metric] for metric in ("auc", "ap")} == pytest.approx(
            {metric: alone["test"][metric] for metric in ("auc", "ap")}
        )
    shown = run_vgae("baseline", "all", "blocks.npz", cwd=folder).stdout.splitlines()
    assert [line.split()[0] for line in shown] == ["protocol", *BASELINES, "random"]
    assert f"{100 * found['baselines']['ra']['auc']:.1f}" in next(line for line in shown if line.startswith("ra"))


def test_what_cannot_be_had_is_a_note(tmp_path: Path) -> None:
    (tmp_path / "ring.csv").write_text("a,b\n" + "".join(f"{node},{(node + 1) % 40}\n" for node in range(40)))
    with patch.dict(sys.modules, {"gensim": None, "gensim.models": None}):
        result = run_vgae("baseline", "all", "ring.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "sc is left out: Spectral embedding in 128 dimensions needs more than 129 nodes, not 40." in result.stdout
    assert "dw is left out: DeepWalk needs gensim" in result.stdout
    assert "cosine is left out: The cosine of features needs features, and the graph has none." in result.stdout
    assert "\nra " in result.stdout


def test_a_baseline_is_evaluated_like_a_model(folder: Path) -> None:
    found = strict_json(run_vgae("evaluate", "runs/ra", "--json", cwd=folder).stdout)
    stored = json.loads((folder / "runs/ra/metrics.json").read_text())
    assert found["baseline"] == "ra"
    assert {metric: found["test"][metric] for metric in stored["test"]} == stored["test"]
    model = vgae.load(folder / "runs/ra")
    assert found["test"]["precision@10"] == model.evaluate(model.run_.split.test)["precision@10"]
    assert found["calibration"]["is_fitted"] is True
    shown = run_vgae("evaluate", "runs/ra", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "Probabilities of all pairs" in shown.stdout


def test_links_of_a_baseline_are_recommended_and_predicted(folder: Path) -> None:
    model = vgae.load(folder / "runs/ra")
    best = model.recommend(k=5)
    found = strict_json(run_vgae("recommend", "runs/ra", "--top", "5", "--json", cwd=folder).stdout)["links"]
    assert [[link["source"], link["target"]] for link in found] == best.ids.tolist()
    assert [link["probability"] for link in found] == pytest.approx(best.probabilities.tolist(), rel=1e-5)
    (folder / "pairs.csv").write_text("source,target\n" + "".join(f"{i},{j}\n" for i, j in best.ids.tolist()))
    assert run_vgae("predict", "runs/ra", "pairs.csv", "--out", "scores.csv", cwd=folder).returncode == 0
    rows = list(csv.DictReader((folder / "scores.csv").read_text().splitlines()))
    assert [float(row["logit"]) for row in rows] == pytest.approx(best.logits.tolist(), rel=1e-5)
    assert_refused(run_vgae("recommend", "runs/ra", "--samples", "9", cwd=folder), "no posterior to draw from")
    refused = run_vgae("recommend", "runs/ra", "--new-links", "pairs.csv", cwd=folder)
    assert_refused(refused, "runs/ra", "the baseline ra", "its own graph only")


def test_only_embeddings_are_embedded(folder: Path) -> None:
    assert run_vgae("embed", "runs/sc", "--out", "sc.csv", cwd=folder).returncode == 0
    assert len((folder / "sc.csv").read_text().splitlines()) == 301
    near = strict_json(run_vgae("similar", "runs/sc", "n7", "--top", "3", "--json", cwd=folder).stdout)["similar"]
    assert [each["node"] for each in near] == [name for name, _ in vgae.load(folder / "runs/sc").similar("n7", k=3)]
    for arguments in (("embed", "runs/ra", "--out", "ra.csv"), ("similar", "runs/ra", "n7")):
        assert_refused(run_vgae(*arguments, cwd=folder), "The baseline ra has no embeddings; sc and dw have")
    assert not (folder / "ra.csv").exists()
    assert_refused(run_vgae("plot", "runs/ra", cwd=folder), "runs/ra", "the baseline ra", "no latent space")


def test_without_validation_links_probabilities_are_empty(folder: Path) -> None:
    made = run_vgae("baseline", "ra", "blocks.npz", "--val", "0", "--out", "runs/plain", cwd=folder)
    assert made.returncode == 0, made.stderr
    result = run_vgae("recommend", "runs/plain", "--top", "3", "--out", "plain.csv", cwd=folder)
    assert "probabilities are left out: no validation links were held out" in result.stderr
    rows = list(csv.DictReader((folder / "plain.csv").read_text().splitlines()))
    assert [row["probability"] for row in rows] == ["", "", ""]
    assert all(float(row["logit"]) > 0 for row in rows)
    found = strict_json(run_vgae("recommend", "runs/plain", "--top", "3", "--json", cwd=folder).stdout)["links"]
    assert [link["probability"] for link in found] == [None] * 3
    assert "Probabilities are undefined" in run_vgae("evaluate", "runs/plain", cwd=folder).stdout
    assert strict_json(run_vgae("evaluate", "runs/plain", "--json", cwd=folder).stdout)["calibration"] is None


def test_folders_are_as_safe_as_those_of_models(folder: Path) -> None:
    arguments = ("baseline", "pa", "blocks.npz", "--out", "runs/ra")
    before = (folder / "runs/ra/config.json").read_bytes()
    assert_refused(run_vgae(*arguments, cwd=folder), "runs/ra", "already used", "overwrite")
    assert (folder / "runs/ra/config.json").read_bytes() == before
    resumed = run_vgae("train", "blocks.npz", "--out", "runs/ra", "--resume", "--json", cwd=folder)
    assert_refused(resumed, "runs/ra", "the baseline ra")
    assert run_vgae("baseline", "pa", "blocks.npz", "--out", "runs/pa", cwd=folder).returncode == 0
    assert run_vgae("baseline", "cn", "blocks.npz", "--out", "runs/pa", "--overwrite", cwd=folder).returncode == 0
    assert vgae.load(folder / "runs/pa").method == "cn"
    assert_refused(run_vgae("baseline", "all", "blocks.npz", "--out", "runs/x", cwd=folder), "--out", "one baseline")
    assert_refused(run_vgae("baseline", "magic", "blocks.npz", cwd=folder), "magic", "sc, dw, cn, aa, ra, pa")
    nothing = run_vgae("baseline", "all", "blocks.npz", "--val", "0", "--test", "0", cwd=folder)
    assert_refused(nothing, "Nothing is held out")
