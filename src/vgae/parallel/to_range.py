"""From the rows of a table about nodes to the processes that have ranges of nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from vgae.graph.pairs import AnyArray, IntArray
from vgae.io.folder import Stacked
from vgae.io.nodes import NodeTable, repeated
from vgae.io.unpack import is_folder
from vgae.parallel.agreement import gather_json
from vgae.parallel.mail import Mail, counts_of, tensor_of
from vgae.parallel.matrices import Matrix, send_rows
from vgae.parallel.shards import Shards

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True, eq=False)
class ToRange:
    """The way of what is known of rows to the processes that have the ranges of their nodes."""

    mail: Mail
    num_nodes: int
    first: int  # of own nodes
    places: IntArray  # of own nodes among the rows that arrive; one more than the last where there is none

    @classmethod
    def of(cls, group: Group, num_nodes: int, rows: IntArray) -> ToRange:
        """Given the node of each row."""
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


def counts_at(group: Group, num_nodes: int, numbers: Sequence[IntArray]) -> AnyArray:
    """How often each node is among these, in all processes."""
    found = np.stack([np.bincount(each, minlength=num_nodes).astype(np.int32) for each in numbers])
    summed: AnyArray = group.sum(tensor_of(group, found)).cpu().numpy()
    return summed


def require_one_row_each(group: Group, table: NodeTable, rows: IntArray, given: AnyArray) -> None:
    """No two rows may be about one node, whoever has read them; those of -1 are about none."""
    if not (given > 1).any():
        return
    before, origin = sum(counts_of(group, len(rows))[: group.rank]), table.origin
    own = np.flatnonzero((rows >= 0) & (given[rows] > 1))[:1]
    firsts = [(before + int(row), int(rows[row]), str(table.ids[int(row)].as_py())) for row in own]
    _, node, name = min(tuple(each) for found in gather_json(group, firsts) for each in found)
    places = np.flatnonzero(rows == node)[:2].tolist()
    one_file = isinstance(origin, Stacked) and not is_folder(Path(origin.name))
    words = [origin.row(place).partition(" of ")[0] if one_file else origin.row(place) for place in places]
    both = [word for found in gather_json(group, words) for word in found]
    raise repeated(origin.name, both, name, entries=table.may_be_entries)
