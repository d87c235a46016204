"""`vgae` in groups of processes that are forks of this one, so that Python and torch are loaded once.

Each has the environment that torchrun sets for a process, and what it says goes to files.
"""

import gc
import io
import json
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "GLOO_SOCKET_IFNAME": "lo"}
os.environ["TORCH_CPP_LOG_LEVEL"] = "FATAL"

import pytest

from vgae.cli.app import main

PATIENCE = 180.0  # seconds, for a busy machine
CHANGES = ("open", "os.mkdir", "os.remove", "os.rename", "os.rmdir")  # what Python tells before it does it
OPTIONS = ["--preset", "paper", "--no-verdict", "--hidden-dim", "8", "--latent-dim", "4", "--iterations", "12"]
EVERY = ["--checkpoint-every", "0"]
NO_FEATURES = [*OPTIONS, "--model", "gae", "--objective", "sampled", "--no-features"]  # weights have rows of nodes


@dataclass(frozen=True)
class Ended:
    """How a process has ended, and what it has said."""

    code: int
    out: str
    said: str


class Command:
    """`vgae …`, or something else, in some processes, each with its own arguments and something that it does first."""

    def __init__(
        self,
        place: Path,
        size: int,
        *arguments: str,
        others: Mapping[int, Sequence[str]] | None = None,
        before: Mapping[int, Callable[[], None]] | None = None,
        environment: Mapping[str, str] | None = None,
        do: Callable[[], None] = main,
    ) -> None:
        self.place = place
        meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(size)}
        self.processes = [
            fork(
                lambda rank=rank: vgae_command(  # type: ignore[misc]
                    (others or {}).get(rank, arguments),
                    {**({} if size == 1 else meeting | {"RANK": str(rank)}), **(environment or {})},
                    (before or {}).get(rank, lambda: None),
                    do,
                ),
                place / f"said-{rank}",
            )
            for rank in range(size)
        ]

    def wait(self) -> list[Ended]:
        """How each has ended; one that has not after a minute is killed."""
        codes = endings_of(self.processes)
        return [
            Ended(code, (self.place / f"said-{rank}.out").read_text(), (self.place / f"said-{rank}.err").read_text())
            for rank, code in enumerate(codes)
        ]


def vgae_command(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    before: Callable[[], None] = lambda: None,
    do: Callable[[], None] = main,
) -> None:
    """What a process of the command does."""
    os.environ |= environment
    sys.argv = ["vgae", *arguments]
    before()
    do()


def fork(task: Callable[[], None], log: Path) -> int:
    """A process that does something, and whose words go to files; its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        for number, ending in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(f"{log}{ending}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        task()
        code = 0
    except SystemExit as end:
        code = int(end.code or 0)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def endings_of(processes: Sequence[int]) -> list[int]:
    """Exit codes, or minus the signals; whoever takes too long is killed."""
    end, codes = time.monotonic() + PATIENCE, dict.fromkeys(processes, 0)
    left = set(processes)
    while left:
        for process in list(left):
            done, status = os.waitpid(process, os.WNOHANG)
            if done:
                codes[process] = os.waitstatus_to_exitcode(status)
                left.remove(process)
        if time.monotonic() > end:
            for process in left:
                os.kill(process, signal.SIGKILL)
        time.sleep(0.03)
    return [codes[process] for process in processes]


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def content_of(run: Path) -> dict[str, Any]:
    """All that must be the same whether a training was interrupted or not."""
    history = [json.loads(line) for line in (run / "history.jsonl").read_text().splitlines()]
    for entry in history:
        del entry["seconds"]
    files = sorted(path.name for path in run.iterdir())
    return {
        "weights": (run / "model.safetensors").read_bytes().hex(),
        "metrics": (run / "metrics.json").read_text(),
        "history": history,
        "files": files,
    }


def at_change(run: Path, count: int, act: Callable[[], None]) -> Callable[[], None]:
    """Have something done just before this process's n-th change to a file of the run."""

    def listen() -> None:
        left = count

        def hear(event: str, arguments: tuple[Any, ...]) -> None:
            nonlocal left
            if event not in CHANGES or not str(arguments[0]).startswith(str(run)):
                return
            if event == "open" and not arguments[2] & (os.O_CREAT | os.O_WRONLY | os.O_RDWR):
                return
            left -= 1
            if left == 0:
                act()

        sys.addaudithook(hear)

    return listen


def kill_me() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stop_me() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def train(run: Path, *options: str) -> list[str]:
    return ["train", str(run.parent / "graph.npz"), "--out", str(run), *options]


def finish(place: Path, size: int, run: Path, *options: str) -> list[Ended]:
    """A training that is to succeed."""
    ended = Command(place, size, *train(run, *options)).wait()
    assert [each.code for each in ended] == [0] * size, ended
    return ended


def iteration_of(run: Path) -> int | None:
    """Up to which iteration a training is saved; None if it is complete."""
    try:
        return int(json.loads((run / "checkpoint" / "checkpoint.json").read_text())["iteration"])
    except FileNotFoundError:
        return None if (run / "config.json").exists() else 0


def load_everything(place: Path) -> None:
    """Train once, so that what is loaded only when it is used is there before the forks."""
    sys.argv[1:] = ["train", str(place / "graph.npz"), "--out", str(place / "first"), "--json", *OPTIONS]
    with redirect_stdout(io.StringIO()):
        main()
    gc.freeze()
    pytest.MonkeyPatch().setattr(os, "fsync", lambda _: None)  # a kill loses nothing that was written
