"""Whole training steps of a VGAE, as ratios against the sampled step as it was, in the same run.

    before   the sampled objective without a control variate, as it was: all ones and 2E zeros, drawn by a search among
             all ones and scored by gathers, whose gradients are scattered; int64 indices; products, draws and the KL
             by PyTorch's operations
    sampled  ours, with the control variate and as many pairs as nodes, the ones summed up row by row
    exact    ours over all pairs, on small graphs, against the same with gathers at the ones (`exact before`)

Steps are timed in turn, round by round, so that a busy moment of the machine hits all of them, each contender in a
process of its own; its peak is the growth of the process's memory, the graph's layout included. The block model has
eight blocks, as in million.py, and no features, or 32 dense ones with --features.

    python benchmarks/steps.py [--nodes 100000 1000000] [--features] [--datasets cora citeseer pubmed]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import multiprocessing
import statistics
import time
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import softplus

import vgae
from vgae.graph.synthetic import stochastic_block_model
from vgae.machine import describe_machine
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import Posterior
from vgae.objective.base import LossOptions, Objective
from vgae.objective.weighting import LossTerms, Weighting
from vgae.ops import all_pairs_softplus, convolution, pages, sparse
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.start import Generators, first_step
from vgae.train.step import Step

CONFIG = Config()
TARGETS = {"blocks": 7.0, "datasets": 1.5}  # least ratios of before to sampled


class Before(Objective):
    """What the objectives did before: gathers at the pairs of all ones and, for the sampled one, of 2E zeros."""

    def __init__(self, graph: vgae.Graph, weighting: Weighting, *, exact: bool) -> None:
        self.weighting, self.options, self.exact = weighting, LossOptions(), exact
        nodes, edges = torch.arange(graph.num_nodes), torch.tensor(graph.edges.T)
        self.pairs = torch.cat([edges, nodes.expand(2, -1)], dim=1).T
        self.times = torch.ones(len(self.pairs))
        self.times[: graph.num_edges] = 2
        self.num_nodes, self.num_drawn = graph.num_nodes, 2 * graph.num_edges
        self.num_zeros = self.num_nodes**2 - 2 * graph.num_edges - self.num_nodes
        if not exact:
            rows, columns = torch.cat([edges, edges.flip(0), nodes.expand(2, -1)], dim=1)
            cells = (rows * self.num_nodes + columns).sort().values
            self.zeros_before = cells - torch.arange(len(cells))

    def sample_zeros(self, generator: torch.Generator) -> Tensor:
        places = torch.rand(self.num_drawn, dtype=torch.float64, generator=generator)
        places += torch.arange(self.num_drawn)
        chosen = (places * (self.num_zeros / self.num_drawn)).long().clamp_(max=self.num_zeros - 1)
        cells = chosen + torch.searchsorted(self.zeros_before, chosen, right=True)
        sources = cells.div(self.num_nodes, rounding_mode="floor")
        return torch.stack([sources, cells - sources * self.num_nodes]).T

    def at(
        self,
        model: AutoEncoder,
        posterior: Posterior,
        inputs: EncoderInputs,
        generator: torch.Generator,
        *,
        value: bool = True,
        warmth: Tensor | None = None,
    ) -> LossTerms:
        z = posterior.sample(generator)
        reconstruction = self.reconstruction(model.decoder, z, generator, value=value)
        kl = model.kl(posterior, z, inputs).sum(dim=1).sum()
        return self._terms(reconstruction, kl, posterior, value=value, warmth=warmth)

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        logits = decoder.logits(z, self.pairs)
        weight = self.weighting.positive_weight
        if self.exact:
            everywhere = all_pairs_softplus(z, value=value)
            return everywhere + self.times @ ((weight - 1) * softplus(-logits) - logits)
        at_zeros = softplus(decoder.logits(z, self.sample_zeros(generator))).sum()
        return weight * (self.times @ softplus(-logits)) + self.num_zeros / self.num_drawn * at_zeros


def make_graph(name: str, features: bool) -> vgae.Graph:
    """A dataset's training graph, or a block model of so many nodes."""
    if not name.isdigit():
        return vgae.split_links(vgae.load_dataset(name), seed=0).train
    graph = stochastic_block_model(int(name), 8, degree_within=16, degree_between=4)
    if not features:
        return graph
    drawn = np.random.default_rng(0).standard_normal((graph.num_nodes, 32), dtype=np.float32)
    return graph.with_parts(features=drawn)


