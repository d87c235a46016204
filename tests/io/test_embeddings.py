"""Embeddings written and read back, with their ids."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from helpers import message_of
from vgae.io.embeddings import arrow_table, data_frame, write_embeddings
from vgae.io.ids import unpack_ids


@pytest.mark.parametrize("ids", [[3, 10, 4], ["ä", "b,c", 'd"'], ["a", 5, "6"]])
def test_embeddings_come_back_with_their_ids(tmp_path: Path, ids: list[Any]) -> None:
    values = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    for ending in (".csv", ".parquet", ".npz"):
        write_embeddings(tmp_path / f"z{ending}", ids, values)
    whole = all(isinstance(name, int) for name in ids)
    expected = ids if whole else [str(name) for name in ids]
    for found in (pq.read_table(tmp_path / "z.parquet"), pyarrow.csv.read_csv(tmp_path / "z.csv")):
        assert found.column("id").to_pylist() == expected
        read = np.stack([found.column(f"z{d}").to_numpy() for d in range(1, 5)], axis=1)
        np.testing.assert_allclose(read, values, rtol=1e-6)
    with np.load(tmp_path / "z.npz") as archive:
        stored = dict(archive)
    assert [str(name) for name in unpack_ids(stored["ids"]).tolist()] == [str(name) for name in ids]
    np.testing.assert_array_equal(stored["embeddings"], values)


@pytest.mark.parametrize(
    "ids", [[3, 10, 4], ["ä", "b,c", 'd"'], ["a", 5, "6"], [(1, 2), (3, 4), (5, 6)], [2**70, 1, 2], [0.5, 1.5, 2.5]]
)
def test_data_frames_keep_ids_as_they_are_and_arrow_as_numbers_or_text(ids: list[Any]) -> None:
    values = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    frame = data_frame(ids, values)
    assert frame.index.tolist() == ids
    assert (frame.index.name, frame.index.nlevels) == ("id", 1)
    assert frame.columns.tolist() == ["z1", "z2", "z3", "z4"]
    np.testing.assert_array_equal(frame.to_numpy(), values)
    np.testing.assert_array_equal(frame.loc[[ids[2]]].to_numpy(), values[2:])
    table = arrow_table(ids, values)
    assert table.column_names == ["id", "z1", "z2", "z3", "z4"]
    assert table["id"].to_pylist() == (ids if ids == [3, 10, 4] else [str(name) for name in ids])
    np.testing.assert_array_equal(np.stack([table[f"z{d}"].to_numpy() for d in range(1, 5)], axis=1), values)


def test_missing_pandas_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert "pip install pandas" in message_of(lambda: data_frame([1], np.ones((1, 2), dtype=np.float32)))


def test_embeddings_as_text_of_word2vec(tmp_path: Path) -> None:
    values = np.array([[1.5, -2.0], [0.25, 3.0]], dtype=np.float32)
    write_embeddings(tmp_path / "z.txt", ["a", "b"], values)
    assert (tmp_path / "z.txt").read_text() == "2 2\na 1.5 -2\nb 0.25 3\n"
    assert "holds spaces" in message_of(lambda: write_embeddings(tmp_path / "w.txt", ["a b", "c"], values))
    assert not (tmp_path / "w.txt").exists()
    assert "such an ending" in message_of(lambda: write_embeddings(tmp_path / "z.xyz", ["a", "b"], values))
