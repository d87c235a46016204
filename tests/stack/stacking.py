"""What tests of stacks share: graphs, cheap bases, a similarity that tells what it was made of, a store of folds."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from vgae.baselines.similarity import Doubles, Similarity
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, canonical, from_ranks, num_pairs
from vgae.stack.config import StackConfig
from vgae.stack.contenders import FoldEvidence
from vgae.stack.options import MetaOptions

SMALL = "iterations=4;latent_dim=4;hidden_dim=8"
CHEAP_MODELS = (
    f"gae({SMALL}),vgae({SMALL};decoder=source_target),networks({SMALL};decoder=mlp:width=4,layers=2),"
    "normalized1(iterations=4;latent_dim=4)"
)


def stack_of(bases: str, *, folds: int = 3, seed: int = 0, features: bool = True, base_seeds: int = 1) -> StackConfig:
    """A stack that is quickly fitted: without boosted trees."""
    return StackConfig(
        bases=bases, folds=folds, seed=seed, features=features, base_seeds=base_seeds, boosting=0, device="cpu"
    )


@dataclass(frozen=True)
class WithFewTrees(StackConfig):
    """A stack whose meta-model has trees, but not many."""

    @property
    def meta(self) -> MetaOptions:
        return replace(super().meta, num_trees=15, tree_rate=0.4)


def random_graph(num_nodes: int, num_edges: int, seed: int, feature_dim: int = 0) -> Graph:
    """Links at random, each pair as likely as any other, and features that have nothing to do with them."""
    generator = np.random.default_rng(seed)
    ranks = np.sort(generator.choice(num_pairs(num_nodes), size=num_edges, replace=False))
    words = (generator.random((num_nodes, feature_dim)) < 0.2).astype(np.float32) if feature_dim else None
    return Graph.from_edges(from_ranks(ranks, num_nodes), num_nodes=num_nodes, features=words)


def bipartite_graph(seed: int = 0, sizes: tuple[int, int] = (12, 9), share: float = 0.3) -> Graph:
    """Two sides, links across at random."""
    generator = np.random.default_rng(seed)
    sides = generator.permutation(np.repeat([0, 1], sizes)).astype(np.uint8)
    across = [(i, j) for i in np.flatnonzero(sides == 0) for j in np.flatnonzero(sides == 1)]
    edges = np.array([pair for pair in across if generator.random() < share])
    return Graph.from_edges(edges, num_nodes=len(sides)).with_parts(sides=sides)


def all_candidates(graph: Graph) -> Pairs:
    """Every pair that could be a link and is none."""
    numbering = graph.candidate_pairs
    return numbering.pairs(np.setdiff1d(np.arange(numbering.size), numbering.ranks(graph.links)))


def codes(pairs: Pairs, num_nodes: int = 10**6) -> IntArray:
    """A number for each pair, sorted."""
    ordered = canonical(pairs)
    return np.sort(ordered[:, 0] * num_nodes + ordered[:, 1])


@dataclass(frozen=True, eq=False)
class Witness(Similarity):
    """Tells of each pair which it is, whether it is a link of the graph at hand, and how many links that has."""

    title: ClassVar[str] = "witness"
    columns: ClassVar[tuple[str, ...]] = ("first", "second", "linked", "links")
    titles: ClassVar[tuple[str, ...]] = columns
    on_made: ClassVar[Callable[["Witness"], None]] = staticmethod(lambda _: None)

    graph: Graph

    @classmethod
    def of(cls, graph: Graph) -> Self:
        made = cls(graph)
        cls.on_made(made)
        return made

    @property
    def num_nodes(self) -> int:
        return self.graph.num_nodes

    def _describe(self, pairs: Pairs) -> list[Doubles]:
        linked = np.asarray(self.graph.adjacency[pairs[:, 0], pairs[:, 1]]).ravel()
        return [*pairs.T.astype(np.float64), linked.astype(np.float64), np.full(len(pairs), self.graph.num_edges)]


class Folds:
    """Keeps folds in memory."""

    def __init__(self) -> None:
        self.found: dict[int, FoldEvidence] = {}

    def load(self, fold: int) -> FoldEvidence | None:
        return self.found.get(fold)

    def save(self, fold: int, found: FoldEvidence) -> None:
        self.found[fold] = found


def weighted_auc(values: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> float:
    """How likely a link has the higher value than a non-link, which counts as often as its weight says."""
    order = np.argsort(values[labels == 0], kind="stable")
    others, mass = values[labels == 0][order], np.append(0, np.cumsum(weights[labels == 0][order]))
    below, up_to = (mass[np.searchsorted(others, values[labels == 1], side=side)] for side in ("left", "right"))
    return float(((below + up_to) / 2).mean() / mass[-1])
