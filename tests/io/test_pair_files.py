"""Files of pairs about a known graph, columns of times, and tables of labels."""

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from numpy.testing import assert_array_equal

from helpers import message_of
from vgae.graph.given import NamedPairs, NegativesOfLinks
from vgae.graph.graph import Graph
from vgae.io.label_files import read_labels
from vgae.io.options import LinkOptions, NodeOptions
from vgae.io.pair_files import read_negatives, read_pair_file
from vgae.io.source import Origin
from vgae.io.tables import read_any, read_graph
from vgae.io.times import as_times

GRAPH = Graph.from_edges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e")], node_ids=list("abcde"))
NUMBERED = Graph.from_edges([(10, 20), (20, 30), (30, 40)], node_ids=[10, 20, 30, 40])
BARE = Graph.from_edges([(0, 1), (1, 2), (2, 3)])


def write(path: Path, rows: list[tuple[Any, ...]], header: tuple[str, ...] = ()) -> Path:
    """Rows in whatever kind of file the name asks for."""
    if path.suffix == ".parquet":
        names = header or tuple("xyz"[: len(rows[0])])
        pq.write_table(
            pa.table({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)}), path
        )
    else:
        between = "\t" if path.suffix == ".tsv" else "," if path.suffix == ".csv" else " "
        path.write_text("".join(between.join(map(str, row)) + "\n" for row in ([header] if header else []) + rows))
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.txt", "x.parquet"])
@pytest.mark.parametrize("header", [(), ("source", "target")])
def test_pairs_are_read_from_every_kind_of_table(tmp_path: Path, name: str, header: tuple[str, ...]) -> None:
    path = write(tmp_path / name, [("b", "a"), ("e", "d"), ("a", "e")], header)
    found = read_pair_file(path, GRAPH, negatives=False)
    assert found.name == str(path)
    assert found.pairs.tolist() == [[1, 0], [4, 3], [0, 4]]


@pytest.mark.parametrize("header", [("von", "zu"), ("left hand", "right hand"), ()])
def test_a_header_is_what_looks_like_one_and_names_no_node(tmp_path: Path, header: tuple[str, ...]) -> None:
    path = write(tmp_path / "x.csv", [("b", "a"), ("e", "d")], header)
    assert read_pair_file(path, GRAPH, negatives=False).pairs.tolist() == [[1, 0], [4, 3]]
    numbered = Graph.from_edges([("n1", "n2"), ("n2", "n3")])
    rows = write(tmp_path / "y.csv", [("n8", "n9"), ("n1", "n2")])  # looks like a row, and is one
    assert "1 of its 2 rows names a node" in message_of(lambda: read_pair_file(rows, numbered, negatives=False))


