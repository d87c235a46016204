"""Two kinds of nodes in the two columns of a table: kept apart on request, noticed where they are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import vgae
from helpers import message_of
from vgae.graph.negatives import count_non_links, sample_non_links, take_non_links
from vgae.io.extend import read_more
from vgae.io.tables import LoadedGraph, read_any, read_pairs

TABLE = "user,item\n1,1\n1,2\n2,1\n3,3\n3,4\n2,4\n"


def read(folder: Path, text: str, **options: Any) -> LoadedGraph:
    (folder / "links.csv").write_text(text)
    return read_any(folder / "links.csv", **options)


def hinted(loaded: LoadedGraph) -> bool:
    return any("--bipartite" in note for note in loaded.notes)


def links_of(graph: vgae.Graph) -> set[frozenset[Any]]:
    return {frozenset(pair) for pair in graph.ids_of(graph.edges).tolist()}


def test_an_id_in_both_columns_is_two_nodes(tmp_path: Path) -> None:
    graph = read(tmp_path, TABLE, bipartite=True).graph
    rows = [line.split(",") for line in TABLE.splitlines()[1:]]
    assert links_of(graph) == {frozenset((f"user:{user}", f"item:{item}")) for user, item in rows}
    assert graph.sides is not None
    assert [str(name).startswith("item:") for name in graph.ids] == graph.sides.astype(bool).tolist()
    assert graph.num_candidate_pairs == 3 * 4
    assert graph.density == 6 / 12
    assert repr(graph).startswith("Graph(7 nodes, 6 bipartite edges")


def test_columns_without_names_are_left_and_right(tmp_path: Path) -> None:
    graph = read(tmp_path, "1,1\n1,2\n2,1\n3,3\n", bipartite=True).graph
    assert "left:1" in graph.ids
    assert "right:3" in graph.ids


def test_ids_that_differ_anyway_stay_as_they_are(tmp_path: Path) -> None:
    graph = read(tmp_path, "user,item\n1,101\n2,101\n2,102\n", bipartite=True).graph
    assert graph.ids == (1, 2, 101, 102)
    assert graph.sides is not None
    assert graph.sides.tolist() == [0, 0, 1, 1]


def test_a_frame_and_the_nodes_of_one_kind() -> None:
    links = pd.DataFrame([[1, 1], [1, 2], [2, 1]], columns=["user", "item"])
    users = pd.DataFrame({"user": [1, 2, 3], "age": [30, 40, 50]})
    graph = vgae.Graph.from_frame(links, bipartite=True, nodes=users, impute="zero")
    features = dict(zip(graph.ids, np.asarray(graph.features)[:, 0].tolist(), strict=True))
    assert features == {"user:1": 30, "user:2": 40, "user:3": 50, "item:1": 0, "item:2": 0}
    assert graph.sides is not None
    assert dict(zip(graph.ids, graph.sides.tolist(), strict=True))["user:3"] == 0
    nobody = pd.DataFrame({"id": ["user:1", "user:2", "item:1", "item:2", "x"], "age": [1, 2, 3, 4, 5]})
    message = message_of(lambda: vgae.Graph.from_frame(links, bipartite=True, nodes=nobody))
    assert "the node 'x' has no links, so its kind is not known" in message


def test_sides_are_stored_with_graphs_splits_and_runs(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = np.unique(generator.integers(0, 20, size=(150, 2)), axis=0)
    text = "user,item\n" + "".join(f"{i},{j}\n" for i, j in rows.tolist())
    graph = read(tmp_path, text, bipartite=True).graph
    vgae.write_graph(tmp_path / "graph.npz", graph)
    again = vgae.read_graph(tmp_path / "graph.npz")
    np.testing.assert_array_equal(again.sides, graph.sides)
    assert again.content_hash == graph.content_hash
    assert again.with_parts(sides=None).content_hash != graph.content_hash
    split = vgae.split_links(graph, val=0.1, test=0.2)
    split.audit()
    split.save(tmp_path / "split.npz")
    loaded = vgae.LinkSplit.load(tmp_path / "split.npz")
    np.testing.assert_array_equal(loaded.train.sides, graph.sides)
    assert loaded.content_hash == split.content_hash
    model = vgae.VGAE(iterations=2).fit(split.train)
    model.save(tmp_path / "run")
    np.testing.assert_array_equal(vgae.load(tmp_path / "run").graph_.sides, graph.sides)


def test_non_links_go_across_and_all_of_them_can_be_drawn(tmp_path: Path) -> None:
    graph = read(tmp_path, TABLE, bipartite=True).graph
    sides = graph.sides
    assert sides is not None
    found = take_non_links(graph, np.arange(count_non_links(graph)))
    across = {(i, j) for i in range(7) for j in range(i + 1, 7) if sides[i] != sides[j]}
    assert {tuple(pair) for pair in found.tolist()} == across - {tuple(pair) for pair in graph.edges.tolist()}
    assert len(found) == 6
    drawn = sample_non_links(graph, 6, np.random.default_rng(0))
    assert sorted(map(tuple, drawn.tolist())) == sorted(map(tuple, found.tolist()))
    message = message_of(lambda: sample_non_links(graph, 7, np.random.default_rng(0)))
    assert "only 6 pairs across without a link" in message


def test_samples_for_scikit_learn_go_across(tmp_path: Path) -> None:
    graph = read(tmp_path, TABLE, bipartite=True).graph
    samples, labels = vgae.link_samples(graph)
    sides = graph.sides
    assert sides is not None
    assert (sides[samples.pairs[:, 0]] != sides[samples.pairs[:, 1]]).all()
    np.testing.assert_array_equal(samples.graph(labels).sides, sides)


def test_pairs_are_read_by_the_column_that_they_are_in(tmp_path: Path) -> None:
    graph = read(tmp_path, TABLE, bipartite=True).graph
    (tmp_path / "pairs.csv").write_text("user,item\n1,4\nuser:3,1\nitem:2,user:2\n")
    pairs = read_pairs(tmp_path / "pairs.csv", graph.ids, sides=graph.sides, header=True)
    assert graph.ids_of(pairs).tolist() == [["user:1", "item:4"], ["user:3", "item:1"], ["item:2", "user:2"]]
    (tmp_path / "pairs.csv").write_text("user,item\n4,1\n")
    message = message_of(lambda: read_pairs(tmp_path / "pairs.csv", graph.ids, sides=graph.sides, header=True))
    assert "names '4', which is not a node" in message


def test_more_links_and_nodes_keep_their_sides(tmp_path: Path) -> None:
    graph = read(tmp_path, TABLE, bipartite=True).graph
    graph = graph.with_parts(features=np.ones((7, 1)))
    (tmp_path / "new.csv").write_text("user,item\n1,4\nuser:9,1\n")
    (tmp_path / "nodes.csv").write_text("id,x\nuser:9,2\nitem:8,3\n")
    more = read_more(graph, None, links=tmp_path / "new.csv", nodes=tmp_path / "nodes.csv", header=True).graph
    assert links_of(more) - links_of(graph) == {frozenset(("user:1", "item:4")), frozenset(("user:9", "item:1"))}
    assert more.sides is not None
    assert dict(zip(more.ids, more.sides.tolist(), strict=True))["item:8"] == 1


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("user,item", True),
        ("userId,movieId", True),
        ("customer_id,product_id", True),
        ("paper,author", True),
        ("source,target", False),
        ("id1,id2", False),
        ("user1,user2", False),
        ("follower,user", False),
        ("a,b", False),
    ],
)
def test_columns_that_are_called_two_kinds_are_noticed(tmp_path: Path, header: str, expected: bool) -> None:
    loaded = read(tmp_path, header + "\n" + TABLE.partition("\n")[2])
    assert hinted(loaded) == expected
    assert loaded.graph.num_nodes == 4, "a hint changes nothing"


def test_two_numberings_are_noticed_and_ordinary_links_are_not(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rows = np.stack([generator.integers(1, 31, 400), generator.integers(1, 61, 400)], axis=1)
    rows[:60, 1], rows[:30, 0] = np.arange(1, 61), np.arange(1, 31)
    assert hinted(read(tmp_path, "".join(f"{i},{j}\n" for i, j in rows.tolist())))
    ordinary = generator.integers(1, 61, size=(600, 2))
    for pairs in (ordinary, np.sort(ordinary, axis=1), ordinary[:, ::-1]):
        assert not hinted(read(tmp_path, "".join(f"{i},{j}\n" for i, j in pairs.tolist())))


def test_columns_without_an_id_in_common_are_noticed(tmp_path: Path) -> None:
    rows = "".join(f"u{i % 7},v{i % 5}\n" for i in range(30))
    assert hinted(read(tmp_path, rows))
    assert not hinted(read(tmp_path, rows, bipartite=True))
    star = "".join(f"hub,leaf{i}\n" for i in range(30))
    assert not hinted(read(tmp_path, star))


def test_other_formats_have_no_columns_to_keep_apart(tmp_path: Path) -> None:
    vgae.write_graph(tmp_path / "graph.npz", vgae.Graph.from_edges([(0, 1)]))
    assert "bipartite: this option is for tables" in message_of(
        lambda: read_any(tmp_path / "graph.npz", bipartite=True)
    )
