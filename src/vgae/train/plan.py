"""Which objective a configured training takes, and whether it fits: one answer for `fit` and for `vgae plan`."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from vgae.graph.graph import Graph
from vgae.model.autoencoder import MODELS
from vgae.objective.cost import (
    Choice,
    Cost,
    Rates,
    calibrate,
    choose_objective,
    estimate,
    require_memory,
    room_on,
)
from vgae.objective.workload import Memory, Workload
from vgae.train.config import Config, choose_device

BOTH = ("exact", "sampled")


@dataclass(frozen=True)
class Plan:
    """What a training would cost with either objective, which of them `auto` is, and the memory that is free."""

    costs: tuple[Cost, Cost]
    choice: Choice
    room: Memory


def workload(graph: Graph, config: Config, *, symmetric: bool = True, checkpoints: bool = False) -> Workload:
    """What decides the cost of an iteration of the configured model on a graph."""
    return Workload.of(
        graph,
        features=config.features,
        hidden_dim=config.hidden_dim,
        latent_dim=config.latent_dim,
        num_heads=len(MODELS[config.model].heads),
        num_negatives=config.num_negatives,
        symmetric=symmetric,
        early_stopping=config.early_stopping is not None,
        checkpoints=checkpoints,
    )


def objectives_of(config: Config) -> tuple[str, ...]:
    """Those that a training may end up with."""
    return BOTH if config.objective == "auto" else (config.objective,)


def require_room(graph: Graph, config: Config, *, checkpoints: bool = False) -> None:
    """Refuse a training that does not fit into the memory there is, before anything of it is allocated."""
    device = choose_device(config.device)
    require_memory(workload(graph, config, checkpoints=checkpoints), objectives_of(config), device, room_on(device))


def decide(work: Workload, config: Config, device: torch.device, rates: Rates | None = None) -> Choice:
    """The objective of a training, and why; what the machine can do is measured unless it is given."""
    if config.objective != "auto":
        return Choice(config.objective, "as asked for")
    return choose_objective(work, config.iterations, device, lambda: rates or measure(work, config, device))


def measure(work: Workload, config: Config, device: torch.device) -> Rates:
    """What the machine can do for this training: at its own precision, on its own device."""
    return calibrate(device, work.latent_dim, symmetric=work.symmetric, precision=config.precision)


def plan_training(graph: Graph, config: Config, device: torch.device) -> Plan:
    """The costs of a training that the command would make, and what it would decide."""
    work = workload(graph, config, checkpoints=True)
    rates = measure(work, config, device)
    exact, sampled = (estimate(work, rates, objective, device) for objective in BOTH)
    return Plan((exact, sampled), decide(work, config, device, rates), room_on(device))
