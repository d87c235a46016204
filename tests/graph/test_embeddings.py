"""Embeddings written and read back, with their ids."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from helpers import message_of
from vgae.graph.embeddings import write_embeddings
from vgae.graph.files import read_npz, unpack_ids


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
    stored = read_npz(tmp_path / "z.npz")
    assert [str(name) for name in unpack_ids(stored["ids"]).tolist()] == [str(name) for name in ids]
    np.testing.assert_array_equal(stored["embeddings"], values)


def test_embeddings_as_text_of_word2vec(tmp_path: Path) -> None:
    values = np.array([[1.5, -2.0], [0.25, 3.0]], dtype=np.float32)
    write_embeddings(tmp_path / "z.txt", ["a", "b"], values)
    assert (tmp_path / "z.txt").read_text() == "2 2\na 1.5 -2\nb 0.25 3\n"
    assert "holds blanks" in message_of(lambda: write_embeddings(tmp_path / "w.txt", ["a b", "c"], values))
    assert not (tmp_path / "w.txt").exists()
    assert "such an ending" in message_of(lambda: write_embeddings(tmp_path / "z.xyz", ["a", "b"], values))
