"""GraphML: what NetworkX writes is read back, and what cannot be read is named by its line."""

import gzip
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from helpers import message_of
from vgae import memory
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.io import graphml
from vgae.io.tables import read_any, read_graph

HEAD = '<?xml version="1.0"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
KEYS = (
    '<key id="c" for="node" attr.name="colour" attr.type="string"><default>grey</default></key>\n'
    '<key id="s" for="node" attr.name="size" attr.type="double"/>\n'
    '<key id="w" for="edge" attr.name="weight" attr.type="double"/>\n'
)
TINY = '<graphml><graph edgedefault="undirected"><node id="b"/>{}</graph></graphml>'
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
    loaded = read_any(path, weight="weight", label="group", node_attributes=True)
    graph, expected = loaded.graph, Graph.from_networkx(source, weight="weight")
    order = graph.index_of(names)
    assert_array_equal(graph.weighted_adjacency.toarray()[np.ix_(order, order)], expected.weighted_adjacency.toarray())
    assert graph.directed == directed
    assert graph.cleaning == expected.cleaning
    assert loaded.recipe is not None
    found = sp.csr_array(graph.features).toarray()[order]
    columns = {name: found[:, place].tolist() for place, name in enumerate(loaded.recipe.features)}
    assert columns == {
        "size": [i / 2 for i in range(7)],
        "good": [i % 2 == 0 for i in range(7)],
        **{f"kind={kind}": [i % 3 == place for i in range(7)] for place, kind in enumerate("xyz")},
    }
    assert graph.labels is not None
    assert graph.labels[order].tolist() == [i % 2 for i in range(7)]


def test_attributes_are_used_only_if_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, NODES + '<node id="c"/>\n<edge source="a" target="b"/>\n')
    loaded = read_any(path)
    assert loaded.graph.features is None
    assert loaded.graph.weights is None
    assert loaded.notes == ("1 node has no links",)
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
    assert read_graph(packed).content_hash == loaded.graph.content_hash


def test_keys_of_other_programs_are_passed_over(tmp_path: Path) -> None:
    keys = '<key for="node" id="g" yfiles.type="nodegraphics"/><key for="port" id="p" yfiles.type="portgraphics"/>\n'
    shapes = '<data key="g"><y:ShapeNode xmlns:y="urn:y"><y:Fill color="#FFF"/></y:ShapeNode></data>'
    body = f'<node id="1">{shapes}</node><node id="2"/><edge source="1" target="2"/>\n'
    loaded = read_any(write(tmp_path, body, keys), node_attributes=True)
    assert loaded.graph.node_ids is not None
    assert loaded.graph.node_ids.tolist() == [1, 2]
    assert loaded.graph.features is None


