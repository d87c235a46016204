"""Rows of a matrix of features, dense or sparse, to the processes that are to have them, as `mail.py` sends any rows.

Of a sparse matrix travel how many entries each row has, their columns and their values.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from vgae.graph.features import csr_pieces
from vgae.graph.pairs import AnyArray, IntArray
from vgae.parallel.mail import Mail, collected, counts_of, exchanged, most_of, streamed

if TYPE_CHECKING:
    from vgae.parallel.group import Group

Matrix = Any  # float32, an array or a CSR array


def send_rows(mail: Mail, matrix: Matrix) -> Matrix:
    """The rows that arrive here."""
    if not sp.issparse(matrix):
        return mail.send(matrix)
    ordered = sp.csr_array(matrix[mail.order])
    lengths = np.diff(ordered.indptr).astype(np.int64)
    arrived = exchanged(mail.group, lengths, mail.sent, mail.received, mail.most)
    sent, received = _by_process(lengths, mail.sent), _by_process(arrived, mail.received)
    most = most_of(mail.group, sent)
    columns, values = (
        exchanged(mail.group, each, sent, received, most)
        for each in (_columns(ordered), ordered.data.astype(np.float32))
    )
    return _matrix(arrived, columns, values, matrix.shape[1])


def collected_rows(group: Group, matrix: Matrix) -> Matrix | None:
    """The rows of all processes, one after the other, in the first; None in others."""
    if not sp.issparse(matrix):
        return collected(group, matrix)
    arrays = (np.diff(matrix.indptr).astype(np.int64), _columns(matrix), matrix.data)
    lengths, columns, values = (collected(group, each) for each in arrays)
    return None if lengths is None else _matrix(lengths, columns, values, matrix.shape[1])


def streamed_arrays(group: Group, matrix: Matrix) -> Iterator[tuple[AnyArray, str]]:
    """The arrays of all rows as a CSR array has them, piece by piece, with their types in a hash, in the first."""
    narrow = np.int32 if matrix.shape[1] < 2**31 else np.int64
    pieces = csr_pieces(matrix)
    starts, columns, values = next(pieces)[0].astype(np.int64), list[AnyArray](), list[AnyArray]()
    for piece, kind in pieces:
        (values if kind == "<f4" else columns).append(piece.astype(np.float32 if kind == "<f4" else narrow, copy=False))
    before = sum(counts_of(group, int(starts[-1]))[: group.rank])
    if group.is_first:
        yield np.zeros(1, dtype=np.int64), "<i8"
    nothing = np.empty(0, dtype=narrow), np.empty(0, dtype=np.float32)
    arrays = starts[1:] + before, np.concatenate([nothing[0], *columns]), np.concatenate([nothing[1], *values])
    del columns, values
    for array, kind in zip(arrays, ("<i8", "<i8", "<f4"), strict=True):
        for piece in streamed(group, array):
            yield piece, kind


def _columns(matrix: sp.csr_array) -> IntArray:
    """The column of each entry, of the same type in all processes, whatever their number of entries."""
    found: IntArray = matrix.indices.astype(np.int32 if matrix.shape[1] < 2**31 else np.int64, copy=False)
    return found


def _by_process(lengths: IntArray, counts: IntArray) -> IntArray:
    """How many entries the rows of each process have."""
    ends = np.concatenate([[0], np.cumsum(lengths)])[np.concatenate([[0], np.cumsum(counts)])]
    found: IntArray = np.diff(ends)
    return found


def _matrix(lengths: IntArray, columns: Any, values: Any, num_columns: int) -> sp.csr_array:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    index = np.int32 if max(int(starts[-1]), num_columns) < 2**31 else np.int64
    parts = (values, columns.astype(index, copy=False), starts.astype(index))
    return sp.csr_array(parts, shape=(len(lengths), num_columns))
