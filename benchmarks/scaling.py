"""Whole VGAE training iterations from 2,708 to 1,000,000 nodes, time and peak memory, on R-MAT and block-model graphs.

    exact, sampled   ours; an exact iteration computes the value of the loss in one step of ten, as training does
    dense            the same encoder, and the exact loss on the N×N matrix of logits
    pyg              PyTorch Geometric's VGAE as in its example, whose loss is sampled 1:1

Every graph has ten links per node and 32 dense features, so that all contenders do the same work. Rounds alternate
between the contenders; a contender that would not fit or would take minutes a step is left out. On a CPU, memory is
the growth of the process's peak, each contender in a process of its own; on a GPU, the allocator's peak.

    python benchmarks/scaling.py [--device cuda] [--nodes 2708 10000 …] [--kinds rmat] [--contenders exact] [--out FILE]
    python benchmarks/scaling.py --plot docs/scaling.png scaling-cpu.json scaling-h200.json
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # as in the command: threads that wait soon go to sleep

import argparse
import itertools
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

import vgae
from vgae.graph.synthetic import rmat, stochastic_block_model
from vgae.machine import describe_machine
from vgae.model.inputs import EncoderInputs
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import Weighting
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.plan import plan_training

CONFIG = Config()
NODES = (2_708, 10_000, 30_000, 100_000, 300_000, 1_000_000)
CONTENDERS = ("exact", "sampled", "pyg", "dense")
LARGEST = {  # nodes that are still worth a try
    "cpu": {"exact": 300_000, "dense": 20_000, "pyg": 100_000},
    "cuda": {
        "exact": 1_000_000,
        "dense": 60_000,
        "pyg": 30_000,
    },  # its sampling of non-links takes 12 s at 300,000 nodes
}


def make_graph(kind: str, num_nodes: int) -> vgae.Graph:
    graph = (
        rmat(num_nodes, 10 * num_nodes)
        if kind == "rmat"
        else stochastic_block_model(num_nodes, 50, degree_within=16, degree_between=4)
    )
    features = np.random.default_rng(0).standard_normal((num_nodes, 32), dtype=np.float32)
    return vgae.Graph.from_edges(graph.edges, num_nodes=num_nodes, features=features)


def ours(graph: vgae.Graph, name: str, device: str) -> Callable[[], None]:
    generator = torch.Generator(device).manual_seed(0)
    inputs = EncoderInputs.from_graph(graph, device)
    init = torch.Generator().manual_seed(0)
    model = CONFIG.composition.build(inputs.input_dim, init).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG.learning_rate, fused=True)
    weighting = Weighting.named("paper", graph)
    turn = iter(range(10**9))
    if name == "dense":
        labels = torch.tensor(graph.adjacency.toarray()).to(device) + torch.eye(graph.num_nodes, device=device)
        weight = torch.tensor(weighting.positive_weight, device=device)

        def loss() -> Tensor:
            posterior = model.encode(inputs)
            z = posterior.sample(generator)
            total = binary_cross_entropy_with_logits(z @ z.T, labels, pos_weight=weight, reduction="sum")
            return weighting.terms(total, model.kl(posterior, z, inputs).sum()).total

    else:
        objective: ExactObjective | SampledObjective
        if name == "exact":
            objective = ExactObjective(graph, model, weighting, device, precision=CONFIG.precision)
        else:
            objective = SampledObjective(graph, model, weighting, device)

        def loss() -> Tensor:
            return objective(model, inputs, generator, value=next(turn) % 10 == 0).total

    return partial(step, loss, optimizer)


def pyg(graph: vgae.Graph, device: str) -> Callable[[], None]:
    layers = import_module("torch_geometric.nn")

    class Encoder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shared = layers.GCNConv(graph.num_features, CONFIG.hidden_dim, cached=True)
            self.mean = layers.GCNConv(CONFIG.hidden_dim, CONFIG.latent_dim, cached=True)
            self.log_std = layers.GCNConv(CONFIG.hidden_dim, CONFIG.latent_dim, cached=True)

        def forward(self, x: Tensor, edge_index: Tensor) -> tuple[Tensor, Tensor]:
            hidden = self.shared(x, edge_index).relu()
            return self.mean(hidden, edge_index), self.log_std(hidden, edge_index)

    features = torch.tensor(graph.features).to(device)
    edges = torch.tensor(graph.edges.T)
    edge_index = torch.cat([edges, edges.flip(0)], dim=1).to(device)
    model = layers.VGAE(Encoder()).to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=CONFIG.learning_rate)

    def loss() -> Tensor:
        z = model.encode(features, edge_index)
        result: Tensor = model.recon_loss(z, edge_index) + model.kl_loss() / graph.num_nodes
        return result

    return partial(step, loss, optimizer)


def step(loss: Callable[[], Tensor], optimizer: torch.optim.Optimizer) -> None:
    optimizer.zero_grad()
    loss().backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def measure(graph: vgae.Graph, contender: str, device: str) -> dict[str, float]:
    """Median seconds of an iteration and peak bytes of all of them, the graph on the device included."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = resident("VmRSS")
    if device == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        before = float(torch.cuda.memory_allocated())
    iterate = pyg(graph, device) if contender == "pyg" else ours(graph, contender, device)
    times: list[float] = []
    if device == "cuda":  # kernels are compiled when they first run, with the value and without
        iterate(), iterate()
    while len(times) < 3 or (len(times) < 21 and sum(times) < 3):
        started = time.perf_counter()
        iterate()
        if device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - started)
        if times[-1] > 100:
            break
    peak = resident("VmHWM")
    if device == "cuda":
        peak = float(torch.cuda.max_memory_allocated())
    return {"seconds": statistics.median(times[1:] or times), "bytes": max(peak - before, 0.0)}


