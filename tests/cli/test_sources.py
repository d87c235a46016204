"""Graphs and features of many kinds, as a person gives them to the command; new nodes are brought to the same scale."""

import json
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import vgae
from command import assert_refused, run_vgae

QUICK = ("--iterations", "5")


def ring(size: int = 40) -> list[tuple[int, int]]:
    return [(i, (i + step) % size) for i in range(size) for step in (1, 2, 3)]


def write_links(folder: Path) -> None:
    (folder / "links.csv").write_text("id1,id2\n" + "".join(f"{i},{j}\n" for i, j in ring()))


def test_a_run_embeds_new_nodes_as_it_normalized_its_own(tmp_path: Path) -> None:
    write_links(tmp_path)
    words = {str(node): {f"w{node % 7}": 3, f"w{node % 5}": 4 + node} for node in range(40)}
    (tmp_path / "words.json").write_text(json.dumps(words))
    (tmp_path / "kinds.csv").write_text("id,kind\n" + "".join(f"{node},{'ab'[node % 2]}\n" for node in range(40)))
    given = ("links.csv", "--features", "words.json", "--labels", "kinds.csv", "--normalize", "rows")
    trained = run_vgae("train", *given, *QUICK, "--out", "run", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "features have rows of unit length" in trained.stderr
    model = vgae.load(tmp_path / "run")
    lengths = np.linalg.norm(sp.csr_array(model.graph_.features).toarray(), axis=1)
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)
    assert model.graph_.labels is not None
    assert set(model.graph_.labels.tolist()) == {"a", "b"}

    embedded = run_vgae("embed", "run", "--graph", *given[:3], "--out", "whole.npz", cwd=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    expected = model.transform(
        vgae.read_graph(tmp_path / "links.csv", features=tmp_path / "words.json", normalize="rows")
    )
    with np.load(tmp_path / "whole.npz") as found:
        np.testing.assert_allclose(found["embeddings"], expected, rtol=1e-5, atol=1e-6)

    (tmp_path / "more.json").write_text(json.dumps({"40": {name: 10 * value for name, value in words["7"].items()}}))
    (tmp_path / "more.csv").write_text("id1,id2\n40,1\n40,2\n")
    options = ("--new-links", "more.csv", "--features", "more.json", "--out", "more.npz")
    embedded = run_vgae("embed", "run", *options, cwd=tmp_path)
    assert embedded.returncode == 0, embedded.stderr
    larger = vgae.read_more(
        model.graph_, model.recipe_, links=tmp_path / "more.csv", nodes=tmp_path / "more.json"
    ).graph
    features = sp.csr_array(larger.features).toarray()
    np.testing.assert_allclose(features[40], features[7], rtol=1e-6)
    with np.load(tmp_path / "more.npz") as found:
        np.testing.assert_allclose(found["embeddings"], model.transform(larger), rtol=1e-5, atol=1e-6)


def test_columns_of_a_matrix_keep_their_scale_in_the_run(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    features = generator.random((40, 3)) * [1, 50, 1000]
    np.savez(tmp_path / "graph.npz", edge_index=np.array(ring()).T, x=features)
    trained = run_vgae("train", "graph.npz", "--normalize", "columns", *QUICK, "--out", "run", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    np.savez(tmp_path / "half.npz", edge_index=np.array(ring()).T, x=features / 2)
    assert run_vgae("embed", "run", "--graph", "half.npz", "--out", "half.out.npz", cwd=tmp_path).returncode == 0
    model = vgae.load(tmp_path / "run")
    graph = model.graph_
    expected = model.transform(
        vgae.Graph.from_edges(ring(), features=features / 2 / features.max(axis=0).astype(np.float32))
    )
    assert graph.num_features == 3
    with np.load(tmp_path / "half.out.npz") as found:
        np.testing.assert_allclose(found["embeddings"], expected, rtol=1e-4, atol=1e-5)
    changed = json.loads((tmp_path / "run/config.json").read_text())["recipe"]
    assert changed["normalize"] == "columns"
    assert len(changed["scales"]) == 3


def test_two_kinds_of_nodes_are_noticed_and_kept_apart(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = np.unique(generator.integers(1, 25, size=(200, 2)), axis=0).tolist()
    (tmp_path / "ratings.csv").write_text("user,item\n" + "".join(f"{i},{j}\n" for i, j in rows))
    mixed = run_vgae("plan", "ratings.csv", cwd=tmp_path)
    assert "the columns user and item look like two kinds of nodes" in mixed.stderr
    assert "--bipartite" in mixed.stderr
    trained = run_vgae("train", "ratings.csv", "--bipartite", *QUICK, "--out", "run", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert "two kinds of nodes, called user:" in trained.stderr
    assert "bipartite edges" in trained.stderr
    (tmp_path / "pairs.csv").write_text("user,item\n1,2\n2,1\n")
    found = json.loads(run_vgae("predict", "run", "pairs.csv", "--header", "--json", cwd=tmp_path).stdout)["links"]
    assert [(link["source"], link["target"]) for link in found] == [("user:1", "item:2"), ("user:2", "item:1")]
    split = vgae.LinkSplit.load(tmp_path / "run/split.npz")
    sides = split.train.sides
    assert sides is not None
    for pairs in (split.val.pairs, split.test.pairs):
        assert (sides[pairs[:, 0]] != sides[pairs[:, 1]]).all()


def test_datasets_are_normalized_on_request_and_wrong_files_refused(tmp_path: Path) -> None:
    planned = run_vgae("plan", "cora", "--normalize", "rows", cwd=tmp_path)
    assert planned.returncode == 0, planned.stderr
    assert "cora: features have rows of unit length" in planned.stderr
    assert_refused(run_vgae("plan", "cora", "--normalize", "l2", cwd=tmp_path), "normalize", "none, rows, columns")
    (tmp_path / "graph.gml").write_text("a,b\n")
    assert_refused(run_vgae("train", "graph.gml", cwd=tmp_path), "graph.gml: not a GML file")
    (tmp_path / "graph.xyz").write_text("a,b\n")
    assert_refused(run_vgae("train", "graph.xyz", cwd=tmp_path), "graph.xyz: not a kind of file that is known", ".gexf")
