"""A trained model and the graph that it is asked about: its own, or another one that its encoder has embedded."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.estimators.links import Scored
from vgae.evaluation.held_out import num_links_among
from vgae.graph.graph import Graph
from vgae.graph.lookup import find_pairs
from vgae.graph.pairs import Pairs
from vgae.machine import working_on
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import Posterior
from vgae.model.scorer import ModelScorer
from vgae.runs.run import Run

NO_PAIRS: Pairs = np.empty((0, 2), dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Fitted:
    """What fitting leaves, or loading a run."""

    run: Run
    graph: Graph
    latent: dict[str, Tensor]  # the posterior's parameters over the graph
    excluded_pairs: Pairs  # links that are known beside those of the graph, and never recommended
    checkpoint: Path | None = None  # the folder of the training's checkpoints

    @classmethod
    def of(cls, run: Run, checkpoint: Path | None = None) -> Fitted:
        """A trained model on its own graph."""
        held_out = np.concatenate([run.split.val.links, run.split.test.links])
        return cls(run, run.split.train, run.latent, held_out, checkpoint)

    @cached_property
    def embeddings(self) -> Tensor:
        """The posterior mean over the graph (N×d)."""
        return self.posterior.mean

    @property
    def posterior(self) -> Posterior:
        """q(Z | X, A) over the graph."""
        return self.run.model.posterior.build(self.latent)

    @property
    def on_own_graph(self) -> bool:
        """Whether the graph is the one that the model was trained on."""
        return self.graph is self.run.split.train

    @property
    def scored(self) -> Scored:
        """What scores the pairs of the graph; probabilities are calibrated as they were on the model's own."""
        scorer = ModelScorer(self.run.model, self.embeddings)
        own = self.on_own_graph
        return Scored(
            scorer,
            self.graph,
            self.excluded_pairs,
            calibrate=lambda: self.run.calibration,
            num_graph_links=self.run.links_split.num_graph_links
            if own
            else self.graph.as_scored(symmetric=scorer.symmetric).num_links,
            validation=self.run.split.val.links if own else NO_PAIRS,
            by_direction=bool(self.run.split.ordered) or not own,
        )

    def on(self, graph: Graph, device: torch.device, known: npt.ArrayLike | None) -> Fitted:
        """The same model on another graph."""
        latent = self.encode(graph, device)
        excluded = NO_PAIRS if known is None else find_pairs(graph, known, "known")
        if is_part_of(self.graph, graph):
            excluded = np.concatenate([excluded, self.excluded_pairs])
        return replace(self, graph=graph, latent=latent, excluded_pairs=excluded, checkpoint=None)

    def encode(self, graph: Any, device: torch.device) -> dict[str, Tensor]:
        """The parameters of the posterior over a graph."""
        if self._is_own(graph):
            return self.latent
        num_features = self.run.facts.num_features
        if num_features == 0:
            raise InputError(
                "This model was trained without features, so it knows nothing of other nodes than those it was trained "
                "on; train it with features to embed new ones."
            )
        if graph.num_features != num_features:
            raise InputError(
                f"features: the model was trained on {num_features} columns, but this graph has {graph.num_features}."
            )
        model = self.run.model
        try:
            with torch.no_grad(), working_on(device):
                posterior = model.to(device).encode(EncoderInputs.from_graph(graph, device))
        finally:
            model.cpu()
        return {name: values.cpu().contiguous() for name, values in posterior.parameters().items()}

    def _is_own(self, graph: Graph) -> bool:
        """Whether a graph is the one that is asked about, as far as the model looks at it."""
        own = self.graph
        if (graph.num_nodes, graph.num_links) != (own.num_nodes, own.num_links):
            return False
        seen = graph if self.run.facts.num_features else graph.without_features()
        return graph is own or seen.content_hash == own.content_hash


def is_part_of(own: Graph, graph: Graph) -> bool:
    """Whether a graph begins with the nodes of a model's own graph and has all of its links."""
    if graph.num_nodes < own.num_nodes:
        return False
    same_nodes = graph.node_ids is None or graph.ids[: own.num_nodes] == own.ids
    return same_nodes and num_links_among(own.links, graph.as_scored(symmetric=not own.directed)) == own.num_links
