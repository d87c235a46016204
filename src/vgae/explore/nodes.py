"""What a page says about each node beside its links: classes, columns of numbers and texts, and features by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.baselines.cosines import column_weights, tf_idf
from vgae.errors import InputError
from vgae.explore.pack import Pack
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, IntArray
from vgae.words import count, shown

MOST_COLUMNS = 60
MOST_CLASSES = 200  # beyond, texts are names: they are shown, and no colour goes by them
FEW_FEATURES = 32  # columns of dense features that are columns of numbers
ALL_ENTRIES = 1_500_000  # entries of features up to which all are stored
ENTRIES_PER_NODE = 6  # the strongest of each node, where there are more


@dataclass(frozen=True, eq=False)
class Column:
    """A number for each node (NaN: none), or one of some texts (-1: none)."""

    name: str
    values: npt.NDArray[np.float32] | IntArray
    texts: tuple[str, ...] | None = None
    role: str = "column"  # or label, or cluster

    def described(self) -> dict[str, Any]:
        """What the page is told beside the values."""
        kind = "number" if self.texts is None else "text" if len(self.texts) > MOST_CLASSES else "class"
        return {"name": self.name, "role": self.role, "kind": kind, "texts": self.texts}

    def store(self, pack: Pack, section: str) -> None:
        """The values as a section; of texts, 0 is none."""
        if self.texts is None:
            pack.add(section, self.values.astype(np.float32))
        else:
            pack.add_whole(section, self.values + 1)


def column_of(name: str, values: Any, num_nodes: int, role: str = "column") -> Column:
    """A column of whatever is given, a value per node: numbers, or texts; None, NaN and the label -1 are no value."""
    array = np.asarray(values)
    if array.shape != (num_nodes,):
        raise InputError(
            f"attributes: {shown(name)} needs a value for each of the {count(num_nodes, 'node')}, got the shape "
            f"{array.shape}."
        )
    if role == "column" and array.dtype.kind in "biuf":
        return Column(str(name), array.astype(np.float32))
    given = array.tolist()
    missing = [value is None or value != value or (role == "label" and value == -1) for value in given]
    texts = sorted({str(value) for value, none in zip(given, missing, strict=True) if not none}, key=_natural)
    places = {text: place for place, text in enumerate(texts)}
    codes = [-1 if none else places[str(value)] for value, none in zip(given, missing, strict=True)]
    return Column(str(name), np.array(codes, dtype=np.int64), tuple(texts), role)


def _natural(text: str) -> tuple[int, float, str]:
    """Numbers by their size, before other texts."""
    try:
        return 0, float(text), text
    except ValueError:
        return 1, 0.0, text


def columns_of_features(graph: Graph, recipe: Any) -> list[Column]:
    """The columns of the table that became the features, as they were, or the features where they are few and dense."""
    if graph.features is None:
        return []
    if recipe is None or recipe.of_entries or len(recipe.features) != graph.num_features:
        if sp.issparse(graph.features) or graph.num_features > FEW_FEATURES:
            return []
        return [Column(f"feature {place}", graph.features[:, place]) for place in range(graph.num_features)]
    features = sp.csc_array(graph.features)
    as_they_were = recipe.normalization.how == "none"
    found, start = [], 0
    for column in recipe.columns[:MOST_COLUMNS]:
        width = len(column.features)
        part = features[:, start : start + width]
        start += width
        if column.kind == "category":
            rows = sp.csr_array(part)
            held = np.diff(rows.indptr) > 0
            codes = np.full(graph.num_nodes, -1, dtype=np.int64)
            codes[held] = rows.indices[rows.indptr[:-1][held]]
            found.append(Column(column.name, codes, tuple(column.categories)))
            continue
        values = part.toarray()[:, 0].astype(np.float64)
        if as_they_were and column.std is not None:
            values = values * column.std + (column.mean or 0.0)
        found.append(Column(column.name, values.astype(np.float32)))
    return found


def given_columns(attributes: Mapping[str, Any] | None, num_nodes: int) -> list[Column]:
    """The columns that a caller gives, by their names."""
    if attributes is None:
        return []
    if not isinstance(attributes, Mapping):
        raise InputError(f"attributes: names and a value per node are needed, got {shown(attributes)}.")
    return [column_of(name, values, num_nodes) for name, values in attributes.items()]


def store_features(pack: Pack, graph: Graph, names: Sequence[str] | None) -> dict[str, Any] | None:
    """Each node's features by their share in its TF-IDF row, strongest first; what the page is told beside them."""
    if graph.features is None:
        return None
    values = sp.csr_array(graph.features)
    weights = column_weights(graph.features).astype(np.float64)
    strength = sp.csr_array(tf_idf(values)).astype(np.float64)
    rows = np.repeat(np.arange(graph.num_nodes), np.diff(values.indptr))
    norms = np.sqrt(np.bincount(rows, strength.data**2, minlength=graph.num_nodes))
    order = np.lexsort((values.indices, -np.abs(strength.data), rows))
    order = order[values.data[order] != 0]
    complete = len(order) <= ALL_ENTRIES
    if not complete:
        first = np.searchsorted(rows[order], np.arange(graph.num_nodes))
        order = order[np.arange(len(order)) - first[rows[order]] < ENTRIES_PER_NODE]
    data = values.data[order]
    pack.add_whole("feature_counts", np.bincount(rows[order], minlength=graph.num_nodes))
    pack.add_whole("feature_columns", values.indices[order])
    pack.add("feature_weights", weights.astype(np.float32))
    pack.add("feature_norms", norms.astype(np.float32))
    constant = float(data[0]) if len(data) and (data == data[0]).all() else None
    if constant is None:
        limit = float(np.finfo(np.float16).max)
        pack.add("feature_values", np.clip(data, -limit, limit).astype(np.float16))
    if names is not None:
        pack.add_json("feature_names", [str(name) for name in names])
    return {"constant": constant, "complete": complete, "num": graph.num_features}


def class_columns(graph: Graph, clusters: AnyArray | None, words: str) -> list[Column]:
    """The labels and the clusters, where there are any."""
    found = []
    if graph.labels is not None:
        found.append(column_of("label", graph.labels, graph.num_nodes, role="label"))
    if clusters is not None:
        texts = tuple(f"cluster {number}" for number in range(int(clusters.max(initial=0)) + 1))
        found.append(Column(words, clusters.astype(np.int64), texts, role="cluster"))
    return found
