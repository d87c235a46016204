"""Tables in parts: a folder is the table that its files are one below the other, and every bad file or row is named."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import message_of
from vgae.graph.graph import Graph
from vgae.io.folder import Piece, pieces_of, shares_of
from vgae.io.tables import read_any, read_graph, read_pairs

IDS = st.one_of(st.integers(0, 8).map(str), st.sampled_from(["ana", "bo", "1x", "07"]))
ROWS = st.lists(st.tuples(IDS, IDS, st.integers(1, 9)), min_size=1, max_size=30)


def same(one: Graph, other: Graph) -> bool:
    """Whether two graphs are the same in every bit, their ids and what was merged included."""
    return (one.content_hash, one.ids, one.cleaning) == (other.content_hash, other.ids, other.cleaning)


def write_parts(folder: Path, parts: list[list[tuple[Any, ...]]], kinds: list[str]) -> Path:
    folder.mkdir()
    for number, (rows, kind) in enumerate(zip(parts, kinds, strict=True)):
        columns = list(zip(*rows, strict=True)) or [(), (), ()]
        if kind == "parquet":
            whole = bool(rows) and all(str(end).isdecimal() and str(int(end)) == end for row in rows for end in row[:2])
            ends = [pa.array([int(end) if whole else end for end in column]) for column in columns[:2]]
            ends = ends if rows else [pa.array([], pa.string())] * 2
            table = pa.table({"from": ends[0], "to": ends[1], "times": pa.array(map(str, columns[2]), pa.string())})
            pq.write_table(table, folder / f"part-{number}.parquet", row_group_size=3)
        else:
            lines = ["from,to,times", *(",".join(map(str, row)) for row in rows)]
            (folder / f"part-{number}.csv").write_text("\n".join(lines) + "\n")
    return folder


@given(rows=ROWS, data=st.data(), directed=st.booleans(), weight=st.sampled_from([None, "times"]))
def test_a_folder_is_the_table_of_all_its_rows(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, int]], data: Any, directed: bool, weight: Any
) -> None:
    number = data.draw(st.integers(1, 4))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), min_size=number - 1, max_size=number - 1)))
    parts = [rows[start:end] for start, end in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    kinds = data.draw(st.lists(st.sampled_from(["csv", "parquet"]), min_size=number, max_size=number))
    where = tmp_path_factory.mktemp("parts")
    folder = write_parts(where / "links", parts, kinds)
    whole = write_parts(where / "whole", [rows], ["csv"]) / "part-0.csv"
    if all(row[0] == row[1] for row in rows):
        ends = {"source": "from", "target": "to"}
        one, other = message_of(lambda: read_graph(whole, **ends)), message_of(lambda: read_graph(folder, **ends))
        assert one.removeprefix(str(whole)) == other.removeprefix(str(folder))
        return
    expected = read_graph(whole, source="from", target="to", directed=directed, weight=weight)
    assert same(read_graph(folder, source="from", target="to", directed=directed, weight=weight), expected)


def test_what_was_assumed_is_said_once(tmp_path: Path) -> None:
    for name, text in (("b.csv", "5,6\n"), ("a.csv", "1,2\n2,3\n"), ("_SUCCESS", ""), (".crc", "x"), ("c.csv", "")):
        (tmp_path / name).write_text(text)
    (tmp_path / "d.tsv").write_text("# more\n7\t8\n")
    loaded = read_any(tmp_path)
    assert loaded.graph.ids == (1, 2, 3, 5, 6, 7, 8)
    assert loaded.notes == (
        "4 files read as one table, 1 of them without rows",
        "columns are split at commas (a.csv, b.csv)",
        "the first row is a link, not a header",
        "columns are split at tabs (d.tsv)",
        "1 comment line (# or %) skipped (d.tsv)",
    )


def test_text_ids_are_numbered_as_in_one_table(tmp_path: Path) -> None:
    """Sources of all files come before targets, as in one table, in the order of the files' names."""
    (tmp_path / "2.csv").write_text("source,target\nzoe,ana\n")
    (tmp_path / "10.csv").write_text("source,target\nbo,cy\n")
    assert read_graph(tmp_path).ids == ("bo", "zoe", "cy", "ana")


def test_columns_may_be_in_another_order(tmp_path: Path) -> None:
    pq.write_table(pa.table({"target": [2, 3], "source": [1, 1]}), tmp_path / "a.parquet")
    pq.write_table(
        pa.table({"source": pa.array([3], pa.int32()), "target": pa.array([2], pa.int32())}), tmp_path / "b.pq"
    )
    assert read_graph(tmp_path, directed=True).arcs.tolist() == [[0, 1], [0, 2], [2, 1]]


