"""What a training begins with: its sources of chance, the model with its first weights, its objective and its step."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import Layout
from vgae.model.neighbourhoods import Neighbourhoods
from vgae.model.prepared import inputs_for
from vgae.objective.base import Objective
from vgae.objective.batched import BatchedObjective
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.workload import Workload
from vgae.ops.dispatch import HAS_NUMBA, SHORTEST_FOR_NUMBA
from vgae.parallel.draws import RowGenerator
from vgae.parallel.shards import Shards
from vgae.train.job import Job, workload
from vgae.train.step import Step

MOST_ALONE = 2e7  # numbers that a step moves and for which PyTorch has one thread


@dataclass(frozen=True)
class Generators:
    """Where everything random comes from: one source for the first weights, one for noise and sampled zeros.

    Weights are drawn on the CPU, so that they do not depend on the device. The second seed is mixed from the first:
    torch's CPU generator knows only 32 bits of a seed, and two generators with the same 32 bits would give noise that
    is a function of the weights.
    """

    weights: torch.Generator
    noise: torch.Generator

    @classmethod
    def of(cls, seed: int, device: torch.device) -> Generators:
        """Those of a seed."""
        return cls(torch.Generator().manual_seed(seed), torch.Generator(device).manual_seed(noise_seed(seed)))

    @classmethod
    def of_rows(cls, seed: int, device: torch.device, shards: Shards, *, weights_by_node: bool) -> Generators:
        """Those of a process that has the rows of some nodes, among them rows of weights that each node has."""
        given = shards.num_nodes, shards.own
        noise = RowGenerator.of(noise_seed(seed), device, *given)
        if weights_by_node:
            return cls(RowGenerator.of(seed, "cpu", *given), noise)
        return cls(torch.Generator().manual_seed(seed), noise)


def noise_seed(seed: int) -> int:
    """The seed of the second source."""
    return int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])


def first_step(job: Job, objective: str, generators: Generators) -> Step:
    """The step of a training, with its model and inputs on the device; no step has been taken."""
    config, device = job.config, job.device
    layout, encoder = Layout(job.graph, device), config.value_of("encoder")
    around = None if job.batch is None else Neighbourhoods(layout, encoder)
    inputs = inputs_for(encoder, layout, workload(job).hops_done) if around is None else around.whole()
    model = config.composition.build(job.input_dim, generators.weights).to(device)
    model.decoder.begin(config.log_odds(job.labels))
    made = _make_objective(job, model, objective, around)
    return Step(model, inputs, made, generators.noise, config, small=is_small(workload(job), objective, device))


def is_small(work: Workload, objective: str, device: torch.device) -> bool:
    """Whether PyTorch is better off with one thread in a step, because it has small operations alone.

    What takes longest is done by kernels of our own, which have their own threads; without these it may gain by
    PyTorch's.
    """
    by_kernels = work.control_variate if objective == "sampled" else HAS_NUMBA and work.num_nodes >= SHORTEST_FOR_NUMBA
    in_parts = work.batch is not None
    return device.type == "cpu" and by_kernels and not in_parts and work.numbers_moved(objective) <= MOST_ALONE


def _make_objective(job: Job, model: AutoEncoder, objective: str, neighbourhoods: Neighbourhoods | None) -> Objective:
    config = job.config
    if job.batch is not None and neighbourhoods is not None:
        weighting = config.weighting_for(job.labels)
        return BatchedObjective(job.labels, model, weighting, neighbourhoods, job.batch, config.loss_options)
    given = job.labels, model, config.weighting_for(job.labels), job.device
    if objective == "exact":
        return ExactObjective(*given, options=config.loss_options, precision=config.precision)
    return SampledObjective(
        *given,
        options=config.loss_options,
        num_negatives=config.num_negatives,
        control_variate=job.with_control_variate,
    )


@contextmanager
def repeatable(device: torch.device) -> Iterator[None]:
    """On a GPU, sums in a fixed order: the same seed gives the same bits. On the CPU they are in order anyway."""
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    deterministic: Any = torch.utils.deterministic  # which says nothing of its attributes
    filled = deterministic.fill_uninitialized_memory
    torch.use_deterministic_algorithms(True)
    deterministic.fill_uninitialized_memory = False  # nothing is read that has not been written
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        deterministic.fill_uninitialized_memory = filled
