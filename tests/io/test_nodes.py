"""Node tables: ids are matched, columns become features by stated rules, and every bad table is named by its row."""

import csv
import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse as sp
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from helpers import message_of
from vgae import memory
from vgae.io import recipe as recipe_module
from vgae.io.recipe import FeatureRecipe
from vgae.io.tables import LoadedGraph, read_any

LINKS = "a,b\nb,c\nc,a\nc,d\n"
PATH_OF_1101 = "".join(f"{i},{i + 1}\n" for i in range(1100))


def read(folder: Path, nodes: str | bytes, links: str = LINKS, name: str = "nodes.csv", **options: Any) -> LoadedGraph:
    """The graph of a table of links and a table of nodes, both written here."""
    (folder / "links.csv").write_text(links)
    (folder / name).write_bytes(nodes.encode() if isinstance(nodes, str) else nodes)
    return read_any(folder / "links.csv", features=folder / name, **options)


def features_of(loaded: LoadedGraph) -> Any:
    return sp.csr_array(loaded.graph.features).toarray()


# --------------------------------------------------------------------------------------------------- what should work


def test_every_kind_of_column_becomes_its_features(tmp_path: Path) -> None:
    rows = ["d,4,true,red,x", "a,1,false,blue,y", "c,3,TRUE,red,x", "b,2.5e0,False,,", "e,10,true,green,y"]
    text = "\n".join(["id,age,member,colour,class", *rows])
    loaded = read(tmp_path, text, id="id", label="class", impute="mean")
    graph = loaded.graph
    assert graph.ids_of(range(5)).tolist() == ["a", "b", "c", "d", "e"]
    expected = [[1, 0, 1, 0, 0], [2.5, 0, 0, 0, 0], [3, 1, 0, 0, 1], [4, 1, 0, 0, 1], [10, 1, 0, 1, 0]]
    assert_array_equal(features_of(loaded), expected)
    assert graph.labels is not None
    assert graph.labels.tolist() == ["y", -1, "x", "x", "y"]
    assert loaded.recipe is not None
    assert loaded.recipe.features == ("age", "member", "colour=blue", "colour=green", "colour=red")
    assert loaded.node_notes == (
        "columns are split at commas",
        "3 columns became 5 features (1 numeric, 1 categorical, 1 boolean)",
        "1 missing value filled in",
        "2 classes, 1 node without one",
        "1 node has no links",
    )
    about_links, about_nodes = loaded.report("L")
    assert about_links == "L: columns are split at commas; the first row is a link, not a header"
    assert about_nodes.startswith(f"{tmp_path / 'nodes.csv'}: columns are split at commas; 3 columns")


