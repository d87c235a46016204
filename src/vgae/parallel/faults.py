"""What becomes of a group when one of its processes fails, ends or no longer answers.

A process that fails says why on the board, and ends. The others notice that its messages no longer arrive, look there,
and fail for the same reason. If nobody has said anything, those who have noticed post that, and whoever has neither
failed nor noticed within a moment is the one that has ended or hangs: it is named, and ended if it can be.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch.distributed as dist

from vgae.errors import InputError, StoppedError, TrainingError, VgaeError
from vgae.parallel.board import PAUSE, Board, BoardError
from vgae.parallel.meeting import Processes

GRACE = 3.0  # seconds that processes have to say that they are still there
LONGER = 1.0  # seconds that those who say nothing wait for the one that speaks
MESSAGE = re.compile(r"gloo|nccl|connection (closed|reset|refused)|broken pipe|timed out|socket", re.IGNORECASE)
TIMED_OUT = re.compile(r"timed out waiting", re.IGNORECASE)
BOOT, NAMESPACE = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/self/ns/pid")


class LostError(VgaeError):
    """Processes of the group have ended or do not answer; the lowest rank of those that are left says so."""

    def __init__(self, message: str, missing: Collection[int] = (), size: int = 1) -> None:
        super().__init__(message)
        self.missing = frozenset(missing)
        self.speaker = min(set(range(size)) - self.missing, default=0)


def this_process() -> dict[str, Any]:
    """Who this process is, for those who may have to name or to end it."""
    with suppress(OSError):
        machine = f"{BOOT.read_text().strip()} {NAMESPACE.stat().st_ino}"
        return {"host": socket.gethostname(), "process": os.getpid(), "agent": os.getppid(), "machine": machine}
    return {"host": socket.gethostname(), "process": os.getpid(), "agent": os.getppid(), "machine": None}


def is_lost(error: BaseException) -> bool:
    """Whether an error says that messages of others do not arrive."""
    if isinstance(error, VgaeError):
        return False
    return isinstance(error, dist.DistError) or (isinstance(error, RuntimeError) and bool(MESSAGE.search(str(error))))


def post_failure(board: Board, error: BaseException) -> None:
    """Say why this process fails, for the others."""
    kind = "input" if isinstance(error, InputError) else "failure"
    kind = "stop" if isinstance(error, KeyboardInterrupt | StoppedError) else kind
    words = str(error) if isinstance(error, VgaeError) else f"{type(error).__name__}: {error}"
    with suppress(BoardError):
        board.post("failed", {"kind": kind, "words": words, "time": time.time()})


def posted_failure(board: Board, processes: Processes) -> BaseException | None:
    """The first failure that somebody has posted, as an error to raise here."""
    found = {rank: note for rank, note in board.posted("failed").items() if rank != board.rank}
    if not found:
        return None
    rank = min(found, key=lambda each: float(found[each]["time"]))
    kind, words = found[rank]["kind"], f"{name_of(rank, processes)}: {found[rank]['words']}"
    if kind == "stop":
        return KeyboardInterrupt(words)
    return InputError(words) if kind == "input" else TrainingError(words)


def why_lost(board: Board, error: BaseException, processes: Processes, timeout: float) -> BaseException:
    """Why messages no longer arrive: another's failure, or processes that have ended or hang."""
    board.patience = GRACE
    try:
        failure, missing = _looked_for(board, processes)
    except BoardError as gone:
        if board.keeper is None:
            return LostError(f"The process that started this one does not answer or has ended ({_first_line(gone)}).")
        failure, missing = None, {board.keeper}
    if failure is not None:
        return failure
    if not missing:
        return LostError(f"Messages between the processes do not arrive ({_first_line(error)}); look at the network.")
    hangs = bool(TIMED_OUT.search(str(error)))
    found = LostError(_missing_words(missing, processes, timeout if hangs else None), missing, board.size)
    if board.rank == found.speaker:
        _end(missing, processes)
    else:
        time.sleep(LONGER)
    return found


def _looked_for(board: Board, processes: Processes) -> tuple[BaseException | None, set[int]]:
    """What another process has failed with, or those that nobody has heard of; whoever knows first tells the others."""
    board.post("lost", True)
    end = time.monotonic() + GRACE
    while True:
        failure = posted_failure(board, processes)
        if failure is not None:
            board.post("heard", True)
            return failure, set()
        told = board.posted("missing")
        missing = set(next(iter(told.values()))) if told else set(range(board.size)) - set(board.posted("lost"))
        if told or not missing or time.monotonic() > end:
            break
        time.sleep(PAUSE)
    board.post("missing", sorted(missing))
    end = time.monotonic() + LONGER
    while board.rank == board.keeper and len(board.posted("missing")) < board.size - len(missing):
        if time.monotonic() > end:
            break
        time.sleep(PAUSE)
    return None, missing


def not_answering(missing: Collection[int], processes: Processes, timeout: float, size: int) -> LostError:
    """The error about processes that were waited for in vain."""
    return LostError(_missing_words(missing, processes, timeout), missing, size)


def name_of(rank: int, processes: Processes) -> str:
    """A process for people: its rank, and where it is."""
    if rank not in processes:
        return f"Rank {rank}"
    return f"Rank {rank} (process {processes[rank]['process']} on {processes[rank]['host']})"


def _missing_words(missing: Collection[int], processes: Processes, timeout: float | None) -> str:
    names = ", ".join(name_of(rank, processes) for rank in sorted(missing))
    one = len(missing) == 1
    if timeout is None:
        return f"{names} {'has' if one else 'have'} ended without saying why; continue with --resume."
    return (
        f"{names} {'does' if one else 'do'} not answer: {timeout:g} s have passed; continue with --resume, and use a "
        "longer --timeout if that was too short."
    )


def _end(missing: Collection[int], processes: Processes) -> None:
    """End those that hang, if they are workers of the same agent on this machine: nothing stays behind."""
    own = this_process()
    for rank in missing:
        each = processes.get(rank)
        if each is not None and own["machine"] and (each["machine"], each["agent"]) == (own["machine"], own["agent"]):
            with suppress(OSError):
                os.kill(int(each["process"]), getattr(signal, "SIGKILL", signal.SIGTERM))


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200].rstrip(".")
