"""Labels in a table of their own: a column of ids and one of classes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.pairs import AnyArray
from vgae.io.nodes import require_one_row_each, take_nodes, to_labels
from vgae.io.options import NodeOptions
from vgae.io.plain import as_path
from vgae.io.source import SourceTable, is_name, listed, read_table
from vgae.io.text import Wanted
from vgae.words import count

USUAL = ("label", "labels", "class", "target", "y", "category", "group", "community", "type")


def read_labels(
    path: str | Path,
    ids: Sequence[Any],
    *,
    label: str | None = None,
    id: str | None = None,  # noqa: A002
) -> tuple[AnyArray, tuple[str, ...]]:
    """A label for each of these ids, -1 for none, and what was assumed; rows about other ids are counted.

    `id` and `label` are columns by name or number; by default the first, and the only other or one with a usual name.
    """
    path = as_path(path, "labels")
    asked = NodeOptions(id=id, label=label)
    header = True if any(map(is_name, asked.columns)) else None
    table = read_table(path, Wanted(links=False, needed="a column of ids and one of classes"), header=header)
    nodes = take_nodes(table, NodeOptions(id=id, label=label or _label_of(table, id), feature_format="table"))
    if nodes.labels is None:
        raise InputError(f"{path}: say which of its columns is the class (label): {listed(table.names)}.")
    known = pa.array([str(name) for name in ids], pa.large_string())
    given = pa.concat_arrays(nodes.ids.cast(pa.large_string()).chunks)
    encoded = given.dictionary_encode()
    require_one_row_each(
        encoded.indices.to_numpy().astype(np.int64),
        np.array(encoded.dictionary.to_pylist(), dtype=object),
        nodes.origin,
    )
    places = pc.fill_null(pc.index_in(known, value_set=given).cast(pa.int64()), -1).to_numpy()
    if (places < 0).all():
        own, other = given[0].as_py(), str(ids[0])
        raise InputError(f"{path}: none of its ids is a node; its ids are like {own!r}, the nodes' like {other!r}.")
    labels = to_labels(nodes.labels, places, nodes.origin)
    without, strange = labels.tolist().count(-1), len(given) - int(np.count_nonzero(places >= 0))
    said = [count(len(set(labels.tolist()) - {-1}), "class", "classes")]
    said += [f"{count(without, 'node')} without one"] if without else []
    said += [f"{count(strange, 'row')} about other ids ignored"] if strange else []
    return labels, (*nodes.notes, ", ".join(said))


def _label_of(table: SourceTable, id_column: str | None) -> str | None:
    """The column of labels where none is asked for: the only one beside the ids, or the one with a usual name."""
    first = table.names[0] if id_column is None else table.names[table.place_of(id_column)]
    others = [name for name in table.names if name != first]
    usual = [name for name in others if name.strip().casefold() in USUAL]
    return others[0] if len(others) == 1 else usual[0] if len(usual) == 1 else None
