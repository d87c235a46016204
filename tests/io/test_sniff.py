"""Text that leaves things open: what was written is what is read, whoever wrote it; what cannot be known is refused."""

import csv
import io
import re
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import message_of
from vgae.io.exports import write_csv
from vgae.io.tables import LoadedGraph, read_any, read_pairs

# Ids are read without the spaces around them. A byte order mark is none of a text's letters, and a first line "# x" of
# a table without a header is taken for a comment, which is told.
LETTERS = st.characters(codec="utf-8", exclude_categories=("Cc", "Cs"), exclude_characters="\ufeff")
STARTS = st.sampled_from(["", "#", "%", '"', "'", ",", ";", "|", " ", "\n", "a", "1", "-0", "007", "=", "+"])
IDS = st.builds(str.__add__, STARTS, st.text(LETTERS | st.just("\n"), max_size=5)).filter(
    lambda name: bool(name.strip()) and not re.match(r"[#%]+(\s|$)", name)
)
DELIMITERS = [",", "\t", ";", "|", " "]


def links_of(loaded: LoadedGraph) -> set[frozenset[str]]:
    graph = loaded.graph
    return {frozenset(map(str, pair)) for pair in graph.ids_of(graph.edges).tolist()}


def read_text(folder: Path, text: str | bytes, name: str = "links.csv", **options: Any) -> LoadedGraph:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_any(path, **options)


def written(rows: list[tuple[str, str]], by: str, delimiter: str, header: bool, quoting: Any, line_end: str) -> str:
    text = io.StringIO()
    if by == "csv":
        head = [("source", "target")] * header
        csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator=line_end).writerows(head + rows)
    else:
        frame = pd.DataFrame(rows, columns=["source", "target"], dtype=object)
        with_index = by == "pandas with its index"
        frame.to_csv(text, sep=delimiter, index=with_index, header=header or with_index, quoting=quoting,
                     lineterminator=line_end)  # fmt: skip
    return text.getvalue()


@given(
    rows=st.lists(st.tuples(IDS, IDS), min_size=1, max_size=8),
    by=st.sampled_from(["csv", "pandas", "pandas with its index"]),
    delimiter=st.sampled_from(DELIMITERS),
    header=st.booleans(),
    told=st.booleans(),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    mark=st.sampled_from([b"", b"\xef\xbb\xbf"]),
    blank_lines=st.integers(0, 2),
)
@settings(deadline=None)
def test_any_table_comes_back_as_the_links_that_were_written(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[tuple[str, str]],
    by: str,
    delimiter: str,
    header: bool,
    told: bool,
    quoting: Any,
    line_end: str,
    mark: bytes,
    blank_lines: int,
) -> None:
    header = header or by == "pandas with its index"
    if line_end == "\r":  # else the csv module leaves a line feed within a field without quotes
        quoting = csv.QUOTE_ALL
    content = mark + (written(rows, by, delimiter, header, quoting, line_end) + line_end * blank_lines).encode()
    options: dict[str, Any] = {} if header and not told else {"delimiter": delimiter, "header": header}
    expected = {frozenset(map(str.strip, row)) for row in rows}
    expected = {link for link in expected if len(link) == 2}
    folder = tmp_path_factory.getbasetemp()
    if not expected:
        assert "no links between different nodes" in message_of(lambda: read_text(folder, content, **options))
        return
    loaded = read_text(folder, content, **options)
    assert links_of(loaded) == expected
    assert loaded.graph.cleaning.rows_given == len(rows)


@given(ids=st.lists(st.text(LETTERS | st.sampled_from("\n#%\"', "), max_size=4), min_size=2, max_size=6, unique=True))
@settings(deadline=None)
def test_links_that_were_recommended_are_read_as_pairs(
    tmp_path_factory: pytest.TempPathFactory, ids: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "recommended.csv"
    pairs = [[i, j] for i in range(len(ids)) for j in range(len(ids)) if i != j]
    rows = [(ids[i], ids[j], "0.5", "-1.25") for i, j in pairs]
    write_csv(path, ("source", "target", "probability", "logit"), rows)
    assert read_pairs(path, ids).tolist() == pairs


NUMBERS = {"point": ("1.5", "2.25", "10.0"), "comma": ("1,5", "2,25", "10,0"), "some": ("1,5", "2", "10"), "none": ()}
HEADS = {"none": None, "usual": ("from", "to", "times"), "other": ("left", "right", "times")}


@pytest.mark.parametrize(
    ("delimiter", "numbers", "quoting", "head"),
    list(product(DELIMITERS, NUMBERS, (csv.QUOTE_MINIMAL, csv.QUOTE_ALL), HEADS)),
)
def test_delimiter_decimals_quotes_and_header_are_found_together(
    tmp_path: Path, delimiter: str, numbers: str, quoting: Any, head: str
) -> None:
    ends = [("a", "b"), ("b", "c"), ("c", "a")]
    width = 2 + bool(NUMBERS[numbers])
    rows = [(*pair, *NUMBERS[numbers][place : place + 1]) for place, pair in enumerate(ends)]
    names = HEADS[head]
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=quoting, lineterminator="\n")
    writer.writerows(([names[:width]] if names else []) + rows)
    loaded = read_text(tmp_path, text.getvalue())
    assert links_of(loaded) == {frozenset(pair) for pair in ends}
    assert loaded.graph.cleaning.rows_given == 3