EDGE = '<edge source="a" target="b"/>\n'
NODE_C = "<node id='c'>{}</node>\n"


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
        (
            NODE_C.format("<data key='c'>a<data key='c'>b</data></data>"),
            {},
            "line 7 has <data> within the value of 'colour'",
        ),
        (
            NODE_C.format("<data key='s'>1<b>0</b></data>"),
            {},
            "line 7 has <b> within the value of 'size', which is text",
        ),
        (NODE_C.format("<data key='c'><node id='x'/></data>"), {}, "line 7 has <node> within the value of 'colour'"),
        (NODE_C.format("<data key='s'>1</data><data key='s'>2</data>"), {}, "line 7 has a second value for 'size'"),
        (NODE_C.format("<data>1</data>"), {}, "line 7 has a <data> without key"),
        (
            NODE_C.format("<data key='w'>1</data>"),
            {},
            "line 7 has a value for the key 'w', which is not declared for a node",
        ),
        (NODE_C.format("<node id='x'/>"), {}, "line 7 has a <node> that is not directly in a <graph>"),
        (NODE_C.format("<data key='s'>1_0</data>"), {}, "line 7 has '1_0' for 'size', which is declared as double"),
        (NODE_C.format(f"<data key='s'>{'9' * 5000}</data>"), {}, "for 'size', which is declared as double"),
        ("<node id='a' id='b'/>", {}, "line 7 is not well-formed XML (duplicate attribute"),
        ("<node id='&#xD800;'/>", {}, "line 7 is not well-formed XML (reference to invalid character"),
        ("<node id='&#1;'/>", {}, "line 7 is not well-formed XML (reference to invalid character"),
        ("<node id='\x01'/>", {}, "line 7 is not well-formed XML (not well-formed"),
        ("<node id='&me;'/>", {}, "line 7 is not well-formed XML (undefined entity"),
        ("<key id='s' for='node'/>", {}, "line 7 declares the key 's' a second time"),
        ("<a>" * 2000, {}, "line 7 is nested more than 1,000 levels deep"),
        (NODE_C.format("<port><data key='any'>" + "<a>" * 2000), {}, "line 7 is nested more than 1,000 levels deep"),
        (NODES + f"<edge source='a' target='{'x' * 9999}'/>", {}, "line 9 names the node 'xxxxx"),
    ],
)
def test_bad_graphs_are_named_by_line(tmp_path: Path, body: str, options: dict[str, Any], words: str) -> None:
    path = write(tmp_path, body)
    message = message_of(lambda: read_any(path, **options))
    assert message.startswith(f"{path}: ")
    assert words in message
    assert "\n" not in message
    assert len(message) < 300 + len(str(path))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        *(
            (
                f"<?xml version='1.0' encoding='{name}'?><graphml/>".encode(),
                f"line 1 declares the encoding {name!r}, which",
            )
            for name in ("klingon", "UTF-7", "utf-32", "idna", "rot13", "undefined", "hex", "unicode_escape", "big5")
        ),
        (b"<?xml version='1.0' encoding='iso-8859-99'?><graphml/>", "not readable as XML (unknown encoding"),
        (b"<?xml version='1.0' encoding='utf-16'?><graphml/>", "line 1 is not well-formed XML (encoding specified"),
        (b"<?xml version='1.0' encoding=''?><graphml/>", "line 1 is not well-formed XML"),
        (b"<data/>", "line 1 starts with <data>, not <graphml>"),
        (b"<graphml><node id='a'/></graphml>", "line 1 has a <node> that is not directly in a <graph>"),
        (b"<graphml><edge source='a' target='b'/></graphml>", "line 1 has a <edge> that is not directly in a <graph>"),
        (b"<" + b"x" * 9999 + b"/>", "not <graphml>"),
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


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "us-ascii", "iso-8859-1", "iso-8859-15", "windows-1252"])
def test_usual_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    name = "a" if encoding == "us-ascii" else "ä"
    text = f'<?xml version="1.0" encoding="{encoding}"?>' + TINY.format(
        f'<node id="{name}"/><edge source="b" target="{name}"/>'
    )
    path = tmp_path / "graph.graphml"
    path.write_bytes(text.encode(encoding))
    assert set(read_graph(path).ids_of([0, 1]).tolist()) == {name, "b"}


def test_what_is_said_of_other_things_than_nodes_and_links_is_passed_over(tmp_path: Path) -> None:
    body = (
        "<data key='s'>of the graph <b>and more</b></data><desc>words <i>of</i> <data>others</data></desc>\n"
        "<node id='a'><port name='p'><data key='none'>5<data/></data></port><data key='s'>2</data></node>\n"
        "<node id='b'><data key='s'><![CDATA[ 3 ]]></data></node>\n"
    )
    loaded = read_any(write(tmp_path, body + EDGE), node_attributes=True)
    assert loaded.recipe is not None
    found = dict(zip(loaded.recipe.features, sp.csr_array(loaded.graph.features).toarray().T.tolist(), strict=True))
    assert found["size"] == [2, 3]


def test_a_long_value_and_many_keys_cost_what_they_hold(tmp_path: Path) -> None:
    """Of a value of n pieces n characters are handled, not n²; of K keys and N nodes K·N places, without a loop."""
    pieces, keys, nodes = 200_000, 1_000, 1_000
    declared = "".join(f"<key id='k{i}' for='node' attr.name='k{i}' attr.type='double'/>" for i in range(keys))
    many = "".join(f"<node id='{i}'/>" for i in range(nodes))
    body = NODES + f"<node id='c'><data key='c'>{'x&amp;' * pieces}</data></node>" + many + EDGE
    document = graphml.read_graphml(write(tmp_path, body, KEYS + declared))
    assert document.nodes.data.num_columns == keys + 3
    assert document.nodes.data.column("colour")[2].as_py() == "x&" * pieces
    assert document.nodes.data.column("k7").null_count == nodes + 3


def test_memory_bounds_what_is_gathered_and_what_defaults_fill_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, NODES + "<!-- -->" * 10_000 + EDGE)
    monkeypatch.setattr(graphml, "bytes_free", lambda: 100_000.0)
    assert message_of(lambda: read_any(path)).startswith(f"{path}: the graph in it is too large for the memory")
    long = KEYS.replace("grey", "grey" * 1000)
    path = write(tmp_path, NODES + "".join(f"<node id='{i}'/>" for i in range(1000)) + EDGE, long)
    monkeypatch.setattr(graphml, "bytes_free", lambda: 10_000_000.0)
    assert message_of(lambda: read_any(path)).startswith(f"{path}: the graph in it is too large for the memory")
    monkeypatch.setattr(graphml, "bytes_free", lambda: 20_000_000.0)
    assert read_graph(path, label="colour").num_nodes == 1002


