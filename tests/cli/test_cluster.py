"""`vgae cluster` as a person uses it: its exit code, its files, its words."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet
import pytest
from sklearn.metrics import adjusted_rand_score

import vgae
from command import assert_refused, run_vgae, strict_json

SIZES = ("--latent-dim", "16", "--hidden-dim", "32", "--iterations", "80", "--device", "cpu", "--preset", "paper")
WHOLE = ("--val", "0", "--test", "0")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph in files, with labels and without, runs with a mixture prior, and one with the paper's."""
    here = tmp_path_factory.mktemp("cluster")
    graph = vgae.stochastic_block_model(300, 3, degree_within=10, degree_between=1, feature_dim=60, seed=3)
    vgae.write_graph(here / "graph.npz", graph)
    (here / "links.csv").write_text("a,b\n" + "".join(f"n{i},n{j}\n" for i, j in graph.edges.tolist()))
    labels = np.asarray(graph.labels).tolist()
    rows = [f"n{k},kind {label}\n" for k, label in enumerate(labels) if k >= 5]
    (here / "labels.csv").write_text("name,kind\n" + "".join(rows))
    (here / "strange.csv").write_text("name,kind\nnobody,1\nnone,2\n")
    mixed = ("--prior", "mixture:components=3", "--warm-up", "60")
    for name, arguments in {
        "run": ("graph.npz", *mixed, *WHOLE),
        "links": ("links.csv", *mixed, *WHOLE),
        "plain": ("graph.npz",),
    }.items():
        result = run_vgae("train", *arguments, *SIZES, "--out", name, cwd=here)
        assert result.returncode == 0, result.stderr
    return here


def test_sizes_and_scores_in_a_process_of_its_own(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "vgae", "cluster", "run", "--out", "clusters.csv"],
        cwd=folder,
        env={**os.environ, "TERM": "dumb"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr.strip() == "wrote the clusters of 300 nodes to clusters.csv"
    lines = done.stdout.splitlines()
    assert lines[0] == "300 nodes in 3 clusters, the components of the mixture prior:"
    assert lines[1].split() == ["cluster", "nodes", "share", "%", "mean", "probability", "mostly"]
    found = vgae.load(folder / "run").clusters()
    assert [int(line.split()[1]) for line in lines[2:5]] == found.sizes.tolist()
    scores = found.scores()
    assert scores.ari > 0.9
    words = f"ACC {100 * scores.accuracy:.1f}, NMI {100 * scores.nmi:.1f}, ARI {100 * scores.ari:.1f}"
    assert lines[5] == f"Against the labels: {words} (300 nodes in 3 classes)."
    with (folder / "clusters.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(300))
    assert [int(row["cluster"]) for row in rows] == found.assignment.tolist()
    np.testing.assert_allclose([float(row["p1"]) for row in rows], found.responsibilities[:, 1], rtol=1e-5)


def test_json_is_one_object_with_everything(folder: Path) -> None:
    result = run_vgae("cluster", "run", "--json", "--out", "clusters.parquet", cwd=folder)
    assert (result.returncode, result.stderr) == (0, "")
    content = strict_json(result.stdout)
    found = vgae.load(folder / "run").clusters()
    assert (content["run"], content["method"]) == ("run", "mixture")
    assert content["sizes"] == found.sizes.tolist()
    assert [each["cluster"] for each in content["nodes"]] == found.assignment.tolist()
    assert content["nodes"][7]["probability"] == pytest.approx(float(found.probabilities[7]))
    assert content["labels"]["ari"] == pytest.approx(found.scores().ari)
    table = pyarrow.parquet.read_table(folder / "clusters.parquet")
    assert table["cluster"].to_pylist() == found.assignment.tolist()


def test_labels_from_a_table(folder: Path) -> None:
    result = run_vgae("cluster", "links", "--labels", "labels.csv", cwd=folder)
    assert result.returncode == 0, result.stderr
    assert "kind 0 (" in result.stdout
    assert "295 nodes in 3 classes; 5 nodes without a label left out" in result.stdout
    named = run_vgae("cluster", "links", "--labels", "labels.csv", "--id", "name", "--label", "kind", cwd=folder)
    assert named.stdout == result.stdout
    assert "Against" not in run_vgae("cluster", "links", cwd=folder).stdout  # this graph has none of its own


def test_k_means_on_any_run(folder: Path) -> None:
    result = run_vgae("cluster", "plain", "--k", "3", "--json", cwd=folder)
    content = strict_json(result.stdout)
    assert content["method"] == "kmeans"
    assert "probability" not in content["nodes"][0]
    graph = vgae.load(folder / "plain").graph_
    found = [each["cluster"] for each in content["nodes"]]
    assert content["labels"]["ari"] == pytest.approx(adjusted_rand_score(graph.labels, found))
    assert "k-means on the embeddings" in run_vgae("cluster", "plain", "--k", "2", cwd=folder).stdout


def test_another_graph(folder: Path) -> None:
    other = vgae.stochastic_block_model(90, 3, degree_within=10, degree_between=1, feature_dim=60, seed=8)
    vgae.write_graph(folder / "other.npz", other)
    content = strict_json(run_vgae("cluster", "run", "--graph", "other.npz", "--json", cwd=folder).stdout)
    expected = vgae.load(folder / "run").on(vgae.read_graph(folder / "other.npz")).clusters()
    assert [each["cluster"] for each in content["nodes"]] == expected.assignment.tolist()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("plain", ("standard_normal", "--prior mixture:components=K", "(k)")),
        ("nowhere", ("nowhere",)),
        ("run --out clusters.txt", ("clusters.txt", ".csv or .parquet")),
        ("run --out c.parquet --spreadsheet-safe", ("spreadsheet_safe", "c.parquet")),
        ("run --spreadsheet-safe", ("--out",)),
        ("run --k 0", ("k", "1")),
        ("run --k 301", ("k", "from 1 to 300")),
        ("run --label kind", ("label", "--labels FILE")),
        ("links --labels", ("labels", "the graph has none")),
        ("links --labels strange.csv", ("strange.csv", "none of its ids")),
        ("run --out labels.csv/c.csv", ("labels.csv/c.csv", "cannot be written")),
    ],
)
def test_what_cannot_be_done_is_one_sentence(arguments: str, words: tuple[str, ...], folder: Path) -> None:
    assert_refused(run_vgae("cluster", *arguments.split(), cwd=folder), *words)


def test_a_baseline_without_embeddings_is_refused_by_name(folder: Path) -> None:
    made = run_vgae("baseline", "cn", "graph.npz", "--out", "cn", cwd=folder)
    assert made.returncode == 0, made.stderr
    assert_refused(run_vgae("cluster", "cn", "--k", "3", cwd=folder), "cn", "no embeddings")