def test_nodes_and_pairs_may_be_in_parts_too(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("a,b\nb,c\nc,a\nc,d\n")
    nodes, pairs = tmp_path / "nodes", tmp_path / "pairs.csv"  # Spark names folders like files
    for folder in (nodes, pairs):
        folder.mkdir()
    (nodes / "1.csv").write_text("id,x\na,1\nb,2\n")
    (nodes / "2.csv").write_text("id,x\nd,4\nc,3\n")
    (pairs / "1.csv").write_text("source,target\na,b\n")
    (pairs / "2.csv").write_text("source,target\nd,b\n")
    graph = read_graph(tmp_path / "links.csv", header=False, features=nodes)
    assert np.asarray(graph.features)[graph.index_of("abcd"), 0].tolist() == [1, 2, 3, 4]
    assert read_pairs(pairs, graph.ids).tolist() == graph.index_of("abdb").reshape(2, 2).tolist()
    (nodes / "2.csv").write_text("id,x\nd,4\nb,3\n")
    message = message_of(lambda: read_graph(tmp_path / "links.csv", header=False, features=nodes))
    assert message.startswith(f"{nodes}: row 2 of {nodes}/1.csv and row 2 of {nodes}/2.csv are both about the node 'b'")
    (pairs / "2.csv").write_text("source,target\nd,b\nx,b\n")
    assert message_of(lambda: read_pairs(pairs, graph.ids)).startswith(f"{pairs}/2.csv: row 2 names 'x'")


@pytest.mark.parametrize(
    ("files", "named", "words"),
    [
        ({}, "", "a folder without tables"),
        ({"readme.md": "x"}, "", "a folder without tables"),
        ({"a.csv": "1,2\n", "readme.md": "x"}, "readme.md", "parts of one table"),
        ({"a.csv": "", "b.csv": ""}, "", "no rows in any of its files"),
        ({"a.csv": "source,target\n"}, "", "no rows in its file"),
        ({"a.csv": "source,target\n1,2\n", "b.csv": "1,3\n2,3\n"}, "b.csv", "its columns are 1, 3, and those of"),
        ({"a.csv": "1,2\n2,3\n", "b.csv": "source,target\n1,3\n"}, "b.csv", "first row is a header (source, target)"),
        ({"a.csv": "1,2\n2,3\n", "b.csv": "1,2,3\n2,4,5\n"}, "b.csv", "give all files of the folder the same columns"),
        ({"a.csv": "u,v\n1,2\n", "b.csv": "u,w\n1,2\n"}, "b.csv", "its columns are u, w"),
        ({"a.csv": "source,target\n1,2\n", "b.csv": "source,target\n1,2\n3,\n"}, "b.csv", "row 2 has no id"),
        ({"a.csv": "source,target\n1,2\n", "b.csv": "source,target\n1,2\n3,4,5\n"}, "b.csv", "line 3 has 3 columns"),
        ({"a.csv": "source,target\n1,2\n", "b.csv": "source,target\n1,2\nsource,target\n"}, "b.csv", "header again"),
        ({"a.csv": "source,target,w\n1,2,1\n", "b.csv": "source,target,w\n1,3,-1\n"}, "b.csv", "has the weight -1"),
    ],
)  # fmt: skip
def test_bad_folders_are_refused_in_a_sentence(tmp_path: Path, files: dict[str, str], named: str, words: str) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    weight = "w" if "w\n" in files.get("a.csv", "") else None
    message = message_of(lambda: read_graph(folder, weight=weight))
    assert message.startswith(f"{folder / named}: ")
    assert words in message
    assert "\n" not in message


def test_odd_parts_are_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("source,target\n1,2\n")
    (tmp_path / "year=2025").mkdir()
    assert "year=2025: this is a folder within a folder" in message_of(lambda: read_graph(tmp_path))
    (tmp_path / "year=2025").rmdir()
    pq.write_table(pa.table({"source": [1.5], "target": [2]}), tmp_path / "b.parquet")
    message = message_of(lambda: read_graph(tmp_path))
    assert message.startswith(
        f"{tmp_path}/b.parquet: the column 'source' holds double, and in {tmp_path}/a.csv it holds"
    )


@given(sizes=st.lists(st.integers(0, 100), min_size=1, max_size=30), number=st.integers(1, 6))
def test_shares_are_contiguous_and_about_equal(sizes: list[int], number: int) -> None:
    pieces = [Piece(Path(f"{place:03}.csv"), size) for place, size in enumerate(sizes)]
    shares = shares_of(pieces, number)
    assert [piece for share in shares for piece in share] == pieces
    assert len(shares) == number
    most = max(sum(piece.num_bytes for piece in share) for share in shares)
    assert most <= sum(sizes) / number + max(sizes)


def test_few_parquet_files_are_shared_by_row_groups(tmp_path: Path) -> None:
    pq.write_table(pa.table({"a": range(100), "b": range(1, 101)}), tmp_path / "one.parquet", row_group_size=10)
    shares = shares_of(pieces_of(tmp_path), 3)
    assert [[piece.first for piece in share] for share in shares] == [[1, 11, 21], [31, 41, 51, 61], [71, 81, 91]]
