"""Entries of a sparse matrix by rows, and how they count in the sums over them (`vgae.ops.ones`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.ops.chunks import Chunks

# Starts, columns, labels, and what an implementation needs beside: rows, or what is in `Chunks` or `Ones.order`.
Pattern = tuple[Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]


@dataclass(frozen=True, eq=False)
class Ones:
    """Entries of an N×N matrix by rows: those of row i are at `columns[starts[i]:starts[i + 1]]`, sorted.

    `labels` are in (0, 1], None where all are one. `transposed` has the same by columns; a symmetric matrix needs none.
    Some rows of such a matrix have more columns than rows; entry (i, i) is on the diagonal there too.
    """

    starts: Tensor
    columns: Tensor
    labels: Tensor | None = None
    transposed: Ones | None = None
    order: Tensor | None = None  # of pairs that a step has drawn: which of them each entry is; no row is long then
    num_columns: int | None = None  # None: as many as rows

    @classmethod
    def of(cls, matrix: sp.csr_array, device: torch.device | str, *, symmetric: bool, labelled: bool = False) -> Ones:
        """Those of a matrix with sorted indices, with its values as labels or without."""
        small = max(matrix.nnz, matrix.shape[0]) < 2**31
        kind = torch.int32 if small else torch.int64
        return cls(
            starts=torch.tensor(matrix.indptr, dtype=kind, device=device),
            columns=torch.tensor(matrix.indices, dtype=kind, device=device),
            labels=torch.tensor(matrix.data, dtype=torch.float32, device=device) if labelled else None,
            transposed=None if symmetric else cls.of(matrix.T.tocsr(), device, symmetric=True, labelled=labelled),
        )

    @property
    def num_nodes(self) -> int:
        """N, or how many rows there are."""
        return len(self.starts) - 1

    @property
    def width(self) -> int:
        """How many columns there are."""
        return self.num_nodes if self.num_columns is None else self.num_columns

    @cached_property
    def rows(self) -> Tensor:
        """The row of each entry, which only implementations without a kernel need."""
        places = torch.arange(self.num_nodes, dtype=self.columns.dtype, device=self.columns.device)
        return places.repeat_interleave(self.starts.diff(), output_size=len(self.columns))

    @property
    def num_zeros(self) -> int:
        """Cells that are no entries."""
        return self.num_nodes * self.width - len(self.columns)

    @cached_property
    def zeros_before(self) -> Tensor:
        """How many cells that are no entries come before each entry, row by row."""
        cells = self.rows.long() * self.width + self.columns
        return cells.sub_(torch.arange(len(cells), device=cells.device))

    @cached_property
    def chunks(self) -> Chunks:
        """What the programs of a GPU take."""
        return Chunks.of(self.starts)

    def pattern(self, implementation: str) -> Pattern:
        """What an implementation needs, None where there is nothing."""
        given = self.starts, self.columns, self.labels
        if implementation == "triton" and self.order is None:
            return *given, self.chunks.pieces, self.chunks.divided
        return (
            *given,
            self.order if implementation == "triton" else self.rows if implementation == "torch" else None,
            None,
        )


@dataclass(frozen=True)
class Counted:
    """How entries count: w at a one, another weight on the diagonal, what their label is, and 1 - label as a zero.

    `label` is that of all entries where they have none of their own.
    """

    weight: float
    diagonal_weight: float | None = None  # None: w
    as_zeros: bool = False  # whether 1 - label counts
    label: float = 1.0

    @property
    def numbers(self) -> list[float]:
        """Of the registered op."""
        return [self.weight, self.weight if self.diagonal_weight is None else self.diagonal_weight, self.label]
