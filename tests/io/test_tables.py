"""Tables of links: what was written comes back, oddities are counted, and every bad file is named by its line."""

import csv
import gzip
import io
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vgae
from helpers import message_of
from vgae import memory
from vgae.io.tables import read_graph, read_links, read_pairs

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=6).filter(
    lambda name: name[0] not in "#%"
)


def links_of(graph: vgae.Graph) -> set[frozenset[Any]]:
    """The links by their ids."""
    assert graph.node_ids is not None
    ids = graph.node_ids.tolist()
    return {frozenset((ids[i], ids[j])) for i, j in graph.edges.tolist()}


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


@given(
    rows=st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=20),
    delimiter=st.sampled_from([",", "\t", ";", "|"]),
    header=st.booleans(),
)
def test_text_ids_come_back_whatever_they_are(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str, header: bool
) -> None:
    expected = {frozenset(row) for row in rows if row[0] != row[1]}
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows([("from here", "to there")] * header + rows)
    path = tmp_path_factory.mktemp("table") / "links.csv"
    path.write_bytes(text.getvalue().encode())
    if not expected:
        assert "no links" in message_of(lambda: read_links(path, delimiter=delimiter, header=header))
        return
    graph = read_links(path, delimiter=delimiter, header=header).graph
    assert {frozenset(map(str, link)) for link in links_of(graph)} == expected
    assert graph.cleaning.rows_given == len(rows)


@given(
    rows=st.lists(
        st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1)), min_size=1, max_size=20
    ).filter(lambda rows: any(a != b for a, b in rows))
)
def test_whole_numbers_come_back_as_numbers_in_order(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    path = write(tmp_path_factory.mktemp("table") / "links.txt", "".join(f"{a} {b}\n" for a, b in rows))
    graph = read_graph(path)
    assert links_of(graph) == {frozenset(row) for row in rows if row[0] != row[1]}
    assert graph.node_ids is not None
    assert graph.node_ids.tolist() == sorted({end for row in rows for end in row})


def test_oddities_are_counted_and_assumptions_told(tmp_path: Path) -> None:
    text = "von;nach;seit\nAnna;Bob;1\nBob;Anna;2\nAnna;Bob;3\nCarl;Carl;4\nDörte;Anna;5\n"
    loaded = read_links(write(tmp_path / "leute.csv", text))
    assert links_of(loaded.graph) == {frozenset(("Anna", "Bob")), frozenset(("Anna", "Dörte"))}
    cleaning = loaded.graph.cleaning
    assert (cleaning.rows_given, cleaning.duplicates_merged, cleaning.reversed_merged, cleaning.self_loops_dropped) == (
        5,
        1,
        1,
        1,
    )
    assert loaded.notes == (
        "columns are split at semicolons",
        "the first row is a header",
        "links are the columns von and nach",
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# comment\n% more\n1\t2\n# again\n2\t3\n", {frozenset((1, 2)), frozenset((2, 3))}),
        ("# comment\nfrom,to\n1,2\n2,3\n", {frozenset((1, 2)), frozenset((2, 3))}),
        ("  1   2  \n 2     3\n", {frozenset((1, 2)), frozenset((2, 3))}),
        ("a,b\r\nb,c\r\n", {frozenset("ab"), frozenset("bc")}),
        ("\ufeffx,y\n1,2\n", {frozenset((1, 2))}),
        ('"a, b","c ""d"""\n"c ""d""",e\n', {frozenset(("a, b", 'c "d"')), frozenset(('c "d"', "e"))}),
        ("007,8\n8,9\n", {frozenset(("007", "8")), frozenset(("8", "9"))}),
        ("99999999999999999999,1\n1,2\n", {frozenset(("99999999999999999999", "1")), frozenset("12")}),
        ("1,x\nx,2\n", {frozenset("1x"), frozenset("x2")}),
    ],
)
def test_many_kinds_of_text_are_understood(tmp_path: Path, text: str, expected: set[frozenset[Any]]) -> None:
    path = tmp_path / "links.txt"
    path.write_bytes(text.encode())
    assert links_of(read_graph(path)) == expected


