"""Ids of any kind as numbers of nodes, where no process has all of the ids.

    whole numbers   in the order of their values: each process numbers those of a range, after those of lower ranges
    text            in the order of their first places in the table, sources before targets: each text has an owner by
                    its hash, who knows the first of its places; these are whole numbers, and numbered as such

Both are the orders of a table that one process reads (`io.columns.number_ids`), so that the number of processes makes
no difference. An id is in at most three processes: one that has read it, its owner, and the one that numbers it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vgae.graph.convert import text_array
from vgae.graph.pairs import AnyArray, IntArray, distinct
from vgae.io.columns import whole_numbers
from vgae.parallel.agreement import gather_json
from vgae.parallel.mail import Mail, collected, counts_of, ranges_of
from vgae.parallel.texts import collected_text, owners_of_text, send_text

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True, eq=False)
class OwnIds:
    """The ids of some nodes, whose numbers follow those of the process before."""

    group: Group
    num_nodes: int  # of all processes together
    ids: IntArray | pa.Array

    def names_of(self, nodes: Sequence[int]) -> list[str]:
        """The ids of some nodes as text, in all processes, which ask for the same."""
        first = sum(counts_of(self.group, len(self.ids))[: self.group.rank])
        own = {node: self.ids[node - first] for node in nodes if 0 <= node - first < len(self.ids)}
        texts = {node: str(found.as_py() if isinstance(found, pa.Scalar) else found) for node, found in own.items()}
        every = {node: text for found in gather_json(self.group, list(texts.items())) for node, text in found}
        return [every[node] for node in nodes]

    def places_of(self, column: pa.ChunkedArray) -> IntArray:
        """The nodes with these ids, as they read, -1 where there is none; all processes ask, each for some."""
        own = pa.array(self.ids).cast(pa.large_string())
        first = sum(counts_of(self.group, len(own))[: self.group.rank])
        to_owner = Mail(self.group, owners_of_text(own, self.group.size))
        known, nodes = send_text(to_owner, own), to_owner.send(first + np.arange(len(own)))
        chunks = column.cast(pa.large_string()).chunks or [pa.array([], pa.large_string())]
        asked = pa.concat_arrays(chunks).dictionary_encode()
        asking = Mail(self.group, owners_of_text(asked.dictionary, self.group.size))
        found = pc.fill_null(pc.index_in(send_text(asking, asked.dictionary), value_set=known), -1)
        of_asked = asking.answer(np.append(nodes, -1)[found.to_numpy(zero_copy_only=False)])
        places: IntArray = of_asked[asked.indices.to_numpy(zero_copy_only=False)]
        return places

    def whole(self) -> AnyArray | None:
        """All ids, in the order of the nodes, in the first process."""
        if isinstance(self.ids, np.ndarray):
            return collected(self.group, self.ids)
        texts = collected_text(self.group, self.ids)
        return None if texts is None else text_array(texts.to_pylist())


def number_ids(group: Group, columns: Sequence[pa.ChunkedArray]) -> tuple[list[IntArray], OwnIds]:
    """Columns of ids as numbers of nodes, and the ids of some nodes; all processes have as many columns."""
    lengths = [len(column) for column in columns]
    nothing = np.empty(0, dtype=np.int64)
    numbers = [whole_numbers(column) if len(column) else nothing for column in columns]
    if group.any(any(column is None for column in numbers)):
        codes, ids = _number_text(group, columns)
    else:
        values = np.concatenate([column for column in numbers if column is not None])
        known = distinct(values)
        of_known, own = _number(group, known)
        codes, ids = of_known[np.searchsorted(known, values)], own
    found = OwnIds(group, sum(counts_of(group, len(ids))), ids)
    return np.split(codes, np.cumsum(lengths)[:-1]), found


def _number(group: Group, values: IntArray) -> tuple[IntArray, IntArray]:
    """The place of each value among the distinct values of all processes; and those of this process's range."""
    mail = Mail(group, ranges_of(group, values))
    arrived = mail.send(values)
    own = distinct(arrived)
    before = sum(counts_of(group, len(own))[: group.rank])
    return mail.answer(before + np.searchsorted(own, arrived)), own


def _number_text(group: Group, columns: Sequence[pa.ChunkedArray]) -> tuple[IntArray, pa.Array]:
    """Texts by their first places, and those of this process's range of places."""
    chunks = [chunk for column in columns for chunk in column.cast(pa.large_string()).chunks]
    encoded = pa.concat_arrays(chunks or [pa.array([], pa.large_string())]).dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    known = encoded.dictionary
    places = _places(group, [len(column) for column in columns])[_first_places(codes)]

    to_owner = Mail(group, owners_of_text(known, group.size))
    arrived = send_text(to_owner, known).dictionary_encode()
    of_arrived = arrived.indices.to_numpy(zero_copy_only=False)
    first = np.full(len(arrived.dictionary), np.iinfo(np.int64).max)
    np.minimum.at(first, of_arrived, to_owner.send(places))

    to_range = Mail(group, ranges_of(group, first))
    there = to_range.send(first)
    order = np.argsort(there)
    before = sum(counts_of(group, len(there))[: group.rank])
    numbers = np.empty_like(there)
    numbers[order] = before + np.arange(len(there))
    ids = send_text(to_range, arrived.dictionary).take(pa.array(order))
    of_known = to_owner.answer(to_range.answer(numbers)[of_arrived])
    return of_known[codes], ids


def _places(group: Group, lengths: Sequence[int]) -> IntArray:
    """The place of each value in the table of all processes, one column after the other."""
    found, before = [], 0
    for length in lengths:
        counts = counts_of(group, length)
        start = before + sum(counts[: group.rank])
        found.append(np.arange(start, start + length))
        before += sum(counts)
    return np.concatenate(found)


def _first_places(codes: IntArray) -> IntArray:
    """Where each code occurs first; codes are numbered as they first occur."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(codes), prepend=-1)) if len(codes) else codes
