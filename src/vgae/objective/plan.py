"""What training would cost on this machine, before anything is allocated, and which objective is affordable.

Memory is arithmetic: the graph, the activations, the pairs whose logits a step holds. Time is arithmetic times three
rates that a short calibration measures: pairs per second of the all-pairs op, numbers per second that sparse products
and gathers move, and the fixed cost of a step. On graphs so small that the exact objective is affordable on any
machine, nothing is measured.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.ops import SparseMatrix, all_pairs_softplus

AFFORDABLE_SECONDS = 900.0  # for a whole training run
SLOWEST = 25e6  # pairs per second, fewer than any machine in use computes
STEP_OVERHEADS = 3  # fixed cost of a step, in fixed costs of the all-pairs op
# What a single pair costs per latent dimension (gathers, scatters, sampling), in numbers that a sparse product moves.
NUMBERS_PER_PAIR = 70


@dataclass(frozen=True)
class Workload:
    """What of a graph and a model decides the cost of an iteration."""

    num_nodes: int
    num_edges: int
    num_features: int  # 0: none, X = I
    feature_entries: int  # stored numbers of X
    feature_bytes: int  # for X on the device; a sparse one is laid out both ways
    hidden_dim: int
    latent_dim: int
    num_heads: int
    num_negatives: int
    symmetric: bool

    @classmethod
    def of(
        cls,
        graph: Graph,
        *,
        hidden_dim: int,
        latent_dim: int,
        num_heads: int = 2,
        num_negatives: int | None = None,
        symmetric: bool = True,
    ) -> Workload:
        """The workload of a model on a graph."""
        entries = 0 if graph.features is None else int(graph.features.size)
        return cls(
            num_nodes=graph.num_nodes,
            num_edges=graph.num_edges,
            num_features=graph.num_features,
            feature_entries=entries,
            feature_bytes=entries * (16 if sp.issparse(graph.features) else 4),
            hidden_dim=hidden_dim,
            latent_dim=latent_dim,
            num_heads=num_heads,
            num_negatives=2 * graph.num_edges if num_negatives is None else num_negatives,
            symmetric=symmetric,
        )

    @property
    def all_pairs(self) -> float:
        """Logits that the exact objective computes."""
        return self.num_nodes**2 / (2 if self.symmetric else 1)

    def single_pairs(self, objective: str) -> int:
        """Pairs whose logits are computed one by one: the ones of A + I, and the sampled zeros."""
        ones = self.num_edges * (1 if self.symmetric else 2) + self.num_nodes
        return ones + (self.num_negatives if objective == "sampled" else 0)

    def numbers_moved(self, objective: str) -> float:
        """By sparse products (forward and back) and gathers."""
        entries = 2 * self.num_edges + self.num_nodes
        propagated = 2 * entries * (self.hidden_dim + self.num_heads * self.latent_dim)
        projected = 2 * self.feature_entries * self.hidden_dim
        return propagated + projected + NUMBERS_PER_PAIR * self.latent_dim * self.single_pairs(objective)

    def bytes_needed(self, objective: str) -> float:
        """The graph, X, activations and their gradients, weights and Adam's state, pairs and their logits."""
        entries = 2 * self.num_edges + self.num_nodes
        width = 4 * self.hidden_dim + (2 + 2 * self.num_heads) * self.latent_dim
        weights = 4 * self.hidden_dim * (self.num_features or self.num_nodes)
        pairs = self.single_pairs(objective) * (12 * self.latent_dim + 8)  # two gathers and their product
        search = 16 * entries if objective == "sampled" else 0
        return 24.0 * entries + self.feature_bytes + 4.0 * (self.num_nodes * width + weights) + pairs + search


@dataclass(frozen=True)
class Rates:
    """What a machine can do, as measured."""

    pairs_per_second: float
    numbers_per_second: float
    seconds_per_step: float


@dataclass(frozen=True)
class Cost:
    """One objective's price: seconds per iteration and bytes at the peak."""

    objective: str
    seconds: float
    bytes: float


@dataclass(frozen=True)
class Choice:
    """The objective that was picked, and the estimate that it was picked by."""

    objective: str
    reason: str


