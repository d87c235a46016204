"""Work side by side in processes of their own, which end when this one does, however it ends.

Each worker has a pipe to this process, over which tasks come and results go. It watches this process in a thread, by a
pipe that the operating system closes when this process is gone: killed or not, no worker outlives it. Ctrl-C in a
terminal reaches every process of the command; workers ignore it, this process ends them.
"""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from multiprocessing.resource_tracker import ensure_running
from typing import Any, Generic, TypeVar

from vgae.errors import VgaeError

Task = TypeVar("Task")
Done = TypeVar("Done")


class WorkerKilledError(VgaeError):
    """A worker ended without a result; the message says how."""


@dataclass(frozen=True)
class _Worker(Generic[Task]):
    """A process, the pipe to it, and the task that it is on."""

    process: SpawnProcess
    pipe: Connection
    task: Task


def results_of(work: Callable[[Task], Done], tasks: Sequence[Task], *, num_workers: int) -> Generator[Done]:
    """The results of a function for each task, as they come.

    Processes are started afresh rather than forked: threads of the numerical libraries do not survive a fork.
    """
    waiting = list(reversed(tasks))
    with ExitStack() as started:
        busy: dict[Connection, _Worker[Task]] = {}
        for _ in range(min(num_workers, len(tasks))):
            worker = _Worker(*started.enter_context(talking_process(_serve, work)), waiting.pop())
            busy[worker.pipe] = worker
            _send(worker.pipe, worker.task)
        while busy:
            for pipe in wait(list(busy)):
                worker = busy.pop(pipe)  # type: ignore[call-overload]  # only connections are waited for
                done: Done = _received(worker)
                if waiting:
                    task = waiting.pop()
                    _send(worker.pipe, task)
                    busy[worker.pipe] = _Worker(worker.process, worker.pipe, task)
                yield done


@contextmanager
def talking_process(serve: Callable[..., None], *given: Any) -> Iterator[tuple[SpawnProcess, Connection]]:
    """A process that runs serve(pipe, *given), and our end of the pipe; the process is ended afterwards."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(serve, theirs, *given), daemon=True)
    try:
        with _ctrl_c_blocked():
            process.start()
        theirs.close()  # so that the pipe ends when the worker does
        yield process, ours
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        ours.close()


@contextmanager
def _ctrl_c_blocked() -> Iterator[None]:
    """A process that is started meanwhile ignores Ctrl-C for good; this one receives it afterwards.

    The new process inherits which signals are blocked. In this one that is not enough, because another thread may take
    the signal, so that the handler, too, is one that only remembers.
    """
    received: list[int] = []
    handler = signal.getsignal(signal.SIGINT)
    listening = threading.current_thread() is threading.main_thread() and callable(handler)
    if listening:
        signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    if hasattr(signal, "pthread_sigmask"):
        ensure_running()  # Python's own helper process, whose start would have Ctrl-C received again
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if listening:
            signal.signal(signal.SIGINT, handler)
    if received:
        signal.raise_signal(signal.SIGINT)


def _send(pipe: Connection, task: Any) -> None:
    with suppress(BrokenPipeError):  # it has ended, which shows when its result is waited for
        pipe.send(task)


def _received(worker: _Worker[Task]) -> Any:
    try:
        done, error = worker.pipe.recv()
    except (EOFError, ConnectionError):
        worker.process.join()
        raise WorkerKilledError(how_it_ended(worker.process, worker.task)) from None
    if error is not None:
        raise error
    return done


def how_it_ended(process: SpawnProcess, task: Any) -> str:
    """Why a worker ended without a result, by the exit code of its process."""
    code = process.exitcode or 0
    if code == -signal.SIGKILL:
        return f"A worker was killed while it ran {task}, most likely because memory ran out"
    if code < 0:
        return f"A worker was ended by {signal.Signals(-code).name} while it ran {task}"
    return f"A worker ended with exit code {code} while it ran {task}"


def _run(serve: Callable[..., None], pipe: Connection, *given: Any) -> None:
    """What the process of a worker does, until there is nothing more to do or the parent has ended."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with suppress(EOFError, ConnectionError):
        serve(pipe, *given)


def _serve(pipe: Connection, work: Callable[[Task], Done]) -> None:
    """One task after the other."""
    while True:
        task = pipe.recv()
        try:
            pipe.send((work(task), None))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is raised where the results are waited for
            pipe.send((None, _portable(error)))


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)


def _portable(error: Exception) -> Exception:
    """An error that can be sent, with the traceback of where it was raised."""
    where = "".join(traceback.format_exception(error))
    if not isinstance(error, VgaeError | MemoryError | OSError):  # others may not survive the way, or not load here
        error = RuntimeError(f"{type(error).__name__}: {error}")
    error.add_note(where)
    return error
