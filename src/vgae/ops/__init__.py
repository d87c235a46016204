"""The maths that must be fast: one signature, several implementations, one truth."""

from vgae.ops.dispatch import PRECISIONS, all_pairs_softplus
from vgae.ops.factors import Factors
from vgae.ops.sparse import SparseMatrix
from vgae.ops.topk import LogitRows, TopPairs, known_pairs, top_of_all, top_of_each_row

__all__ = [
    "PRECISIONS",
    "Factors",
    "LogitRows",
    "SparseMatrix",
    "TopPairs",
    "all_pairs_softplus",
    "known_pairs",
    "top_of_all",
    "top_of_each_row",
]
