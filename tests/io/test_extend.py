"""More nodes and links beside those of a graph: against the graph that is read from all of them at once."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import vgae
from vgae.errors import InputError
from vgae.io.tables import LoadedGraph, read_any


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def dense(graph: vgae.Graph) -> Any:
    return graph.features.toarray() if sp.issparse(graph.features) else graph.features  # type: ignore[union-attr]


def by_id(graph: vgae.Graph) -> tuple[dict[Any, float], dict[Any, list[float]]]:
    """Links with their weights and features with their nodes, whatever the order of the nodes."""
    names = graph.ids_of(np.arange(graph.num_nodes)).tolist()
    weights = [1.0] * graph.num_edges if graph.weights is None else graph.weights.tolist()
    links = {
        frozenset((names[i], names[j])): weight for (i, j), weight in zip(graph.edges.tolist(), weights, strict=True)
    }
    return links, dict(zip(names, dense(graph).tolist(), strict=True))


LINKS = "".join(f"p{i},p{(i + step) % 20},{1 + i % 3}\n" for i in range(20) for step in (1, 3))
NODES = "".join(f"p{i},{i * i},{('red', 'blue', 'green')[i % 3]}\n" for i in range(20))
MORE_LINKS = "new,p3,2\nother,new,1\np0,p10,5\n"
MORE_NODES = "new,7,blue\nother,9,red\n"


@pytest.fixture
def loaded(tmp_path: Path) -> LoadedGraph:
    write(tmp_path / "links.csv", "from,to,times\n" + LINKS)
    write(tmp_path / "nodes.csv", "id,age,colour\n" + NODES)
    return read_any(tmp_path / "links.csv", features=tmp_path / "nodes.csv", weight="times", standardise=True)


def test_more_nodes_and_links_give_the_graph_of_all_of_them(tmp_path: Path, loaded: LoadedGraph) -> None:
    links = write(tmp_path / "more.csv", "from,to,times\n" + MORE_LINKS)
    nodes = write(tmp_path / "more-nodes.csv", "id,age,colour\n" + MORE_NODES)
    found = vgae.read_more(loaded.graph, loaded.recipe, links=links, nodes=nodes, weight="times")
    write(tmp_path / "all.csv", "from,to,times\n" + LINKS + MORE_LINKS)
    write(tmp_path / "all-nodes.csv", "id,age,colour\n" + NODES + MORE_NODES)
    whole = read_any(
        tmp_path / "all.csv", features=tmp_path / "all-nodes.csv", weight="times", recipe=loaded.recipe
    ).graph
    assert by_id(found.graph) == by_id(whole)
    assert found.graph.ids_of(np.arange(20)).tolist() == loaded.graph.ids_of(np.arange(20)).tolist()
    assert found.notes == ("3 links and 2 nodes added",)


def test_links_alone_and_nodes_alone_can_be_added(tmp_path: Path, loaded: LoadedGraph) -> None:
    links = vgae.read_more(
        loaded.graph, loaded.recipe, links=write(tmp_path / "more.csv", "p0,p10,5\n"), weight="3"
    ).graph
    assert (links.num_nodes, links.num_edges) == (20, loaded.graph.num_edges + 1)
    np.testing.assert_array_equal(dense(links), dense(loaded.graph))
    nodes = vgae.read_more(
        loaded.graph, loaded.recipe, nodes=write(tmp_path / "n.csv", "id,age,colour\nnew,4,red\n"), id="id"
    ).graph
    np.testing.assert_array_equal(nodes.edges, loaded.graph.edges)
    np.testing.assert_array_equal(dense(nodes)[20], dense(loaded.graph)[2] * [1, 0, 0, 0] + [0, 0, 0, 1])


def test_whole_numbers_stay_whole_numbers_and_features_need_no_recipe(tmp_path: Path) -> None:
    bare = vgae.stochastic_block_model(30, 3, feature_dim=4, seed=2)
    graph = vgae.Graph.from_edges(bare.edges, num_nodes=30, features=np.arange(120.0).reshape(30, 4))
    links = write(tmp_path / "more.csv", "source,target\n30,0\n")
    nodes = write(tmp_path / "nodes.csv", "id,a,b,c,d\n30,1,2,3,4\n")
    found = vgae.read_more(graph, None, links=links, nodes=nodes).graph
    assert found.ids_of([29, 30]).tolist() == [29, 30]
    assert [0, 30] in found.edges.tolist()
    np.testing.assert_array_equal(dense(found)[29:], [[116, 117, 118, 119], [1, 2, 3, 4]])


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("from,to,times\nnew,p3,2\nother,new,1\np0,p10,5\n", {"weight": "times"}),
        ("times;who;whom\n2;new;p3\n1;other;new\n5;p0;p10\n", {"weight": "times", "source": "who", "target": "whom"}),
        ("2|new|p3\n1|other|new\n5|p0|p10\n", {"weight": "1", "source": "2", "target": "3", "delimiter": "|"}),
        ("a,b,c\nnew,p3,2\nother,new,1\np0,p10,5\n", {"weight": "3", "header": True}),
        (",source,target,w\n0,new,p3,2\n1,other,new,1\n2,p0,p10,5\n", {"weight": "w"}),
        ("# more\nnew,p3,2\nother,new,1\np0,p10,5\n", {"weight": "3", "header": False}),
    ],
)
def test_columns_of_new_links_are_found_as_those_of_links(
    tmp_path: Path, loaded: LoadedGraph, text: str, options: dict[str, Any]
) -> None:
    links = write(tmp_path / "more.csv", text)
    nodes = write(tmp_path / "more-nodes.csv", "id,age,colour\n" + MORE_NODES)
    found = vgae.read_more(loaded.graph, loaded.recipe, links=links, nodes=nodes, **options).graph
    expected = vgae.read_more(
        loaded.graph, loaded.recipe, links=write(tmp_path / "plain.csv", MORE_LINKS), nodes=nodes, weight="3"
    ).graph
    assert by_id(found) == by_id(expected)


@pytest.mark.parametrize(
    ("links", "nodes", "options", "words"),
    [
        ("p0,who,1\n", None, {"weight": "3"}, "row 1 names 'who', which is not known, and there is no table of new"),
        ("p0,who,1\n", "new,1,red\n", {"weight": "3"}, "row 1 names 'who', which is not known, and the node table has"),
        ("who,whom,1\np0,p10,1\n", None, {"weight": "3"}, "row 1 names 'who', .*; if the row is a header, say so"),
        (None, "new,1,red\n", {"source": "a"}, "source: this is about a table of links"),
        (None, "new,1,red\n", {"header": False}, "header: this is about a table of links"),
        ("p0,p10,1\n", None, {}, "weight: the links of this graph have weights; name the column"),
        ("p0,p10,heavy\n", None, {"weight": "3"}, "row 1 has the weight heavy"),
        (None, "p7,1,red\n", {}, "row 1 is about the node 'p7', which the graph already has"),
        (None, "new,1,red\nnew,2,red\n", {}, "row 1 and row 2 are both about the node 'new'"),
        (None, "new,old,red\n", {}, "row 1 has 'old' in the column 'age'"),
        (None, "new,,red\n", {}, "row 1 has no value in the column 'age'"),
        (None, None, {"id": "id"}, "id: this is about the columns of a node table"),
        (None, "new,1,red\n", {"weight": "3"}, "weight: this is about a table of links"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, loaded: LoadedGraph, links: str | None, nodes: str | None, options: dict[str, str], words: str
) -> None:
    files: dict[str, Path] = {}
    if links is not None:
        files["links"] = write(tmp_path / "more.csv", links)
    if nodes is not None:
        files["nodes"] = write(tmp_path / "more-nodes.csv", "id,age,colour\n" + nodes)
    with pytest.raises(InputError, match=words):
        vgae.read_more(loaded.graph, loaded.recipe, **files, **options)  # type: ignore[arg-type]


def test_unknown_categories_are_told_and_missing_columns_named(tmp_path: Path, loaded: LoadedGraph) -> None:
    nodes = write(tmp_path / "more.csv", "id,colour,age\nnew,pink,4\n")
    found = vgae.read_more(loaded.graph, loaded.recipe, nodes=nodes)
    assert "1 value of the column colour is an unknown category" in found.node_notes
    np.testing.assert_array_equal(dense(found.graph)[20, 1:], [0, 0, 0])
    with pytest.raises(InputError, match="there is no column 'age'; its columns are colour"):
        vgae.read_more(loaded.graph, loaded.recipe, nodes=write(tmp_path / "m.csv", "id,colour\nnew,red\n"))
    with pytest.raises(InputError, match="1 column besides the ids, but the model was trained on 4 features"):
        vgae.read_more(loaded.graph, None, nodes=write(tmp_path / "m.csv", "id,colour\nnew,3\n"))
