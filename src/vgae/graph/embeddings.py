"""Embeddings out, as files and tables: one row per node, its id first."""

from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from vgae.errors import InputError
from vgae.graph.convert import to_array
from vgae.graph.files import atomic_write, write_npz
from vgae.graph.ids import pack_ids

EMBEDDINGS = (".csv", ".parquet", ".npz", ".txt")


def arrow_table(ids: Sequence[Any], embeddings: npt.NDArray[np.float32]) -> pa.Table:
    """An Arrow table: `id`, then z1, z2, …; ids that are not all whole numbers become text."""
    keys = to_array(ids)
    names = pa.array(keys if keys.dtype.kind in "iu" else [str(key) for key in keys.tolist()])
    return pa.table({"id": names} | dict(zip(_columns(embeddings), embeddings.T, strict=True)))


def data_frame(ids: Sequence[Any], embeddings: npt.NDArray[np.float32]) -> Any:
    """A pandas data frame with the columns z1, z2, … and the ids, as they are, for its index."""
    try:
        pandas = import_module("pandas")
    except ImportError:
        raise InputError("A data frame needs pandas; install it with pip install pandas.") from None
    index = pandas.Index(to_array(ids), tupleize_cols=False, name="id")
    return pandas.DataFrame(embeddings, index=index, columns=_columns(embeddings))


def write_embeddings(path: str | Path, ids: Sequence[Any], embeddings: npt.NDArray[np.float32]) -> None:
    """One row per node, its id first: csv, parquet, npz (arrays `ids`, `embeddings`), or word2vec's text (txt)."""
    path = Path(path)
    kind = path.suffix.lower()
    if kind not in EMBEDDINGS:
        raise InputError(
            f"{path}: embeddings are written as {', '.join(EMBEDDINGS)}; choose a name with such an ending."
        )
    try:
        if kind == ".npz":
            write_npz(path, ids=pack_ids(to_array(ids)), embeddings=embeddings)
            return
        text = [str(name) for name in ids]
        if kind == ".txt" and any(not name or name.split() != [name] for name in text):
            broken = next(name for name in text if name.split() != [name])
            raise InputError(
                f"{path}: the id {broken!r} holds blanks, which word2vec's text cannot; write csv instead."
            )
        table = arrow_table(ids, embeddings)
        with atomic_write(path) as file:
            if kind == ".parquet":
                pyarrow.parquet.write_table(table, file)
            elif kind == ".csv":
                pyarrow.csv.write_csv(table, file)
            else:
                file.write(f"{len(text)} {embeddings.shape[1]}\n".encode())
                for name, row in zip(text, embeddings.tolist(), strict=True):
                    file.write(f"{name} {' '.join(f'{value:.7g}' for value in row)}\n".encode())
    except OSError as error:
        raise InputError(f"{path}: the file cannot be written there ({error.strerror}).") from None


def _columns(embeddings: npt.NDArray[np.float32]) -> list[str]:
    return [f"z{d}" for d in range(1, embeddings.shape[1] + 1)]
