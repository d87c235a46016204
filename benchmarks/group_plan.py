"""The plan for several processes beside what they count: bytes sent, memory and core-seconds of each, in a step.

By 1, 2 and 4 processes of one thread, on an R-MAT graph (ten links per node, numbered at random, which makes halos as
large as they get; no features), by either objective. Bytes are counted at the functions of torch.distributed. Memory is
the growth of the peak of the process that grows most, from before its rows are laid out to its third step; modules and
the graph are there before. Core-seconds are those of the process that works most, without the time in which it waits,
so that they say something on a busy machine too; those of the plan have the rates of one process's own trial steps.

    python benchmarks/group_plan.py [--nodes 300000] [--objectives sampled] [--processes 1 2 4]
"""

import os

os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import tempfile
import time
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
from vgae.objective.group_cost import GroupWorkload, shares_of
from vgae.parallel.group import Group
from vgae.train.callbacks import Checkpointer
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.setting import Alone
from vgae.train.step import Step
from vgae.train.together import Together
from vgae.train.trial import measure

STEPS = 3
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

    def counting(name: str) -> Any:
        function = getattr(dist, name)

        def counted(*given: Any, **options: Any) -> Any:
            sent[0] += going(name, given, dist.get_rank(), dist.get_world_size())
            return function(*given, **options)

        return patch.object(dist, name, counted)

    with counting("all_to_all_single"), counting("all_gather"), counting("batch_isend_irecv"):
        step(2 * STEPS + 1, value=False)
    return Counted(bounds, sent[0], grown, seconds)


def going(name: str, given: Any, rank: int, size: int) -> float:
    """Bytes that a call sends to other processes."""
    if name == "batch_isend_irecv":
        return float(sum(each.tensor.nbytes for each in given[0] if each.op is dist.isend))
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


def main() -> None:
    """Print a table for each objective."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=300_000)
    parser.add_argument("--objectives", nargs="*", default=["sampled"])
    parser.add_argument("--processes", nargs="*", type=int, default=[1, 2, 4])
    asked = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe_machine()}; {os.getloadavg()[0]:.1f} processes wait for a core; planned / counted")
    graph = rmat(asked.nodes, 10 * asked.nodes, seed=0)
    for objective in asked.objectives:
        job = Job.of(graph, Config(objective=objective, device="cpu"))
        work = workload(job)
        rates = measure(job, work, objective)
        print(f"\n{objective}, {graph}")
        print("| processes | largest halo | sent, MB | memory, MB | core-seconds |\n|---|---|---|---|---|")
        for size in asked.processes:
            found = counts_of(size, asked.nodes, objective)
            divided = GroupWorkload(work, shares_of(graph, found[0].bounds))
            cost, sent = divided.estimate(rates, objective, job.device, float("inf"))
            halo = max(share.halo for share in divided.shares)
            cells = (
                f"{sent / 1e6:.2f} / {max(each.sent for each in found) / 1e6:.2f}",
                f"{cost.memory.host / 1e6:.0f} / {max(each.memory for each in found) / 1e6:.0f}",
                f"{cost.seconds:.2f} / {max(each.seconds for each in found):.2f}",
            )
            print(f"| {size} | {halo:,} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
