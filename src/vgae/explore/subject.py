"""What a page is about: a model's factors and calibration, its graph, and what is to be said about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.evaluation.calibration import Calibration
from vgae.explore.nodes import class_columns, columns_of_features, given_columns, store_features
from vgae.explore.noise import Noise
from vgae.explore.pack import Pack
from vgae.explore.projection import Layout
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, Pairs
from vgae.ops import Factors

WIDTH = 2**16 - 1  # steps of a coordinate


@dataclass(frozen=True, eq=False)
class Ranking:
    """The best new links of the whole graph, best first."""

    pairs: Pairs
    logits: npt.NDArray[np.float32]
    probabilities: npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Scoring:
    """How the pairs of a graph are scored: logits by factors, probabilities by calibration, spread by noise."""

    factors: Factors
    calibration: Calibration
    symmetric: bool
    noise: Noise | None


@dataclass(frozen=True, eq=False)
class Subject:
    """All that the page of a model is made of."""

    title: str
    graph: Graph  # with features, labels and ids
    links_graph: Graph  # whose links the scorer knows: without directions, if it cannot tell them
    held_out: Pairs  # links that are known beside these
    scoring: Scoring
    layout: Layout
    best: Ranking
    clusters: AnyArray | None = None
    cluster_words: str = "cluster"
    recipe: Any = None
    attributes: Mapping[str, Any] | None = None
    about: list[tuple[str, str]] = field(default_factory=list)

    def packed(self) -> Pack:
        """Everything in sections, the description of the others last."""
        pack, graph = Pack(), self.graph
        described = {"title": self.title, "num_nodes": graph.num_nodes, "about": self.about, "map": self.layout.words}
        described |= self._scored(pack) | self._linked(pack) | self._described(pack)
        pack.add("points", _coordinates(self.layout.points))
        pack.add_json("meta", described)
        return pack

    def _scored(self, pack: Pack) -> dict[str, Any]:
        """Factors, calibration and noise."""
        scoring = self.scoring
        given = {"q": scoring.factors.q, "k": scoring.factors.k}
        step = pack.add_factors({name: part.detach().numpy() for name, part in given.items() if part is not None})
        biases = {"row_bias": scoring.factors.row_bias, "column_bias": scoring.factors.column_bias}
        for name, bias in biases.items():
            if bias is not None:
                pack.add(name, bias.detach().numpy().astype(np.float32))
        calibration, noise = scoring.calibration, scoring.noise
        described: dict[str, Any] = {
            "dim": scoring.factors.q.shape[1],
            "step": step,
            "symmetric": scoring.symmetric,
            "calibration": {
                "shift": calibration.shift,
                "logits": list(calibration.logits),
                "log_odds": list(calibration.log_odds),
                "num_links": calibration.num_links,
                "rough": calibration.is_rough,
            },
            "noise": None,
        }
        if noise is not None:
            codes, least, step = noise.codes()
            pack.add("sigma", codes)
            described["noise"] = noise.described() | {"least": least, "step": step}
        return described

    def _linked(self, pack: Pack) -> dict[str, Any]:
        """Known links by their first node, those held out, and the best new ones."""
        links = self.links_graph.links
        order = np.lexsort((links[:, 1], links[:, 0]))
        pack.add_whole("link_counts", np.bincount(links[:, 0], minlength=self.graph.num_nodes))
        pack.add_whole("link_ends", links[order, 1])
        pack.add_whole("held_out", self.held_out.reshape(-1))
        pack.add_whole("best_pairs", self.best.pairs.reshape(-1))
        pack.add("best_logits", self.best.logits.astype(np.float32))
        pack.add("best_probabilities", self.best.probabilities.astype(np.float32))
        if self.graph.sides is not None:
            pack.add("sides", self.graph.sides.astype(np.uint8))
        directed = self.links_graph.directed
        return {"directed": directed, "num_links": len(links), "bipartite": self.graph.sides is not None}

    def _described(self, pack: Pack) -> dict[str, Any]:
        """Ids, columns and features."""
        graph, recipe = self.graph, self.recipe
        pack.add_json("ids", [str(name) for name in graph.ids])
        columns = [
            *class_columns(graph, self.clusters, self.cluster_words),
            *given_columns(self.attributes, graph.num_nodes),
            *columns_of_features(graph, recipe),
        ]
        for place, column in enumerate(columns):
            column.store(pack, f"column_{place}")
        named = recipe is not None and len(recipe.features) == graph.num_features
        features = store_features(pack, graph, recipe.features if named else None)
        if features is not None:
            features["by_columns"] = len(columns_of_features(graph, recipe)) > 0
        return {"columns": [column.described() for column in columns], "features": features}


def _coordinates(points: npt.NDArray[np.floating]) -> npt.NDArray[np.uint16]:
    """The places of nodes in a square, one after another: x and y in steps of the longer of its two sides."""
    least = points.min(axis=0)
    extent = points.max(axis=0) - least
    side = float(extent.max()) or 1.0
    centred = (points - least + (side - extent) / 2) / side
    steps: npt.NDArray[np.uint16] = np.rint(centred * WIDTH).astype(np.uint16)
    return steps
