"""The maths that must be fast: one signature, several implementations, one truth."""

from vgae.ops.dispatch import PRECISIONS, all_pairs_softplus
from vgae.ops.entries import Counted, Ones
from vgae.ops.factors import Factors
from vgae.ops.ones import sum_at_ones, sum_at_pairs
from vgae.ops.rows import Block, Excluded, LogitRows, blocks_of
from vgae.ops.sparse import SparseMatrix
from vgae.ops.topk import Best, TopPairs, top_of_all, top_of_each_row

__all__ = [
    "PRECISIONS",
    "Best",
    "Block",
    "Counted",
    "Excluded",
    "Factors",
    "LogitRows",
    "Ones",
    "SparseMatrix",
    "TopPairs",
    "all_pairs_softplus",
    "blocks_of",
    "sum_at_ones",
    "sum_at_pairs",
    "top_of_all",
    "top_of_each_row",
]
