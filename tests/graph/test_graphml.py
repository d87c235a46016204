"""GraphML: what NetworkX writes is read back, and what cannot be read is named by its line."""

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from helpers import message_of
from vgae import memory
from vgae.graph import graphml
from vgae.graph.graph import Graph
from vgae.graph.tables import read_any, read_graph

HEAD = '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
KEYS = (
    '<key id="c" for="node" attr.name="colour" attr.type="string"><default>grey</default></key>\n'
    '<key id="s" for="node" attr.name="size" attr.type="double"/>\n'
    '<key id="w" for="edge" attr.name="weight" attr.type="double"/>\n'
)
NODES = (
    '<node id="a"><data key="c">red</data><data key="s">2</data></node>\n<node id="b"><data key="s">3</data></node>\n'
)


def write(folder: Path, body: str, keys: str = KEYS, way: str = "undirected") -> Path:
    path = folder / "graph.graphml"
    path.write_text(f'{HEAD}{keys}<graph edgedefault="{way}">\n{body}</graph>\n</graphml>\n')
    return path


@given(
    links=st.lists(
        st.tuples(st.integers(0, 6), st.integers(0, 6), st.floats(0.125, 8, width=16)), min_size=1, max_size=15
    ).filter(lambda rows: any(i != j for i, j, _ in rows)),
    directed=st.booleans(),
    text_ids=st.booleans(),
)
def test_what_networkx_writes_is_read_back(
    tmp_path_factory: pytest.TempPathFactory, links: list[tuple[int, int, float]], directed: bool, text_ids: bool
) -> None:
    source = nx.DiGraph() if directed else nx.Graph()
    names: list[Any] = [f"<node> & {i}" if text_ids else i for i in range(7)]
    for place, name in enumerate(names):
        source.add_node(name, size=place / 2, good=place % 2 == 0, kind="xyz"[place % 3], group=place % 2)
    source.add_weighted_edges_from([(names[i], names[j], weight) for i, j, weight in links])
    path = tmp_path_factory.mktemp("graphml") / "graph.graphml"
    nx.write_graphml(source, path)
    reading = read_any(path, weight="weight", label="group", node_attributes=True)
    graph, expected = reading.graph, Graph.from_networkx(source, weight="weight")
    order = graph.index_of(names)
    assert_array_equal(graph.weighted_adjacency.toarray()[np.ix_(order, order)], expected.weighted_adjacency.toarray())
    assert graph.directed == directed
    assert graph.cleaning == expected.cleaning
    assert reading.recipe is not None
    found = sp.csr_array(graph.features).toarray()[order]
    columns = {name: found[:, place].tolist() for place, name in enumerate(reading.recipe.features)}
    assert columns == {
        "size": [i / 2 for i in range(7)],
        "good": [i % 2 == 0 for i in range(7)],
        **{f"kind={kind}": [i % 3 == place for i in range(7)] for place, kind in enumerate("xyz")},
    }
    assert graph.labels is not None
    assert graph.labels[order].tolist() == [i % 2 for i in range(7)]


def test_attributes_are_used_only_if_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, NODES + '<node id="c"/>\n<edge source="a" target="b"/>\n')
    reading = read_any(path)
    assert reading.graph.features is None
    assert reading.graph.weights is None
    assert reading.notes == ("1 nodes have no links",)
    labelled = read_graph(path, label="colour")
    assert labelled.labels is not None
    assert labelled.features is None
    assert dict(zip(labelled.ids_of(range(3)).tolist(), labelled.labels.tolist(), strict=True)) == {
        "a": "red",
        "b": "grey",
        "c": "grey",
    }
    filled = read_any(path, node_attributes=True, impute="mean", standardise=True)
    assert_array_equal(sp.csr_array(filled.graph.features).toarray(), [[0, 1, -1], [1, 0, 1], [1, 0, 0]])
    packed = tmp_path / "packed.graphml.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    assert read_graph(packed).content_hash == reading.graph.content_hash


def test_keys_of_other_programs_are_passed_over(tmp_path: Path) -> None:
    keys = '<key for="node" id="g" yfiles.type="nodegraphics"/><key for="port" id="p" yfiles.type="portgraphics"/>\n'
    shapes = '<data key="g"><y:ShapeNode xmlns:y="urn:y"><y:Fill color="#FFF"/></y:ShapeNode></data>'
    body = f'<node id="1">{shapes}</node><node id="2"/><edge source="1" target="2"/>\n'
    reading = read_any(write(tmp_path, body, keys), node_attributes=True)
    assert reading.graph.node_ids is not None
    assert reading.graph.node_ids.tolist() == [1, 2]
    assert reading.graph.features is None


