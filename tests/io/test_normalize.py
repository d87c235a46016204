"""Features brought to scale whatever they were read from, and those of new nodes in the same way."""

import json
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse as sp

import vgae
from helpers import message_of
from vgae.graph.features import normalize
from vgae.io.extend import read_more
from vgae.io.recipe import FeatureRecipe
from vgae.io.tables import LoadedGraph, read_any

COUNTS = np.array([[3, 4, 0], [0, 0, 5], [8, 6, 0], [0, 0, 0], [1, 1, 20]], dtype=np.float32)
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]


def table(counts: Any) -> str:
    return "id,x,y,z\n" + "".join(f"{node},{','.join(map(str, row))}\n" for node, row in enumerate(counts.tolist()))


def sources(folder: Path, counts: Any = COUNTS) -> dict[str, tuple[Path, dict[str, Any]]]:
    """The same graph and features in every kind of file that can hold both."""
    links = folder / "links.csv"
    links.write_text("source,target\n" + "".join(f"{i},{j}\n" for i, j in EDGES))
    (folder / "nodes.csv").write_text(table(counts))
    entries = [(node, name, counts[node, name]) for node, name in zip(*np.nonzero(counts), strict=True)]
    (folder / "entries.csv").write_text("node,feature,value\n" + "".join(f"{a},{b},{c}\n" for a, b, c in entries))
    values: dict[str, dict[str, float]] = {}
    for node, name, value in entries:
        values.setdefault(str(node), {})[str(name)] = float(value)
    (folder / "x.json").write_text(json.dumps(values))
    sp.save_npz(folder / "x.npz", sp.csr_array(counts))
    vgae.write_graph(folder / "own.npz", vgae.Graph.from_edges(EDGES, features=counts))
    np.savez(folder / "index.npz", edge_index=np.array(EDGES).T, x=counts)
    graph = nx.Graph(EDGES)
    for node in graph:
        graph.nodes[node].update({name: float(counts[node, place]) for place, name in enumerate("xyz")})
    nx.write_graphml(graph, folder / "graph.graphml")
    attributes = {"node_attributes": True}
    return {
        "table": (links, {"features": folder / "nodes.csv"}),
        "coordinates": (links, {"features": folder / "entries.csv"}),
        "json": (links, {"features": folder / "x.json"}),
        "scipy": (links, {"features": folder / "x.npz"}),
        "own": (folder / "own.npz", {}),
        "edge_index": (folder / "index.npz", {}),
        "graphml": (folder / "graph.graphml", attributes),
    }


KINDS = ("table", "coordinates", "json", "scipy", "own", "edge_index", "graphml")


def dense(loaded: LoadedGraph) -> Any:
    """The features, by the names of their columns where they have any."""
    found = sp.csr_array(loaded.graph.features).toarray()
    names = loaded.recipe.features if loaded.recipe is not None else ()
    return found[:, np.argsort(names)] if names else found


@pytest.mark.parametrize("how", ["rows", "columns", "none"])
@pytest.mark.parametrize("kind", KINDS)
def test_features_of_every_source_are_brought_to_scale(tmp_path: Path, kind: str, how: str) -> None:
    path, options = sources(tmp_path)[kind]
    loaded = read_any(path, normalize=how, **options)
    np.testing.assert_allclose(dense(loaded), normalize(COUNTS, how), rtol=1e-6)
    said = [note for note in (*loaded.notes, *loaded.node_notes) if note.startswith("features have")]
    assert len(said) == (how != "none")
    np.testing.assert_array_equal(dense(read_any(path, **options)), COUNTS)


