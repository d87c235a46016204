"""Ids in Python: one graph under many kinds of ids, asked by id, answers what it answers by index; frames have ids."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow.parquet
import pytest

import vgae
from command import run_vgae
from vgae.graph.split import LinkSplit

PEOPLE = ("Éponine", "李雷", "Зоя", "😀", "a b", "x,y", "=1+1", "n", "null", "NaN")
N = 60
SETTINGS: dict[str, Any] = {"iterations": 5, "hidden_dim": 8, "latent_dim": 4, "device": "cpu"}
KINDS: dict[str, Any] = {
    "none": None,
    "text": [f"node {place}" for place in range(N)],
    "shuffled numbers": (np.random.default_rng(1).permutation(N) * 10 + 7),
    "permuted indices": np.random.default_rng(2).permutation(N),
    "numbers as text": [f"{place:03d}" for place in range(N)],
    "unicode": [f"{PEOPLE[place % 10]}{place // 10 or ''}" for place in range(N)],
    "tuples": [(place // 8, place % 8) for place in range(N)],
    "mixed": [place * 3 if place % 2 else f"n{place}" for place in range(N)],
}


@pytest.fixture(scope="module")
def split() -> LinkSplit:
    return vgae.split_links(vgae.stochastic_block_model(N, 3, feature_dim=12, seed=3), seed=0)


@pytest.fixture(scope="module")
def plain(split: LinkSplit) -> vgae.VGAE:
    return vgae.VGAE(**SETTINGS).fit(split.train, validation=split.val)


@pytest.fixture(scope="module", params=list(KINDS))
def model(request: pytest.FixtureRequest, split: LinkSplit) -> vgae.VGAE:
    ids = KINDS[request.param]
    array = None if ids is None else vgae.Graph.from_edges([(ids[0], ids[1])], node_ids=ids).node_ids
    return vgae.VGAE(**SETTINGS).fit(split.train.with_parts(node_ids=array), validation=split.val)


def test_asked_by_id_a_model_answers_what_it_answers_by_index(
    model: vgae.VGAE, plain: vgae.VGAE, split: LinkSplit
) -> None:
    ids, pairs = model.graph_.ids, split.test.pairs
    by_id = [(ids[i], ids[j]) for i, j in pairs.tolist()]
    np.testing.assert_array_equal(model.logits(by_id, ids=True), plain.logits(pairs))
    np.testing.assert_array_equal(model.predict_proba(by_id, ids=True), plain.predict_proba(pairs))
    drawn = model.predict_links(by_id, samples=4, ids=True)
    np.testing.assert_array_equal(drawn.std, plain.predict_links(pairs, samples=4).std)
    for given in (pairs, [tuple(map(str, pair)) for pair in by_id]):  # indices, and what ids read as
        np.testing.assert_array_equal(model.predict_proba(given), plain.predict_proba(pairs))
    expected = plain.recommend(3, nodes=[11, 5])
    for found in (
        model.recommend(3, nodes=[ids[11], ids[5]], ids=True),
        model.recommend(3, nodes=[str(ids[11]), str(ids[5])]),
        model.recommend(3, nodes=[11, 5]),
    ):
        np.testing.assert_array_equal(found.pairs, expected.pairs)
        assert [tuple(row) for row in found.ids.tolist()] == [(ids[i], ids[j]) for i, j in found.pairs.tolist()]
    near = plain.similar(11, 4)
    assert model.similar(11, 4) == near
    for node, by_ids in ((ids[11], True), (str(ids[11]), False)):
        assert model.similar(node, 4, ids=by_ids) == [(ids[other], cosine) for other, cosine in near]


def test_frames_and_arrow_tables_have_the_ids(model: vgae.VGAE, split: LinkSplit) -> None:
    ids = model.graph_.ids
    pairs = np.concatenate([split.test.pairs[:3], split.train.edges[:1, ::-1], split.val.links[:1], [[4, 4]]])
    links = model.predict_links(pairs, samples=3)
    frame, table = links.to_frame(), links.to_arrow()
    columns = ["source", "target", "probability", "logit", "std", "known"]
    assert list(frame.columns) == table.column_names == columns
    assert list(zip(frame["source"], frame["target"], strict=True)) == [(ids[i], ids[j]) for i, j in pairs.tolist()]
    whole = model.graph_.node_ids is None or model.graph_.node_ids.dtype.kind == "i"
    expected = [ids[i] if whole else str(ids[i]) for i in pairs[:, 0].tolist()]
    assert table["source"].to_pylist() == expected
    np.testing.assert_array_equal(frame["logit"], model.logits(pairs))
    np.testing.assert_array_equal(table["probability"], links.probabilities)
    np.testing.assert_array_equal(frame["std"], links.std)
    assert table["known"].to_pylist() == list(frame["known"]) == ["no", "no", "no", "train", "held_out", "self"]
    best = model.recommend(4).to_frame()
    assert list(best.columns) == ["source", "target", "probability", "logit", "known"]
    assert set(best["known"]) == {"no"}


def test_scikit_learns_methods_take_ids_too(model: vgae.VGAE, plain: vgae.VGAE, split: LinkSplit) -> None:
    pairs, labels = split.test.pairs, split.test.labels.astype(int)
    texts = np.array([[str(model.graph_.ids[node]) for node in pair] for pair in pairs.tolist()])
    np.testing.assert_array_equal(model.decision_function(texts), plain.decision_function(pairs))
    np.testing.assert_array_equal(model.predict(texts), plain.predict(pairs))
    assert model.score(texts, labels) == plain.score(pairs, labels)


def test_what_is_known_is_every_pair_that_is(plain: vgae.VGAE, split: LinkSplit) -> None:
    pairs = np.stack(np.meshgrid(np.arange(N), np.arange(N)), axis=-1).reshape(-1, 2)
    known = plain.predict_links(pairs).known.reshape(N, N)
    expected = np.full((N, N), "no", dtype="<U8")
    for links, word in ((split.val.links, "held_out"), (split.train.edges, "train")):
        expected[links[:, 0], links[:, 1]] = expected[links[:, 1], links[:, 0]] = word
    np.fill_diagonal(expected, "self")
    np.testing.assert_array_equal(known, expected)
    more: Any = [("3", "50"), (9, 9)]
    moved = plain.on(split.train, known=more)
    assert moved.predict_links([(50, 3), (9, 9)]).known.tolist() == ["held_out", "self"]


def test_what_a_model_is_asked_of_unknown_nodes_is_refused(plain: vgae.VGAE) -> None:
    names = [f"Person {place}" for place in range(N)]
    model = vgae.GAE(**SETTINGS).fit(vgae.Graph.from_edges(plain.graph_.edges).with_parts(node_ids=names))
    for call in (
        lambda: model.similar("Persn 7"),
        lambda: model.recommend(nodes=["Persn 7"]),
        lambda: model.predict_proba([("Persn 7", "Person 8")]),
    ):
        with pytest.raises(vgae.InputError, match=r"'Persn 7', which is not the id of a node; did you mean 'Person 7'"):
            call()


@pytest.mark.parametrize("kind", ["csv of numbers", "csv of padded numbers", "graphml", "graphml of numbers"])
def test_ids_from_files_come_out_as_they_went_in(kind: str, plain: vgae.VGAE, tmp_path: Path) -> None:
    """Train, save and load; in Python, JSON, CSV and Parquet ids that are whole numbers are numbers, others text."""
    names: list[Any] = [7 * place + 100 for place in range(N)] if kind.endswith("of numbers") else []
    names = names or [f"{'n' if kind == 'graphml' else '0'}{place}" for place in range(N)]
    path = tmp_path / ("links.graphml" if kind.startswith("graphml") else "links.csv")
    rows = [(names[i], names[j]) for i, j in plain.graph_.edges.tolist()]
    if path.suffix == ".csv":
        path.write_text("from,to\n" + "".join(f"{source},{target}\n" for source, target in rows))
    else:
        nx.write_graphml(nx.Graph(rows), path)
    graph = vgae.read_graph(path)
    first = names[1]
    assert set(graph.ids) == {name for row in rows for name in row}
    vgae.GAE(**SETTINGS).fit(graph).save(tmp_path / "run")
    model = vgae.load(tmp_path / "run")
    near = model.similar(first, 3, ids=True)
    assert near == model.similar(str(first), 3)
    assert {type(name) for name, _ in near} == {type(first)}
    told = json.loads(run_vgae("similar", "run", str(first), "--top", "3", "--json", cwd=tmp_path).stdout)
    assert told["node"] == first
    assert [each["node"] for each in told["similar"]] == [name for name, _ in near]
    best = model.recommend(3, nodes=[first], ids=True)
    told = json.loads(run_vgae("recommend", "run", "--node", str(first), "--top", "3", "--json", cwd=tmp_path).stdout)
    assert [[link["source"], link["target"]] for link in told["links"]] == best.ids.tolist()
    (tmp_path / "pairs.csv").write_text(f"{rows[0][0]},{rows[0][1]}\n{first},{first}\n")
    told = json.loads(run_vgae("predict", "run", "pairs.csv", "--json", cwd=tmp_path).stdout)
    assert [[link["source"], link["target"]] for link in told["links"]] == [[*rows[0]], [first, first]]
    assert [link["known"] for link in told["links"]] == ["train", "self"]
    assert run_vgae("embed", "run", "--out", "z.parquet", cwd=tmp_path).returncode == 0
    assert pyarrow.parquet.read_table(tmp_path / "z.parquet")["id"].to_pylist() == list(model.graph_.ids)


def test_between_two_kinds_of_nodes_links_are_recommended_across(tmp_path: Path) -> None:
    """Users and items with the same numbers: of a fitted model, and of a run by the command."""
    generator = np.random.default_rng(4)
    rows = np.unique(generator.integers([25, 15], size=(120, 2)), axis=0).tolist()
    (tmp_path / "likes.csv").write_text("user,item\n" + "".join(f"{user},{item}\n" for user, item in rows))
    graph = vgae.read_graph(tmp_path / "likes.csv", bipartite=True)
    model = vgae.GAE(**SETTINGS).fit(graph)
    z, names = model.transform(), graph.ids
    users, items = ([node for node, name in enumerate(names) if name.startswith(kind)] for kind in ("user:", "item:"))
    known = {(f"user:{user}", f"item:{item}") for user, item in rows}
    scores = {(names[i], names[j]): z[i] @ z[j] for i in users for j in items if (names[i], names[j]) not in known}
    everything = model.recommend(10_000)
    found = [tuple(sorted(pair, reverse=True)) for pair in everything.ids.tolist()]  # the user first
    assert len(found) == len(set(found)) == len(scores)
    assert set(found) == set(scores)
    np.testing.assert_allclose(everything.logits, sorted(scores.values(), reverse=True), rtol=1e-4, atol=1e-6)
    of_one = model.recommend(3, nodes=["item:7"]).ids.tolist()
    best = sorted((pair for pair in scores if pair[1] == "item:7"), key=lambda pair: -scores[pair])[:3]
    assert [(user, item) for item, user in of_one] == best
    trained = run_vgae("train", "likes.csv", "--bipartite", "--out", "run", "--iterations", "5", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    told = json.loads(run_vgae("recommend", "run", "--top", "500", "--json", cwd=tmp_path).stdout)["links"]
    kinds = {frozenset((link["source"].split(":")[0], link["target"].split(":")[0])) for link in told}
    assert kinds == {frozenset({"user", "item"})}
    assert len(told) == len(scores)