def work(pipe: Connection, name: str, contender: str, features: bool) -> None:
    """Take steps whenever asked to, and answer with their seconds, by the clock and of processors, and the peak."""
    if contender.endswith("before"):
        vars(sparse)["HAS_NUMBA"] = vars(convolution)["HAS_NUMBA"] = False  # products by PyTorch, one by one
        vars(pages)["keep_freed"] = lambda: None
    graph = make_graph(name, features)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = resident("VmRSS")
    step = steps_before(graph, exact=contender == "exact before") if contender.endswith("before") else None
    if step is None:  # as in a training
        step = first_step(Job.of(graph, CONFIG), contender, Generators.of(0, torch.device("cpu")))
    iteration = 0
    while True:
        num_steps = pipe.recv()
        if num_steps == 0:
            return
        started, worked = time.perf_counter(), time.process_time()
        for _ in range(num_steps):
            iteration += 1
            step(iteration, value=iteration % 10 == 1)
        taken = time.perf_counter() - started, time.process_time() - worked
        pipe.send((*(seconds / num_steps for seconds in taken), resident("VmHWM") - before))


def steps_before(graph: vgae.Graph, *, exact: bool) -> Step:
    """The same steps with what the objectives did before."""
    inputs = EncoderInputs.from_graph(graph)
    model = CONFIG.composition.build(inputs.input_dim, torch.Generator().manual_seed(0))
    objective = Before(graph, Weighting.named("paper", graph), exact=exact)
    return Step(model, inputs, objective, torch.Generator().manual_seed(0), CONFIG)


def resident(kind: str) -> float:
    """Bytes of memory that this process holds (VmRSS), or held at its peak (VmHWM); Linux only."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return 1024.0 * int(line.split()[1])


def measure(name: str, contenders: list[str], rounds: int, features: bool) -> dict[str, tuple[float, float, float]]:
    """Median seconds of a step, by the clock and of processors, and the peak's bytes, of contenders that take turns."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for contender in contenders:
        here, there = context.Pipe()
        process = context.Process(target=work, args=(there, name, contender, features), daemon=True)
        process.start()
        pipes.append(here)
        processes.append(process)
    times: list[list[tuple[float, float]]] = [[] for _ in contenders]
    peaks = [0.0 for _ in contenders]
    num_steps = 10 if not name.isdigit() else 1
    for turn in range(rounds + 1):  # the first warms up
        for place, pipe in enumerate(pipes):
            pipe.send(num_steps)
            *seconds, peaks[place] = pipe.recv()
            if turn:
                times[place].append((seconds[0], seconds[1]))
    for pipe, process in zip(pipes, processes, strict=True):
        pipe.send(0)
        process.join()
    found = {}
    for contender, taken, peak in zip(contenders, times, peaks, strict=True):
        by_clock, of_processors = (statistics.median(each) for each in zip(*taken, strict=True))
        found[contender] = by_clock, of_processors, peak
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description="Training steps against what they were.")
    parser.add_argument("--datasets", nargs="*", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--nodes", nargs="*", type=int, default=[100_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--features", action="store_true")
    options = parser.parse_args()
    print(describe_machine())
    for name in [*options.datasets, *map(str, options.nodes)]:
        pairs = [("sampled", "sampled before")]
        if not name.isdigit():
            pairs.append(("exact", "exact before"))
        for ours, before in pairs:
            found = measure(name, [ours, before], options.rounds, options.features)
            now, then = found[ours], found[before]
            words = f"{name:>9} {ours:7} {1000 * now[0]:9.1f} ms, before {1000 * then[0]:9.1f} ms: "
            words += f"{then[0] / now[0]:5.2f} times as fast ({then[1] / now[1]:.2f} by processor time, "
            words += f"{1000 * now[1]:.1f} and {1000 * then[1]:.1f} ms); "
            words += f"peak {now[2] / 1e9:.2f} GB, before {then[2] / 1e9:.2f}"
            target = None if ours == "exact" else TARGETS["blocks" if name.isdigit() else "datasets"]
            if name.isdigit() and int(name) < 1_000_000:
                target = None
            print(words + ("" if target is None else f" (asked for: {target:g} times)"), flush=True)


if __name__ == "__main__":
    main()
