"""The machine: what a measurement ran on, in one line, and which of its devices work goes to."""

import os
import platform
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

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
    """The results of `work` for each of so many numbers, side by side: one for each thread, of which this one is one.

    A number that no other thread has begun when this one is free is done here, so that nobody waits for one to wake.
    """
    if num_threads == 1:
        return [work(0)]
    numbers, done = iter(range(num_threads)), SimpleQueue[tuple[int, Any, BaseException | None]]()

    def take() -> None:
        for number in numbers:
            try:
                done.put((number, work(number), None))
            except BaseException as error:  # noqa: BLE001 - raised again, in the thread that asked
                done.put((number, None, error))

    with _helped_by(take, num_threads - 1):
        take()
        found = sorted((done.get() for _ in range(num_threads)), key=lambda each: each[0])
    for _, _, error in found:
        if error is not None:
            raise error
    return [result for _, result, _ in found]


@contextmanager
def _helped_by(work: Callable[[], None], num_helpers: int) -> Iterator[None]:
    """While entered, other threads that have nothing to do begin this work; whoever has not begun then does not."""
    asked = [helper for helper in helpers()[:num_helpers] if helper.is_free()]
    for helper in asked:
        helper.ask(work)
    try:
        yield
    finally:
        for helper in asked:
            helper.withdraw()


class Helper(threading.Thread):
    """A thread that waits for work: to start one takes as long as the sums on a small graph."""

    def __init__(self) -> None:
        super().__init__(name="vgae", daemon=True)
        self.idle = True
        self.asked = SimpleQueue[Callable[[], object]]()
        self.dismiss: Callable[[], bool] | None = None
        self.start()

    def run(self) -> None:
        """Do what is asked for, one after the other."""
        while True:
            self.asked.get()()
            self.idle = self.asked.empty()

    def ask(self, work: Callable[[], object], dismiss: Callable[[], bool] | None = None) -> None:
        """Have it begin as soon as it wakes; `dismiss` ends work that waits for more, and tells whether it did."""
        self.idle, self.dismiss = False, dismiss
        self.asked.put(work)

    def is_free(self) -> bool:
        """Whether it has nothing to do, or has nothing to do now."""
        return self.idle or (self.dismiss is not None and self.dismiss())

    def withdraw(self) -> None:
        """Spare it what it has not begun."""
        with suppress(Empty):
            self.asked.get_nowait()
            self.idle = True


@cache
def helpers() -> list[Helper]:
    """One for each core but that of this thread."""
    return [Helper() for _ in range((os.cpu_count() or 1) - 1)]


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)  # threads stay behind


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
