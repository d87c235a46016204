"""Two agents of torchrun as two machines, whose workers are killed; agents and workers are forks of this process."""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from forking import (
    EVERY,
    NO_FEATURES,
    content_of,
    endings_of,
    finish,
    fork,
    free_port,
    iteration_of,
    train,
    vgae_command,
)
from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

from processes import children_of

ITERATIONS = 20


def agents(place: Path, kills: int = 2) -> dict[str, Any]:
    """Two agents of torchrun as two machines; a worker of either is killed again and again, at random moments."""
    options = [*NO_FEATURES, "--iterations", str(ITERATIONS), *EVERY]
    finish(place, 2, place / "whole", *options)
    run, port, chance = place / "run", free_port(), random.Random(0)  # noqa: S311 - moments to kill at, no secrets
    machines = [fork(lambda: agent(port, train(run, *options), kills), place / f"agent-{number}") for number in (0, 1)]
    at: list[int] = []
    while len(at) < kills and (saved := iteration_of(run)) is not None:
        if saved >= (len(at) + chance.random()) * ITERATIONS / kills:
            time.sleep(0.1 * chance.random())
            workers = children_of(machines[len(at) % 2])
            os.kill(workers[0], signal.SIGKILL)
            at.append(saved)
        time.sleep(0.03)
    codes = endings_of(machines)
    logs = {path.name: path.read_text()[-3000:] for path in place.glob("agent-*.err")}
    same = codes == [0, 0] and content_of(run) == content_of(place / "whole")
    return {"codes": codes, "at": at, "same bits": same, "said": logs}


def agent(port: int, arguments: list[str], restarts: int) -> None:
    """What torchrun does on a machine, with one worker, which is a fork."""
    config = LaunchConfig(
        min_nodes=2,
        max_nodes=2,
        nproc_per_node=1,
        run_id="test",
        rdzv_backend="c10d",
        rdzv_endpoint=f"127.0.0.1:{port}",
        local_addr="127.0.0.1",
        max_restarts=restarts,
        start_method="fork",
    )
    try:
        launch_agent(config, worker, [arguments])
    except (ChildFailedError, SignalException):
        sys.exit(1)


def worker(arguments: list[str]) -> None:
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, signal.SIG_DFL)  # the agent has handlers of its own, which a new program would not have
    pytest.MonkeyPatch().setattr("vgae.cli.processes.leave", _leave)
    try:
        vgae_command(arguments, {})
    except _Left as end:
        if end.code:
            os._exit(end.code)


class _Left(BaseException):
    """What stands for the end of a process where the agent waits for a function to return."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def _leave(code: int) -> None:
    raise _Left(code)
