"""Features given entry by entry: coordinate lists in text and Parquet, and JSON of lists; and lists of ids alone."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp

import vgae
from helpers import message_of
from vgae.io.tables import LoadedGraph, read_any

LINKS = "1,2\n2,3\n3,5\n5,1\n"
ENTRIES = [(1, 10, 2.0), (1, 30, 1.0), (2, 20, 4.0), (3, 10, 3.0), (7, 30, 1.5)]  # 5 has none, 7 has no links
DENSE = np.array([[2, 0, 1], [0, 4, 0], [3, 0, 0], [0, 0, 0], [0, 0, 1.5]])


def read(folder: Path, name: str, content: str | bytes, links: str = LINKS, **options: Any) -> LoadedGraph:
    (folder / "links.csv").write_text(links)
    (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return read_any(folder / "links.csv", features=folder / name, **options)


def dense(loaded: LoadedGraph) -> Any:
    assert sp.issparse(loaded.graph.features)
    return sp.csr_array(loaded.graph.features).toarray()


def rows(entries: list[tuple[Any, ...]], header: str = "") -> str:
    return header + "".join(",".join(map(str, entry)) + "\n" for entry in entries)


@pytest.mark.parametrize("header", ["node,feature,value\n", "node_id,word_id,count\n", "id,Feature,Weight\n"])
def test_a_header_tells_that_rows_are_entries(tmp_path: Path, header: str) -> None:
    loaded = read(tmp_path, "x.csv", rows(ENTRIES, header))
    np.testing.assert_array_equal(dense(loaded), DENSE)
    assert loaded.graph.ids == (1, 2, 3, 5, 7)
    assert loaded.recipe is not None
    assert loaded.recipe.features == ("10", "20", "30")
    assert any("rows are entries of features" in note for note in loaded.node_notes)
    assert f"1 node of {tmp_path / 'links.csv'} has no features, which are 0" in loaded.node_notes


def test_the_option_tells_it_where_there_is_no_header(tmp_path: Path) -> None:
    np.testing.assert_array_equal(dense(read(tmp_path, "x.csv", rows(ENTRIES), feature_format="coordinates")), DENSE)
    message = message_of(lambda: read(tmp_path, "x.csv", rows(ENTRIES)))
    assert "both about the node '1'" in message
    assert "feature_format coordinates" in message


def test_two_columns_are_entries_of_one(tmp_path: Path) -> None:
    pairs = [entry[:2] for entry in ENTRIES] + [(1, 10)]
    loaded = read(tmp_path, "x.csv", rows(pairs, "node,feature\n"))
    np.testing.assert_array_equal(dense(loaded), DENSE != 0)
    assert "1 entry given again counted once" in loaded.node_notes


def test_entries_that_are_given_again_add_up(tmp_path: Path) -> None:
    loaded = read(tmp_path, "x.csv", rows([*ENTRIES, (1, 10, 5.0)], "node,feature,value\n"))
    assert dense(loaded)[0, 0] == 7
    assert "1 entry given again added up" in loaded.node_notes


def test_parquet_gzip_and_names_of_text(tmp_path: Path) -> None:
    table = pa.table(
        {"node": [e[0] for e in ENTRIES], "word": [f"w{e[1]}" for e in ENTRIES], "tf": [e[2] for e in ENTRIES]}
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    loaded = read(tmp_path, "x.parquet", sink.getvalue().to_pybytes())
    np.testing.assert_array_equal(dense(loaded), DENSE)
    assert loaded.recipe is not None
    assert loaded.recipe.features == ("w10", "w20", "w30")
    packed = gzip.compress(rows(ENTRIES, "node,feature,value\n").encode())
    np.testing.assert_array_equal(dense(read(tmp_path, "x.csv.gz", packed)), DENSE)


def test_a_frame_of_entries() -> None:
    links = pd.DataFrame([[1, 2], [2, 3], [3, 5], [5, 1]], columns=["source", "target"])
    frame = pd.DataFrame(ENTRIES, columns=["node", "feature", "value"])
    graph = vgae.Graph.from_frame(links, nodes=frame)
    np.testing.assert_array_equal(sp.csr_array(graph.features).toarray(), DENSE)


def test_a_table_of_two_columns_with_one_row_per_node_stays_a_table(tmp_path: Path) -> None:
    loaded = read(tmp_path, "x.csv", "node,feature\n1,5\n2,6\n3,7\n5,8\n")
    assert loaded.recipe is not None
    assert loaded.recipe.features == ("feature",)


@pytest.mark.parametrize("ending", [".json", ".json.gz"])
def test_json_of_lists_and_of_values(tmp_path: Path, ending: str) -> None:
    values: dict[str, dict[str, float]] = {"5": {}}
    for node, feature, value in ENTRIES:
        values.setdefault(str(node), {})[str(feature)] = value
    for content, expected in (
        (values, DENSE),
        ({node: [int(name) for name in of_node] for node, of_node in values.items()}, DENSE != 0),
    ):
        text = json.dumps(content).encode()
        loaded = read(tmp_path, f"x{ending}", gzip.compress(text) if ending.endswith("gz") else text)
        assert loaded.graph.ids == (1, 2, 3, 5, 7)
        np.testing.assert_array_equal(dense(loaded), expected)


def test_a_list_of_lists_numbers_the_nodes_from_0(tmp_path: Path) -> None:
    loaded = read(tmp_path, "x.json", json.dumps([["a"], ["b", "c"], []]), links="0,1\n1,2\n2,0\n")
    assert loaded.recipe is not None
    assert loaded.recipe.features == ("a", "b", "c")
    np.testing.assert_array_equal(dense(loaded), [[1, 0, 0], [0, 1, 1], [0, 0, 0]])


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("x.json", "", "not readable as JSON"),
        ("x.json", "{", "not readable as JSON"),
        ("x.json", "{}", "a list of features for each node is needed"),
        ("x.json", "3", "a list of features for each node is needed"),
        ("x.json", '{"1": 5}', "the node '1' has 5"),
        ("x.json", '{"1": [1], "2": {"3": 1}}', "the same for all nodes"),
        ("x.json", '{"1": [0.5]}', "features are whole numbers or texts, but one is 0.5"),
        ("x.json", '{"1": [[1]]}', "features are whole numbers or texts"),
        ("x.json", '{"1": {"a": "b"}}', "the feature 'a' of the node '1' is 'b', no number"),
        ("x.json", '{"1": {"a": 1e39}}', "no number"),
        ("x.json", '{"1": {"a": NaN}}', "NaN is not JSON"),
        ("x.json", '{"1": [1], "1": [2]}', 'the name "1" is there twice'),
        ("x.json", '{"1": [], "2": []}', "only empty lists"),
        ("x.json", '{"a": [1]}', "none of its ids occurs in"),
        ("x.csv", "node,feature,value\n1,a,x\n1,b,1\n", "row 1 has 'x' in the column 'value'; a number is needed"),
        ("x.csv", "node,feature,value\n1,a,1\n1,b,\n", "row 2 has no value in the column 'value'"),
        ("x.csv", "node,feature,value\n1,a,1\n1,,3\n", "row 2 has no id in the column 'feature'"),
        ("x.csv", "node,feature,value\n1,a,1\n1,b,1e39\n", "a number is needed"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, name: str, content: str, words: str) -> None:
    message = message_of(lambda: read(tmp_path, name, content))
    assert message.startswith(f"{tmp_path / name}: ")
    assert words in message
    assert "\n" not in message


def test_options_that_do_not_fit_are_named(tmp_path: Path) -> None:
    text = rows(ENTRIES, "node,feature,value\n")
    assert "label: this is about the columns" in message_of(lambda: read(tmp_path, "x.csv", text, label="value"))
    wide = "node,feature,value,more\n1,2,3,4\n1,3,4,5\n"
    message = message_of(lambda: read(tmp_path, "x.csv", wide, feature_format="coordinates"))
    assert "the columns are node, feature, value, more" in message
    message = message_of(lambda: read_any(tmp_path / "x.json"))
    assert "links are not read from JSON" in message


# ---------------------------------------------------------------------------------------------------- lists of ids


@pytest.mark.parametrize("header", ["", "id\n"])
@pytest.mark.parametrize("name", ["nodes.txt", "nodes.csv"])
def test_a_list_of_ids_names_isolated_nodes_and_the_order(tmp_path: Path, header: str, name: str) -> None:
    loaded = read(tmp_path, name, header + "9\n5\n3\n2\n1\n")
    assert loaded.graph.ids == (9, 5, 3, 2, 1)
    assert loaded.graph.features is None
    ends = {frozenset(pair) for pair in loaded.graph.ids_of(loaded.graph.edges).tolist()}
    assert ends == {frozenset(pair) for pair in ((1, 2), (2, 3), (3, 5), (5, 1))}
    assert any("1 node has no links" in note for note in loaded.node_notes)


def test_a_list_of_names_has_no_header_and_may_lack_some(tmp_path: Path) -> None:
    loaded = read(tmp_path, "nodes.txt", "zoe\nbob van dyk\nanna\n", links="anna,zoe\nzoe,kim\n")
    assert loaded.graph.ids == ("zoe", "bob van dyk", "anna", "kim")
    pq.write_table(pa.table({"name": ["kim", "lea"]}), tmp_path / "nodes.parquet")
    loaded = read_any(tmp_path / "links.csv", features=tmp_path / "nodes.parquet")
    assert loaded.graph.ids == ("kim", "lea", "anna", "zoe")


# ------------------------------------------------------------------------------------------------------------ labels


def test_labels_come_from_a_table_of_their_own(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("id,target\n3,b\n1,a\n99,c\n")
    loaded = read(tmp_path, "x.csv", rows(ENTRIES, "node,feature,value\n"), labels=tmp_path / "labels.csv")
    assert loaded.graph.labels is not None
    assert loaded.graph.labels.tolist() == ["a", -1, "b", -1, -1]
    assert any("2 classes, 3 nodes without one, 1 row about other ids ignored" in note for note in loaded.label_notes)
    (tmp_path / "labels.csv").write_text("id,size,colour\n3,b,x\n1,a,y\n")
    options: dict[str, Any] = {"labels": tmp_path / "labels.csv"}
    assert "say which of its columns is the class" in message_of(lambda: read_any(tmp_path / "links.csv", **options))
    graph = read_any(tmp_path / "links.csv", label="colour", **options).graph
    assert graph.labels is not None
    assert graph.labels.tolist() == ["y", -1, "x", -1]
    (tmp_path / "labels.csv").write_text("id,class\nx,b\ny,a\n")
    assert "none of its ids is a node" in message_of(lambda: read_any(tmp_path / "links.csv", **options))