def test_standardised_columns_have_mean_0_and_deviation_1_over_the_nodes(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(7, 3, size=(40, 2))
    text = "id,x,y,same\n" + "".join(f"{i},{x},{y},0.1\n" for i, (x, y) in enumerate(values.tolist()))
    links = "".join(f"{i},{i + 1}\n" for i in range(39))
    found = features_of(read(tmp_path, text, links, standardise=True))
    assert_allclose(found[:, :2], (values - values.mean(axis=0)) / values.std(axis=0), rtol=1e-5, atol=1e-6)
    assert_array_equal(found[:, 2], np.zeros(40))
    assert_allclose(features_of(read(tmp_path, text, links))[:, :2], values, rtol=1e-6)


def test_many_categories_stay_sparse(tmp_path: Path) -> None:
    text = "id,c,d\n" + "".join(f"{i},c{i % 30},d{i % 20}\n" for i in range(1101))
    loaded = read(tmp_path, text, PATH_OF_1101)
    assert sp.issparse(loaded.graph.features)
    names = [f"c=c{k}" for k in range(30)] + [f"d=d{k}" for k in range(20)]
    assert loaded.recipe is not None
    assert set(loaded.recipe.features) == set(names)
    expected = [[name in (f"c=c{i % 30}", f"d=d{i % 20}") for name in loaded.recipe.features] for i in range(1101)]
    assert_array_equal(features_of(loaded), expected)


def test_thousands_of_categories_become_as_many_sparse_features(tmp_path: Path) -> None:
    links = "".join(f"{i},{i + 1}\n" for i in range(9999))
    loaded = read(tmp_path, "id,c\n" + "".join(f"{i},c{i % 5000:04}\n" for i in range(10_000)), links)
    features: Any = loaded.graph.features
    assert sp.issparse(features)
    assert features.shape == (10_000, 5000)
    expected = sp.coo_array((np.ones(10_000), (np.arange(10_000), np.arange(10_000) % 5000)))
    assert abs(features - expected.tocsr()).nnz == 0


def test_a_column_of_names_is_left_out_and_too_many_categories_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "id,x,name\n" + "".join(f"{i},{i % 7},c{i % 1001}\n" for i in range(1101))
    loaded = read(tmp_path, text, PATH_OF_1101)
    assert loaded.recipe is not None
    assert loaded.recipe.features == ("x",)
    assert "the column name is a name, with 1,001 different texts, and left out" in loaded.node_notes
    monkeypatch.setattr(recipe_module, "MAX_CATEGORIES", 40)
    rows = "id,c\na,x\n" + "".join(f"n{i},c{i % 50}\n" for i in range(100))
    message = message_of(lambda: read(tmp_path, rows, impute="zero"))
    assert "the column 'c' holds 51 different texts, and at most 40 become features" in message


@pytest.mark.parametrize(("impute", "filled"), [("mean", 2.0), ("zero", 0.0)])
def test_what_is_missing_is_filled_in_on_request(tmp_path: Path, impute: str, filled: float) -> None:
    text = "id,x,colour\na,1,red\nb,NA,\nc,3,blue\n"  # d has no row
    loaded = read(tmp_path, text, impute=impute)
    assert_array_equal(features_of(loaded), [[1, 0, 1], [filled, 0, 0], [3, 1, 0], [filled, 0, 0]])
    assert "2 missing values filled in" in loaded.node_notes
    assert f"1 node of {tmp_path / 'links.csv'} has no row, and its features are filled in" in loaded.node_notes
    scaled = features_of(read(tmp_path, text, impute=impute, standardise=True))
    assert_allclose(scaled[:, 0], [-1, filled - 2, 1, filled - 2])


@pytest.mark.parametrize(
    ("links", "ids", "expected"),
    [
        ("1,2\n2,3\n", ["3", "1", "2"], [1, 2, 3]),
        ("1,2\n2,x\n", ["x", "1", "2"], ["1", "2", "x"]),
        ("1,2\n2,3\n", ["3", "1", "2", "x"], ["1", "2", "3", "x"]),
        ("1,2\n2,03\n", ["1", "2", "03"], ["1", "2", "03"]),
    ],
)
def test_ids_of_two_files_are_matched_by_value(tmp_path: Path, links: str, ids: list[str], expected: list[Any]) -> None:
    loaded = read(tmp_path, "id,x\n" + "".join(f"{name},{place}\n" for place, name in enumerate(ids)), links)
    assert loaded.graph.node_ids is not None
    assert loaded.graph.node_ids.tolist() == expected
    assert features_of(loaded)[:, 0].tolist() == [ids.index(str(name)) for name in expected]


def test_whole_numbers_in_parquet_match_text_in_csv(tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [3, 1, 2], "x": [0.5, 1.5, 2.5]}), tmp_path / "n.parquet")
    content = (tmp_path / "n.parquet").read_bytes()
    assert features_of(read(tmp_path, content, "1,2\n2,3\n", "n.parquet"))[:, 0].tolist() == [1.5, 2.5, 0.5]
    assert features_of(read(tmp_path, content, "1,2\n2,3\n3,x\n", "n.parquet", impute="zero"))[:, 0].tolist() == [
        1.5,
        2.5,
        0.5,
        0,
    ]


def test_labels_alone_and_numeric_labels(tmp_path: Path) -> None:
    loaded = read(tmp_path, "a,7\nb,3\nc,\nd,3\n", label="2")
    assert loaded.graph.features is None
    assert loaded.recipe is None
    assert loaded.graph.labels is not None
    assert loaded.graph.labels.tolist() == [7, 3, -1, 3]
    few = read(tmp_path, "id,class\na,7\nb,x\n", label="class")  # without features, nodes need no rows
    assert few.graph.labels is not None
    assert few.graph.labels.tolist() == ["7", "x", -1, -1]
    assert few.node_notes[-1] == f"2 nodes of {tmp_path / 'links.csv'} have no row"
    assert loaded.node_notes[1:3] == ("the first row is a node, not a header", "ids are the first column, column 1")


@pytest.mark.parametrize(
    "text", ["# made\n\nid,x\n\na,1\nb,2\n# more\nc,3\nd,4\n", "\ufeffid,x\r\na,1\r\nb,2\r\nc,3\r\nd,4"]
)
def test_comments_and_empty_lines_do_not_hide_the_header(tmp_path: Path, text: str) -> None:
    loaded = read(tmp_path, text)
    assert loaded.graph.num_nodes == 4
    assert features_of(loaded).tolist() == [[1], [2], [3], [4]]


