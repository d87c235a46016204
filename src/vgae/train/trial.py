"""How long a step takes here, by taking a few: of the same model, on as much of the graph as a moment is enough for.

Two trials are made, on a graph of some hundred nodes and on one as large as is quickly done: the graph itself if it is
not larger, else a smaller one that is made of its links, with as many per node, and of the features of its first nodes.
What a step takes beside its fixed cost grows with the numbers that it moves (vgae.objective.workload), and with all
pairs, of which the op alone is timed. So the size of a step is arithmetic, and its speed is a measurement.

On a CPU a part of that time is spent waiting for rows that may be anywhere, and a graph that is tried fits into caches
which the graph itself does not fit into. How much longer rows take there is measured too (`slower_rows`).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from vgae.graph.graph import Graph
from vgae.machine import working_on
from vgae.objective.batch_cost import BatchCost
from vgae.objective.cost import Rates
from vgae.objective.workload import Workload
from vgae.ops import all_pairs_softplus
from vgae.parallel.part import GraphPart
from vgae.train.job import Job, workload
from vgae.train.start import Generators, first_step, repeatable

FEWEST_NODES = 300  # of the small trial
REPEATS = 3
MOST_ROWS = 2**20  # to be fetched from: more are in no cache either
WAITING = 0.4  # share of a step's time that goes with that of fetching rows, by steps at 100,000 and a million nodes


@dataclass(frozen=True)
class _Limits:
    """What a trial may take: numbers moved and pairs computed in a step, nodes to time the all-pairs op on."""

    numbers: float
    pairs: float
    nodes: int


LIMITS = {"cpu": _Limits(5e8, 1e7, 3_000), "cuda": _Limits(1.5e9, 5e9, 150_000)}


def measure(job: Job, work: Workload, objective: str) -> Rates:
    """The rates at which this machine takes steps of a training, in a second or two."""
    sizes = trial_sizes(work, objective, job.device)
    trials = [_trial(job, objective, size) for size in sizes]
    if trials[-1].all_pairs:
        rate = pairs_per_second(job, work)
        trials = [replace(trial, seconds=max(trial.seconds - trial.all_pairs / rate, 0.0)) for trial in trials]
    else:
        rate = math.inf
    small, large = trials[0], trials[-1]
    if large.moved <= small.moved:  # a graph that is small itself
        return Rates(rate, math.inf, large.seconds)
    seconds_per_number = max(large.seconds - small.seconds, large.seconds / 20) / (large.moved - small.moved)
    fixed = max(large.seconds - seconds_per_number * large.moved, 0.0)
    if job.device.type == "cpu":
        width = max(1, round(work.encoder.projected))
        seconds_per_number *= 1 + WAITING * (slower_rows(sizes[-1], work.num_nodes, width) - 1)
    return Rates(rate, 1 / max(seconds_per_number, 1e-15), fixed)


def trial_sizes(work: Workload, objective: str, device: torch.device) -> tuple[int, ...]:
    """Nodes of the trials: some hundreds, and as many as are quickly done, or all."""
    limits = LIMITS[device.type]
    most = limits.numbers / work.numbers_moved("sampled" if work.batch is not None else objective) * work.num_nodes
    if objective == "exact":
        most = min(most, math.sqrt(limits.pairs * work.num_nodes**2 / work.all_pairs))
    large = min(work.num_nodes, max(int(most), FEWEST_NODES))
    if large == work.num_nodes <= 2 * FEWEST_NODES:
        return (large,)
    return min(FEWEST_NODES, large // 2), large


def pairs_per_second(job: Job, work: Workload) -> float:
    """Of the all-pairs op, forward and back."""
    device, limits = job.device, LIMITS[job.device.type]
    generator = torch.Generator().manual_seed(0)
    z = torch.randn(limits.nodes, work.latent_dim, generator=generator) / work.latent_dim**0.25
    z = z.to(device).requires_grad_()
    tiny = z.detach()[:64].clone().requires_grad_()
    halves = work.symmetric and work.mirrored

    def sweep(factors: torch.Tensor) -> None:
        all_pairs_softplus(factors, None if halves else factors, value=False, precision=job.config.precision)

    with working_on(device):
        took = seconds(lambda: sweep(z), device) - seconds(lambda: sweep(tiny), device)
    return limits.nodes**2 / (2 if halves else 1) / max(took, 1e-9)


def slower_rows(tried: int, num_rows: int, width: int) -> float:
    """How many times as long sums of random rows take among so many as among those that were tried; at least once."""
    if num_rows <= tried or tried >= MOST_ROWS:
        return 1.0
    before, now = (_seconds_for_rows(min(rows, MOST_ROWS), width) for rows in (tried, num_rows))
    return max(1.0, now / before)


def _seconds_for_rows(num_rows: int, width: int) -> float:
    table, generator = torch.ones(num_rows, width), torch.Generator().manual_seed(0)
    places = torch.randint(num_rows, (2**14, 16), generator=generator)
    return seconds(lambda: torch.nn.functional.embedding_bag(places, table, mode="sum"), table.device)


@dataclass(frozen=True)
class _Trial:
    """What a step on a small graph took, the numbers that it moved and the pairs that it computed."""

    seconds: float
    moved: float
    all_pairs: float


def _trial(job: Job, objective: str, num_nodes: int) -> _Trial:
    smaller = smaller_job(job, num_nodes)
    tried = workload(smaller)
    with working_on(job.device), repeatable(job.device):
        step, iterations = first_step(smaller, objective, Generators.of(0, job.device)), iter(range(1, 10**6))
        for _ in range(job.device.type == "cuda" and 5):  # until it has been recorded
            step(next(iterations), value=False)
        took = seconds(lambda: step(next(iterations), value=False), job.device)
    batched = BatchCost.of(tried)
    if batched is not None:
        return _Trial(took, batched.numbers_moved(), batched.all_pairs)
    return _Trial(took, tried.numbers_moved(objective), tried.all_pairs if objective == "exact" else 0.0)


def smaller_job(job: Job, num_nodes: int) -> Job:
    """The same training on a smaller graph, with as many zeros for a node, and parts that are as large if they fit."""
    if num_nodes >= job.graph.num_nodes and not isinstance(job.graph, GraphPart):
        return job
    config, share = job.config, num_nodes / job.graph.num_nodes
    if config.num_negatives is not None:
        config = replace(config, num_negatives=max(1, round(share * config.num_negatives)))
    if config.batch_size is not None and config.batch_size > num_nodes // 4:
        config = replace(config, batch_size=max(1, round(share * config.batch_size)))
    return Job(smaller_graph(job.graph, num_nodes), config)


def smaller_graph(graph: Graph, num_nodes: int) -> Graph:
    """Some of a graph's links, as many for a node, between its first nodes: ends beyond them count from the start."""
    number = round(graph.num_edges * num_nodes / graph.num_nodes)
    taken = np.linspace(0, len(graph.edges), number, endpoint=False).astype(np.int64)
    return Graph.from_edges(
        graph.edges[taken] % num_nodes,
        num_nodes=num_nodes,
        features=None if graph.features is None else graph.features[np.arange(num_nodes) % graph.features.shape[0]],
        weights=None if graph.weights is None else graph.weights[taken],
        directed=graph.directed,
    )


def seconds(work: Callable[[], object], device: torch.device) -> float:
    """The median time of some work, after one run to warm up."""
    times = []
    for _ in range(REPEATS + 1):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])
