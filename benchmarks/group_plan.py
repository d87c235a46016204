"""The plan for several processes beside what they count: bytes sent, memory and core-seconds of each, in a step.

By 1, 2 and 4 processes of one thread, on an R-MAT graph (ten links per node, numbered at random, which makes halos as
large as they get; no features), by either objective. Bytes are counted at the functions of torch.distributed and of
shared memory. Memory is the growth of the peak of the process that grows most, from before its rows are laid out to its
third step, with its messages in shared memory; modules and the graph are there before. Core-seconds are those of the
process that works most, without the time in which it waits, so that they say something on a busy machine too; planned
are shares of the time of one process, whatever its rates are.

    python benchmarks/group_plan.py [--nodes 300000] [--objectives sampled] [--processes 1 2 4]
    python benchmarks/group_plan.py --paper     (what 10⁸ and 10⁹ nodes would take on GPUs, by arithmetic alone)

On paper a GPU is the H200 of docs/performance.md: 139 GB, the pairs per second of its exact step at a million nodes and
the numbers per second of its sampled step at ten million; it sends 50 GB/s (a link of 400 Gbit/s for each). Nodes have
ten links each and no order, as in those measurements.
"""

import os

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import gc
import tempfile
import time
from ctypes import CDLL
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import torch.distributed as dist

from vgae.graph.synthetic import rmat
from vgae.machine import describe_machine
from vgae.objective import workload as workload_module
from vgae.objective.cost import Rates, duration, memory_on
from vgae.objective.group_cost import GroupWorkload, random_shares, shares_of
from vgae.objective.workload import Workload
from vgae.parallel.group import Group
from vgae.parallel.memory import SharedMemory
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.setting import Alone
from vgae.train.step import Step
from vgae.train.together import Together
from vgae.train.trial import measure

STEPS = 3
GIGABYTES, BYTES_PER_SECOND, LINKS = 139, 50e9, 10  # of a GPU, and links per node
EXACT, SAMPLED = (10**6, 0.220), (10**7, 0.0707)  # nodes and seconds of the steps that were measured
GPUS = (4, 8, 16, 64, 256, 1024)
FIXED = 0.003  # seconds of a step however small the graph is
WARM_UP = 10_000  # nodes, so many that every process uses its kernels


@dataclass(frozen=True)
class Counted:
    """What a process has counted."""

    bounds: tuple[int, ...]
    sent: float  # bytes in a step
    memory: int  # bytes
    seconds: float  # of a core, in a step


def first_step(group: Group | None, num_nodes: int, objective: str) -> tuple[Step, tuple[int, ...], Any]:
    """A training on an R-MAT graph, up to its first step; what is called last makes its rows."""
    job = Job.of(rmat(num_nodes, 10 * num_nodes, seed=0), Config(objective=objective, device="cpu"))
    setting = Alone(job) if group is None else Together(job, group)
    setting.require_memory(checkpoints=False)
    setting.open(Checkpointer())
    gc.collect()
    CDLL("libc.so.6").malloc_trim(0)  # what was freed before is not there to be used again
    before = status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
    step = setting.first_step(objective)
    return step, setting.shards.bounds if isinstance(setting, Together) else (0, num_nodes), before


def count(group: Group | None, num_nodes: int, objective: str) -> Counted:
    """What this process counts."""
    step, _, _ = first_step(group, WARM_UP, objective)  # loads whatever there is to load
    step(1, value=True)
    step, bounds, before = first_step(group, num_nodes, objective)
    for iteration in range(1, STEPS + 1):
        step(iteration, value=iteration == 1)
    grown = status("VmHWM") - before
    started = time.process_time()
    for iteration in range(STEPS):
        step(STEPS + 1 + iteration, value=False)
    seconds = (time.process_time() - started) / STEPS
    sent = [0.0]

    def counting(name: str, owner: Any = dist) -> Any:
        function = getattr(owner, name)

        def counted(*given: Any, **options: Any) -> Any:
            sent[0] += going(name, given, dist.get_rank(), dist.get_world_size())
            return function(*given, **options)

        return patch.object(owner, name, counted)

    by_gloo = counting("all_to_all_single"), counting("all_gather"), counting("batch_isend_irecv")
    with by_gloo[0], by_gloo[1], by_gloo[2], counting("send", SharedMemory):
        step(2 * STEPS + 1, value=False)
    return Counted(bounds, sent[0], grown, seconds)


def going(name: str, given: Any, rank: int, size: int) -> float:
    """Bytes that a call sends to other processes."""
    if name == "batch_isend_irecv":
        return float(sum(each.tensor.nbytes for each in given[0] if each.op is dist.isend))
    if name == "send":
        return float(sum(end - begin for other, (begin, end) in enumerate(given[2]) if other != rank))
    tensor = given[1]
    if name == "all_gather":
        return float((size - 1) * tensor.nbytes)
    own = 1 / size if len(given) < 4 else given[3][rank] / max(1, len(tensor))
    return float((1 - own) * tensor.nbytes)


