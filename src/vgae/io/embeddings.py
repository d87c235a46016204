"""Embeddings out, as files and tables: one row per node, its id first."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from vgae.errors import InputError
from vgae.graph.convert import to_array
from vgae.graph.pairs import AnyArray
from vgae.io.exports import require_utf8, without_formulas, writing
from vgae.io.frames import arrow_ids, pandas_frame, pandas_index
from vgae.io.ids import pack_ids
from vgae.io.npz import write_npz

EMBEDDINGS = (".csv", ".parquet", ".npz", ".txt")


def arrow_table(ids: Sequence[Any], embeddings: npt.NDArray[np.float32]) -> pa.Table:
    """An Arrow table: `id`, then z1, z2, …; ids that are not all whole numbers become text."""
    return pa.table({"id": arrow_ids(ids)} | dict(zip(_columns(embeddings), embeddings.T, strict=True)))


def data_frame(ids: Sequence[Any], embeddings: npt.NDArray[np.float32]) -> Any:
    """A pandas data frame with the columns z1, z2, … and the ids, as they are, for its index."""
    return pandas_frame(embeddings, index=pandas_index(ids, "id"), columns=_columns(embeddings))


def write_embeddings(
    path: str | Path, ids: Sequence[Any], embeddings: npt.NDArray[np.float32], *, spreadsheet_safe: bool = False
) -> None:
    """One row per node, its id first: csv, parquet, npz (arrays `ids`, `embeddings`), or word2vec's text (txt).

    With `spreadsheet_safe`, ids in a csv file that a spreadsheet would run as formulas begin with an apostrophe.
    """
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in EMBEDDINGS:
        raise InputError(
            f"{path}: embeddings are written as {', '.join(EMBEDDINGS)}; choose a name with such an ending."
        )
    if spreadsheet_safe:
        if kind != ".csv":
            raise InputError(f"spreadsheet_safe: this option is for csv files, and {path} is not one.")
        ids = without_formulas(ids)
    if kind == ".npz":
        try:
            write_npz(path, ids=pack_ids(_exact_array(ids)), embeddings=embeddings)
        except OSError as error:
            raise InputError(f"{path}: the file cannot be written there ({error.strerror}).") from None
        return
    text = [str(name) for name in ids]
    require_utf8(path, text, "write npz instead")
    if kind == ".txt":
        _write_word2vec(path, text, embeddings)
        return
    table = arrow_table(ids, embeddings)
    with writing(path) as file:
        if kind == ".parquet":
            pyarrow.parquet.write_table(table, file)
        else:
            pyarrow.csv.write_csv(table, file)


def _write_word2vec(path: Path, ids: Sequence[str], embeddings: npt.NDArray[np.float32]) -> None:
    """word2vec's text: how many rows and dimensions, then a line for each node, split at spaces."""
    broken = next((name for name in ids if name.split() != [name]), None)
    if broken is not None:
        raise InputError(
            f"{path}: the id {broken!r} is empty or holds spaces, which word2vec's text cannot; write csv instead."
        )
    with writing(path) as file:
        file.write(f"{len(ids)} {embeddings.shape[1]}\n".encode())
        for name, row in zip(ids, embeddings.tolist(), strict=True):
            file.write(f"{name} {' '.join(f'{value:.7g}' for value in row)}\n".encode())


def _exact_array(ids: Sequence[Any]) -> AnyArray:
    """The ids as an array; as objects where an array of text would lose something, such as a NUL at the end."""
    array = to_array(ids)
    if array.tolist() == list(ids):
        return array
    exact = np.empty(len(ids), dtype=object)
    exact[:] = list(ids)
    return exact


def _columns(embeddings: npt.NDArray[np.float32]) -> list[str]:
    return [f"z{d}" for d in range(1, embeddings.shape[1] + 1)]
