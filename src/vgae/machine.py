"""The machine: what a measurement ran on, in one line, and which of its devices work goes to."""

import os
import platform
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from pathlib import Path
from typing import TypeVar

import torch

from vgae.version import __version__

Result = TypeVar("Result")


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


def is_in_one_thread() -> bool:
    """Whether PyTorch computes in one thread because that is best for a step: `in_one_thread` is entered."""
    return bool(_threads)


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


def in_threads(work: Callable[[int], Result], num_threads: int) -> list[Result]:
    """The results of `work` for each thread, the first of which is this one; work must not call this again."""
    if num_threads == 1:
        return [work(0)]
    promised = [_others().submit(work, number) for number in range(1, num_threads)]
    try:
        first = work(0)
    finally:
        wait(promised)
    return [first, *(result.result() for result in promised)]


@cache
def _others() -> ThreadPoolExecutor:
    """Threads that wait for work: to start one takes as long as the sums on a small graph."""
    return ThreadPoolExecutor(max(1, (os.cpu_count() or 1) - 1), thread_name_prefix="vgae")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_others.cache_clear)  # threads stay behind


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
