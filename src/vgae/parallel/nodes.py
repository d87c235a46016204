"""What a file says of nodes, where each process has read some of its rows: features and labels of a range of nodes.

    rows       checked as one process does: none twice, none missing unless it is to be filled in
    recipe     what a column is, means and categories follow from the rows of all (`rows.py`)
    features   each process makes those of its rows, and sends them to whoever has the range of the node
    labels     likewise, as whole numbers or as text

Nobody has the whole table, nor the features of all nodes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import check_features
from vgae.graph.convert import to_matrix
from vgae.graph.features import Normalization, largest_in_columns
from vgae.graph.pairs import IntArray
from vgae.io.assemble import note_on_classes, notes_on_nodes, without_rows
from vgae.io.entries import COORDINATES, by_number, named_like_coordinates
from vgae.io.features import fit_recipe, words_on_scale
from vgae.io.formats import ARRAYS
from vgae.io.nodes import NodeTable, of_entries, strangers, take_nodes
from vgae.io.npz_layouts import RowsOfMatrix
from vgae.io.options import NodeOptions
from vgae.io.recipe import FeatureRecipe, build_features, num_features, num_stored
from vgae.io.source import Origin, is_name, is_unnamed
from vgae.io.sparse import SPARSE_SHARE
from vgae.io.text import Wanted
from vgae.io.unpack import enough_memory, is_folder
from vgae.parallel.agreement import gather_json
from vgae.parallel.labels import OwnLabels, labels_of
from vgae.parallel.mail import gathered
from vgae.parallel.matrices import Matrix
from vgae.parallel.rows import InGroup
from vgae.parallel.shards import Shards
from vgae.parallel.shares import pieces_in, read_share
from vgae.parallel.to_range import ToRange, counts_at, require_one_row_each

if TYPE_CHECKING:
    from vgae.parallel.group import Group
    from vgae.parallel.numbering import OwnIds


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
    named, linked, given = counts_at(group, ids.num_nodes, (numbered.ends, numbered.edges, numbered.rows))
    require_one_row_each(group, table, numbered.rows, given)
    name = table.origin.name
    if not named[given > 0].any():
        first = gather_json(group, [str(each.as_py()) for each in table.ids.slice(0, 1)])
        own = next(found[0] for found in first if found)
        raise strangers(name, links, own, *ids.names_of([int(np.argmax(named > 0))]))
    absent = np.flatnonzero(given == 0)
    complete = table.entries is not None or table.columns.num_columns > 0
    if len(absent) and options.impute is None and complete:
        raise without_rows(name, links, len(absent), *ids.names_of([int(absent[0])]))
    to_range = ToRange.of(group, ids.num_nodes, numbered.rows)
    features, recipe, notes = _features(to_range, table, options, len(absent))
    labels = None if table.labels is None else labels_of(to_range, table)
    said = [*table.notes, *notes]
    if labels is not None:
        said += note_on_classes(labels.num_classes, labels.num_without)
    alone = int(np.count_nonzero(linked == 0))
    said += notes_on_nodes(links, len(absent), alone, filled=features is not None, listed=not complete)
    return NodesPart(features, labels, recipe, tuple(said))


def _features(
    to: ToRange, table: NodeTable, options: NodeOptions, num_absent: int
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
        made_of = [build_features(encoded, each, sparse=sparse) for each in (rows, otherwise)]
        del encoded  # which takes twice as much
        features = to.matrix(*made_of)
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
