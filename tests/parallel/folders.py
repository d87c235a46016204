"""Folders of links for several processes to read: names of nodes, files of different lengths, Parquet or CSV."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

NODES = 90


def write_parts(folder: Path, columns: dict[str, Any], *, parts: int, parquet: bool = False, seed: int = 0) -> Path:
    """A table cut into files anywhere; some of them may have no rows."""
    number = len(next(iter(columns.values())))
    cuts = np.sort(np.random.default_rng(seed).integers(number + 1, size=parts - 1))
    folder.mkdir()
    for part, rows in enumerate(np.split(np.arange(number), cuts)):
        own = {name: [values[row] for row in rows] for name, values in columns.items()}
        path = folder / f"part-{part:02}"
        if parquet:
            whole = pa.table(columns)
            pq.write_table(whole.take(pa.array(rows)), path.with_suffix(".parquet"), row_group_size=40)
            continue
        lines = [",".join(own), *(",".join(map(str, row)) for row in zip(*own.values(), strict=True))]
        path.with_suffix(".csv").write_text("\n".join(lines) + "\n")
    return folder


def random_links(names: Callable[[int], Any], *, weights: bool = False, twice: bool = False) -> dict[str, Any]:
    """Links in all directions, some of them both ways, again, or of a node with itself."""
    generator = np.random.default_rng(11)
    ends = (generator.random((500, 2)) ** 2 * NODES).astype(np.int64)
    back = ends[:, ::-1] if twice else ends[:60, ::-1]
    ends = np.concatenate([ends, back])
    columns: dict[str, Any] = {"source": [names(int(i)) for i in ends[:, 0]]}
    columns["target"] = [names(int(i)) for i in ends[:, 1]]
    if weights:
        columns["w"] = np.round(generator.random(len(ends)) * 9 + 0.1, 3).tolist()
    return columns


def random_nodes(names: Callable[[int], Any], number: int = NODES, *, gaps: bool = False) -> dict[str, Any]:
    """Columns of every kind, in an order of their own: numbers, true and false, texts, classes, and names of rows."""
    generator = np.random.default_rng(5)
    order = generator.permutation(number)
    columns: dict[str, Any] = {
        "node": [names(int(i)) for i in order],
        "size": np.round(generator.normal(size=number) * 40, 2).tolist(),
        "active": ["true" if value else "false" for value in generator.random(number) < 0.4],
        "town": [f"town {value}" for value in generator.integers(40, size=number)],
        "name": [f"someone {i}" for i in order],
        "class": [f"class {value}" for value in generator.integers(4, size=number)],
    }
    if number <= 1000:  # names of so few would be categories
        del columns["name"]
    if gaps:
        for name in ("size", "active", "town", "class"):
            columns[name] = ["" if generator.random() < 0.1 else value for value in columns[name]]
    return columns