@pytest.mark.parametrize("token", ["<node id='{}'/>", "<!--{}-->", "<{}/>", "<?a {}?>"])
def test_a_token_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, token: str) -> None:
    monkeypatch.setattr(graphml, "MAX_TOKEN", 2**20)
    monkeypatch.setattr(graphml, "CHUNK", 2**18)
    path = write(tmp_path, NODES + token.format("x" * 2**21) + EDGE)
    assert "line 9 has a tag or comment that is longer than 1 MiB" in message_of(lambda: read_any(path))


def test_memory_that_runs_out_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_out(*_: Any) -> None:
        raise MemoryError

    monkeypatch.setattr(graphml._Reader, "start_row", run_out)
    assert "too large for the memory" in message_of(lambda: read_any(write(tmp_path, NODES + EDGE)))


# ------------------------------------------------------------------------------------------------- any document at all

TAGS = ["graphml", "graph", "node", "edge", "data", "key", "default", "desc", "hyperedge", "port", "y:Shape"]
ATTRIBUTES = ["id", "source", "target", "key", "for", "attr.name", "attr.type", "edgedefault", "directed", "xmlns"]
WORDS = [
    "a",
    "b",
    "s",
    "k",
    "node",
    "edge",
    "all",
    "directed",
    "undirected",
    "true",
    "double",
    "string",
    "int",
    "",
    "1",
]
TEXTS = st.sampled_from(
    ["", " ", "1", "nan", "1e999", "x", "ü", "&amp;", "&#65;", "&#0;", "]]>", "<![CDATA[<]]>", "<!-- -->"]
)


USUAL = {"node": {"id": "c"}, "edge": {"source": "a", "target": "b"}, "data": {"key": "c"}, "key": {"id": "z"}}
ENCODINGS = ["UTF-8", "utf-7", "klingon", "utf-16", "ascii", "cp1252", "idna", "hex", "latin1", "mbcs", "x" * 99]


@st.composite
def elements(draw: st.DrawFn, depth: int = 0) -> str:
    tag = draw(st.sampled_from(TAGS))
    given_attributes = dict(draw(st.lists(st.tuples(st.sampled_from(ATTRIBUTES), st.sampled_from(WORDS)), max_size=3)))
    if tag in USUAL and draw(st.booleans()):
        given_attributes = USUAL[tag]
    attributes = "".join(f" {name}='{value}'" for name, value in given_attributes.items())
    inner = draw(st.lists(TEXTS if depth > 3 else st.one_of(TEXTS, elements(depth + 1)), max_size=3))
    return f"<{tag}{attributes}>{''.join(inner)}</{tag}>"


def around(body: str) -> bytes:
    """A good document, and something in its graph."""
    graph = f'<graph edgedefault="undirected">{NODES}{EDGE}{body}</graph>'
    return f"<?xml version='1.0'?><graphml>{KEYS}{graph}</graphml>".encode()


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A good document in which something is replaced, repeated, dropped or put in."""
    content = bytearray(around(""))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(content)))
        end = min(len(content), start + draw(st.integers(0, 30)))
        other = draw(
            st.one_of(
                st.binary(max_size=4),
                elements().map(str.encode),
                st.just(bytes(content[start:end]) * 2),
                st.sampled_from(WORDS).map(str.encode),
            )
        )
        content[start:end] = other
    return bytes(content)


@settings(max_examples=150)
@given(
    content=st.one_of(
        mutated(),
        elements().map(str.encode),
        st.lists(elements(), max_size=4).map(lambda inner: around("".join(inner))),
        st.lists(elements(3), max_size=4).map(lambda inner: around(NODE_C.format("".join(inner)))),
        st.sampled_from(ENCODINGS).map(lambda name: around("").replace(b"'1.0'", f"'1.0' encoding='{name}'".encode())),
    ),
    options=st.sampled_from(
        [{}, {"node_attributes": True, "impute": "zero"}, {"weight": "weight"}, {"label": "colour"}]
    ),
)
def test_any_document_is_a_graph_or_one_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, options: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.graphml"
    path.write_bytes(content)
    said = f"{path}: "
    try:
        assert read_any(path, **options).graph.num_edges > 0
    except InputError as error:
        said = str(error)
    assert said.startswith(f"{path}: ")
    assert "\n" not in said
    assert len(said) < 500 + len(str(path))


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
def test_the_size_of_the_pieces_that_are_parsed_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int
) -> None:
    path = write(tmp_path, NODES.replace("red", "r&amp;d ü") + EDGE)
    monkeypatch.setattr(graphml, "CHUNK", chunk)
    labels = read_graph(path, label="colour").labels
    assert labels is not None
    assert labels.tolist() == ["r&d ü", "grey"]
