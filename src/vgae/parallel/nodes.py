"""What a file says of nodes, where each process has read some of its rows: features and labels of a range of nodes.

    rows       checked as one process does: none twice, none missing unless it is to be filled in
    recipe     what a column is, means and categories follow from the rows of all (`rows.py`)
    features   each process makes those of its rows, and sends them to whoever has the range of the node
    labels     likewise, as whole numbers or as text

Nobody has the whole table, nor the features of all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import check_features
from vgae.graph.convert import text_array, to_matrix
from vgae.graph.features import Normalization, largest_in_columns
from vgae.graph.pairs import AnyArray, IntArray, distinct
from vgae.io.assemble import note_on_classes, notes_on_nodes, without_rows
from vgae.io.columns import plain
from vgae.io.entries import COORDINATES, by_number, named_like_coordinates
from vgae.io.features import fit_recipe, words_on_scale
from vgae.io.folder import Stacked
from vgae.io.formats import ARRAYS
from vgae.io.nodes import NodeTable, of_entries, repeated, strangers, take_nodes, whole_labels
from vgae.io.npz_layouts import RowsOfMatrix
from vgae.io.options import NodeOptions
from vgae.io.recipe import FeatureRecipe, build_features, num_features, num_stored
from vgae.io.source import Origin, is_name, is_unnamed
from vgae.io.sparse import SPARSE_SHARE
from vgae.io.text import Wanted
from vgae.io.unpack import enough_memory, is_folder
from vgae.parallel.agreement import gather_json
from vgae.parallel.mail import Mail, collected, counts_of, gathered, ranges_of, tensor_of
from vgae.parallel.matrices import Matrix, send_rows
from vgae.parallel.rows import InGroup
from vgae.parallel.shards import Shards
from vgae.parallel.shares import pieces_in, read_share
from vgae.parallel.texts import collected_text, send_text

if TYPE_CHECKING:
    from vgae.parallel.group import Group
    from vgae.parallel.numbering import OwnIds


@dataclass(frozen=True, eq=False)
class OwnLabels:
    """The labels of a range of nodes: whole numbers, -1 for none, or text, which is empty for none."""

    group: Group
    values: IntArray | pa.Array
    num_classes: int  # of all processes together
    num_without: int

    def whole(self) -> AnyArray | None:
        """Those of all nodes, in the first process, as one process has them."""
        if isinstance(self.values, np.ndarray):
            return collected(self.group, self.values)
        texts = collected_text(self.group, self.values)
        if texts is None:
            return None
        found = texts.to_pylist()
        return text_array(found) if all(found) else np.array([text or -1 for text in found], dtype=object)


@dataclass(frozen=True, eq=False)
class NodesPart:
    """Features and labels of a range of nodes, what made the features, and what is to be said about the table."""

    features: Matrix | None
    labels: OwnLabels | None
    recipe: FeatureRecipe | None
    notes: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Numbered:
    """What this process has read, by the numbers of nodes: ends of links, edges that came of them, rows of nodes."""

    ends: IntArray
    edges: IntArray
    rows: IntArray


def read_nodes_in_parts(group: Group, path: Path, options: NodeOptions) -> NodeTable | None:
    """This process's share of a table of nodes; None where all of it is needed to tell what its rows are."""
    header = True if any(map(is_name, options.columns)) else None
    with enough_memory(path):
        if path.suffix in ARRAYS and not is_folder(path):
            return _read_matrix(group, path, options)
        share = read_share(group, path, Wanted(links=False, needed="ids", least=1), None, header)
        names = share.columns.names
        entries = options.feature_format is None and named_like_coordinates(names)
        if len(names) == 1 or entries or options.feature_format == COORDINATES:
            return None
        if options.id is None and is_unnamed(names[0]):
            return None
        return take_nodes(share.alike(group), replace(options, feature_format="table"))


