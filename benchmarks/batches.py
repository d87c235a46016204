"""Steps over a part of the graph (batch_size) beside steps over all of it: time of a step and peak memory.

A graph has ten links per node and 32 dense features, in memory or (mapped) in a file, or none; a model is the paper's
VGAE. Memory is the growth of the process's peak over a training of a few steps, each contender in a process of its own,
beside the graph that is there already; the embeddings of all nodes at the end are part of it. Time is that of a step
alone.

    python benchmarks/batches.py [--nodes 200000] [--sizes 2000 10000] [--kinds dense mapped none] [--no-full]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import ctypes
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import vgae
from vgae.graph.synthetic import stochastic_block_model
from vgae.machine import describe_machine
from vgae.objective.cost import memory_on
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.loop import train
from vgae.train.state import TrainingState

STEPS = 6


class Clock(Checkpointer):
    """When each iteration ended."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        del snapshot
        self.times.append(time.perf_counter())


def make_graph(num_nodes: int, kind: str) -> vgae.Graph:
    graph = stochastic_block_model(num_nodes, 50, degree_within=16, degree_between=4)
    if kind == "none":
        return graph
    features: Any = np.random.default_rng(0).standard_normal((num_nodes, 32), dtype=np.float32)
    if kind == "mapped":
        with tempfile.TemporaryFile() as file:
            stored = np.memmap(file, np.float32, mode="w+", shape=features.shape)
            stored[:] = features
            features = np.memmap(file, np.float32, mode="r", shape=features.shape)
    return vgae.Graph.from_edges(graph.edges, num_nodes=num_nodes, features=features)


def resident(kind: str) -> float:
    """Bytes of memory that this process holds (RssAnon; VmHWM: at its peak); Linux only."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return 1024.0 * int(line.split()[1])


def measure(num_nodes: int, kind: str, batch_size: int | None) -> dict[str, float]:
    config = Config(objective="sampled", iterations=STEPS, eval_every=STEPS, device="cpu", batch_size=batch_size)
    small = make_graph(4000, "dense")
    train(Job.of(small, replace(config, batch_size=None if batch_size is None else min(batch_size, 2500))))  # loads all
    job = Job.of(make_graph(num_nodes, kind), config)
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before, clock = resident("VmRSS"), Clock()
    train(job, checkpointer=clock)
    return {
        "seconds": float(np.median(np.diff(clock.times))),
        "bytes": resident("VmHWM") - before,
        "planned": memory_on(workload(job), "sampled", job.device).host,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[200_000])
    parser.add_argument("--sizes", type=int, nargs="*", default=[2_000, 10_000])
    parser.add_argument("--kinds", nargs="+", default=["dense"], choices=("dense", "mapped", "none"))
    parser.add_argument("--no-full", action="store_true")
    given = parser.parse_args()
    print(describe_machine())
    for num_nodes in given.nodes:
        for kind in given.kinds:
            sizes: list[int | None] = [*([] if given.no_full else [None]), *given.sizes]
            for size in sizes:
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found = pool.apply(measure, (num_nodes, kind, size))
                name = "all nodes" if size is None else f"{size:,} nodes"
                print(
                    f"{num_nodes:,} nodes, features {kind}, steps of {name}: {1000 * found['seconds']:.0f} ms, "
                    f"{found['bytes'] / 1e9:.2f} GB (the plan says {found['planned'] / 1e9:.2f} GB)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
