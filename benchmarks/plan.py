"""What `vgae plan` says of a training beside what it takes: time of an iteration and peak memory, as ratios.

Graphs have ten links per node, drawn as a block model, and features (32 dense columns, a bag of 20 out of 1,000 words)
or none; the model is the paper's VGAE, by the exact objective, the sampled one, and by steps over a tenth of the nodes,
and with the decoder `mlp`, whose pairs are scored one by one (`pairs`).
Each training is in a process of its own, planned and then made for a few iterations. Memory is the growth of the
process's peak, or what the GPU's allocator had at its peak. A small training before it has taken what is taken once, so
that this part of a plan is left out.

    python benchmarks/plan.py [--nodes 1000 10000 100000 1000000] [--kinds none dense words] [--device cuda]
    python benchmarks/plan.py --most-exact 100000    # exact trainings up to so many nodes
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import ctypes
import itertools
import multiprocessing
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import scipy.sparse as sp
import torch

import vgae
from batches import Clock, make_graph, resident
from vgae.machine import describe_machine
from vgae.model.decoders.mlp import MLP
from vgae.objective.workload import FIXED_BYTES
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.plan import plan_training
from vgae.train.state import TrainingState

STEPS = 12
WAYS = ("exact", "sampled", "parts", "pairs")
MOST = 1.5  # between a plan and what it is of, either way


class SynchronousClock(Clock):
    """When each iteration ended, on a GPU too."""

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        super().after_iteration(snapshot)


def graph_of(num_nodes: int, kind: str) -> vgae.Graph:
    if kind != "words":
        return make_graph(num_nodes, kind)
    generator = np.random.default_rng(0)
    words = generator.integers(1000, size=(num_nodes, 20))
    places = np.repeat(np.arange(num_nodes), 20), words.ravel()
    features = sp.csr_array((np.ones(words.size, dtype=np.float32), places), shape=(num_nodes, 1000))
    return vgae.Graph.from_edges(make_graph(num_nodes, "none").edges, num_nodes=num_nodes, features=features)


def measure(num_nodes: int, kind: str, way: str, device: str) -> tuple[float, float, float, float]:
    """Seconds of an iteration and bytes, planned and measured."""
    config = Config(objective="exact" if way == "exact" else "sampled", device=device, iterations=STEPS)
    config = replace(config, eval_every=STEPS, batch_size=num_nodes // 10 if way == "parts" else None)
    config = replace(config, decoder=MLP()) if way == "pairs" else config
    small = graph_of(2500, kind)
    train(Job.of(small, replace(config, batch_size=250 if way == "parts" else None)))  # loads whatever is loaded once
    job = Job.of(graph_of(num_nodes, kind), config)
    costs = plan_training(job).costs
    (planned,) = (c for c in costs if (c.objective, c.batch_size) == (config.objective, config.batch_size))
    ctypes.CDLL(None).malloc_trim(0)
    clock = SynchronousClock()
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = float(torch.cuda.memory_allocated())
    else:
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        before = resident("VmRSS")
    train(job, checkpointer=clock)
    taken = np.diff(clock.times[1:-1])  # without the steps that compute the value
    took = float(np.median(taken[4:] if device == "cuda" else taken))  # and those before it was recorded
    peak = float(torch.cuda.max_memory_allocated()) if device == "cuda" else resident("VmHWM")
    largest = (planned.memory.device if device == "cuda" else planned.memory.host) - FIXED_BYTES
    return planned.seconds, took, largest, peak - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 1_000_000])
    parser.add_argument("--kinds", nargs="+", default=["none", "dense", "words"], choices=("none", "dense", "words"))
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--most-exact", type=int, default=30_000)
    given = parser.parse_args()
    print(describe_machine())
    furthest = [1.0, 1.0]
    for num_nodes, kind, way in itertools.product(given.nodes, given.kinds, given.ways):
        if way == "exact" and num_nodes > given.most_exact:
            continue
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, took, planned, peak = pool.apply(measure, (num_nodes, kind, way, given.device))
        ratios = seconds / took, planned / peak
        print(
            f"{num_nodes:>9,} nodes, {kind:5}  {way:7}  time {1000 * seconds:9.1f} ms, took {1000 * took:9.1f} ms: "
            f"{ratios[0]:4.2f}   memory {planned / 1e9:6.3f} GB, took {peak / 1e9:6.3f} GB: {ratios[1]:4.2f}",
            flush=True,
        )
        furthest = [max(far, ratio, 1 / ratio) for far, ratio in zip(furthest, ratios, strict=True)]
    print(f"furthest: time {furthest[0]:.2f}×, memory {furthest[1]:.2f}× (at most {MOST}×)")


if __name__ == "__main__":
    main()