def _read_matrix(group: Group, path: Path, options: NodeOptions) -> NodeTable | None:
    """This process's share of the rows of a matrix in an npz file; None where these cannot be read alone."""
    pieces_in(group, path)  # which are the same for all
    matrix = RowsOfMatrix.of(path)
    if matrix is None:
        return None
    rows = Shards.even(matrix.shape[0], group.size, group.rank).own
    try:
        own: Any = to_matrix(matrix.read(rows))
    except InputError as error:
        said = str(error)
        raise InputError(said if said.startswith(str(path)) else f"{path}: {said}") from None
    if matrix.starts is None:
        stored = InGroup(group).total(int(np.count_nonzero(own)))
        own = sp.csr_array(own) if stored < SPARSE_SHARE * matrix.shape[0] * matrix.shape[1] else own
    return of_entries(by_number(own, rows, matrix.shape[0]), Origin(str(path)), options)


def nodes_in_parts(
    group: Group, table: NodeTable, options: NodeOptions, numbered: Numbered, ids: OwnIds, links: str
) -> NodesPart:
    """Features and labels of this process's range of nodes; `links` is where the links came from."""
    named, linked, given = _counts(group, ids.num_nodes, (numbered.ends, numbered.edges, numbered.rows))
    _require_one_row_each(group, table, numbered.rows, given)
    name = table.origin.name
    if not named[given > 0].any():
        first = gather_json(group, [str(each.as_py()) for each in table.ids.slice(0, 1)])
        own = next(found[0] for found in first if found)
        raise strangers(name, links, own, *ids.names_of([int(np.argmax(named > 0))]))
    absent = np.flatnonzero(given == 0)
    complete = table.entries is not None or table.columns.num_columns > 0
    if len(absent) and options.impute is None and complete:
        raise without_rows(name, links, len(absent), *ids.names_of([int(absent[0])]))
    to_range = _ToRange.of(group, ids.num_nodes, numbered.rows)
    features, recipe, notes = _features(to_range, table, options, len(absent))
    labels = None if table.labels is None else _labels(to_range, table)
    said = [*table.notes, *notes]
    if labels is not None:
        said += note_on_classes(labels.num_classes, labels.num_without)
    alone = int(np.count_nonzero(linked == 0))
    said += notes_on_nodes(links, len(absent), alone, filled=features is not None, listed=not complete)
    return NodesPart(features, labels, recipe, tuple(said))


def _counts(group: Group, num_nodes: int, numbers: Sequence[IntArray]) -> AnyArray:
    """How often each node is among these, in all processes."""
    found = np.stack([np.bincount(each, minlength=num_nodes).astype(np.int32) for each in numbers])
    summed: AnyArray = group.sum(tensor_of(group, found)).cpu().numpy()
    return summed


def _require_one_row_each(group: Group, table: NodeTable, rows: IntArray, given: AnyArray) -> None:
    """No two rows may be about one node, whoever has read them."""
    if not (given > 1).any():
        return
    before, origin = sum(counts_of(group, len(rows))[: group.rank]), table.origin
    own = np.flatnonzero(given[rows] > 1)[:1]
    firsts = [(before + int(row), int(rows[row]), str(table.ids[int(row)].as_py())) for row in own]
    _, node, name = min(tuple(each) for found in gather_json(group, firsts) for each in found)
    places = np.flatnonzero(rows == node)[:2].tolist()
    one_file = isinstance(origin, Stacked) and not is_folder(Path(origin.name))
    words = [origin.row(place).partition(" of ")[0] if one_file else origin.row(place) for place in places]
    both = [word for found in gather_json(group, words) for word in found]
    raise repeated(origin.name, both, name, entries=table.may_be_entries)


