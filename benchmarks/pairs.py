"""Steps with a decoder that has no factors: pairs scored some at a time, against all of them at once, as ratios.

    at once    the logits of all ones and zeros of a step, then their gradients, as PyTorch's autograd does it
    in pieces  ours: a piece of pairs is scored and differentiated before the next (vgae.objective.pairwise)

A GAE with the decoder `mlp` on a block model with eight blocks and ten links per node, and on datasets. Steps are timed
in turn, each contender in a process of its own; its peak is the growth of the process's memory.

    python benchmarks/pairs.py [--nodes 3000 20000 100000] [--datasets pubmed] [--rounds 5]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path

import torch

from steps import make_graph, resident
from vgae.machine import describe_machine
from vgae.model.decoders.mlp import MLP
from vgae.objective import pairwise
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.start import Generators, first_step

CONFIG = Config(model="gae", decoder=MLP(), hidden_dim=64, latent_dim=64, objective="sampled", device="cpu")
CONTENDERS = ("in pieces", "at once")


def work(pipe: Connection, name: str, contender: str) -> None:
    """Take a step whenever asked to, and answer with its seconds and the peak of memory."""
    if contender == "at once":
        vars(pairwise)["FEWEST"] = 2**62
    job = Job.of(make_graph(name, features=False), CONFIG)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = resident("VmRSS")
    step, iteration = first_step(job, "sampled", Generators.of(0, torch.device("cpu"))), 0
    while pipe.recv():
        iteration += 1
        started = time.perf_counter()
        step(iteration, value=False)
        pipe.send((time.perf_counter() - started, resident("VmHWM") - before))


def measure(name: str, rounds: int) -> dict[str, tuple[float, float]]:
    """Median seconds of a step, and bytes at the peak."""
    context, pipes = multiprocessing.get_context("spawn"), {}
    for contender in CONTENDERS:
        pipes[contender], there = context.Pipe()
        context.Process(target=work, args=(there, name, contender), daemon=True).start()
    taken: dict[str, list[float]] = {contender: [] for contender in CONTENDERS}
    peaks = dict.fromkeys(CONTENDERS, 0.0)
    for turn in range(rounds + 1):  # the first warms up
        for contender, pipe in pipes.items():
            pipe.send(True)
            seconds, peaks[contender] = pipe.recv()
            taken[contender] += [seconds] if turn else []
    for pipe in pipes.values():
        pipe.send(False)
    return {contender: (statistics.median(taken[contender]), peaks[contender]) for contender in CONTENDERS}


def main() -> None:
    parser = argparse.ArgumentParser(description="Steps with a decoder without factors, by how pairs are scored.")
    parser.add_argument("--datasets", nargs="*", default=["pubmed"])
    parser.add_argument("--nodes", nargs="*", type=int, default=[3000, 20_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(describe_machine())
    for name in [*options.datasets, *map(str, options.nodes)]:
        found = measure(name, options.rounds)
        (seconds, peak), (seconds_at_once, peak_at_once) = (found[contender] for contender in CONTENDERS)
        print(
            f"{name:>9}: {1000 * seconds:8.1f} ms, at once {1000 * seconds_at_once:8.1f} ms: "
            f"{seconds_at_once / seconds:5.2f} times as fast; {peak / 1e9:.2f} GB, at once {peak_at_once / 1e9:.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
