"""A training to be made: what the model sees of a graph, its configuration, and the pairs to validate it by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from vgae.errors import InputError
from vgae.evaluation.held_out import check_held_out, require_unseen
from vgae.graph.graph import Graph
from vgae.graph.split import HeldOut
from vgae.model.autoencoder import AutoEncoder
from vgae.objective.partition import BatchOptions
from vgae.objective.workload import Workload
from vgae.train.config import Config, choose_device


@dataclass(frozen=True, eq=False)
class Job:
    """One training; make it with `Job.of`, which checks that the parts fit together."""

    graph: Graph  # without features if the model is to do without
    config: Config
    validation: HeldOut | None = None  # not empty

    @classmethod
    def of(cls, graph: Any, config: Config, validation: HeldOut | None = None) -> Job:
        """The training of a configured model on a graph, or on whatever a graph can be made of."""
        graph = Graph.of(graph)
        if validation is not None:
            validation = check_held_out(validation, graph.num_nodes, "validation")
            require_unseen(validation, graph)
        config.check_nodes(graph.num_nodes)
        config.loss_options.observed.labels(graph)  # which refuses weights that are no labels
        if config.early_stopping is not None and not validation:
            raise InputError(
                "early_stopping: there is nothing to stop by; hold out validation pairs (val above 0), or have a fixed "
                "number of iterations (early_stopping=None)."
            )
        return cls(config.view(graph), config, validation or None)

    @cached_property
    def device(self) -> torch.device:
        """Where it runs."""
        return choose_device(self.config.device)

    @property
    def input_dim(self) -> int:
        """Columns of X: D, or N where X = I."""
        return self.graph.num_features or self.graph.num_nodes

    @cached_property
    def labels(self) -> Graph:
        """The graph that is predicted: without its directions where the decoder is symmetric and cannot tell them."""
        return self.graph.as_scored(symmetric=self.outline.decoder.symmetric)

    @property
    def cannot_tell(self) -> str | None:
        """What a symmetric decoder on a directed graph cannot tell, in a sentence."""
        if not self.graph.directed or self.labels.directed:
            return None
        name = self.config.value_of("decoder").name
        return (
            f"the links are directed, but the decoder {name} is symmetric: it cannot tell which way a link goes, and "
            "its AUC of links against reversed links is 50 by construction; the decoders source_target and gravity "
            "can tell"
        )

    @property
    def with_control_variate(self) -> bool:
        """Whether the sampled objective has its control variate: asked for or not, if the decoder has factors."""
        return self.config.control_variate != "off" and self.outline.decoder.factorised

    @property
    def batch(self) -> BatchOptions | None:
        """How steps over parts of the graph are made; None where each is over all of it."""
        config = self.config
        if config.batch_size is None:
            return None
        return BatchOptions(config.batch_size, config.num_negatives, self.with_control_variate)

    @property
    def sweeps_batches(self) -> bool:
        """Whether a step over a part of the graph sums up all of the part's pairs."""
        return self.batch is not None and self.batch.sweeps(factorised=self.outline.decoder.factorised)

    @cached_property
    def outline(self) -> AutoEncoder:
        """The model with the shapes of its weights, and no memory for them."""
        return self.config.composition.outline(self.input_dim)


def workload(job: Job, *, checkpoints: bool = False) -> Workload:
    """What decides the cost of an iteration."""
    config = job.config
    return Workload.of(
        job.graph,
        config.composition,
        num_negatives=config.num_negatives,
        control_variate=job.with_control_variate,
        mask_links=config.mask_links > 0,
        early_stopping=config.early_stopping is not None,
        checkpoints=checkpoints,
        batch=job.batch,
    )
