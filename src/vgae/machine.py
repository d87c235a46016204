"""The machine: what a measurement ran on, in one line, and which of its devices work goes to."""

import os
import platform
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import torch

from vgae.version import __version__


def describe_machine() -> str:
    """Processor, cores, accelerator and versions."""
    parts = [f"{_processor()}, {os.cpu_count()} cores"]
    if torch.cuda.is_available():
        parts.append(torch.cuda.get_device_name())
    parts.append(f"Python {platform.python_version()}, torch {torch.__version__}, vgae {__version__}")
    return " · ".join(parts)


def working_on(device: torch.device) -> AbstractContextManager[None]:
    """While entered, this GPU is the current one: streams, recordings and kernels go to the current device."""
    entered: AbstractContextManager[None] = torch.cuda.device(device) if device.type == "cuda" else nullcontext()
    return entered


_threads: list[int] = []  # that kernels may use, where PyTorch uses fewer


def num_threads() -> int:
    """How many threads our own kernels may use: as many as PyTorch, unless it computes `in_one_thread`."""
    return _threads[-1] if _threads else torch.get_num_threads()


@contextmanager
def in_one_thread() -> Iterator[None]:
    """While entered, PyTorch computes in one thread, and our own kernels in as many as before.

    PyTorch wakes its threads for each operation, for which a small one does not wait long enough to gain by it.
    """
    before = torch.get_num_threads()
    _threads.append(num_threads())
    torch.set_num_threads(1)
    try:
        yield
    finally:
        _threads.pop()
        torch.set_num_threads(before)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