AB, BC = frozenset("ab"), frozenset("bc")


@pytest.mark.parametrize(
    ("text", "expected", "note"),
    [
        (",source,target\n0,a,b\n1,b,c\n", {AB, BC}, "links are the columns source and target, by their names"),
        ("\tsource\ttarget\n0\ta\tb\n1\tb\tc\n", {AB, BC}, "links are the columns source and target, by their names"),
        (";who;whom\n0;a;b\n1;b;c\n", {AB, BC}, "the first column, which has no name, holds row numbers"),
        (",0,1\n0,a,b\n1,b,c\n", {AB, BC}, "which has no name"),
        ("Unnamed: 0,who,whom\n5,a,b\n9,b,c\n", {AB, BC}, "which has no name"),
        ('"","from","to"\n"1","a","b"\n"2","b","c"\n', {AB, BC}, "links are the columns from and to, by their names"),
        ("when,SourceNodeId,TargetNodeId\n5,a,b\n6,b,c\n", {AB, BC}, "by their names"),
        ("source target\n0 a b\n1 b c\n", {AB, BC}, "links are the columns source and target, by their names"),
        ('"who"\t"whom"\n"1"\t"a"\t"b"\n"2"\t"b"\t"c"\n', {AB, BC}, "which has no name"),
        ("0,1\na,b\nb,c\n", {AB, BC}, "the first row is a header"),
        ("source,target,2020\na,b,1\nb,c,2\n", {AB, BC}, "the first row is a header"),
        ("x,y,2020\n1,2,1\n2,3,2\n", {frozenset("12"), frozenset("23")}, "the first row is a header"),
        ("a,b\nb,c\n", {AB, BC}, "the first row is a link"),
        ("n1,n2\nn3,n4\n", {frozenset(("n1", "n2")), frozenset(("n3", "n4"))}, "the first row is a link"),
        ("u,v\nv,w\n", {frozenset("uv"), frozenset("vw")}, "the first row is a link"),
        ("a;b;2020-01-01\nc;b;2021-10-10\n", {AB, BC}, "the first row is a link"),
        ('"a ",b\na,c\nb,c\n', {AB, BC, frozenset("ac")}, "ids that differ in nothing else are merged"),
        ("a, b\nb, c\n", {AB, BC}, "spaces around ids are removed"),
        ("% sym weighted\n% 3 3 3\na b\t5\nb c\t6\n", {frozenset(("a b", "5")), frozenset(("b c", "6"))}, "tabs"),
        ("% sym weighted\n% 3 3 3\n1 2\t5\n2 3\t6\n", {frozenset("12"), frozenset("23")}, "2 comment lines (# or %)"),
        ("# FromNodeId\tToNodeId\n1\t2\n2\t3\n", {frozenset("12"), frozenset("23")}, "1 comment line (# or %) skipped"),
        ("#source,target\na,b\nb,c\n", {AB, BC}, "the first row is a header"),
        ("#a,b\nb,%c\nx,#a\n", {frozenset(("#a", "b")), frozenset(("b", "%c")), frozenset(("x", "#a"))}, "a link"),
        ("a,b\n#note, and, more\n#c,b\n", {AB, frozenset(("#c", "b"))}, "1 comment line (# or %) skipped"),
        ("sep=;\na;b;1,5\nb;c;2,5\n", {AB, BC}, "split at semicolons, as the first line says"),
        ("Lee, A;Doe, J\nRoe, J;Lee, A\n", {frozenset(("Lee, A", "Doe, J")), frozenset(("Roe, J", "Lee, A"))}, ""),
        ('"x  y" b\nb "c\td"\n', {frozenset(("x  y", "b")), frozenset(("b", "c\td"))}, "split at spaces"),
        ("a,b\rb,c\r", {AB, BC}, ""),
        ("a,b\nb,c\n\n \n\t\n", {AB, BC}, ""),
        ('#a;"b\nx"\n"b\nx";c\n', {frozenset(("#a", "b\nx")), frozenset(("b\nx", "c"))}, ""),
        ("-0,0\n0,1\n", {frozenset(("-0", "0")), frozenset("01")}, ""),
    ],
)  # fmt: skip
def test_common_tables_are_the_graph_that_was_meant(
    tmp_path: Path, text: str, expected: set[frozenset[str]], note: str
) -> None:
    loaded = read_text(tmp_path, text)
    assert links_of(loaded) == expected
    assert note in "; ".join(loaded.notes)


