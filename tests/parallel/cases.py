"""Trainings that several processes have to do as one does, and what is compared: the state after each iteration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.graph.split import split_links
from vgae.graph.synthetic import stochastic_block_model
from vgae.objective import sharded
from vgae.parallel.group import Group
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.state import Layouts, LogEntry, Sharding, TrainingState


@dataclass
class Recorder(Checkpointer):
    """Keeps the state after each iteration, and continues from one that is given."""

    start: TrainingState | None = None
    sharding: Sharding | None = None
    states: list[TrainingState] = field(default_factory=list)

    def on_shards(self, sharding: Sharding) -> None:
        self.sharding = sharding

    def load(self, layouts: Layouts) -> TrainingState | None:
        if self.start is not None:
            layout = layouts[self.start.objective]
            found = {name: (tensor.shape, tensor.dtype) for name, tensor in self.start.tensors.items()}
            assert found == layout
        return self.start

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        self.states.append(snapshot())


@dataclass(frozen=True, eq=False)
class Course:
    """How a training went in one process: its states, its log and what it ended with."""

    states: list[TrainingState]
    history: list[LogEntry]
    latent: dict[str, Tensor]
    weights: dict[str, Tensor]
    nodes: range | None
    sharding: Sharding | None


def course(group: Group | None, name: str, changes: dict[str, Any], start: TrainingState | None = None) -> Course:
    """A training of one of the cases."""
    torch.set_num_threads(1)
    recorder = Recorder(start)
    trained = train(job_of(name, **changes), None, recorder, group=group)
    weights = {key: value.detach() for key, value in trained.model.state_dict().items()}
    return Course(recorder.states, trained.history, trained.latent, weights, trained.nodes, recorder.sharding)


def courses(group: Group, names: list[str], *, gathered: bool = True) -> dict[str, Course]:
    """Several of them; the factors of a graph that small are gathered, unless they are to be asked for."""
    with pytest.MonkeyPatch.context() as patch:
        if not gathered:
            patch.setattr(sharded, "GATHERED", 0)
        return {name: course(group, name, {}) for name in names}


def courses_by_asking(group: Group, names: list[str]) -> dict[str, Course]:
    """The same as with a large graph."""
    return courses(group, names, gathered=False)


def job_of(name: str, **changes: Any) -> Job:
    """The job of a case."""
    graph, options = CASES[name]
    config = Config(**{"hidden_dim": 8, "latent_dim": 6, "iterations": 2, "eval_every": 2} | options | changes)
    if config.early_stopping is None:
        return Job.of(GRAPHS[graph](), config)
    split = split_links(GRAPHS[graph](), val=0.1, test=0.0, seed=0)
    return Job.of(split.train, config, split.val)


def joined(found: list[TrainingState], sharding: Sharding) -> dict[str, Tensor]:
    """The tensors of a state as one process would have them, out of those of all processes."""
    return {
        name: torch.cat([state.tensors[name] for state in found]) if name in sharding.names else tensor
        for name, tensor in found[0].tensors.items()
    }


@cache
def plain() -> Graph:
    return stochastic_block_model(203, 4, degree_within=8, degree_between=2, seed=0)


@cache
def sparse() -> Graph:
    features = sp.random_array((203, 40), density=0.2, rng=np.random.default_rng(1), dtype=np.float32).tocsr()
    return plain().with_parts(features=features)


@cache
def dense() -> Graph:
    features = np.random.default_rng(2).normal(size=(203, 5)).astype(np.float32)
    return plain().with_parts(features=features)


@cache
def hub() -> Graph:
    """One node is linked to all others, and the first of them to each other."""
    star = [(50, other) for other in range(101) if other != 50]
    return Graph.from_edges(np.array([*star, *((i, i + 1) for i in range(20))]), num_nodes=101)


@cache
def apart() -> Graph:
    """Pairs of neighbours and many nodes without links: hardly anybody needs rows of another process."""
    return Graph.from_edges(np.array([(i, i + 1) for i in range(0, 40, 2)]), num_nodes=97)


@cache
def weighted() -> Graph:
    weights = np.random.default_rng(3).uniform(0.2, 1.0, plain().num_edges).astype(np.float32)
    return plain().with_parts(weights=weights)


@cache
def directed() -> Graph:
    """Links that go one way, the other, and both."""
    ways = np.random.default_rng(4).integers(-1, 2, plain().num_edges).astype(np.int8)
    return plain().with_parts(directions=ways)


@cache
def large() -> Graph:
    """As large as kernels for the CPU ask for, in each of two processes."""
    return stochastic_block_model(4301, 10, degree_within=6, degree_between=2, seed=0)


GRAPHS = {made.__name__: made for made in (plain, sparse, dense, hub, apart, weighted, directed, large)}
EXACT, SAMPLED = {"objective": "exact"}, {"objective": "sampled", "num_negatives": 1001}
BOTH = (EXACT, SAMPLED)
KINDS = [("plain", "gae"), ("plain", "vgae"), ("sparse", "gae"), ("sparse", "vgae"), ("hub", "vgae"), ("apart", "vgae")]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    f"{graph}, {model}, {options['objective']}": (graph, {"model": model} | options)
    for graph, model in KINDS
    for options in BOTH
} | {
    "dense": ("dense", {"model": "gae", "encoder": "mlp:dropout=0.4"} | EXACT),
    "longer": ("plain", {"iterations": 4, "eval_every": 4, "warm_up": 2, "weighting": "elbo", "beta": 0.5} | EXACT),
    "longer, sampled": ("dense", {"iterations": 4, "eval_every": 4, "encoder": "linear:unit_rows=true"} | SAMPLED),
    "decoder scaled": ("plain", {"decoder": "scaled:node_bias=true", "encoder": "linear"} | EXACT),
    "decoder scaled, sampled": ("sparse", {"decoder": "scaled:node_bias=true", "encoder": "gcn:dropout=0.4"} | SAMPLED),
    "decoder distance": ("sparse", {"decoder": "distance", "encoder": "normalized:start=-1"} | EXACT),
    "decoder distance, sampled": ("plain", {"decoder": "distance", "encoder": "mlp:layers=3"} | SAMPLED),
    "decoder bilinear": ("plain", {"decoder": "bilinear", "encoder": "gcn:dropout=0.4"} | EXACT),
    "decoder bilinear, sampled": ("plain", {"decoder": "bilinear", "diagonal": False} | SAMPLED),
    "decoder bilinear full": ("directed", {"decoder": "bilinear:form=full"} | EXACT),
    "decoder source_target": ("directed", {"decoder": "source_target"} | EXACT),
    "decoder source_target, sampled": ("directed", {"decoder": "source_target"} | SAMPLED),
    "layers": ("sparse", {"encoder": "gcn:layers=3,residual=true,unit_rows=true"} | EXACT),
    "hidden links": ("weighted", {"mask_links": 0.3} | EXACT),
    "hidden links, sampled": ("sparse", {"mask_links": 0.3} | SAMPLED),
    "soft labels": ("weighted", {"soft_labels": True} | SAMPLED),
    "no diagonal": ("hub", {"diagonal": False, "free_bits": 0.05, "prior": "learned_normal"} | EXACT),
    "stopping": ("plain", {"early_stopping": 2, "eval_every": 1, "iterations": 6} | EXACT),
    "stopping by the top": ("plain", {"early_stopping": 3, "eval_every": 1, "stop_by": "top"} | SAMPLED),
    "auto": ("apart", {"objective": "auto"}),
}
KERNELS: dict[str, tuple[str, dict[str, Any]]] = {
    f"large, {options['objective']}": ("large", {"hidden_dim": 32, "latent_dim": 16} | options)
    for options in (EXACT, {"objective": "sampled"})
}
NAMES, WITH_KERNELS = list(CASES), list(KERNELS)
CASES |= KERNELS
