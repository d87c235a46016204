"""The maths that must be fast: one signature, several implementations, one truth."""

from vgae.ops.dispatch import PRECISIONS, all_pairs_softplus
from vgae.ops.sparse import SparseMatrix

__all__ = ["PRECISIONS", "SparseMatrix", "all_pairs_softplus"]
