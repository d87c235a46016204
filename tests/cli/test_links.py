"""What is asked of a run: embeddings, probabilities, recommendations, similar nodes, on its own graph and another."""

import json
from pathlib import Path

import numpy as np
import pytest

import vgae
from command import Trained, assert_refused, run_vgae, train_cora
from vgae.train.presets import TUNED


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_cora(tmp_path_factory.mktemp("trained"))


def test_predict_gives_each_pair_its_probability(trained: Trained) -> None:
    folder, _ = trained
    model = vgae.load(folder / "runs/cora")
    ids = model.graph_.ids
    split = model.run_.split
    pairs = np.concatenate([[[5, 9], [0, 2700], [7, 7]], split.train.edges[:1, ::-1], split.test.links[:1]])
    (folder / "pairs.csv").write_text("from,to\n" + "".join(f"{ids[i]},{ids[j]}\n" for i, j in pairs.tolist()))
    found = json.loads(run_vgae("predict", "runs/cora", "pairs.csv", "--json", cwd=folder).stdout)["links"]
    assert [(link["source"], link["target"]) for link in found] == [(ids[i], ids[j]) for i, j in pairs.tolist()]
    assert all(type(link["source"]) is int for link in found)  # Cora's ids are numbers
    assert [link["known"] for link in found] == ["no", "no", "self", "train", "held_out"]
    np.testing.assert_allclose([link["probability"] for link in found], model.predict_proba(pairs), rtol=1e-4)
    (folder / "pairs.csv").write_text(f"from,to\n{ids[0]},nobody\n")
    assert_refused(run_vgae("predict", "runs/cora", "pairs.csv", cwd=folder), "pairs.csv", "row 1", "'nobody'")


def test_samples_add_the_spread_of_the_probabilities(trained: Trained) -> None:
    folder, _ = trained
    model = vgae.load(folder / "runs/cora")
    ids = model.graph_.ids
    pairs = np.array([[5, 9], [0, 2700]])
    (folder / "two.csv").write_text("".join(f"{ids[i]},{ids[j]}\n" for i, j in pairs.tolist()))
    result = run_vgae("predict", "runs/cora", "two.csv", "--samples", "50", "--out", "spread.csv", cwd=folder)
    assert result.returncode == 0, result.stderr
    header, *rows = (folder / "spread.csv").read_text().splitlines()
    assert header == "source,target,probability,logit,std,known"
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


def test_recommend_names_new_links_by_their_ids(trained: Trained) -> None:
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
    assert [link["source"] for link in found["links"]] == [int(name)]
    assert_refused(run_vgae("recommend", "runs/cora", "--node", "nobody", cwd=folder), "nobody", "ids look like")
    assert_refused(run_vgae("recommend", "runs/cora", "--top", "0", cwd=folder), "k: a whole number of at least 1")
    near = json.loads(run_vgae("similar", "runs/cora", name, "--top", "3", "--json", cwd=folder).stdout)["similar"]
    assert len(near) == 3
    assert all(type(other["node"]) is int and str(other["node"]) != name for other in near)
    assert_refused(run_vgae("similar", "runs/cora", "nobody", cwd=folder), "nobody", "ids look like")


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
    assert lines[0] == ",".join(f'"{name}"' for name in ["id", *(f"z{d + 1}" for d in range(TUNED["latent_dim"]))])
    assert {line.split(",")[0].strip('"') for line in lines[1:]} == set(people)
    result = run_vgae("train", "leute.csv", "--source", "wer", cwd=tmp_path)
    assert_refused(result, "leute.csv", "von, nach, seit")
    result = run_vgae("embed", "run", "--new-links", "leute.csv", "--out", "z.csv", cwd=tmp_path)
    assert_refused(
        result, "run: this run was trained without features, so it cannot be used for nodes other than its own"
    )


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
    options = ("--impute", "mean", "--iterations", "20", "--preset", "paper")
    trained = run_vgae("train", *tables, *options, "--out", "run", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert trained.stderr.splitlines()[:3] == [
        "links.csv: columns are split at commas; links are the columns from and to; weights are times, from 1 to 6: "
        "those of merged links are added up; links are directed, from source to target",
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
