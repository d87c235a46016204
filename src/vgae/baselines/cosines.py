"""Cosines of TF-IDF features, of their propagation over K hops, and across hops 0 and 1.

    X      features times log((1 + N) / (1 + df)) + 1, df the number of nodes that have a feature; rows of unit length
    X_K    Ã^K X with Ã = D^-½ (A + I) D^-½, rows of unit length

    cosine_K     X_K[i]·X_K[j] for K = 0, 1, 2, 4
    cosine_0_1   (X[i]·X_1[j] + X_1[i]·X[j]) / 2: one node beside the other and its neighbours

Features with negative values are no counts: they are used as they are. They are not centred either, for a missing
feature would become a value, and sparse features dense. A node without features is like none: its cosines are 0.

Propagated features are dense, N×D. Where that is more than a budget, they are those of the 256 dimensions that keep the
inner products best, by a truncated singular value decomposition with a fixed seed; cosine_0 is exact in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp

from vgae.baselines.embedding import EmbeddingScorer
from vgae.baselines.heuristics import chunks
from vgae.baselines.similarity import FloatArray, Similarity, groups, normalized_adjacency, require_features
from vgae.graph.features import normalize
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs

HOPS = (1, 2, 4)
BUDGET = 30_000_000  # numbers in a dense matrix of propagated features: 120 MB each
DIMENSIONS = 256
CHUNK = 1_000_000  # numbers of rows of features in hand at a time
ROWS = 256  # rows of a block of products
GATHER = 50  # products of matrices in the time of one that is made alone, its rows copied

Matrix: TypeAlias = FloatArray | sp.csr_array


@dataclass(frozen=True, eq=False)
class Cosines(Similarity):
    """Cosines of features as they are, propagated, and across."""

    title: ClassVar[str] = "feature cosines"
    columns: ClassVar[tuple[str, ...]] = ("cosine_0", *(f"cosine_{hops}" for hops in HOPS), "cosine_0_1")
    titles: ClassVar[tuple[str, ...]] = (
        "feature cosine",
        *(f"feature cosine over {hops} hop{'s' if hops > 1 else ''}" for hops in HOPS),
        "feature cosine of one node with the other's neighbourhood",
    )
    needs_features: ClassVar[bool] = True

    own: Matrix  # X
    propagated: tuple[FloatArray, ...]  # X_K for each of HOPS
    across: Matrix  # X in the space of the propagated features

    @classmethod
    def of(cls, graph: Graph) -> Self:
        """The features of a graph."""
        require_features(graph, cls.title)
        own = normalize(tf_idf(graph.features), "rows")
        across = own if own.shape[0] * own.shape[1] <= BUDGET else normalize(_reduced(own), "rows")
        step = normalized_adjacency(graph, self_loops=True).astype(np.float32)
        dense = across if isinstance(across, np.ndarray) else across.toarray()
        propagated = []
        for hop in range(1, max(HOPS) + 1):
            dense = step @ dense
            if hop in HOPS:
                propagated.append(normalize(dense, "rows"))
        return cls(own, tuple(propagated), across)

    @property
    def num_nodes(self) -> int:
        """N."""
        return int(self.own.shape[0])

    def _describe(self, pairs: Pairs) -> list[FloatArray]:
        near = self.propagated[HOPS.index(1)]
        across = products(self.across, near, pairs) + products(self.across, near, pairs[:, ::-1])
        alike = [products(matrix, matrix, pairs) for matrix in (self.own, *self.propagated)]
        return [*alike, across / np.float32(2)]

    def row_scorer(self) -> EmbeddingScorer:
        """By the cosines over one hop."""
        return EmbeddingScorer(self.propagated[HOPS.index(1)])


def tf_idf(features: Matrix) -> Matrix:
    """Features times the weights of their columns."""
    weights = column_weights(features)
    if isinstance(features, np.ndarray):
        return features * weights
    return sp.csr_array((features.data * weights[features.indices], features.indices, features.indptr), features.shape)


def column_weights(features: Matrix) -> FloatArray:
    """log((1 + N) / (1 + df)) + 1 of each column; 1 where any feature is negative."""
    num_nodes, width = features.shape
    values = features if isinstance(features, np.ndarray) else features.data
    if values.min(initial=0) < 0:
        return np.ones(width, dtype=np.float32)
    if isinstance(features, np.ndarray):
        frequency = np.count_nonzero(features, axis=0)
    else:
        frequency = np.bincount(features.indices[features.data != 0], minlength=width)
    weights: FloatArray = (np.log((1 + num_nodes) / (1 + frequency)) + 1).astype(np.float32)
    return weights


def products(left: Matrix, right: Matrix, pairs: Pairs) -> FloatArray:
    """left_i·right_j for each pair; a dense left needs a dense right."""
    if isinstance(left, np.ndarray):
        return _of_dense(left, right, pairs)
    found = np.empty(len(pairs), dtype=np.float32)
    sizes = np.diff(left.indptr).astype(np.int64)
    for start, stop in chunks(sizes[pairs[:, 0]], CHUNK):
        i, j = pairs[start:stop].T
        rows = left[i]
        if isinstance(right, np.ndarray):  # entries on the left pick those on the right
            owners = np.repeat(np.arange(len(i)), np.diff(rows.indptr))
            found[start:stop] = np.bincount(owners, rows.data * right[j[owners], rows.indices], minlength=len(i))
        else:
            found[start:stop] = np.asarray((rows * right[j]).sum(axis=1)).ravel()
    return found


def _of_dense(left: FloatArray, right: FloatArray, pairs: Pairs) -> FloatArray:
    """The same for dense matrices: where a block of rows has many pairs, all products of it with their other ends."""
    found = np.empty(len(pairs), dtype=np.float32)
    for nodes, places, rows in groups(pairs[:, 0], ROWS):
        ends, columns = np.unique(pairs[places, 1], return_inverse=True)
        if len(places) * GATHER > len(nodes) * len(ends):
            every = right if len(ends) == len(right) else right[ends]
            found[places] = (left[nodes] @ every.T)[rows, columns]
            continue
        height = max(1, CHUNK // left.shape[1])
        for start in range(0, len(places), height):
            part = places[start : start + height]
            found[part] = np.einsum("md,md->m", left[pairs[part, 0]], right[pairs[part, 1]])
    return found


def _reduced(features: Matrix) -> FloatArray:
    """Features in the dimensions that keep their inner products best."""
    width = min(DIMENSIONS, *features.shape)
    decompose = import_module("sklearn.utils.extmath").randomized_svd  # takes its time to import
    left, singular, _ = decompose(features, width, n_iter=4, random_state=0)
    reduced: FloatArray = (left * singular).astype(np.float32)
    return reduced
