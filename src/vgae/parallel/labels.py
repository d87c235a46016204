"""Labels of nodes, of which each process has those of a range: out of a table of nodes, or of one of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.convert import text_array
from vgae.graph.pairs import AnyArray, IntArray, distinct
from vgae.io.columns import plain
from vgae.io.label_files import NEEDED, label_column, no_nodes, notes_on_labels
from vgae.io.nodes import NodeTable, take_nodes, whole_labels
from vgae.io.options import NodeOptions
from vgae.io.source import is_name, is_unnamed
from vgae.io.text import Wanted
from vgae.io.unpack import enough_memory
from vgae.parallel.agreement import gather_json
from vgae.parallel.mail import Mail, collected, ranges_of
from vgae.parallel.rows import InGroup
from vgae.parallel.shares import read_share
from vgae.parallel.texts import collected_text, send_text
from vgae.parallel.to_range import ToRange, counts_at, require_one_row_each

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
class LabelTable:
    """A process's share of a table of labels, and what the column of labels is called."""

    rows: NodeTable
    column: str


def read_labels_in_parts(group: Group, path: Path, options: NodeOptions) -> LabelTable | None:
    """This process's share of a table of labels; None where all of it is needed to tell which column has the ids."""
    options = replace(options, feature_format="table")
    header = True if any(map(is_name, options.columns)) else None
    with enough_memory(path):
        share = read_share(group, path, Wanted(links=False, needed=NEEDED), None, header)
        if is_unnamed(share.columns.names[0]):
            return None
        table = share.alike(group)
        options = replace(options, label=label_column(table, options, str(path)))
        return LabelTable(take_nodes(table, options), str(options.label))


def labels_in_parts(group: Group, table: LabelTable, ids: OwnIds) -> tuple[OwnLabels, tuple[str, ...]]:
    """The labels of own nodes, and what was assumed; rows about other nodes are left out."""
    rows = table.rows
    nodes = ids.places_of(rows.ids)
    inside = np.flatnonzero(nodes >= 0)
    given = counts_at(group, ids.num_nodes, [nodes[inside]])[0]
    if not given.any():
        first = gather_json(group, [str(each.as_py()) for each in rows.ids.slice(0, 1)])
        raise no_nodes(rows.origin.name, next(found[0] for found in first if found), *ids.names_of([0]))
    require_one_row_each(group, rows, nodes, given)
    to_range = ToRange.of(group, ids.num_nodes, nodes[inside])
    labels = labels_of(to_range, rows, inside)
    strange = InGroup(group).total(len(nodes) - len(inside))
    return labels, notes_on_labels(table.column, labels.num_classes, labels.num_without, strange)


def labels_of(to: ToRange, table: NodeTable, kept: IntArray | None = None) -> OwnLabels:
    """The labels of own nodes, given in all rows of the table, or in these."""
    group = to.mail.group
    everywhere, column = InGroup(group), plain(table.labels)
    numbers, rows = whole_labels(column), slice(None) if kept is None else kept
    if everywhere.every(numbers is not None) and numbers is not None:
        arrived = to.mail.send(np.where(numbers.missing, -1, numbers.values).astype(np.int64)[rows])
        values = np.append(arrived, -1)[to.places]
        own = distinct(values[values != -1])
        there = distinct(Mail(group, ranges_of(group, own)).send(own))
        num_without = everywhere.total(int(np.count_nonzero(values == -1)))
        return OwnLabels(group, values, everywhere.total(len(there)), num_without)
    try:
        texts = pc.fill_null(column.cast(pa.large_string()), "").combine_chunks()
        texts = texts if kept is None else texts.take(pa.array(kept))
    except pa.ArrowException:
        raise InputError(f"{table.origin.name}: labels are text or numbers, not {column.type}.") from None
    there_too = pa.concat_arrays([send_text(to.mail, texts), pa.array([""], pa.large_string())])
    labels: Any = there_too.take(pa.array(to.places))
    named = pc.unique(labels.filter(pc.not_equal(labels, "")))
    num_without = everywhere.total(len(labels) - pc.sum(pc.not_equal(labels, "")).as_py() if len(labels) else 0)
    return OwnLabels(group, labels, everywhere.num_distinct(named), num_without)
