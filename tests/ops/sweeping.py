"""Memory of the all-pairs op, as a process of its own: `python sweeping.py IMPLEMENTATION N …` prints bytes for each N.

What is measured is the highest mark of the whole process beyond what it held before, so that it does not matter who
takes the memory: torch, NumPy or compiled code. From small to large, because the system tells the highest mark only.
"""

import sys
from pathlib import Path

import torch

from vgae.ops import all_pairs_softplus


def bytes_of(name: str) -> int:
    """VmRSS, or VmHWM (the highest mark of it), of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def sweep(num_nodes: int, implementation: str) -> None:
    q = torch.randn(num_nodes, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    all_pairs_softplus(q, implementation=implementation).backward()  # type: ignore[no-untyped-call]


if __name__ == "__main__":
    sweep(2100, sys.argv[1])  # loads and compiles whatever is loaded once
    for size in sys.argv[2:]:
        before = bytes_of("VmRSS")
        sweep(int(size), sys.argv[1])
        print(bytes_of("VmHWM") - before, flush=True)
