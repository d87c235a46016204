"""What the models are compared with: fitted on the training graph alone, scored by the same evaluator."""

from collections.abc import Callable

from vgae.baselines.deepwalk import deepwalk
from vgae.baselines.features import FeatureScorer
from vgae.baselines.heuristics import (
    adamic_adar,
    common_neighbours,
    preferential_attachment,
    resource_allocation,
)
from vgae.baselines.pagerank import Walks
from vgae.baselines.paths import Paths
from vgae.baselines.similarities import SIMILARITIES
from vgae.baselines.spectral import spectral_embedding
from vgae.evaluation.evaluate import RowScorer
from vgae.graph.graph import Graph

# Each takes the training graph and a seed, and gives a scorer.
BASELINES: dict[str, Callable[[Graph, int], RowScorer]] = {
    "sc": lambda graph, seed: spectral_embedding(graph, seed=seed),
    "dw": lambda graph, seed: deepwalk(graph, seed=seed),
    "cn": lambda graph, _: common_neighbours(graph),
    "aa": lambda graph, _: adamic_adar(graph),
    "ra": lambda graph, _: resource_allocation(graph),
    "pa": lambda graph, _: preferential_attachment(graph),
    "l3": lambda graph, _: Paths.of(graph),
    "ppr": lambda graph, _: Walks.of(graph),
    "cosine": lambda graph, _: FeatureScorer.of(graph),
}

__all__ = [
    "BASELINES",
    "SIMILARITIES",
    "adamic_adar",
    "common_neighbours",
    "deepwalk",
    "preferential_attachment",
    "resource_allocation",
    "spectral_embedding",
]