def test_columns_that_hold_nothing_are_left_out(tmp_path: Path) -> None:
    loaded = read(tmp_path, "id,x,y\na,,1\nb,,2\nc,NA,3\nd,,4\n")
    assert features_of(loaded).tolist() == [[1], [2], [3], [4]]
    assert "the column x is empty and left out" in loaded.node_notes


CELLS = {
    "number": st.floats(-1e6, 1e6, width=32),
    "truth": st.booleans(),
    "colour": st.sampled_from(["red", "green", "blue ish", 'qu"ote', "NA"]),
    "label": st.sampled_from(["x", "y", "z"]),
}


@given(
    names=st.lists(
        st.one_of(st.integers(-50, 50), st.text("abcäß0 1", min_size=1, max_size=3).filter(lambda t: t.strip() == t)),
        min_size=2,
        max_size=8,
        unique_by=str,
    ),
    data=st.data(),
    kind=st.sampled_from(["csv", "parquet"]),
)
def test_tables_written_and_read_give_the_same_graph(
    tmp_path_factory: pytest.TempPathFactory, names: list[Any], data: st.DataObject, kind: str
) -> None:
    folder = tmp_path_factory.mktemp("tables")
    ends = st.sampled_from(names)
    links = data.draw(
        st.lists(st.tuples(ends, ends), min_size=1, max_size=12).filter(lambda r: any(a != b for a, b in r))
    )
    order = data.draw(st.permutations(names))
    rows = [(name, *(data.draw(cell) for cell in CELLS.values())) for name in order]
    assume(any(row[3] != "NA" for row in rows))  # nothing but NA is a column without values
    header = ("id", *CELLS)
    for name, columns, content in (("links", ("from", "to"), links), ("nodes", header, rows)):
        if kind == "csv":
            text = io.StringIO()
            csv.writer(text, lineterminator="\n").writerows([columns, *content])
            (folder / f"{name}.csv").write_bytes(text.getvalue().encode())
        else:
            texts = {"id", "from", "to"}
            table = {
                column: [str(row[place]) if column in texts else row[place] for row in content]
                for place, column in enumerate(columns)
            }
            pq.write_table(pa.table(table), folder / f"{name}.parquet")
    options: dict[str, Any] = {} if kind == "parquet" else {"header": True, "delimiter": ","}
    loaded = read_any(folder / f"links.{kind}", features=folder / f"nodes.{kind}", id="id", label="label", **options)
    graph = loaded.graph
    assert graph.node_ids is not None
    assert graph.labels is not None
    assert loaded.recipe is not None
    found = [str(name) for name in graph.node_ids.tolist()]
    assert sorted(found) == sorted(map(str, names))
    assert {frozenset((found[i], found[j])) for i, j in graph.edges.tolist()} == {
        frozenset((str(a), str(b))) for a, b in links if a != b
    }
    of_name = {str(row[0]): row for row in rows}
    colours = sorted({row[3] for row in rows})
    assert loaded.recipe.features == ("number", "truth", *(f"colour={colour}" for colour in colours))
    for name, row, label in zip(found, features_of(loaded).tolist(), graph.labels.tolist(), strict=True):
        _, number, truth, colour, given_label = of_name[name]
        assert row == [np.float32(number), truth, *(colour == other for other in colours)]
        assert label == given_label


# ------------------------------------------------------------------------------------------------------------- recipes


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_a_recipe_gives_other_nodes_the_same_features(tmp_path: Path, kind: Callable[[dict[str, Any]], Any]) -> None:
    text = "id,x,colour,good\na,1,red,true\nb,2,blue,false\nc,3,red,true\nd,6,green,true\n"
    loaded = read(tmp_path, text, standardise=True)
    assert loaded.recipe is not None
    recipe = FeatureRecipe.from_json(json.loads(json.dumps(loaded.recipe.to_json())))
    assert recipe == loaded.recipe
    again = kind({"good": [True, True], "x": [6.0, 3.0], "more": [0, 0], "colour": ["green", "red"]})
    features, notes = recipe.apply(again)
    assert_array_equal(sp.csr_array(features).toarray(), features_of(loaded)[[3, 2]])
    assert notes == ()
    features, notes = recipe.apply(kind({"good": ["false"], "x": ["3"], "colour": ["pink"]}))
    assert_array_equal(sp.csr_array(features).toarray(), [[0, 0, 0, 0, 0]])
    assert notes == ("1 value of the column colour is an unknown category",)
    for bad, words in (
        ({"good": [True], "colour": ["red"]}, "there is no column 'x'; its columns are good, colour"),
        ({"good": [True], "x": ["big"], "colour": ["red"]}, "row 1 has 'big' in the column 'x'"),
        ({"good": [True], "x": [1e39], "colour": ["red"]}, "beyond the largest number of 32 bits"),
        ({"good": ["yes"], "x": [1], "colour": ["red"]}, "'good' should hold true and false only"),
        ({"good": [True], "x": [1], "colour": [None]}, "row 1 has no value in the column 'colour'"),
    ):
        assert words in message_of(lambda bad=bad: recipe.apply(kind(bad)))  # type: ignore[misc]