def status(name: str) -> int:
    """A figure of this process, in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name))
    return 1024 * int(line.split()[1])


def serve(pipe: Connection, rank: int, size: int, meeting: str, num_nodes: int, objective: str) -> None:
    """A process of a group."""
    torch.set_num_threads(1)
    group = None
    if size > 1:
        dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=size)
        group = Group("cpu")
    pipe.send(count(group, num_nodes, objective))


def counts_of(size: int, num_nodes: int, objective: str) -> list[Counted]:
    """What each process of a group counts."""
    context = get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        pipes = []
        for rank in range(size):
            ours, theirs = context.Pipe()
            given = theirs, rank, size, f"{folder}/meeting", num_nodes, objective
            context.Process(target=serve, args=given, daemon=True).start()
            pipes.append(ours)
        return [pipe.recv() for pipe in pipes]


def work_of(num_nodes: int, num_features: int = 0) -> Workload:
    """A VGAE as the paper has it on a graph that is not at hand."""
    return Workload(
        num_nodes=num_nodes,
        num_edges=LINKS * num_nodes,
        num_features=num_features,
        feature_entries=num_features * num_nodes,
        sparse_features=False,
        composition=Config().composition,
        num_negatives=num_nodes,
        symmetric=True,
        control_variate=True,
    )


def on_paper() -> None:
    """Print what large graphs take, by the rates of one GPU."""
    exact, sampled = (work_of(nodes, num_features=32) for nodes, _ in (EXACT, SAMPLED))  # as they were measured
    rates = Rates(exact.all_pairs / (EXACT[1] - FIXED), sampled.numbers_moved("sampled") / (SAMPLED[1] - FIXED), FIXED)
    device = torch.device("cuda")
    print(f"{rates.pairs_per_second:.3g} pairs and {rates.numbers_per_second:.3g} numbers per second and GPU")
    with patch.object(workload_module, "HAS_TRITON", True):
        for (nodes, _), objective, gigabytes in ((EXACT, "exact", 1.3), (SAMPLED, "sampled", 1.6 * 10)):
            planned = memory_on(work_of(nodes, num_features=32), objective, device).device / 1e9
            print(f"{objective}, {nodes:,} nodes on one: {planned:.1f} GB planned, {gigabytes} GB measured")
        print("| nodes | objective | GPUs | memory each | sent each | computing | messages | 200 iterations |")
        print("|---|---|---|---|---|---|---|---|")
        for nodes in (10**8, 10**9):
            work = work_of(nodes)
            for objective in ("sampled", "exact"):
                for size in GPUS:
                    divided = GroupWorkload(work, random_shares(nodes, 2 * LINKS, size))
                    cost, sent = divided.estimate(rates, objective, device, float("inf"))
                    hours = 200 * (cost.seconds + sent / BYTES_PER_SECOND) / 3600
                    fits = cost.memory.device < 1e9 * GIGABYTES
                    if fits:
                        cells = (
                            f"{cost.memory.device / 1e9:.0f} GB | {sent / 1e9:.1f} GB | {duration(cost.seconds)}",
                            f"{duration(sent / BYTES_PER_SECOND)} | {duration(3600 * hours)}",
                        )
                        print(f"| {nodes:.0e} | {objective} | {size} | {' | '.join(cells)} |")


def main() -> None:
    """Print a table for each objective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--objectives", nargs="*", default=["sampled"])
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2, 4])
    parser.add_argument("--paper", action="store_true")
    asked = parser.parse_args()
    if asked.paper:
        on_paper()
        return
    torch.set_num_threads(1)
    print(f"{describe_machine()}; {os.getloadavg()[0]:.1f} processes wait for a core; planned / counted")
    graph = rmat(asked.nodes, 10 * asked.nodes, seed=0)
    for objective in asked.objectives:
        job = Job.of(graph, Config(objective=objective, device="cpu"))
        work = workload(job)
        rates = measure(job, work, objective)
        print(f"\n{objective}, {graph}")
        print("| processes | largest halo | sent, MB | memory, MB | work, as a share | core-seconds |")
        print("|---|---|---|---|---|---|")
        first: tuple[float, float] | None = None
        for size in asked.processes:
            found = counts_of(size, asked.nodes, objective)
            divided = GroupWorkload(work, shares_of(graph, found[0].bounds))
            cost, sent = divided.estimate(rates, objective, job.device, float("inf"))
            halo, worked = max(share.halo for share in divided.shares), max(each.seconds for each in found)
            first = first or (cost.seconds, worked)
            cells = (
                f"{sent / 1e6:.2f} / {max(each.sent for each in found) / 1e6:.2f}",
                f"{cost.memory.host / 1e6:.0f} / {max(each.memory for each in found) / 1e6:.0f}",
                f"{cost.seconds / first[0]:.2f} / {worked / first[1]:.2f}",
                f"{worked:.2f}",
            )
            print(f"| {size} | {halo:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