@dataclass(frozen=True, eq=False)
class _ToRange:
    """The way of what is known of rows to the processes that have the ranges of their nodes."""

    mail: Mail
    num_nodes: int
    first: int  # of own nodes
    places: IntArray  # of own nodes among the rows that arrive; one more than the last where there is none

    @classmethod
    def of(cls, group: Group, num_nodes: int, rows: IntArray) -> _ToRange:
        shards = Shards.even(num_nodes, group.size, group.rank)
        mail = Mail(group, shards.owners(rows))
        arrived = mail.send(rows) - shards.own.start
        places = np.full(len(shards.own), len(arrived))
        places[arrived] = np.arange(len(arrived))
        return cls(mail, num_nodes, shards.own.start, places)

    def matrix(self, rows: Matrix, otherwise: Matrix) -> Matrix:
        """Rows of features, and another one where a node has none."""
        arrived = send_rows(self.mail, rows)
        if not sp.issparse(rows):
            return np.concatenate([arrived, otherwise])[self.places]
        return sp.csr_array(sp.vstack([arrived, otherwise], format="csr")[self.places])


def _features(
    to: _ToRange, table: NodeTable, options: NodeOptions, num_absent: int
) -> tuple[Matrix | None, FeatureRecipe | None, tuple[str, ...]]:
    """The features of own nodes, the recipe, and what is to be said."""
    group, notes = to.mail.group, tuple[str, ...]()
    everywhere, recipe = InGroup(group), FeatureRecipe(())
    if table.entries is not None:
        given: Any = table.entries.matrix
        nothing = np.zeros((1, given.shape[1]), dtype=given.dtype)
        features = to.matrix(given, sp.csr_array(nothing) if sp.issparse(given) else nothing)
    elif table.columns.num_columns:
        recipe, encoded, notes = fit_recipe(table, options, everywhere)
        if not recipe.columns:
            return None, None, notes
        rows, otherwise = np.arange(len(table.ids)), np.array([-1])
        stored = everywhere.total(num_stored(encoded, rows)) + num_absent * num_stored(encoded, otherwise)
        sparse = stored < SPARSE_SHARE * to.num_nodes * num_features(encoded)
        features = to.matrix(*(build_features(encoded, each, sparse=sparse) for each in (rows, otherwise)))
    else:
        return None, None, ()
    if options.normalize not in (None, "none"):
        scale = Normalization(str(options.normalize))
        if options.normalize == "columns":
            largest = gathered(group, largest_in_columns(features)[None])
            scale = Normalization.of_columns(largest.max(axis=0))
        features, recipe = scale.apply(features), replace(recipe, normalization=scale)
    try:
        features = check_features(features, len(to.places), to.first)
    except InputError as error:
        raise InputError(f"{table.origin.name}: {error}") from None
    made = recipe if recipe.columns or recipe.normalization.how != "none" else None
    return features, made, (*notes, *words_on_scale(recipe))


def _labels(to: _ToRange, table: NodeTable) -> OwnLabels:
    """The labels of own nodes."""
    group = to.mail.group
    everywhere, column = InGroup(group), plain(table.labels)
    numbers = whole_labels(column)
    if everywhere.every(numbers is not None) and numbers is not None:
        arrived = to.mail.send(np.where(numbers.missing, -1, numbers.values).astype(np.int64))
        values = np.append(arrived, -1)[to.places]
        own = distinct(values[values != -1])
        there = distinct(Mail(group, ranges_of(group, own)).send(own))
        num_without = everywhere.total(int(np.count_nonzero(values == -1)))
        return OwnLabels(group, values, everywhere.total(len(there)), num_without)
    try:
        texts = pc.fill_null(column.cast(pa.large_string()), "").combine_chunks()
    except pa.ArrowException:
        raise InputError(f"{table.origin.name}: labels are text or numbers, not {column.type}.") from None
    there_too = pa.concat_arrays([send_text(to.mail, texts), pa.array([""], pa.large_string())])
    labels: Any = there_too.take(pa.array(to.places))
    named = pc.unique(labels.filter(pc.not_equal(labels, "")))
    num_without = everywhere.total(len(labels) - pc.sum(pc.not_equal(labels, "")).as_py() if len(labels) else 0)
    return OwnLabels(group, labels, everywhere.num_distinct(named), num_without)
