"""What in a graph speaks for a link between two nodes, by name.

    common neighbours        each with what it adds to common neighbours (1), Adamic-Adar (1 / log d) and
                             resource allocation (1 / d)
    paths of length three    i - k - l - j with four different nodes, each with what it adds to (S³)_ij (`paths.py`):
                             1 / (√d_i d_k d_l √d_j)
    shared features          each with what it adds to the cosine of the TF-IDF features (`cosines.py`): the product of
                             the two values in rows of unit length

Of each kind the strongest are listed, and counted are all; of equal ones, those of smaller indices come first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.baselines.cosines import column_weights
from vgae.baselines.similarity import degrees_of
from vgae.errors import InputError
from vgae.graph.features import normalize
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray
from vgae.words import count

TOP = 10


@dataclass(frozen=True)
class CommonNeighbour:
    """A node that both are linked to, by its id, and what it adds to the heuristics; cn is 1 for each."""

    node: Any
    degree: int
    aa: float
    ra: float


@dataclass(frozen=True)
class Path:
    """The two nodes between the ends of a path of length three, by their ids, and what the path adds to l3."""

    nodes: tuple[Any, Any]
    l3: float


@dataclass(frozen=True)
class SharedFeature:
    """A feature that both nodes have, its two values, and what it adds to the cosine."""

    name: str
    values: tuple[float, float]
    cosine: float


@dataclass(frozen=True)
class PairEvidence:
    """What speaks for a link between two nodes: the strongest of each kind, and how many there are."""

    nodes: tuple[Any, Any]
    degrees: tuple[int, int]
    linked: bool
    num_neighbours: int
    neighbours: tuple[CommonNeighbour, ...]
    num_paths: int
    paths: tuple[Path, ...]
    num_features: int | None  # None for a graph without features
    features: tuple[SharedFeature, ...]
    cosine: float | None  # of the TF-IDF features

    def to_json(self) -> dict[str, Any]:
        """The same as what JSON can hold, as far as ids are that."""
        return asdict(self)


def explain_pair(
    graph: Graph, pair: tuple[int, int], *, feature_names: Sequence[str] | None = None, top: int = TOP
) -> PairEvidence:
    """What speaks for a link between two different nodes, given by their indices; `top` of each kind are listed."""
    i, j = (int(node) for node in pair)
    if i == j:
        raise InputError("A pair of two different nodes is needed.")
    ids, degrees = graph.ids, degrees_of(graph)
    first, second = (_neighbours(graph, node) for node in (i, j))
    common = np.intersect1d(first, second)
    common = common[np.argsort(degrees[common], kind="stable")]
    links, weights = _paths(graph, (i, j), degrees)
    num_shared, features, cosine = _shared(graph, (i, j), feature_names, top)
    return PairEvidence(
        nodes=(ids[i], ids[j]),
        degrees=(int(degrees[i]), int(degrees[j])),
        linked=bool(np.isin(j, first)),
        num_neighbours=len(common),
        neighbours=tuple(
            CommonNeighbour(ids[node], degree, 1 / float(np.log(degree)), 1 / degree)
            for node, degree in zip(common[:top].tolist(), degrees[common[:top]].tolist(), strict=True)
        ),
        num_paths=len(links),
        paths=tuple(
            Path((ids[k], ids[last]), weight)
            for (k, last), weight in zip(links[:top].tolist(), weights[:top].tolist(), strict=True)
        ),
        num_features=num_shared,
        features=features,
        cosine=cosine,
    )


def _neighbours(graph: Graph, node: int) -> IntArray:
    adjacency = graph.adjacency
    found: IntArray = adjacency.indices[adjacency.indptr[node] : adjacency.indptr[node + 1]].astype(np.int64)
    return found


def _paths(graph: Graph, pair: tuple[int, int], degrees: IntArray) -> tuple[IntArray, npt.NDArray[np.float64]]:
    """The inner nodes of all paths of length three, and what each adds to l3; the strongest first."""
    first, second = (_neighbours(graph, node) for node in pair)
    first, second = first[first != pair[1]], second[second != pair[0]]
    between = sp.coo_array(graph.adjacency[first][:, second])
    links = np.stack([first[between.row], second[between.col]], axis=1)
    ends = np.sqrt(float(degrees[pair[0]]) * float(degrees[pair[1]]))
    weights = 1 / (ends * degrees[links].prod(axis=1).astype(np.float64))
    order = np.lexsort((links[:, 1], links[:, 0], -weights))
    return links[order], weights[order]


def _shared(
    graph: Graph, pair: tuple[int, int], names: Sequence[str] | None, top: int
) -> tuple[int | None, tuple[SharedFeature, ...], float | None]:
    """How many features both have, those that add most to the cosine, and the cosine."""
    if graph.features is None:
        return None, (), None
    if names is not None and len(names) != graph.num_features:
        given = count(len(names), "name")
        raise InputError(f"feature_names: {given} given, but there are {count(graph.num_features, 'feature')}.")
    values = sp.csr_array(graph.features[list(pair)]).toarray()
    unit = np.asarray(normalize(values * column_weights(graph.features), "rows"), dtype=np.float64)
    products = unit[0] * unit[1]
    shared = np.flatnonzero((values != 0).all(axis=0))
    strongest = shared[np.argsort(-np.abs(products[shared]), kind="stable")][:top]
    features = tuple(
        SharedFeature(
            f"feature {place}" if names is None else str(names[place]),
            (float(values[0, place]), float(values[1, place])),
            float(products[place]),
        )
        for place in strongest.tolist()
    )
    return len(shared), features, float(products.sum())