def resident(kind: str) -> float:
    """Bytes of memory that this process holds (VmRSS), or held at its peak (VmHWM); Linux only."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return 1024.0 * int(line.split()[1])


def make_and_measure(kind: str, num_nodes: int, contender: str, device: str) -> dict[str, float]:
    return measure(make_graph(kind, num_nodes), contender, device)


def measure_apart(*arguments: Any) -> dict[str, float]:
    """The same in a process of its own, whose memory starts from nothing."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(make_and_measure, arguments)


def run(
    device: str, nodes: list[int], kinds: list[str], contenders: list[str], slow: bool, out: Path | None
) -> dict[str, Any]:
    result: dict[str, Any] = {"machine": describe_machine(), "device": device, "rows": []}
    for kind, num_nodes in itertools.product(kinds, nodes):
        graph = make_graph(kind, num_nodes)
        found: dict[str, dict[str, float]] = {}
        for contender in contenders:
            if num_nodes > LARGEST[device].get(contender, 10**9) and not (slow and contender == "exact"):
                continue
            if device == "cuda":
                found[contender] = measure(graph, contender, device)
            else:
                found[contender] = measure_apart(kind, num_nodes, contender, device)
        result["rows"].append({"kind": kind, "nodes": num_nodes, "found": found})
        show(kind, num_nodes, found)
        for cost in plan_training(Job.of(graph, replace(CONFIG, device=device))).costs:
            text = f"{1000 * cost.seconds:.1f} ms, {cost.memory.largest / 1e9:.2f} GB"
            steps = "" if cost.batch_size is None else f" by steps of {cost.batch_size:,} nodes"
            print(f"    vgae plan says of {cost.objective}{steps}: {text}", flush=True)
        if out:
            out.write_text(json.dumps(result, indent=1) + "\n")
    return result


def show(kind: str, num_nodes: int, found: dict[str, dict[str, float]]) -> None:
    print(f"\n{kind}, N = {num_nodes:,}, E = {10 * num_nodes:,}")
    for contender, cost in found.items():
        line = f"  {contender:8} {1000 * cost['seconds']:10.1f} ms {cost['bytes'] / 1e9:8.2f} GB"
        for rival in ("dense", "pyg"):
            if rival in found and contender in ("exact", "sampled"):
                line += f"   {found[rival]['seconds'] / cost['seconds']:6.1f}× as fast as {rival}"
        print(line, flush=True)


def slopes(result: dict[str, Any]) -> None:
    """Fitted exponents from 10⁴ nodes on."""
    for kind in sorted({row["kind"] for row in result["rows"]}):
        for contender in CONTENDERS:
            for quantity in ("seconds", "bytes"):
                points = [
                    (row["nodes"], row["found"][contender][quantity])
                    for row in result["rows"]
                    if row["kind"] == kind and contender in row["found"] and row["nodes"] >= 10_000
                ]
                if len(points) >= 3:
                    x, y = np.log(np.array(points, dtype=float)).T
                    print(f"{kind} {contender:8} {quantity:8} grow like N^{np.polyfit(x, y, 1)[0]:.2f}")


def plot(path: Path, results: list[dict[str, Any]]) -> None:
    figure = import_module("matplotlib.figure").Figure(figsize=(7.2, 3.0 * len(results)), layout="constrained")
    panels = figure.subplots(len(results), 2, squeeze=False)
    colours = dict(zip(CONTENDERS, ("#4477AA", "#228833", "#CCBB44", "#EE6677"), strict=True))
    for result, (left, right) in zip(results, panels, strict=True):
        for axes, quantity, unit, label in (
            (left, "seconds", 1, "seconds an iteration"),
            (right, "bytes", 1e9, "peak GB"),
        ):
            for contender, colour in colours.items():
                for kind, style in (("rmat", "o-"), ("sbm", "s:")):
                    points = [
                        (row["nodes"], row["found"][contender][quantity] / unit)
                        for row in result["rows"]
                        if row["kind"] == kind and contender in row["found"]
                    ]
                    if points:
                        x, y = zip(*points, strict=True)
                        axes.loglog(x, y, style, color=colour, markersize=3.5, label=f"{contender}, {kind}")
            axes.set(xlabel="nodes", ylabel=label)
            axes.spines[["top", "right"]].set_visible(False)
        left.set_title(result["machine"].split(" · ")[1 if result["device"] == "cuda" else 0], fontsize=9, loc="left")
    panels[-1][1].legend(fontsize=6, frameon=False, ncols=2, loc="lower right")
    figure.savefig(path, dpi=200)


def main() -> None:
    parser = argparse.ArgumentParser(description="Whole training iterations by number of nodes.")
    parser.add_argument("results", nargs="*", type=Path, help="JSON files to plot")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--nodes", nargs="*", type=int, default=list(NODES))
    parser.add_argument("--kinds", nargs="*", default=["rmat", "sbm"])
    parser.add_argument("--contenders", nargs="*", default=list(CONTENDERS), choices=CONTENDERS)
    parser.add_argument("--slow", action="store_true", help="exact at every size, minutes an iteration on a CPU")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--plot", type=Path)
    options = parser.parse_args()
    if options.plot:
        results = [json.loads(path.read_text()) for path in options.results]
        plot(options.plot, results)
        for result in results:
            print(result["machine"])
            slopes(result)
        return
    print(describe_machine())
    slopes(run(options.device, options.nodes, options.kinds, options.contenders, options.slow, options.out))


if __name__ == "__main__":
    main()