SIZES = (3, 4, 12)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a;b,c\nd;e,f\n", "may be split at commas or at semicolons; say at which (delimiter)"),
        ("1 2,5\n3 4,5\n", "may be split at commas or at spaces"),
        (",who,whom\nr1,a,b\nr2,b,c\n", "the first column has no name; say which columns are the ends"),
        ("source,target\n1,2\nsource,target\n2,3\n", "row 2 is the header again"),
        ("New York,a\nLos Angeles,b\nSan Jose,New York,x\n", "line 3 has 3 columns where the others have 2"),
        ('a,b\n"c,d\n' + "e,f\n" * 100_000, "from line 2 on, 100,001 lines are one row of 1 column"),
        ('a,b\nc,"d\n' + "e,f\n" * 100_000, "a quotation mark is opened and never closed"),
        ('a,b\nc,"d', "a quotation mark is opened and never closed"),
        ('{"source": 1, "target": 2}\n{"source": 2, "target": 3}\n', "this is JSON"),
        ('[\n  {"source": 1, "target": 2}\n]\n', "this is JSON"),
        ('{"names": "' + "x" * 10_000 + '", "target": 2}\n', "this is JSON"),
        ("[[1, 2], [2, 3]]\n", "this is JSON"),
        ("<!DOCTYPE html>\n<p>a, b</p>\n", "this is a page of HTML or XML"),
        ("%%MatrixMarket matrix coordinate pattern general\n3 3 2\n1 2\n2 3\n", "Matrix Market"),
        ("*Vertices 2\n1 a\n2 b\n", "Pajek"),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 12\n", "git lfs pull"),
        ("# a\n% b\n", "only comments"),
        ("%x,\r,source,target\n1,2,3,4\n", "its lines end in different ways"),
        ("\u2028", "one column only"),
        ("\n\n\ufeff", "one column only"),
        ('from,to"', "only a header"),
        *((matrix, "this looks like an adjacency matrix of 3 nodes") for matrix in (
            "0,1,0\n1,0,1\n0,1,0\n", "0 1 0\n1 0 1\n0 1 0\n", "0,1,2\n0,1,0\n1,0,1\n0,1,0\n",
            ",a,b,c\na,0,1,0\nb,1,0,1\nc,0,1,0\n", "node,a,b,c\na,0,2,0\nb,2,0,1\nc,0,1,0\n",
            ",0,1,2\n0,0,1,0\n1,1,0,1\n2,0,1,0\n")),
    ],
)  # fmt: skip
def test_what_is_no_table_of_links_or_could_be_two_is_refused(tmp_path: Path, text: str, words: str) -> None:
    message = message_of(lambda: read_text(tmp_path, text))
    assert message.startswith(f"{tmp_path / 'links.csv'}: ")
    assert words in message


@pytest.mark.parametrize("size", SIZES)
def test_a_small_square_table_of_links_is_none_of_a_matrix(tmp_path: Path, size: int) -> None:
    """Links with as many columns as rows are read, if need be with the ends named."""
    rows = "\n".join(",".join(map(str, [i, i + 1, *range(100 + i, 98 + i + size)])) for i in range(size))
    options = {"source": "1", "target": "2"} if size >= 10 else {}
    loaded = read_text(tmp_path, rows, **options)
    assert links_of(loaded) == {frozenset((str(i), str(i + 1))) for i in range(size)}


@pytest.mark.parametrize(
    "text",
    [
        b"a b\n" + b" " * 1_000_000 + b"\nb c\n",
        b"a" + b" \t" * 500_000 + b"b\nb c" + b" " * 1_000_000,
        b" " * 1_000_000 + b"a b\nb c\n",
        b'"a"' + b" " * 1_000_000 + b"b\nb c" + b" " * 1_000_000 + b"\n",
        b"a,b" + b" " * 1_000_000 + b"\nb,c\n",
        b"#" + b" " * 1_000_000 + b"x\na b\nb c\n",
    ],
)
def test_a_million_spaces_are_read_in_one_pass(tmp_path: Path, text: bytes) -> None:
    assert links_of(read_text(tmp_path, text, "links.txt")) == {AB, BC}