def calibrate(device: torch.device, latent_dim: int, *, symmetric: bool = True, precision: str = "highest") -> Rates:
    """Measure this machine, in a fraction of a second (on a GPU after the kernels are compiled)."""
    num_nodes = 150_000 if device.type == "cuda" else 3_000
    generator = torch.Generator().manual_seed(0)
    z = (torch.randn(num_nodes, latent_dim, generator=generator) / latent_dim**0.25).to(device).requires_grad_()
    tiny = z.detach()[:64].clone().requires_grad_()

    def sweep(factors: torch.Tensor) -> None:
        all_pairs_softplus(factors, None if symmetric else factors, value=False, precision=precision)

    overhead = _seconds(lambda: sweep(tiny), device)
    pairs = num_nodes**2 / (2 if symmetric else 1)
    ends = np.random.default_rng(0).integers(num_nodes, size=(2, 10 * num_nodes))
    matrix = SparseMatrix(sp.csr_array((np.ones(ends.shape[1]), ends), shape=(num_nodes, num_nodes)), device=device)
    dense = torch.ones(num_nodes, 32, device=device)
    moved = _seconds(lambda: matrix @ dense, device)
    return Rates(
        pairs_per_second=pairs / max(_seconds(lambda: sweep(z), device) - overhead, 1e-9),
        numbers_per_second=matrix.rows.values.numel() * 32 / moved,
        seconds_per_step=STEP_OVERHEADS * overhead,
    )


def estimate(work: Workload, rates: Rates, objective: str) -> Cost:
    """Time per iteration and memory of an objective."""
    seconds = rates.seconds_per_step + work.numbers_moved(objective) / rates.numbers_per_second
    if objective == "exact":
        seconds += work.all_pairs / rates.pairs_per_second
    return Cost(objective, seconds, work.bytes_needed(objective))


def choose_objective(
    work: Workload, iterations: int, device: torch.device, measure: Callable[[], Rates] | None = None
) -> Choice:
    """Exact where it is affordable, else sampled; `measure` stands in for the calibration."""
    gigabytes = work.bytes_needed("exact") / 1e9
    if iterations * work.all_pairs / SLOWEST < AFFORDABLE_SECONDS:
        return Choice("exact", f"{_count(work.all_pairs)} pairs and {gigabytes:.1f} GB are cheap on any machine")
    rates = measure() if measure else calibrate(device, work.latent_dim, symmetric=work.symmetric)
    seconds = iterations * estimate(work, rates, "exact").seconds
    cost = f"about {duration(seconds)} and {gigabytes:.1f} GB for {iterations} iterations over all pairs"
    if seconds <= AFFORDABLE_SECONDS:
        return Choice("exact", cost)
    return Choice("sampled", f"{cost} exceed {duration(AFFORDABLE_SECONDS)}")


def require_memory(work: Workload, objective: str, available: float) -> None:
    """Refuse what cannot fit, with the sentence that says what would."""
    needed = work.bytes_needed(objective)
    if needed <= available:
        return
    sentence = f"The {objective} objective on this graph needs about {needed / 1e9:.1f} GB, more than the "
    sentence += f"{available / 1e9:.1f} GB that are free on this device; "
    exact = work.bytes_needed("exact")
    if objective == "sampled" and exact <= available:
        raise InputError(sentence + f"the exact objective would fit in {exact / 1e9:.1f} GB, or lower num_negatives.")
    raise InputError(sentence + "lower hidden_dim and latent_dim, or train on a smaller graph.")


def bytes_available(device: torch.device) -> float:
    """Memory that is free on a device."""
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    except (OSError, StopIteration):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")) if hasattr(os, "sysconf") else np.inf


def duration(seconds: float) -> str:
    """A time in the unit that suits it."""
    if seconds < 1:
        return f"{1000 * seconds:.1f} ms"
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _count(number: float) -> str:
    return f"{number / 1e6:.1f} million" if number >= 1e5 else f"{number:.0f}"


def _seconds(work: Callable[[], object], device: torch.device, repeats: int = 3) -> float:
    """The median time of some work, after one run to warm up."""
    times = []
    for _ in range(repeats + 1):
        started = time.perf_counter()
        work()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - started)
    return statistics.median(times[1:])