@pytest.mark.parametrize("how", ["rows", "columns"])
@pytest.mark.parametrize("kind", KINDS)
def test_another_graph_is_brought_to_the_scale_of_the_first(tmp_path: Path, kind: str, how: str) -> None:
    path, options = sources(tmp_path)[kind]
    recipe = read_any(path, normalize=how, **options).recipe
    assert recipe is not None
    again = FeatureRecipe.from_json(json.loads(json.dumps(recipe.to_json())))
    assert again == recipe
    second = COUNTS * np.array([2, 0.5, 3], dtype=np.float32)
    path, options = sources(tmp_path, second)[kind]
    found = dense(read_any(path, recipe=again, **options))
    expected = normalize(second, "rows") if how == "rows" else second / COUNTS.max(axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("how", ["rows", "columns"])
def test_new_nodes_are_brought_to_the_scale_of_the_old(tmp_path: Path, how: str) -> None:
    path, options = sources(tmp_path)["table"]
    loaded = read_any(path, normalize=how, **options)
    (tmp_path / "new.csv").write_text("id,x,y,z\n10,16,0,5\n")
    more = read_more(loaded.graph, loaded.recipe, nodes=tmp_path / "new.csv").graph
    new = np.array([[16, 0, 5]])
    expected = new / np.linalg.norm(new) if how == "rows" else new / COUNTS.max(axis=0)
    np.testing.assert_allclose(np.asarray(more.features)[-1:], expected, rtol=1e-6)
    np.testing.assert_array_equal(np.asarray(more.features)[:-1], np.asarray(loaded.graph.features))


def test_new_nodes_with_entries_have_the_features_by_name(tmp_path: Path) -> None:
    path, options = sources(tmp_path)["coordinates"]
    loaded = read_any(path, normalize="columns", **options)
    (tmp_path / "new.csv").write_text("10,2,10\n10,0,4\n10,77,1\n11,1,3\n")
    reading = read_more(loaded.graph, loaded.recipe, nodes=tmp_path / "new.csv")
    expected = np.array([[4, 0, 10], [0, 3, 0]]) / COUNTS.max(axis=0)
    np.testing.assert_allclose(sp.csr_array(reading.graph.features).toarray()[-2:], expected, rtol=1e-6)
    assert "1 feature is unknown and left out" in reading.node_notes
    (tmp_path / "x.json").write_text('{"12": {"0": 2}}')
    reading = read_more(loaded.graph, loaded.recipe, nodes=tmp_path / "x.json")
    np.testing.assert_allclose(sp.csr_array(reading.graph.features).toarray()[-1], [0.25, 0, 0], rtol=1e-6)


def test_features_of_one_kind_do_not_stand_for_those_of_another(tmp_path: Path) -> None:
    found = sources(tmp_path)
    path, options = found["table"]
    recipe = read_any(path, **options).recipe
    message = message_of(lambda: read_any(path, features=tmp_path / "x.json", recipe=recipe))
    assert "came from a table with a row per node" in message
    recipe = read_any(path, features=tmp_path / "entries.csv").recipe
    message = message_of(lambda: read_any(path, features=tmp_path / "x.npz", recipe=recipe))
    assert "the model's features have names, such as '0'" in message
    assert recipe is not None
    assert "entry by entry" in message_of(lambda: recipe.apply(pa.table({"a": [1], "b": [2]})))
    entries = tmp_path / "entries.csv"
    message = message_of(lambda: read_any(path, features=entries, recipe=recipe, normalize="rows"))
    assert "normalize: the features are brought to scale as those of the model were" in message


def test_there_must_be_features_to_bring_to_scale(tmp_path: Path) -> None:
    path, _ = sources(tmp_path)["table"]
    assert "there are no features to bring to scale" in message_of(lambda: read_any(path, normalize="rows"))
    assert read_any(path, normalize="none").graph.features is None
    vgae.write_graph(tmp_path / "bare.npz", vgae.Graph.from_edges(EDGES))
    assert "no features to bring to scale" in message_of(lambda: read_any(tmp_path / "bare.npz", normalize="rows"))
    assert "not one of none, rows, columns" in message_of(lambda: read_any(path, normalize="l2"))


@pytest.mark.parametrize(
    "content",
    [
        {"columns": [], "normalize": "rows"},
        {"columns": [], "normalize": "rows", "scales": [1.0]},
        {"columns": [], "normalize": "columns", "scales": None},
        {"columns": [], "normalize": "words", "scales": None},
        {"columns": [], "normalize": "columns", "scales": ["x"]},
        {"columns": 3, "normalize": "rows", "scales": None},
        "rows",
    ],
)
def test_a_recipe_that_was_edited_is_refused(content: Any) -> None:
    assert "recipe: not a recipe" in message_of(lambda: FeatureRecipe.from_json(content))
