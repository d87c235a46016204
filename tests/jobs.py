"""Work for workers: they load this file, which therefore loads little."""

import os
import signal
from dataclasses import dataclass

from vgae.errors import InputError


@dataclass(frozen=True)
class Job:
    """What one worker is asked to do."""

    number: int
    deed: str = "square"


def do(job: Job) -> tuple[int, int]:
    """The square of a number, or something that goes wrong."""
    if job.deed == "refuse":
        raise InputError(f"job {job.number} is refused.")
    if job.deed == "fail":
        raise KeyError(job.number)
    if job.deed == "memory":
        raise MemoryError("all of it")
    if job.deed == "exit":
        os._exit(7)
    if job.deed.startswith("SIG"):
        os.kill(os.getpid(), signal.Signals[job.deed])
    return job.number, job.number**2
