"""The maths that must be fast: one signature, several implementations, one truth."""

from vgae.ops.dispatch import all_pairs_softplus
from vgae.ops.sparse import SparseMatrix

__all__ = ["SparseMatrix", "all_pairs_softplus"]
