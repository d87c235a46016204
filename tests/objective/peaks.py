"""Memory of trainings, as a process of its own, because freed memory that a process keeps is part of what is measured.

python peaks.py JSON    one line for each [nodes, links per node, features, objective, options]: estimate / measured,
from small to large, because the system tells the highest mark only
python peaks.py limit OBJECTIVE   trains what needs 0.12 GB where the process may take 0.1 GB more than it has, and
prints the number of nodes in a step, and why
"""

import ctypes
import json
import resource
import sys
from pathlib import Path
from typing import Any

import vgae
from helpers import graph_with
from vgae.train.config import Config
from vgae.train.job import Job, workload
from vgae.train.loop import train


def bytes_of(name: str) -> int:
    """VmRSS, VmHWM (the highest mark of it) or VmSize of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def measure(cases: list[tuple[int, int, str, str, dict[str, Any]]]) -> None:
    train(Job.of(graph_with(2100, 2, "none"), Config(iterations=2)))  # loads whatever is loaded once
    for num_nodes, links, features, objective, options in cases:
        config = Config(objective=objective, iterations=2, eval_every=1, device="cpu", **options)
        job = Job.of(graph_with(num_nodes, links, features), config)
        ctypes.CDLL(None).malloc_trim(0)  # what earlier cases left is not there for this one
        before = bytes_of("VmRSS")
        train(job)
        peak = bytes_of("VmHWM") - before
        print(workload(job).memory_needed(objective).host / peak, flush=True)


def train_within_a_limit(objective: str) -> None:
    graph = graph_with(65_000, 3, "none")
    model = vgae.VGAE(objective=objective, iterations=1, device="cpu")  # which loads all modules
    resource.setrlimit(resource.RLIMIT_AS, (bytes_of("VmSize") + 100_000_000, resource.RLIM_INFINITY))
    run = model.fit(graph).run_
    print(run.config.batch_size, run.facts.objective_reason, sep="|")


if __name__ == "__main__":
    if sys.argv[1] == "limit":
        train_within_a_limit(sys.argv[2])
    else:
        measure(json.loads(sys.argv[1]))