@pytest.mark.parametrize("content", [3, [3], [{}], [{"name": "x", "kind": "magic"}], [{"name": "x", "more": 1}]])
def test_what_is_no_recipe_is_refused(content: Any) -> None:
    assert message_of(lambda: FeatureRecipe.from_json(content)).startswith("recipe: not a recipe")


# ----------------------------------------------------------------------------------------------- what should be refused


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "the file is empty"),
        (b"id,x\n", "there are no rows in it, only a header"),
        (b"id\na\nb\na\n", "row 1 and row 3 are both about the node 'a'; keep one of them."),
        (b"id,x\na,1\nb\n", "line 3 has 1 column where the others have 2"),
        (b"id,x\na,\xff\n", "line 2 is not UTF-8"),
        (b"id,x\na,1\nb,\0\n", "line 3 holds a NUL byte"),
        (b"id,x\na,1\nb,2\nc,1e400\nd,1\n", "row 3 has 1e400 in the column 'x', which is beyond the largest number"),
        (b"id,x\na,1\nb,-1e39\nc,1\nd,1\n", "row 2 has -1e39 in the column 'x'"),
        (b"id,x\na,1\nb,inf\nc,1\nd,1\n", "row 2 has inf in the column 'x'"),
        (b"id,x\na,1\nb,2\na,3\nb,4\n", "row 1 and row 3 are both about the node 'a'"),
        (b"id,x\na,1\n,2\n", "row 2 has no id in the column 'id'"),
        (b"id,x\na,1\nb,2\nc,\nd,4\n", "row 3 has no value in the column 'x'"),
        (b"id,x\na,1\nb,nan\nc,1\nd,4\n", "row 2 has no value in the column 'x'"),
        (b"id,x\na,1\nb,2\nc,5\n", "1 node of {links} has no row in it, such as 'd'"),
        (b"id,x\nA,1\nB,2\n", "none of its ids occurs in {links}; its ids are like 'A', the others like 'a'"),
        (b"id,id\na,1\n", "names the column 'id' twice"),
        (b"id;x\na;1\nb;2,5\nc;0,5\nd;,5\n", "row 2 has '2,5' in the column 'x'; write numbers with a decimal point"),
        (
            b"id,x\na,1\nb,2\nc,many\nd,4\n" + "".join(f"n{i},{i}\n" for i in range(10)).encode(),
            "row 3 has 'many' in the column 'x', whose other values are numbers",
        ),
    ],
)
def test_bad_node_tables_are_named_by_row(tmp_path: Path, content: bytes, words: str) -> None:
    message = message_of(lambda: read(tmp_path, content))
    assert message.startswith(f"{tmp_path / 'nodes.csv'}: ")
    assert words.format(links=tmp_path / "links.csv") in message
    assert message.endswith(".")
    assert "\n" not in message