def test_columns_are_those_of_the_options(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", [(1, "a", "b"), (2, "c", "e")], ("row", "who", "whom"))
    found = read_pair_file(path, GRAPH, LinkOptions(source="who", target="whom"), negatives=False)
    assert found.pairs.tolist() == [[0, 1], [2, 4]]


@pytest.mark.parametrize("graph", [NUMBERED, BARE])
def test_arrays_of_a_benchmark_name_nodes_by_their_ids_or_indices(tmp_path: Path, graph: Graph) -> None:
    ids = np.array(graph.ids)
    split: dict[str, Any] = {
        "edge": ids[[[0, 1], [3, 2]]],
        "edge_neg": ids[[[0, 2]]],
        "weight": np.ones(2),
        "year": np.array([1, 2]),
    }
    np.savez(tmp_path / "collab.npz", **split)
    assert read_pair_file(tmp_path / "collab.npz", graph, negatives=False).pairs.tolist() == [[0, 1], [3, 2]]
    assert read_pair_file(tmp_path / "collab.npz", graph, negatives=True).pairs.tolist() == [[0, 2]]
    shared = read_negatives(tmp_path / "collab.npz", graph)
    assert isinstance(shared, NamedPairs)
    assert shared.pairs.tolist() == [[0, 2]]
    citation: dict[str, Any] = {
        "source_node": ids[[0, 1]],
        "target_node": ids[[1, 2]],
        "target_node_neg": ids[[[2, 3], [0, 3]]],
    }
    np.savez(tmp_path / "citation.npz", **citation)
    assert read_pair_file(tmp_path / "citation.npz", graph, negatives=False).pairs.tolist() == [[0, 1], [1, 2]]
    own = read_negatives(tmp_path / "citation.npz", graph)
    assert isinstance(own, NegativesOfLinks)
    assert own.links.tolist() == [[0, 1], [1, 2]]
    assert own.others.tolist() == [[2, 3], [0, 3]]


def test_a_third_column_gives_every_link_its_own(tmp_path: Path) -> None:
    rows = [("b", "a", "d"), ("d", "e", "a"), ("b", "a", "e"), ("b", "a", "c"), ("d", "e", "b")]
    for name in ("x.csv", "x.parquet"):
        own = read_negatives(write(tmp_path / name, rows, ("source", "target", "negative")), GRAPH)
        assert isinstance(own, NegativesOfLinks)
        assert own.links.tolist() == [[1, 0], [3, 4]]
        assert own.others.tolist() == [[3, 4, 2], [0, 1, -1]]
    shared = read_negatives(write(tmp_path / "y.csv", rows, ("source", "target", "other")), GRAPH)
    assert isinstance(shared, NamedPairs)


@pytest.mark.parametrize("name", ["x.csv", "x.parquet", "x.npz"])
def test_unknown_nodes_are_counted_and_one_is_named(tmp_path: Path, name: str) -> None:
    rows = [("a", "b"), ("a", "nobody"), ("x", "nobody"), ("c", "d")]
    path = tmp_path / name
    if path.suffix == ".npz":
        np.savez(path, edge=np.array(rows))
    else:
        write(path, rows, ("source", "target"))
    message = message_of(lambda: read_pair_file(path, GRAPH, negatives=False))
    assert f"{path}: 2 of its 4 rows name a node that is not among the 5 nodes of the graph" in message
    assert "'nobody'" in message


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"edge": np.array([[0, 9]])}, "1 of its 1 row names a node"),
        ({"edge": np.array([[0, -1]])}, "1 of its 1 row names a node"),
        ({"edge": np.array([[0, 1, 2]])}, "edge should have two columns"),
        ({"edge_neg": np.array([[0, 1]])}, "no array called edge in it, which would hold the links"),
        ({"edge": np.array([[0.5, 1]])}, "edge should be rows of two nodes"),
        ({"source_node": np.array([0]), "target_node": np.array([1, 2])}, "source_node has 1 entries"),
        ({"edges": np.array([[0, 1]])}, "it holds 'edges'"),
    ],
)
def test_arrays_that_hold_no_pairs_are_refused(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    message = message_of(lambda: read_pair_file(tmp_path / "x.npz", BARE, negatives=False))
    assert message.startswith(str(tmp_path / "x.npz"))
    assert words in message


@pytest.mark.parametrize(
    ("arrays", "words"),
    [
        ({"target_node_neg": np.array([[1]])}, "no array called source_node in it"),
        (
            {"source_node": np.array([0]), "target_node": np.array([1]), "target_node_neg": np.array([[2], [3]])},
            "a row for each of the 1 links",
        ),
        ({"edge": np.array([[0, 1]])}, "no array called edge_neg in it, which would hold the non-links"),
    ],
)
def test_arrays_that_hold_no_negatives_are_refused(tmp_path: Path, arrays: dict[str, Any], words: str) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    assert words in message_of(lambda: read_negatives(tmp_path / "x.npz", BARE))


def test_two_kinds_of_nodes_are_named_with_or_without_their_kind(tmp_path: Path) -> None:
    whole = write(tmp_path / "all.csv", [(1, 1), (1, 2), (2, 1), (3, 2)], ("user", "item"))
    graph = read_graph(whole, bipartite=True)
    expected = graph.index_of(["user:2", "item:2"]).tolist()
    for rows in ([(2, 2)], [("user:2", "item:2")]):
        path = write(tmp_path / "x.csv", rows, ("user", "item"))
        assert read_pair_file(path, graph, negatives=True).pairs.tolist() == [expected]
    own = read_negatives(write(tmp_path / "y.csv", [(3, 2, 1)], ("user", "item", "negative")), graph)
    assert isinstance(own, NegativesOfLinks)
    assert own.others.tolist() == [[graph.index_of(["item:1"])[0]]]


# --------------------------------------------------------------------------------------------------------------- times


def moment(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp()) * 1_000_000  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["3", "-1", "20"], [3, -1, 20]),
        (["1.5", "2", "1e3"], [1.5, 2, 1000]),
        ([str(2**60), str(2**60 + 1)], [2**60, 2**60 + 1]),
        ([2**60, 2**60 + 1], [2**60, 2**60 + 1]),
        ([0.5, 1.5], [0.5, 1.5]),
        (["2024-01-31", "2023-12-01"], [moment(2024, 1, 31), moment(2023, 12, 1)]),
        (["2024-01", "2023-12-01"], [moment(2024, 1, 1), moment(2023, 12, 1)]),
        (["2024-01-31T12:00:00Z", "2024-01-31 14:00+03:00"], [moment(2024, 1, 31, 12), moment(2024, 1, 31, 11)]),
        ([date(2024, 1, 31), date(1960, 1, 1)], [moment(2024, 1, 31), moment(1960, 1, 1)]),
        ([datetime(2024, 1, 31, 12), datetime(1960, 1, 1)], [moment(2024, 1, 31, 12), moment(1960, 1, 1)]),
    ],
)
def test_times_are_numbers_or_iso_dates(values: list[Any], expected: list[float]) -> None:
    found = as_times(Origin("x.csv"), pa.chunked_array([pa.array(values)]), "when")
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["2024-01-31", "yesterday", "soon"], "row 2 (and 1 more) has the time 'yesterday' in the column 'when'"),
        (["1", "", "3"], "row 2 has no time in the column 'when'"),
        (["1", "2024-01-31"], "row 1 has the time '1'"),
        (["2024-13-01"], "row 1 has the time '2024-13-01'"),
        ([1, None], "row 2 has no time"),
        ([1.5, float("nan")], "row 2 has no time"),
        ([True, False], "holds bool, but times are numbers or ISO dates"),
    ],
)
def test_a_row_without_a_time_is_named(values: list[Any], words: str) -> None:
    message = message_of(lambda: as_times(Origin("x.csv"), pa.chunked_array([pa.array(values)]), "when"))
    assert message.startswith("x.csv: ")
    assert words in message
    assert message.endswith(".")


