"""Trials one after the other in this process, or side by side in processes of their own, each with one thread.

The search itself is in this process alone: it proposes, hears of scores on the way, and decides. A worker knows the
training graph and the validation pairs, and answers one trial after the other.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Any, Protocol

import torch

from vgae.search.trial import FAILED, Material, Outcome, Task, run_trial
from vgae.workers import WorkerKilledError, how_it_ended, talking_process

GUARD = 'a script that searches with several workers needs the guard if __name__ == "__main__"'


class Director(Protocol):
    """Who decides what is tried."""

    def next_task(self) -> Task | None:
        """What to try next; None when there is nothing more."""

    def heard(self, task: Task, iteration: int, score: float) -> bool:
        """A score on the way; whether to stop the trial."""

    def finished(self, task: Task, outcome: Outcome) -> None:
        """What became of a trial."""


def run_trials(material: Material, director: Director, *, workers: int) -> None:
    """Trials until the director has no more; with one worker in this process."""
    if workers > 1:
        _Pool(material, director, workers).run()
        return
    while (task := director.next_task()) is not None:
        director.finished(task, run_trial(material, task, partial(director.heard, task)))


class _Pool:
    """Some workers; one that dies has failed in its trial, and another takes its place."""

    def __init__(self, material: Material, director: Director, workers: int) -> None:
        self.material, self.director, self.workers = material, director, workers
        self.busy: dict[Any, tuple[SpawnProcess, Task]] = {}
        self.ready: set[Any] = set()

    def run(self) -> None:
        with ExitStack() as started:
            while len(self.busy) < self.workers and (task := self.director.next_task()) is not None:
                self._start(started, task)
            while self.busy:
                for pipe in wait(list(self.busy)):
                    self._answer(pipe, started)

    def _start(self, started: ExitStack, task: Task) -> None:
        process, pipe = started.enter_context(talking_process(_serve, self.material))
        self.busy[pipe] = process, task
        _send(pipe, task)

    def _answer(self, pipe: Any, started: ExitStack) -> None:
        """Hear a worker out, and give it what it needs."""
        process, task = self.busy[pipe]
        try:
            kind, *said = pipe.recv()
        except (EOFError, ConnectionError):
            process.join()
            if pipe not in self.ready:  # which the next one would not be either
                raise WorkerKilledError(f"{how_it_ended(process, task)}, before it began; {GUARD}") from None
            del self.busy[pipe]
            self.director.finished(task, Outcome(FAILED, reason=how_it_ended(process, task)))
            if (following := self.director.next_task()) is not None:
                self._start(started, following)
            return
        if kind == "ready":
            self.ready.add(pipe)
            return
        if kind == "score":
            _send(pipe, self.director.heard(task, *said))
            return
        del self.busy[pipe]
        self.director.finished(task, *said)
        if (following := self.director.next_task()) is not None:
            self.busy[pipe] = process, following
            _send(pipe, following)


def _send(pipe: Any, content: Any) -> None:
    try:
        pipe.send(content)
    except ConnectionError:
        return  # it has ended, which shows when it is heard out


def _serve(pipe: Connection, material: Material) -> None:
    """What a worker does; one thread each, so that a result does not depend on what else is running."""
    torch.set_num_threads(1)
    pipe.send(("ready",))

    def report(iteration: int, score: float) -> bool:
        pipe.send(("score", iteration, score))
        return bool(pipe.recv())

    while True:
        task = pipe.recv()
        pipe.send(("done", run_trial(material, task, report)))
