"""Whatever the ids are: a file that gives them back exactly, or one sentence and no file."""

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vgae
from command import assert_refused, run_vgae
from helpers import message_of
from vgae.io.embeddings import write_embeddings
from vgae.io.exports import without_formulas, write_csv, write_text
from vgae.io.ids import unpack_ids

ODD = {
    "plain": "a",
    "empty": "",
    "blank": " a ",
    "newline": "a\nb",
    "return": "a\rb",
    "tab": "a\tb",
    "nul inside": "a\0b",
    "nul at the end": "a\0",
    "escape": "\x1b[31m",
    "quotes": '"a",""b',
    "separators": "a,b;c|d",
    "line separator": "a\u2028b\u0085c",
    "right to left": "שלום\u202eabc",
    "emoji": "👩\u200d🚀:smile:",
    "very long": "x" * 100_000,
    "formula": "=1+1",
    "comment": "# a",
    "json": 'json:"a"',
    "half": "a\ud800",
    "other half": "\udc80b",
}
HALVES = ("half", "other half")
Z = np.arange(6, dtype=np.float32).reshape(3, 2)


def readable_csv(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def ids_in_npz(path: Path) -> list[Any]:
    with np.load(path) as archive:
        ids: list[Any] = unpack_ids(archive["ids"]).tolist()
    return ids


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "txt"])
def test_embeddings_keep_ids_exactly_or_say_why_not(tmp_path: Path, ending: str, kind: str) -> None:
    ids, path = ["b", ODD[kind], "c"], tmp_path / f"z.{ending}"
    in_word2vec = ODD[kind].split() == [ODD[kind]]
    if ending != "npz" and (kind in HALVES or (ending == "txt" and not in_word2vec)):
        said = message_of(lambda: write_embeddings(path, ids, Z))
        assert said.startswith(f"{path}: ")
        assert ("write npz instead" if kind in HALVES else "write csv instead") in said
        assert said.isprintable()
        assert list(tmp_path.iterdir()) == []
        return
    write_embeddings(path, ids, Z)
    if ending == "csv":
        assert [row[0] for row in readable_csv(path)] == ["id", *ids]
        options = pyarrow.csv.ParseOptions(newlines_in_values=True)
        block = pyarrow.csv.ReadOptions(block_size=2**20)
        assert pyarrow.csv.read_csv(path, block, options)["id"].to_pylist() == ids
    elif ending == "parquet":
        assert pq.read_table(path)["id"].to_pylist() == ids
    elif ending == "npz":
        assert ids_in_npz(path) == ids
    else:
        lines = path.read_text(encoding="utf-8").split("\n")
        assert [line.split(" ")[0] for line in lines] == ["3", *ids, ""]


@given(st.lists(st.lists(st.text(), min_size=2, max_size=3), max_size=5))
def test_csv_comes_back_exactly(tmp_path_factory: pytest.TempPathFactory, rows: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("csv") / "x.csv"
    write_csv(path, ("a", "b"), rows)
    assert readable_csv(path) == [["a", "b"], *rows]


@pytest.mark.parametrize("kind", HALVES)
def test_csv_of_half_a_character_is_refused(tmp_path: Path, kind: str) -> None:
    said = message_of(lambda: write_csv(tmp_path / "x.csv", ("a",), [["fine"], [ODD[kind]]]))
    assert "lone surrogate" in said
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "x.csv", tmp_path):
        assert message_of(lambda path=path: write_csv(path, ("a",), [])).startswith(f"{path}: ")  # type: ignore[misc]
        assert message_of(lambda path=path: write_text(path, "")).startswith(f"{path}: ")  # type: ignore[misc]


@pytest.mark.parametrize("start", list("=+-@\t\r\n＝＋－＠"))
def test_formulas_begin_with_an_apostrophe(start: str) -> None:
    assert without_formulas([f"{start}1+1", f"a{start}", 5, -5, ""]) == [f"'{start}1+1", f"a{start}", 5, -5, ""]


def test_the_safe_form_of_the_command(tmp_path: Path) -> None:
    ids: list[Any] = [f"n{number}" for number in range(60)]
    ids[:4] = ["=cmd|' /C calc'!A0", "+1", "-1", "@x"]
    graph = vgae.stochastic_block_model(60, 3, seed=0)
    names = np.array(ids, dtype=object)
    vgae.GAE(iterations=3).fit(vgae.Graph.from_edges(names[graph.edges], node_ids=names)).save(tmp_path / "run")
    (tmp_path / "pairs.csv").write_text("".join(f"{ids[i]},n9\n" for i in range(4)))
    commands = {"recommend": ["run", "--every-node", "--top", "1"], "predict": ["run", "pairs.csv"], "embed": ["run"]}
    for command, arguments in commands.items():
        rows = {}
        for name, options in (("exact", []), ("safe", ["--spreadsheet-safe"])):
            done = run_vgae(command, *arguments, "--out", f"{name}.csv", *options, cwd=tmp_path)
            assert done.returncode == 0, done.stderr
            rows[name] = readable_csv(tmp_path / f"{name}.csv")
        exact, safe = rows["exact"], rows["safe"]
        assert [row[0] for row in exact[1:5]] == ids[:4]
        assert [row[0] for row in safe[1:5]] == [f"'{name}" for name in ids[:4]]
        for row, other in zip(exact, safe, strict=True):
            assert [cell.lstrip("'") for cell in other] == row  # numbers below 0 are numbers
        elsewhere = ["--out", "z.npz"] if command == "embed" else []
        table = run_vgae(command, *arguments, "--spreadsheet-safe", *elsewhere, cwd=tmp_path)
        assert_refused(table, "safe", "csv file")


def test_numbers_are_no_formulas(tmp_path: Path) -> None:
    numbers = np.arange(-60, 0)
    graph = vgae.stochastic_block_model(60, 3, seed=0)
    vgae.GAE(iterations=2).fit(vgae.Graph.from_edges(numbers[graph.edges], node_ids=numbers)).save(tmp_path / "run")
    done = run_vgae("recommend", "run", "--out", "safe.csv", "--spreadsheet-safe", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = readable_csv(tmp_path / "safe.csv")[1:]
    assert len(rows) == 10
    assert all(int(end) < 0 for row in rows for end in row[:2])
