"""Scores and pictures of a run, baselines, plans, the paper's experiments, and the list of datasets."""

import json
from pathlib import Path

import pytest

import vgae
from command import Trained, assert_refused, run_vgae, strict_json, train_cora
from vgae.baselines import adamic_adar


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cora(tmp_path_factory.mktemp("trained"))


def test_evaluate_repeats_the_scores_of_train(trained: Trained) -> None:
    folder, _ = trained
    result = run_vgae("evaluate", "runs/cora", "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    stored = json.loads((folder / "runs/cora/metrics.json").read_text())
    assert found["validation"] == stored["validation"]
    assert {name: found["test"][name] for name in stored["test"]} == stored["test"]
    assert set(stored["test"]) == {"auc", "ap", "mrr", "hits@10", "hits@50", "hits@100"}
    tops = {f"{what}@{k}" for what in ("precision", "recall") for k in (10, 100, 527, 1000)}
    by_node = {"node_mrr", *(f"node_hits@{k}" for k in (1, 10, 50, 100))}
    assert set(found["test"]) - set(stored["test"]) == tops | by_node
    table = run_vgae("evaluate", "runs/cora", cwd=folder).stdout
    assert f"{100 * stored['test']['mrr']:.1f}" in table
    assert f"{100 * found['test']['precision@100']:.1f}" in next(
        line for line in table.splitlines() if "best 100" in line
    )
    assert f"MRR {100 * found['test']['node_mrr']:.1f}" in table


def test_evaluate_tells_how_far_probabilities_hold(trained: Trained) -> None:
    folder, _ = trained
    found = json.loads(run_vgae("evaluate", "runs/cora", "--json", cwd=folder).stdout)["calibration"]
    assert found["is_fitted"]
    assert found["error"] < found["error_raw"] / 10
    bins = found["bins"]
    assert sum(each["found_links"] for each in bins) == 527
    assert sum(each["pairs"] for each in bins) == 2708 * 2707 // 2 - (5278 - 527)
    table = run_vgae("evaluate", "runs/cora", cwd=folder).stdout.splitlines()
    for each in bins:
        line = next(line for line in table if line.startswith(f"{each['low']:g} to {each['high']:g}  "))
        assert (f"{each['pairs']:,}" if each["pairs"] else "none") in line
        assert ("too few links" in line) == (each["pairs"] > 0 and each["observed"] is None)


def test_plot_draws_every_kind(trained: Trained, tmp_path: Path) -> None:
    folder, _ = trained
    for kind in ("latent", "training", "ranking", "reliability"):
        arguments = ("plot", "runs/cora", "--kind", kind, "--projection", "pca", "--out", str(tmp_path / f"{kind}.png"))
        result = run_vgae(*arguments, cwd=folder)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert_refused(run_vgae("plot", "runs/cora", "--kind", "pie", cwd=folder), "pie", "latent, training, ranking")


def test_damaged_run_is_refused(trained: Trained, tmp_path: Path) -> None:
    folder, _ = trained
    assert_refused(run_vgae("evaluate", "nowhere", cwd=tmp_path), "nowhere", "no such run folder")
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in (folder / "runs/cora").iterdir():
        (broken / path.name).write_bytes(path.read_bytes()[: 1000 if path.name == "model.safetensors" else None])
    assert_refused(run_vgae("evaluate", "broken", cwd=tmp_path), "model.safetensors", "hash")


def test_baseline_is_scored_on_the_split_of_train(trained: Trained) -> None:
    folder, _ = trained
    result = run_vgae("baseline", "aa", "cora", "--json", cwd=folder)
    found = json.loads(result.stdout)
    stored = json.loads((folder / "runs/cora/config.json").read_text())
    assert found["split"] == stored["split_hash"]
    split = vgae.split_links(vgae.load_dataset("cora"))
    assert found["test"] == vgae.evaluate(adamic_adar(split.train), split.test)
    assert_refused(run_vgae("baseline", "magic", "cora", cwd=folder), "magic", "sc, dw, cn, aa, ra, pa")


def test_plan_says_what_training_would_cost(tmp_path: Path) -> None:
    shown = run_vgae("plan", "cora", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "--objective auto chooses exact" in shown.stdout
    costs = json.loads(run_vgae("plan", "cora", "--no-features", "--json", cwd=tmp_path).stdout)
    assert costs["auto"] == "exact"
    wider = json.loads(run_vgae("plan", "cora", "--no-features", "--latent-dim", "64", "--json", cwd=tmp_path).stdout)
    assert wider["exact"]["bytes"] > costs["exact"]["bytes"]
    assert wider["sampled"]["bytes"] > costs["sampled"]["bytes"]
    stopping = json.loads(run_vgae("plan", "cora", "--early-stopping", "10", "--json", cwd=tmp_path).stdout)
    assert stopping["auto"] == "exact"  # although a plan has nothing to validate by
    assert_refused(run_vgae("plan", "cora", "--latent-dim", "0", cwd=tmp_path), "latent_dim")
    assert_refused(
        run_vgae("plan", "cora", "--source", "1", cwd=tmp_path), "cora", "source is only for files of your own"
    )
    assert_refused(run_vgae("plan", "nowhere", cwd=tmp_path), "nowhere", "cora, citeseer, pubmed")


def test_reproduce_draws_figure_1(tmp_path: Path) -> None:
    options = ["--quick", "--dataset", "cora", "--model", "VGAE", "--out", "results"]
    for figure in ("pca", "2d"):  # the second is drawn beside the results of the first
        result = run_vgae("reproduce", *options, "--figure", figure, cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / "results/figure-1.png").read_bytes().startswith(b"\x89PNG")
        assert "Neural" in (tmp_path / "results/figure-1.svg").read_text()  # the legend is text
        (tmp_path / "results/figure-1.png").unlink()
        (tmp_path / "results/figure-1.svg").unlink()
    printed = run_vgae("reproduce", *options, "--figure", "none", "--json", cwd=tmp_path)
    assert printed.returncode == 0, printed.stderr
    for text in (printed.stdout, *(path.read_text() for path in (tmp_path / "results").rglob("*.json"))):
        strict_json(text)
    cell = strict_json(printed.stdout)["cora"]["VGAE"]
    assert (cell["auc_error"], cell["ap_error"], cell["num_runs"]) == (None, None, 1)
    assert_refused(run_vgae("reproduce", "--figure", "cubist", cwd=tmp_path), "figure", "tsne, pca, 2d, none")


def test_report_refuses_what_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    assert_refused(run_vgae("report", "x.json", cwd=tmp_path), "x.json")
    assert not (tmp_path / "results.md").exists()


def test_datasets_lists_the_sizes_of_the_graphs(tmp_path: Path) -> None:
    listed = run_vgae("datasets", cwd=tmp_path).stdout.splitlines()[1:]
    found = json.loads(run_vgae("datasets", "--json", cwd=tmp_path).stdout)
    known = ["cora", "citeseer", "pubmed", "blogcatalog", "ca-astroph"]
    assert [line.split()[0] for line in listed] == list(found) == known
    for line in listed:
        name, *shown = line.split()[:5]
        graph = vgae.load_dataset(name)
        classes = set() if graph.labels is None else set(graph.labels.tolist()) - {-1}
        counts = [graph.num_nodes, graph.num_edges, graph.num_features, len(classes)]
        assert shown == [f"{count:,}" for count in counts]
        keys = ("num_nodes", "num_edges", "num_features", "num_classes", "cached")
        assert [found[name][key] for key in keys] == [*counts, True]


def test_help_and_version(tmp_path: Path) -> None:
    assert "--latent-dim" in run_vgae("train", "--help", cwd=tmp_path).stdout
    assert "evaluate" in run_vgae(cwd=tmp_path).stdout
    assert run_vgae("--version", cwd=tmp_path).stdout.strip() == vgae.__version__