def test_a_link_of_a_file_has_the_first_of_its_times(tmp_path: Path) -> None:
    rows = [("a", "b", 5), ("b", "a", 2), ("b", "c", 7), ("c", "c", 1), ("b", "a", 9)]
    path = write(tmp_path / "x.csv", rows, ("from", "to", "when"))
    loaded = read_any(path, time="when")
    assert [set(loaded.graph.ids_of(pair)) for pair in loaded.graph.edges] == [{"a", "b"}, {"b", "c"}]
    assert loaded.times is not None
    assert loaded.times.tolist() == [2, 7]
    assert read_any(path).times is None
    assert "split_by_time" in message_of(lambda: read_graph(path, time="when"))
    assert "no column 'then'" in message_of(lambda: read_any(path, time="then"))


# -------------------------------------------------------------------------------------------------------------- labels


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.parquet"])
def test_labels_are_matched_by_their_ids(tmp_path: Path, name: str) -> None:
    path = write(tmp_path / name, [("e", "old"), ("a", "new"), ("x", "new"), ("c", "old")], ("id", "age"))
    labels, notes = read_labels(path, GRAPH, NodeOptions())
    assert labels.tolist() == ["new", -1, "old", -1, "old"]
    assert notes == ("labels are the column age", "1 row about nodes that are not in the graph left out")


def test_of_more_columns_one_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "x.csv", [(1, "a", 3), (2, "b", 4)], ("row", "who", "group"))
    assert "say which column holds the labels" in message_of(lambda: read_labels(path, GRAPH, NodeOptions(id="who")))
    labels, _ = read_labels(path, GRAPH, NodeOptions(id="who", label="group"))
    assert_array_equal(labels, [3, 4, -1, -1, -1])


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([("x", 1), ("y", 2)], "none of its ids is a node of the graph; its ids are like 'x', the others like 'a'"),
        ([("x", 1), ("a", 1), ("b", 2), ("a", 2)], "row 2 and row 4 are both about the node 'a'"),
    ],
)
def test_labels_of_nobody_or_of_one_node_twice_are_refused(tmp_path: Path, rows: list[Any], words: str) -> None:
    path = write(tmp_path / "x.csv", rows, ("id", "label"))
    assert words in message_of(lambda: read_labels(path, GRAPH, NodeOptions()))