def test_columns_are_chosen_by_name_or_number(tmp_path: Path) -> None:
    path = write(tmp_path / "links.csv", "when,who,whom\n5,a,b\n6,b,c\n")
    expected = {frozenset("ab"), frozenset("bc")}
    assert links_of(read_graph(path, source="who", target="whom", header=True)) == expected
    assert links_of(read_graph(path, source="2", target="3", header=True)) == expected


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_compressed_text_is_unpacked_up_to_a_limit(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / f"links.csv.{'gz' if kind == 'gzip' else 'zst'}"
    with pa.CompressedOutputStream(str(path), kind) as stream:
        stream.write(b"a,b\n" + b"1,2\n2,3\n" * 1000)
    assert links_of(read_graph(path)) == {frozenset((1, 2)), frozenset((2, 3))}
    monkeypatch.setattr(memory, "bytes_free", lambda: 20_000.0)
    assert "GB are free" in message_of(lambda: read_graph(path))


def test_parquet_holds_numbers_or_text(tmp_path: Path) -> None:
    numbers = pa.table(
        {"a": pa.array([5, 5, 9], pa.int32()), "b": pa.array([9, 7, 7], pa.int64()), "w": [1.0, 2.0, 3.0]}
    )
    pq.write_table(numbers, tmp_path / "numbers.parquet")
    assert links_of(read_graph(tmp_path / "numbers.parquet")) == {
        frozenset((5, 9)),
        frozenset((5, 7)),
        frozenset((7, 9)),
    }
    text = pa.table({"a": pa.array(["x", "y"]).dictionary_encode(), "b": ["y", "z"]})
    pq.write_table(text, tmp_path / "text.parquet")
    assert links_of(read_graph(tmp_path / "text.parquet")) == {frozenset("xy"), frozenset("yz")}
    whole = (tmp_path / "text.parquet").read_bytes()
    (tmp_path / "half.parquet").write_bytes(whole[: len(whole) // 2])
    assert "not a readable Parquet file" in message_of(lambda: read_graph(tmp_path / "half.parquet"))
    message = message_of(lambda: read_graph(tmp_path / "numbers.parquet", source="w"))
    assert "'w' holds double" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"\n\n", "the file is empty"),
        (b"a,b\n", "only a header"),
        (b"a\nb\n", "one column only"),
        (b"a,b\nc,d\ne\n", "line 3 has 1 column where the others have 2"),
        (b"a,b\nc,d,e\n", "line 2 has 3 columns where the others have 2"),
        (b"a,b\nc,\xff\n", "line 2 is not UTF-8"),
        (b"a,b\n\n#x\nc,\0\n", "line 4 holds a NUL byte"),
        (b"a,b\nc,d\ne,\n", "row 2 has no id in the column 'b'"),
        (b"a,a\n1,2\n", "names the column 'a' twice"),
        (b"a,b\n1,1\n", "no links between different nodes"),
    ],
)
def test_bad_files_are_named_by_line(tmp_path: Path, content: bytes, words: str) -> None:
    path = tmp_path / "links.csv"
    path.write_bytes(content)
    message = message_of(lambda: read_graph(path))
    assert message.startswith(f"{path}: ")
    assert words in message
    assert message.count("\n") == 0


def test_missing_columns_and_files_are_named(tmp_path: Path) -> None:
    path = write(tmp_path / "links.csv", "who,whom\na,b\n")
    assert "no column 'x'; its columns are who, whom" in message_of(lambda: read_graph(path, source="x"))
    assert "the same column" in message_of(lambda: read_graph(path, source="whom"))
    assert "delimiter: one character" in message_of(lambda: read_graph(path, delimiter="ab"))
    assert "no such file" in message_of(lambda: read_graph(tmp_path / "none.csv"))
    (tmp_path / "folder.csv").mkdir()
    assert "a folder without tables" in message_of(lambda: read_graph(tmp_path / "folder.csv"))
    assert "not a kind of file" in message_of(lambda: read_graph(tmp_path / "links.docx"))
    (tmp_path / "broken.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n" * 100)[:-20])
    assert "cannot be unpacked" in message_of(lambda: read_graph(tmp_path / "broken.csv.gz"))
    vgae.write_graph(tmp_path / "graph.npz", read_graph(path))
    assert links_of(read_graph(tmp_path / "graph.npz")) == {frozenset("ab")}
    assert "source: this option is for tables" in message_of(lambda: read_graph(tmp_path / "graph.npz", source="1"))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "links.csv", "a,b\n")
    path.chmod(0)
    assert "may not be read" in message_of(lambda: read_graph(path))


def test_ids_are_kept_when_many(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    ends = generator.integers(10**12, size=(2000, 2))
    path = write(tmp_path / "links.tsv", "".join(f"n{a}\tn{b}\n" for a, b in ends.tolist()))
    assert links_of(read_graph(path, header=False)) == {frozenset((f"n{a}", f"n{b}")) for a, b in ends.tolist()}


@pytest.mark.parametrize("head", ["", "from,to\n"])
def test_pairs_are_matched_to_ids_with_or_without_a_header(tmp_path: Path, head: str) -> None:
    path = write(tmp_path / "pairs.csv", head + "a,7\nb,a\n")
    assert read_pairs(path, ["a", "b", 7]).tolist() == [[0, 2], [1, 0]]
    message = message_of(lambda: read_pairs(path, ["a", 7]))
    assert "row 2 names 'b', which is not a node" in message
    assert read_pairs(write(tmp_path / "one.csv", "b,a\n"), ["a", "b"]).tolist() == [[1, 0]]
