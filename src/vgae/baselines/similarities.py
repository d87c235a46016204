"""All similarities by their names; each is made of a graph by `of`, and describes pairs of its nodes."""

from __future__ import annotations

from vgae.baselines.cosines import Cosines
from vgae.baselines.degrees import Degrees
from vgae.baselines.neighbours import Neighbours
from vgae.baselines.pagerank import Walks
from vgae.baselines.paths import Paths
from vgae.baselines.similarity import Similarity
from vgae.graph.graph import Graph

SIMILARITIES: dict[str, type[Similarity]] = {
    "neighbours": Neighbours,
    "paths": Paths,
    "pagerank": Walks,
    "cosines": Cosines,
    "degrees": Degrees,
}


def names_for(graph: Graph) -> tuple[str, ...]:
    """The similarities that a graph has: those of features only where there are any."""
    return tuple(name for name, kind in SIMILARITIES.items() if graph.features is not None or not kind.needs_features)
