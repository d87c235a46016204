"""GML, GEXF and Pajek as NetworkX writes them: the same graph comes back, and bad files are refused in a sentence."""

import gzip
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp

import vgae
from helpers import message_of
from vgae.io import foreign
from vgae.io.tables import read_any, read_graph

WRITERS: dict[str, Callable[[Any, Any], None]] = {
    ".gml": nx.write_gml,
    ".gexf": nx.write_gexf,
    ".net": nx.write_pajek,
    ".paj": nx.write_pajek,
}
ENDINGS = tuple(WRITERS)


def people(kind: type = nx.Graph) -> Any:
    """A weighted graph with attributes, names with spaces and letters beyond ASCII, and an isolated node."""
    graph = kind()
    names = ["Ana María", "Björn", "c", "Δ", "e e"]
    for place, name in enumerate(names):
        graph.add_node(name, age=20.0 + place, group="even" if place % 2 == 0 else "odd")
    for place, (i, j) in enumerate([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]):
        graph.add_edge(names[i], names[j], weight=1.0 + place)
    return graph


def write(folder: Path, graph: Any, ending: str) -> Path:
    path = folder / f"graph{ending}"
    if ending in (".net", ".paj"):  # Pajek's attributes are text
        graph = graph.copy()
        for _, values in graph.nodes(data=True):
            values.update({name: str(value) for name, value in values.items()})
    WRITERS[ending](graph, path)
    return path


def weights_by_ids(graph: vgae.Graph) -> dict[frozenset[Any], float]:
    assert graph.weights is not None
    ends = graph.ids_of(graph.edges).tolist()
    return {frozenset(pair): weight for pair, weight in zip(ends, graph.weights.tolist(), strict=True)}


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_networkx_wrote_is_read_as_the_same_graph(tmp_path: Path, ending: str) -> None:
    original = people()
    graph = read_graph(write(tmp_path, original, ending), weight="weight")
    assert set(graph.ids) == set(original.nodes)
    assert weights_by_ids(graph) == {frozenset((u, v)): data["weight"] for u, v, data in original.edges(data=True)}
    assert not graph.directed
    assert graph.features is None


@pytest.mark.parametrize("ending", ENDINGS)
def test_directions_come_back(tmp_path: Path, ending: str) -> None:
    original = people(nx.DiGraph)
    graph = read_graph(write(tmp_path, original, ending))
    assert graph.directions is not None
    ends = graph.ids_of(graph.edges).tolist()
    arcs = {tuple(pair if way == 1 else pair[::-1]) for pair, way in zip(ends, graph.directions.tolist(), strict=True)}
    assert arcs == set(original.edges)


@pytest.mark.parametrize("ending", [".gml", ".gexf", ".net"])
def test_attributes_become_labels_and_features(tmp_path: Path, ending: str) -> None:
    original = people()
    if ending == ".net":
        for _, values in original.nodes(data=True):
            values["x"], values["y"] = 1.0, 2.0
    loaded = read_any(write(tmp_path, original, ending), label="group", node_attributes=True)
    assert loaded.graph.labels is not None
    assert loaded.recipe is not None
    place = loaded.recipe.features.index("age")
    features = sp.csr_array(loaded.graph.features).toarray()
    for node, name in enumerate(loaded.graph.ids):
        assert loaded.graph.labels[node] == original.nodes[name]["group"]
        assert features[node, place] == original.nodes[name]["age"]


@pytest.mark.parametrize("ending", [".gml", ".gexf", ".net"])
def test_whole_numbers_stay_whole_numbers_and_gzip_is_unpacked(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, nx.karate_club_graph(), ending)
    packed = tmp_path / f"packed{ending}.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    graph = read_graph(packed)
    assert graph.ids == tuple(range(34))
    np.testing.assert_array_equal(graph.edges, vgae.Graph.from_networkx(nx.karate_club_graph()).edges)


def test_gml_whose_labels_repeat_is_read_by_its_numbers(tmp_path: Path) -> None:
    text = 'graph [ node [ id 5 label "a" ] node [ id 7 label "a" ] edge [ source 5 target 7 ] ]'
    (tmp_path / "graph.gml").write_text(text)
    assert read_graph(tmp_path / "graph.gml").ids == (5, 7)


GARBAGE = (
    b"",
    b"\n \n",
    b"a,b\n1,2\n",
    b"\x00\x01\x02",
    b"\xff\xfea\x00",
    b"<gexf",
    b"graph [ node [ id 1 ",
    b"*Vertices x\n",
)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("content", GARBAGE, ids=[str(place) for place in range(len(GARBAGE))])
def test_what_is_no_such_file_is_refused_in_one_sentence(tmp_path: Path, ending: str, content: bytes) -> None:
    path = tmp_path / f"graph{ending}"
    path.write_bytes(content)
    message = message_of(lambda: read_any(path))
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert message.endswith(".")


@pytest.mark.parametrize("ending", [".gml", ".gexf", ".net"])
def test_a_file_that_is_cut_off_is_refused_or_has_all_its_nodes(tmp_path: Path, ending: str) -> None:
    path = write(tmp_path, people(), ending)
    whole = path.read_bytes()
    messages = []
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        try:
            graph = read_graph(path)
        except vgae.InputError as error:
            messages.append(str(error))
        else:
            assert ending == ".net", "whose rows are lines of their own"
            assert graph.num_nodes == 5
    assert len(messages) > 10
    assert all(message.startswith(f"{path}: ") and "\n" not in message for message in messages)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("*Vertices 3\n1 a\n2 b\n*Edges\n1 2\n", "not a readable Pajek file"),
        ("*Vertices 2\n1 a\n2 b\n*Edges\n1 7\n", "says that it has 2 vertices, but names 3"),
        ("*Vertices 2\n1 a\n2 a\n*Edges\n1 2\n", "says that it has 2 vertices, but names 1"),
        ("*Vertices 2\n1 a\n2 b\n*Edges\n1 2\n*Arcs\n2 1\n", "it has *arcs and *edges; only one of"),
        ("*Vertices 999999999\n1 a\n", "for which it is too short"),
        ("*Vertices 2\n1 a\n2 b\n*Edges\n", "there are no links in it"),
    ],
)
def test_odd_pajek_files_are_named(tmp_path: Path, content: str, words: str) -> None:
    (tmp_path / "graph.net").write_text(content)
    assert words in message_of(lambda: read_any(tmp_path / "graph.net"))


def test_gexf_with_a_document_type_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, people(), ".gexf")
    bomb = '<!DOCTYPE gexf [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;">]>'
    path.write_text(path.read_text().replace("<gexf", f"{bomb}<gexf", 1))
    assert "declares a document type" in message_of(lambda: read_any(path))


@pytest.mark.parametrize("ending", ENDINGS)
def test_without_networkx_one_sentence_says_what_to_install(
    tmp_path: Path, ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, people(), ending)

    def absent(name: str) -> Any:
        if name == "networkx":
            raise ImportError(name)
        return importlib.import_module(name)

    monkeypatch.setattr(foreign, "import_module", absent)
    message = message_of(lambda: read_any(path))
    assert message.startswith(f"{path}: ")
    assert "pip install 'vgae[networkx]'" in message


def test_options_of_tables_are_refused_and_attributes_that_are_not_there_named(tmp_path: Path) -> None:
    path = write(tmp_path, people(), ".gml")
    assert "source: this option is for tables" in message_of(lambda: read_any(path, source="a"))
    assert "its edges have no attribute 'size'; they have weight" in message_of(lambda: read_any(path, weight="size"))
    assert "normalize: there are no features" in message_of(lambda: read_any(path, normalize="rows"))
