"""Two agents of torchrun as two machines, whose workers are killed; agents and workers are forks of this process."""

import os
import random
import signal
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from forking import (
    EVERY,
    NO_FEATURES,
    at_change,
    content_of,
    endings_of,
    finish,
    fork,
    free_port,
    iteration_of,
    kill_me,
    train,
    vgae_command,
)
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

ITERATIONS = 20


def agents(place: Path, kills: int = 2) -> dict[str, Any]:
    """Two agents of torchrun as two machines; a worker of either is killed in turn, at random moments."""
    options = [*NO_FEATURES, "--iterations", str(ITERATIONS), *EVERY]
    finish(place, 2, place / "whole", *options)
    run, port = place / "run", free_port()
    machines = [
        fork(lambda number=number: agent(port, train(run, *options), number, kills), place / f"agent-{number}")  # type: ignore[misc]
        for number in (0, 1)
    ]
    codes = endings_of(machines)
    logs = {path.name: path.read_text()[-3000:] for path in place.glob("agent-*.err")}
    same = codes == [0, 0] and content_of(run) == content_of(place / "whole")
    return {"codes": codes, "at": killed_at(run), "same bits": same, "said": logs}


def killed_at(run: Path) -> list[int]:
    """After which iterations a worker was killed."""
    try:
        return [int(line) for line in run.with_name("killed").read_text().splitlines()]
    except FileNotFoundError:
        return []


def agent(port: int, arguments: list[str], number: int, kills: int) -> None:
    """What torchrun does on a machine, with one worker, which is a fork."""
    config = LaunchConfig(
        min_nodes=2,
        max_nodes=2,
        nproc_per_node=1,
        run_id="test",
        rdzv_backend="c10d",
        rdzv_endpoint=f"127.0.0.1:{port}",
        local_addr="127.0.0.1",
        max_restarts=kills,
        start_method="fork",
    )
    try:
        launch_agent(config, worker, [arguments, number, kills])
    except (ChildFailedError, SignalException):
        sys.exit(1)


def worker(arguments: list[str], number: int, kills: int) -> None:
    """What a worker does; if it is its machine's turn, it is killed long before the training ends.

    Were one killed when the other has ended well, its agent would wait for the other agent, which has no more to do.
    """
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)  # the agent has handlers of its own, which a new program would not have
    pytest.MonkeyPatch().setattr("vgae.cli.processes.leave", _leave)
    run = Path(arguments[arguments.index("--out") + 1])
    turn = len(killed_at(run))
    before = nothing if turn >= kills or turn % 2 != number else at_change(run, random_moment(turn), partial(kill, run))
    try:
        vgae_command(arguments, {}, before)
    except _Left as end:
        if end.code:
            os._exit(end.code)


def random_moment(turn: int) -> int:
    """Which of a worker's changes to the files of a run, of which there are three an iteration, or a dozen."""
    return random.Random(turn).randint(15, 35)  # noqa: S311 - no secret


def kill(run: Path) -> None:
    """Note after which iteration, and end this process."""
    with run.with_name("killed").open("a") as file:
        file.write(f"{iteration_of(run)}\n")
    kill_me()


def nothing() -> None:
    """What a worker does first whose turn it is not."""


class _Left(BaseException):
    """What stands for the end of a process where the agent waits for a function to return."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _leave(code: int) -> None:
    raise _Left(code)
