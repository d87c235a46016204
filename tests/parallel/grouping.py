"""Real processes that talk by shared memory or by gloo: started once for each size, each runs all that it is asked.

They are forked from a server that has imported torch and vgae and has no threads yet, because importing them takes
longer than all that is tested.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from datetime import timedelta
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from vgae.parallel.group import Group
from vgae.parallel.memory import VARIABLE

BY_GLOO = 3  # processes that talk as those of several machines do
PATIENCE = 120.0  # seconds for whatever is asked


def serve(pipe: Connection, rank: int, size: int, meeting: str) -> None:
    """What a process does: join the group, then whatever comes through the pipe."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    if size == BY_GLOO:
        os.environ[VARIABLE] = "0"
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{meeting}", rank=rank, world_size=size, timeout=timedelta(seconds=PATIENCE)
    )
    group = Group("cpu")
    while True:
        task = pipe.recv()
        if task is None:
            return
        work, given = task
        try:
            pipe.send((work(group, *given), None))
        except Exception:  # noqa: BLE001 - whatever it is, the test tells
            pipe.send((None, traceback.format_exc()))
            return


class Processes:
    """A group of processes that can be asked to run a function, which each gets its group with."""

    def __init__(self, size: int, folder: Path) -> None:
        context = get_context("forkserver")
        context.set_forkserver_preload(
            ["torch.distributed", "vgae.train.loop", "vgae.graph.synthetic", "reading_cases"]
        )
        self.size = size
        self.ends = ExitStack()
        self.pipes = []
        for rank in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=serve, args=(theirs, rank, size, str(folder / f"meeting-{size}")))
            process.daemon = True
            process.start()
            theirs.close()
            self.pipes.append(ours)
            self.ends.callback(process.join, 10)
            self.ends.callback(_end, ours)

    def run(self, work: Callable[..., Any], *given: Any) -> list[Any]:
        """What each process returns, by rank."""
        return self.run_each(work, [given] * self.size)

    def run_each(self, work: Callable[..., Any], given: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The same with what each process is given, by rank."""
        for pipe, own in zip(self.pipes, given, strict=True):
            pipe.send((work, own))
        found = []
        for rank, pipe in enumerate(self.pipes):
            assert pipe.poll(PATIENCE), f"process {rank} of {self.size} does not answer"
            result, error = pipe.recv()
            assert error is None, f"process {rank} of {self.size}:\n{error}"
            found.append(result)
        return found

    def close(self) -> None:
        """End them."""
        self.ends.close()


def _end(pipe: Connection) -> None:
    try:
        pipe.send(None)
    except OSError:  # it has ended already
        pipe.close()