def test_bad_options_and_files_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "name,x,class\na,1,k\nb,2,k\nc,3,k\nd,4,l\n"
    assert "no column 'id'; its columns are name, x, class" in message_of(lambda: read(tmp_path, text, id="id"))
    assert "no column 'kind'" in message_of(lambda: read(tmp_path, text, label="kind"))
    assert "are the same column" in message_of(lambda: read(tmp_path, text, id="x", label="x"))
    assert "impute: 'median' is not one of mean, zero" in message_of(lambda: read(tmp_path, text, impute="median"))
    assert "'median' is not one of" in message_of(lambda: FeatureRecipe.fit(pa.table({"x": [1]}), impute="median"))
    links = tmp_path / "links.csv"
    assert "label: this is about the columns of a node table" in message_of(lambda: read_any(links, label="class"))
    assert "node_attributes: this option is for GraphML" in message_of(lambda: read_any(links, node_attributes=True))
    assert "no such file" in message_of(lambda: read_any(links, features=tmp_path / "none.csv"))
    assert "not a kind of file that features" in message_of(lambda: read_any(links, features=tmp_path / "nodes.xlsx"))
    for folder in ("folder.csv", "folder.parquet"):
        (tmp_path / folder).mkdir()
        assert "without tables" in message_of(lambda folder=folder: read_any(links, features=tmp_path / folder))  # type: ignore[misc]
    table = pa.table({"id": ["a", "b", "c", "d"], "when": pa.array([0, 1, 2, 3], pa.timestamp("s"))})
    pq.write_table(table, tmp_path / "when.parquet")
    message = message_of(lambda: read_any(links, features=tmp_path / "when.parquet"))
    assert "the column 'when' holds timestamp[ms], which cannot become a feature" in message
    whole = (tmp_path / "when.parquet").read_bytes()
    assert "not a readable Parquet file" in message_of(
        lambda: read(tmp_path, whole[: len(whole) // 2], name="half.parquet")
    )
    with pa.CompressedOutputStream(str(tmp_path / "bomb.csv.gz"), "gzip") as stream:
        stream.write(b"id,x\n" + b"a,1\n" * 5000)
    pq.write_table(pa.table({"id": ["a"] * 10_000, "x": ["b"] * 10_000}), tmp_path / "bomb.parquet")
    monkeypatch.setattr(memory, "bytes_free", lambda: 20_000.0)
    for bomb in ("bomb.csv.gz", "bomb.parquet"):
        assert "GB are free" in message_of(lambda bomb=bomb: read_any(links, features=tmp_path / bomb))  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["gzip", "zstd"])
def test_compressed_node_tables_are_unpacked(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"nodes.tsv.{'gz' if kind == 'gzip' else 'zst'}"
    with pa.CompressedOutputStream(str(path), kind) as stream:
        stream.write(b"id\tx\na\t1\nb\t2\nc\t3\nd\t4\n")
    (tmp_path / "links.csv").write_text(LINKS)
    assert features_of(read_any(tmp_path / "links.csv", features=path)).tolist() == [[1], [2], [3], [4]]


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_node_table_is_refused(tmp_path: Path) -> None:
    read(tmp_path, "id,x\na,1\nb,2\nc,3\nd,4\n")
    (tmp_path / "nodes.csv").chmod(0)
    assert "may not be read" in message_of(lambda: read_any(tmp_path / "links.csv", features=tmp_path / "nodes.csv"))


# ------------------------------------------------------------------------------------------------- weights of the links


def test_weights_of_a_table_are_read_and_told(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("a,b,w\nx,y,1.5\ny,x,2\ny,z,1e3\n")
    loaded = read_any(tmp_path / "links.csv", weight="w", directed=True)
    assert loaded.graph.weights is not None
    assert loaded.graph.directions is not None
    assert loaded.graph.weights.tolist() == [3.5, 1000]
    assert loaded.graph.directions.tolist() == [0, 1]
    assert loaded.notes[-2:] == (
        "weights are w, from 3.5 to 1000: those of merged links are added up",
        "links are directed, from source to target",
    )
    (tmp_path / "twice.csv").write_text("x,y,1.5\ny,x,1.5\ny,y,90\n")
    twice = read_any(tmp_path / "twice.csv", weight="3")
    assert twice.graph.weights is not None
    assert twice.graph.weights.tolist() == [1.5]
    assert twice.notes[-1].endswith("every link is given in both directions with the same weight, which counts once")


@pytest.mark.parametrize("value", ["heavy", "", "NaN", "0", "-1", "1e400", "1e-60", "inf"])
def test_a_weight_that_is_none_is_named_by_its_row_and_column(tmp_path: Path, value: str) -> None:
    (tmp_path / "links.csv").write_text(f"a,b,w\nx,y,1.5\ny,z,{value}\n")
    message = message_of(lambda: read_any(tmp_path / "links.csv", weight="w"))
    found = "no weight" if value in ("", "NaN") else f"the weight {value}"
    assert message == (
        f"{tmp_path / 'links.csv'}: row 2 has {found} in the column 'w'; "
        "a weight is a number above 0 and at most 3.4e38."
    )


def test_weights_from_another_column_are_refused(tmp_path: Path) -> None:
    (tmp_path / "links.csv").write_text("a,b,w\nx,y,1.5\n")
    assert "no column 'v'; its columns are a, b, w" in message_of(lambda: read_any(tmp_path / "links.csv", weight="v"))
    assert "the same column, b" in message_of(lambda: read_any(tmp_path / "links.csv", weight="b"))