def test_rows_of_more_than_64_kilobytes_are_read_whole(tmp_path: Path) -> None:
    names = [f"{'a_long_name_' * 12}{number}" for number in range(500)]
    nodes = (
        "id," + ",".join(names) + "\n" + "".join(f"{node},{','.join(['1.5' + '0' * 150] * 500)}\n" for node in "abc")
    )
    (tmp_path / "nodes.csv").write_text(nodes)
    for name, text in (("plain", "a,b\nb,c\n"), ("long", f"a,b,{'x' * 300_000}\nb,c,{'y' * 300_000}\n")):
        graph = read_text(tmp_path, text, f"{name}.csv", features=tmp_path / "nodes.csv").graph
        assert (graph.num_nodes, graph.num_edges, graph.num_features) == (3, 2, 500)
        assert graph.features is not None
        assert (graph.features == 1.5).all()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"header": "no"}, "header: True or False is needed, got 'no'"),
        ({"directed": "no"}, "directed: True or False is needed"),
        ({"delimiter": "é"}, "delimiter: 'é' cannot split columns"),
        ({"delimiter": "\n"}, "cannot split columns"),
        ({"delimiter": '"'}, "cannot split columns"),
        ({"delimiter": 5}, "delimiter: one character is needed"),
        ({"delimiter": ""}, "delimiter: one character is needed"),
    ],
)
def test_options_that_make_no_sense_are_named(tmp_path: Path, options: dict[str, Any], words: str) -> None:
    assert words in message_of(lambda: read_text(tmp_path, "a,b\nb,c\n", **options))


@pytest.mark.parametrize(
    ("text", "ids", "features", "note"),
    [
        (",id,x\n0,a,1\n1,b,2\n2,c,3\n", "abc", ("x",), "ids are the column id, by its name"),
        ("\tnode_id\tx\n0\ta\t1\n1\tb\t2\n2\tc\t3\n", "abc", ("x",), "ids are the column node_id, by its name"),
        (";x;y\na;1;2\nb;3;4\nc;5;6\n", "abc", ("x", "y"), "ids are the first column, which has no name"),
        ("Unnamed: 0,x\na,1\nb,2\nc,3\n", "abc", ("x",), "ids are the first column, which has no name"),
        ("id,2019,2020\na,1,2\nb,3,4\nc,5,6\n", "abc", ("2019", "2020"), "the first row is a header"),
        ("a,1\nb,2\nc,3\n", "abc", ("column 2",), "the first row is a node, not a header"),
    ],
)
def test_the_numbers_of_the_rows_are_neither_ids_nor_features(
    tmp_path: Path, text: str, ids: str, features: tuple[str, ...], note: str
) -> None:
    (tmp_path / "nodes.csv").write_text(text)
    loaded = read_text(tmp_path, "a,b\nb,c\n", features=tmp_path / "nodes.csv")
    assert sorted(loaded.graph.ids_of([0, 1, 2]).tolist()) == list(ids)
    assert loaded.recipe is not None
    assert loaded.recipe.features == features
    assert note in loaded.node_notes


def test_a_node_table_whose_ids_cannot_be_told_from_its_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text(",person,x\n0,a,1\n1,b,2\n2,c,3\n")
    message = message_of(lambda: read_text(tmp_path, "a,b\nb,c\n", features=tmp_path / "nodes.csv"))
    assert "counts the rows; say which column holds the ids (id)" in message
    loaded = read_text(tmp_path, "a,b\nb,c\n", features=tmp_path / "nodes.csv", id="person")
    assert loaded.recipe is not None
    assert loaded.recipe.features == ("x",)
    (tmp_path / "nodes.csv").write_text(",x,y\n0,1.5,1\n1,2.5,2\n2,3.5,3\n")
    assert read_text(tmp_path, "0,1\n1,2\n", features=tmp_path / "nodes.csv").graph.num_features == 2


def test_pairs_with_unknown_ids_are_refused_although_they_could_be_a_header(tmp_path: Path) -> None:
    def pairs(text: str, **options: Any) -> Any:
        (tmp_path / "pairs.csv").write_text(text)
        return read_pairs(tmp_path / "pairs.csv", ["a", "b", " c", "# d", "from"], **options).tolist()

    assert "row 1 names 'who', which is not a node of this run; if the row is a header" in message_of(
        lambda: pairs("who,whom\na,b\n")
    )
    assert pairs("who,whom\na,b\n", header=True) == [[0, 1]]
    assert pairs("from,to\na,b\n") == [[0, 1]]
    assert pairs("a,b,5\nb,a,6\n") == [[0, 1], [1, 0]]
    assert pairs(",source,target,w\n0,a,b,1\n") == [[0, 1]]
    assert pairs("# d, a\n c,b\n") == [[3, 0], [2, 1]]
    assert "row 1 names 'to'" in message_of(lambda: pairs("from,to\na,b\n", header=False))
    assert "row 2 has no id" in message_of(lambda: pairs("a,b\nb,\n"))