EDGE = '<edge source="a" target="b"/>\n'


@pytest.mark.parametrize(
    ("body", "options", "words"),
    [
        (NODES, {}, "there are no links in it"),
        (NODES + '<edge source="a" target="x"/>\n', {}, "line 9 names the node 'x', which is not declared"),
        (NODES + '<edge source="a"/>\n', {}, "line 9 has a <edge> without target"),
        (NODES + EDGE + '<edge source="b" target="a" directed="true"/>\n', {}, "line 10 has a link that is directed"),
        (NODES + EDGE + NODES, {}, "line 7 and line 10 are both about the node 'a'"),
        (NODES + EDGE + "<hyperedge/>\n", {}, "line 10 has a hyperedge"),
        (NODES + EDGE + '<graph edgedefault="directed"/>\n', {}, "line 10 has a graph within a graph"),
        (
            NODES + '<node id="c"><data key="s">big</data></node>\n',
            {},
            "line 9 has 'big' for 'size', which is declared",
        ),
        (NODES + '<node id="c"><data key="q">1</data></node>\n', {}, "line 9 has a value for the key 'q'"),
        (NODES + EDGE, {"weight": "weight"}, "line 9 has no weight in the column 'weight'"),
        (
            NODES + '<edge source="a" target="b"><data key="w">-2</data></edge>',
            {"weight": "weight"},
            "line 9 has the weight -2.0 in the column 'weight'",
        ),
        (NODES + EDGE, {"weight": "heft"}, "its edges have no attribute 'heft'; they have weight"),
        (NODES + EDGE, {"label": "class"}, "its nodes have no attribute 'class'; they have colour, size"),
        (
            NODES + '<node id="c"/>\n' + EDGE,
            {"node_attributes": True},
            "line 9 has no value in the column 'size'",
        ),
        (NODES + EDGE + "</nodes>", {}, "line 10 is not well-formed XML (mismatched tag"),
    ],
)
def test_bad_graphs_are_named_by_line(tmp_path: Path, body: str, options: dict[str, Any], words: str) -> None:
    path = write(tmp_path, body)
    message = message_of(lambda: read_any(path, **options))
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"a,b\n1,2\n", "line 1 is not well-formed XML"),
        (b"<html></html>", "line 1 starts with <html>, not <graphml>"),
        (b"<graphml/>", "there is no <graph> in it"),
        (b"<graphml><graph/></graphml>", "line 1 has a <graph> without edgedefault"),
        (b"<graphml><graph edgedefault='up'/></graphml>", "edgedefault='up'"),
        (b"<graphml>\n<key id='k' for='node' attr.type='blob'/></graphml>", "line 2 declares a key of the type 'blob'"),
        (b"<graphml>\0</graphml>", "line 1 is not well-formed XML"),
        (b"<graphml>\n\xff</graphml>", "line 2 is not well-formed XML"),
        (b"<graphml><graph edgedefault='directed'>", "is not well-formed XML (no element found"),
        (
            b'<!DOCTYPE g [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;">]>\n<graphml>&b;</graphml>',
            "line 1 declares a document type, which is not read",
        ),
    ],
)
def test_what_is_no_graphml_is_named(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "graph.graphml"
    path.write_bytes(content)
    message = message_of(lambda: read_any(path))
    assert message.startswith(f"{path}: ")
    assert words in message


def test_options_of_tables_and_limits_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, NODES + EDGE)
    assert "source: this option is for tables" in message_of(lambda: read_any(path, source="1"))
    assert "impute: this is about the columns" in message_of(lambda: read_any(path, impute="mean"))
    packed = tmp_path / "packed.graphml.gz"
    packed.write_bytes(gzip.compress(b"<graphml>" + b" " * 10_000 + b"</graphml>"))
    monkeypatch.setattr(memory, "bytes_free", lambda: 20_000.0)
    assert "GB are free" in message_of(lambda: read_any(packed))


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
def test_the_size_of_the_pieces_that_are_parsed_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    path = write(tmp_path, NODES.replace("red", "r&amp;d ü") + EDGE)
    monkeypatch.setattr(graphml, "CHUNK", chunk)
    labels = read_graph(path, label="colour").labels
    assert labels is not None
    assert labels.tolist() == ["r&d ü", "grey"]
