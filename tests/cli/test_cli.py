"""The command as a person uses it: its exit code, its files, its words."""

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
from command import assert_refused, run_vgae, strict_json
from processes import hear_ctrl_c
from vgae.baselines import adamic_adar


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """A folder with the run of `vgae train cora`, and what the command said."""
    folder = tmp_path_factory.mktemp("trained")
    return folder, run_vgae("train", "cora", "--out", "runs/cora", cwd=folder)


def small_graph(path: Path, **changes: Any) -> str:
    """A ring of twelve nodes with two feature columns, as an npz file, with some arrays changed or (None) left out."""
    ring = np.array([(node, (node + 1) % 12) for node in range(12)])
    arrays: dict[str, Any] = {"edges": ring, "num_nodes": 12, "features": np.ones((12, 2), dtype=np.float32)} | changes
    np.savez(path, allow_pickle=True, **{name: array for name, array in arrays.items() if array is not None})
    return str(path)


# ----------------------------------------------------------------------------------------------- what should work


def test_train_ends_with_the_scores_and_the_papers_beside_them(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    _, result = trained
    assert result.returncode == 0, result.stderr
    rows = {line.rsplit(maxsplit=2)[0]: line.split()[-2:] for line in result.stdout.splitlines()[1:4]}
    assert rows["paper, test"] == ["91.4", "92.6"]
    assert float(rows["test"][0]) == pytest.approx(91.4, abs=2.5)
    assert "2,708 nodes, 5,278 edges, 1,433 sparse features, 7 classes" in result.stderr
    assert "151 reversed links merged" in result.stderr
    assert "objective: exact (3.7 million pairs" in result.stderr


def test_evaluate_repeats_the_scores_of_train(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = trained
    result = run_vgae("evaluate", "runs/cora", "--json", cwd=folder)
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    stored = json.loads((folder / "runs/cora/metrics.json").read_text())
    assert found["validation"] == stored["validation"]
    assert found["test"] == stored["test"]
    assert set(found["test"]) == {"auc", "ap", "mrr", "hits@10", "hits@50", "hits@100"}
    table = run_vgae("evaluate", "runs/cora", cwd=folder).stdout
    assert f"{100 * stored['test']['mrr']:.1f}" in table


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


def test_predict_gives_each_pair_its_probability(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = trained
    model = vgae.load(folder / "runs/cora")
    ids = [str(name) for name in model.graph_.node_ids.tolist()]  # type: ignore[union-attr]
    pairs = np.array([[5, 9], [0, 2700], [100, 3]])
    (folder / "pairs.csv").write_text("from,to\n" + "".join(f"{ids[i]},{ids[j]}\n" for i, j in pairs.tolist()))
    found = json.loads(run_vgae("predict", "runs/cora", "pairs.csv", "--json", cwd=folder).stdout)["links"]
    assert [(link["source"], link["target"]) for link in found] == [(ids[i], ids[j]) for i, j in pairs.tolist()]
    np.testing.assert_allclose([link["probability"] for link in found], model.predict_proba(pairs), rtol=1e-4)
    (folder / "pairs.csv").write_text(f"from,to\n{ids[0]},nobody\n")
    assert_refused(run_vgae("predict", "runs/cora", "pairs.csv", cwd=folder), "pairs.csv", "row 1", "'nobody'")


def test_samples_add_the_spread_of_the_probabilities(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, _ = trained
    model = vgae.load(folder / "runs/cora")
    ids = [str(name) for name in model.graph_.node_ids.tolist()]  # type: ignore[union-attr]
    pairs = np.array([[5, 9], [0, 2700]])
    (folder / "two.csv").write_text("".join(f"{ids[i]},{ids[j]}\n" for i, j in pairs.tolist()))
    result = run_vgae("predict", "runs/cora", "two.csv", "--samples", "50", "--out", "spread.csv", cwd=folder)
    assert result.returncode == 0, result.stderr
    header, *rows = (folder / "spread.csv").read_text().splitlines()
    assert header == "source,target,probability,logit,std"
    expected = model.predict_links(pairs, samples=50)
    assert expected.std is not None
    np.testing.assert_allclose([float(row.split(",")[2]) for row in rows], expected.probabilities, rtol=1e-5)
    np.testing.assert_allclose([float(row.split(",")[4]) for row in rows], expected.std, rtol=1e-5)
    options = ("--top", "3", "--samples", "20", "--seed", "7", "--json")
    found = json.loads(run_vgae("recommend", "runs/cora", *options, cwd=folder).stdout)["links"]
    drawn = model.recommend(3, samples=20, seed=7)
    assert drawn.std is not None
    np.testing.assert_allclose([link["std"] for link in found], drawn.std, rtol=1e-5)
    np.testing.assert_allclose([link["probability"] for link in found], drawn.probabilities, rtol=1e-5)
    assert_refused(run_vgae("recommend", "runs/cora", "--samples", "-4", cwd=folder), "samples", "at least 2", "-4")


def test_evaluate_tells_how_far_probabilities_are_off(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    folder, _ = trained
    found = json.loads(run_vgae("evaluate", "runs/cora", "--json", cwd=folder).stdout)["calibration"]
    assert found["error_calibrated"] < found["error_raw"] / 2
    curve = found["curve"]
    error = sum(s * abs(p - o) for p, o, s in zip(curve["promised"], curve["observed"], curve["share"], strict=True))
    assert found["error_calibrated"] == pytest.approx(error)


def test_a_strangers_table_is_trained_and_links_are_recommended(tmp_path: Path) -> None:
    people = [f"Person {number}" for number in range(40)]
    links = [(i, (i + step) % 40) for i in range(40) for step in (1, 2, 3)]
    rows = [f"{people[i]};{people[j]};1999" for i, j in [*links, links[0], links[0][::-1], (5, 5)]]
    (tmp_path / "leute.csv").write_text("\n".join(["von;nach;seit", *rows]) + "\n")
    trained = run_vgae("train", "leute.csv", "--out", "run", "--iterations", "50", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "columns are split at semicolons; the first row is a header" in trained.stderr
    assert "1 duplicate and 1 reversed link merged, 1 self-loop dropped" in trained.stderr
    found = json.loads(run_vgae("recommend", "run", "--top", "8", "--json", cwd=tmp_path).stdout)["links"]
    known = {frozenset((people[i], people[j])) for i, j in links}
    assert len(found) == 8
    assert all(link["source"] in people and frozenset((link["source"], link["target"])) not in known for link in found)
    embedded = run_vgae("embed", "run", "--out", "embeddings.csv", cwd=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    lines = (tmp_path / "embeddings.csv").read_text().splitlines()
    assert lines[0] == ",".join(f'"{name}"' for name in ["id", *(f"z{d}" for d in range(1, 17))])
    assert {line.split(",")[0].strip('"') for line in lines[1:]} == set(people)
    result = run_vgae("train", "leute.csv", "--source", "wer", cwd=tmp_path)
    assert_refused(result, "leute.csv", "von, nach, seit")
    result = run_vgae("embed", "run", "--new-links", "leute.csv", "--out", "z.csv", cwd=tmp_path)
    assert_refused(result, "run: this run was trained without features, so it knows nothing of other nodes")


def test_weights_directions_and_a_table_of_nodes_are_read_and_told(tmp_path: Path) -> None:
    rows = [f"P{i},P{(i + step) % 40},{step}" for i in range(40) for step in (1, 2, 3)]
    (tmp_path / "links.csv").write_text("\n".join(["from,to,times", *rows, "P1,P0,5"]) + "\n")
    people = [f"P{i},{i if i else ''},{'ab'[i % 2]},{i % 3}" for i in range(42)]
    (tmp_path / "people.csv").write_text("\n".join(["name,age,kind,class", *people]) + "\n")
    tables = ["links.csv", "--features", "people.csv", "--id", "name", "--label", "class", "--weight", "times"]
    tables += ["--directed", "--standardise"]
    refused = run_vgae("train", *tables, "--out", "run", cwd=tmp_path)
    assert_refused(refused, "people.csv", "row 1 has no value in the column 'age'", "--impute mean")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["links.csv", "people.csv"]
    trained = run_vgae("train", *tables, "--impute", "mean", "--iterations", "20", "--out", "run", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert trained.stderr.splitlines()[:3] == [
        "links.csv: columns are split at commas; links are the columns from and to; weights are times, from 1 to 6: "
        "those of merged links are added up; links are directed, but the models treat them as undirected",
        "people.csv: columns are split at commas; 2 columns became 3 features (1 numeric, standardised, 1 "
        "categorical); 1 missing value filled in; 3 classes; 2 nodes have no links",
        "links.csv: Graph(42 nodes, 120 directed weighted edges, 3 dense features, 3 classes) · 121 rows read: 1 "
        "link in both directions",
    ]
    recipe = json.loads((tmp_path / "run/config.json").read_text())["recipe"]
    assert [column["name"] for column in recipe] == ["age", "kind"]
    train = vgae.load(tmp_path / "run").graph_
    assert (train.directed, train.weights is None) == (True, False)
    tables += ["--impute", "mean"]
    scored = json.loads(run_vgae("baseline", "cn", *tables, "--json", cwd=tmp_path).stdout)
    assert scored["split"] == json.loads((tmp_path / "run/config.json").read_text())["split_hash"]
    assert json.loads(run_vgae("plan", *tables, "--json", cwd=tmp_path).stdout)["auto"] == "exact"
    check_new_nodes(tmp_path)


def check_new_nodes(folder: Path) -> None:
    """A new node with the links and the features of P7 is embedded and linked as a twin of P7 would be."""
    (folder / "more.csv").write_text("from,to,times\n" + "".join(f"new,P{i},2\n" for i in (4, 5, 6, 8, 9, 10)))
    (folder / "more-people.csv").write_text("name,age,kind\nnew,7,b\n")
    (folder / "pairs.csv").write_text("new,P7\nP7,P20\n")
    more = ["--new-links", "more.csv", "--features", "more-people.csv", "--id", "name", "--weight", "times"]
    embedded = run_vgae("embed", "run", *more, "--out", "more.npz", cwd=folder)
    assert embedded.returncode == 0, embedded.stderr
    assert "more.csv: 6 links and 1 node added" in embedded.stderr
    run = vgae.load(folder / "run")
    larger = vgae.read_more(
        run.graph_, run.recipe_, links=folder / "more.csv", nodes=folder / "more-people.csv", weight="times"
    ).graph
    with np.load(folder / "more.npz") as found:
        assert found["ids"][-1] == "new"
        np.testing.assert_array_equal(found["embeddings"], run.transform(larger))
    check_columns_of_new_links(folder, more[2:])
    predicted = json.loads(run_vgae("predict", "run", "pairs.csv", *more, "--json", cwd=folder).stdout)["links"]
    assert [link["source"] for link in predicted] == ["new", "P7"]
    assert predicted[0]["probability"] > predicted[1]["probability"]
    around = run_vgae("recommend", "run", "--node", "new", "--top", "3", *more, "--json", cwd=folder)
    assert "P7" in [link["target"] for link in json.loads(around.stdout)["links"]]
    alike = json.loads(run_vgae("similar", "run", "new", *more, "--json", cwd=folder).stdout)["similar"]
    twin, cosine = run.on(larger).similar(larger.num_nodes - 1)[0]
    assert (alike[0]["node"], alike[0]["cosine"]) == (larger.ids_of([twin])[0], pytest.approx(cosine))
    alone = run_vgae("embed", "run", *more[2:6], "--out", "alone.csv", cwd=folder)
    assert "run: 0 links and 1 node added" in alone.stderr
    refused = run_vgae("embed", "run", *more[2:4], "--graph", "links.csv", "--out", "z.csv", cwd=folder)
    assert_refused(refused, "more-people.csv", "none of its ids occurs in links.csv")
    assert not (folder / "z.csv").exists()


def check_columns_of_new_links(folder: Path, more: list[str]) -> None:
    """The same links in other columns, split otherwise, give the same embeddings."""
    links = "".join(f"{i}|2|new|P{i}\n" for i in (4, 5, 6, 8, 9, 10))
    (folder / "other.csv").write_text("when|times|who|whom\n" + links)
    columns = ["--source", "who", "--target", "4", "--delimiter", "|", "--header"]
    result = run_vgae("embed", "run", "--new-links", "other.csv", *more, *columns, "--out", "other.npz", cwd=folder)
    assert result.returncode == 0, result.stderr
    with np.load(folder / "more.npz") as expected, np.load(folder / "other.npz") as found:
        np.testing.assert_array_equal(found["embeddings"], expected["embeddings"])
    refused = run_vgae("embed", "run", "--source", "who", "--out", "z.csv", cwd=folder)
    assert_refused(refused, "source: this is about a table of links")


def test_graphml_is_trained(tmp_path: Path) -> None:
    ring = nx.circulant_graph(30, [1, 2])
    nx.set_node_attributes(ring, {node: float(node % 5) for node in ring}, "size")
    nx.write_graphml(ring, tmp_path / "ring.graphml")
    arguments = ("train", "ring.graphml", "--node-attributes", "--iterations", "5", "--out", "run")
    result = run_vgae(*arguments, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Graph(30 nodes, 60 edges, 1 dense feature)" in result.stderr
    assert_refused(run_vgae("train", "ring.graphml", "--weight", "w", cwd=tmp_path), "ring.graphml", "no attribute 'w'")


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


def test_plot_draws_every_kind(trained: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    folder, _ = trained
    for kind in ("latent", "training", "ranking", "reliability"):
        arguments = ("plot", "runs/cora", "--kind", kind, "--projection", "pca", "--out", str(tmp_path / f"{kind}.png"))
        result = run_vgae(*arguments, cwd=folder)
        assert result.returncode == 0, result.stderr
        assert (tmp_path / f"{kind}.png").read_bytes().startswith(b"\x89PNG")
    assert_refused(run_vgae("plot", "runs/cora", "--kind", "pie", cwd=folder), "pie", "latent, training, ranking")


def test_recommend_names_new_links_by_their_ids(trained: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    folder, _ = trained
    result = run_vgae("recommend", "runs/cora", "--top", "5", "--out", "links.csv", cwd=folder)
    assert result.returncode == 0, result.stderr
    lines = (folder / "links.csv").read_text().splitlines()
    assert lines[0] == "source,target,probability,logit"
    graph = vgae.load_dataset("cora")
    place = {str(name): index for index, name in enumerate(graph.node_ids.tolist())}  # type: ignore[union-attr]
    known = set(map(tuple, graph.edges.tolist()))
    assert len(lines) == 6
    for line in lines[1:]:
        source, target, probability, _ = line.split(",")
        assert 0 < float(probability) < 1
        assert tuple(sorted((place[source], place[target]))) not in known
    name = lines[1].split(",")[0]
    found = json.loads(run_vgae("recommend", "runs/cora", "--node", name, "--top", "1", "--json", cwd=folder).stdout)
    assert [link["source"] for link in found["links"]] == [name]
    assert_refused(run_vgae("recommend", "runs/cora", "--node", "nobody", cwd=folder), "nobody", "ids look like")
    assert_refused(run_vgae("recommend", "runs/cora", "--top", "0", cwd=folder), "k: a whole number of at least 1")
    near = json.loads(run_vgae("similar", "runs/cora", name, "--top", "3", "--json", cwd=folder).stdout)["similar"]
    assert len(near) == 3
    assert name not in [other["node"] for other in near]
    assert_refused(run_vgae("similar", "runs/cora", "nobody", cwd=folder), "nobody", "ids look like")


def test_baseline_is_scored_on_the_split_of_train(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
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
    assert "--objective auto would be exact" in shown.stdout
    costs = json.loads(run_vgae("plan", "cora", "--no-features", "--json", cwd=tmp_path).stdout)
    assert costs["auto"] == "exact"
    wider = json.loads(run_vgae("plan", "cora", "--no-features", "--latent-dim", "64", "--json", cwd=tmp_path).stdout)
    assert wider["exact"]["bytes"] > costs["exact"]["bytes"]
    assert wider["sampled"]["bytes"] > costs["sampled"]["bytes"]
    assert_refused(run_vgae("plan", "cora", "--latent-dim", "0", cwd=tmp_path), "latent_dim")
    assert_refused(run_vgae("plan", "cora", "--source", "1", cwd=tmp_path), "cora", "tables of your own")
    assert_refused(run_vgae("plan", "nowhere", cwd=tmp_path), "nowhere", "cora, citeseer, pubmed")


@pytest.mark.parametrize("figure", ["pca", "2d"])
def test_reproduce_draws_figure_1(tmp_path: Path, figure: str) -> None:
    options = ["--quick", "--dataset", "cora", "--model", "VGAE", "--figure", figure, "--out", "results"]
    result = run_vgae("reproduce", *options, cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "results/figure-1.png").read_bytes().startswith(b"\x89PNG")
    assert "Neural" in (tmp_path / "results/figure-1.svg").read_text()  # the legend is text
    printed = run_vgae("reproduce", *options[:-4], "--figure", "none", *options[-2:], "--json", cwd=tmp_path)
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


def test_datasets_lists_the_published_sizes(tmp_path: Path) -> None:
    result = run_vgae("datasets", cwd=tmp_path)
    rows = {line.split()[0]: line.split()[1:5] for line in result.stdout.splitlines()[1:] if not line.startswith(" ")}
    assert rows["cora"] == ["2,708", "5,278", "1,433", "7"]
    assert rows["citeseer"] == ["3,327", "4,552", "3,703", "6"]
    assert rows["pubmed"] == ["19,717", "44,324", "500", "3"]


def test_help_and_version(tmp_path: Path) -> None:
    assert "--latent-dim" in run_vgae("train", "--help", cwd=tmp_path).stdout
    assert "evaluate" in run_vgae(cwd=tmp_path).stdout
    assert run_vgae("--version", cwd=tmp_path).stdout.strip() == vgae.__version__


# ------------------------------------------------------------------------------------------ what should be refused


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
        ({"edges": np.stack(np.triu_indices(12, 1), axis=1)}, ["0 pairs without a link", "hold out fewer"]),
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


def test_used_output_folder_is_refused_and_overwrite_replaces_it(
    trained: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
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


def test_damaged_run_is_refused(trained: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path) -> None:
    folder, _ = trained
    assert_refused(run_vgae("evaluate", "nowhere", cwd=tmp_path), "nowhere", "no such run folder")
    broken = tmp_path / "broken"
    broken.mkdir()
    for path in (folder / "runs/cora").iterdir():
        (broken / path.name).write_bytes(path.read_bytes()[: 1000 if path.name == "model.safetensors" else None])
    assert_refused(run_vgae("evaluate", "broken", cwd=tmp_path), "model.safetensors", "hash")


def test_own_file_is_not_taken_for_a_dataset_of_the_paper(tmp_path: Path) -> None:
    vgae.write_graph(str(tmp_path / "cora.npz"), vgae.stochastic_block_model(200, 2, seed=0))
    result = run_vgae("train", "cora.npz", "--iterations", "2", "--out", "a[bold]b", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "paper" not in result.stdout
    assert "kept in a[bold]b" in result.stderr


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
    assert "run: nothing to resume, so from the beginning" in first.stderr
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    again = run_vgae(*arguments, cwd=tmp_path)
    assert (again.returncode, again.stdout) == (0, first.stdout)
    assert "run: this run is complete, with nothing to resume" in again.stderr
    assert_refused(run_vgae(*arguments, "--latent-dim", "3", cwd=tmp_path), "complete", "latent_dim 16, not 3")
    assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before


def test_nothing_held_out_is_null_in_json(tmp_path: Path) -> None:
    arguments = ("train", "cora", "--val", "0", "--test", "0", "--iterations", "2", "--json")
    found = json.loads(run_vgae(*arguments, cwd=tmp_path).stdout)
    assert (found["validation"], found["test"]) == (None, None)


def test_failure_on_good_input_exits_with_1_and_debug_shows_where(tmp_path: Path) -> None:
    path = small_graph(tmp_path / "huge.npz", features=np.full((12, 2), 1e25))
    arguments = ("train", path, "--val", "0.1", "--test", "0.1")
    result = run_vgae(*arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert "Training has diverged" in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert "Traceback" in run_vgae(*arguments, "--debug", cwd=tmp_path).stderr
    assert [found.name for found in tmp_path.iterdir()] == ["huge.npz"]
