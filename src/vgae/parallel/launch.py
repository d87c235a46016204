"""Many processes of one command on this machine, started and watched by PyTorch's own elastic agent.

The agent is what `torchrun` runs: each process finds its rank in the environment, they meet on the loopback interface
at a port that is free, and when one of them fails the others are ended. `torchrun` itself starts them on several
machines, and starts them again after a failure.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, launch_agent

from vgae.errors import VgaeError

LOOPBACK = "127.0.0.1"
INTERRUPTED = 130  # the exit code after Ctrl-C
UNIX_SIGNALS = ("SIGHUP", "SIGQUIT")  # that the agent takes too


class WorkersError(VgaeError):
    """A process was ended by something other than vgae; the message says which one, and how."""


def run_workers(command: Sequence[str], processes: int, *, patience: float, debug: bool = False) -> int:
    """Run a command in so many processes; the exit code of all when they have ended, each having said what it had to.

    On Ctrl-C they have `patience` seconds to end by themselves. With `debug` the agent's own log is shown.
    """
    try:
        with _log(shown=debug), _environment(_variables(processes, patience, debug=debug)), _own_signals():
            config = LaunchConfig(
                min_nodes=1,
                max_nodes=1,
                nproc_per_node=processes,
                run_id=str(uuid.uuid4()),
                rdzv_backend="c10d",
                rdzv_endpoint=f"{LOOPBACK}:0",
                local_addr=LOOPBACK,
                max_restarts=0,
            )
            launch_agent(config, command[0], list(command[1:]))
    except ChildFailedError as error:
        return _code_of({rank: failure.exitcode for rank, failure in error.failures.items()})
    except SignalException as stop:
        return INTERRUPTED if stop.sigval == signal.SIGINT else 128 + stop.sigval
    return 0


def _code_of(codes: dict[int, int]) -> int:
    """The exit code of a command whose processes have failed with these."""
    ended = (-signal.SIGTERM, 128 + signal.SIGTERM)  # by the agent, because another had failed
    for rank, code in sorted(codes.items()):
        if code < 0 and code not in ended:
            name = signal.Signals(-code).name
            cause = ", most likely because memory ran out" if name == "SIGKILL" else ""
            raise WorkersError(f"Rank {rank} was ended by {name}{cause}")
    return next((code for _, code in sorted(codes.items()) if code not in ended), 1)


def _variables(processes: int, patience: float, *, debug: bool) -> dict[str, str]:
    """What the processes find in their environment, unless the user has set it."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    found = {
        "OMP_NUM_THREADS": str(max(1, cores // processes)),
        "TORCH_CPP_LOG_LEVEL": "INFO" if debug else "FATAL",
        "TORCH_ELASTIC_SHUTDOWN_TIMEOUT": str(max(1, round(patience))),
    }
    loopback = next((name for _, name in socket.if_nameindex() if name.startswith("lo")), None)
    if loopback is not None:  # else gloo looks for an interface by the machine's name
        found["GLOO_SOCKET_IFNAME"] = loopback
    return {name: value for name, value in found.items() if name not in os.environ}


@contextmanager
def _own_signals() -> Iterator[None]:
    """The agent takes signals, and leaves them taken; afterwards they are this process's again."""
    taken = [signal.SIGINT, signal.SIGTERM, *(getattr(signal, name) for name in UNIX_SIGNALS if hasattr(signal, name))]
    before = {number: signal.getsignal(number) for number in taken}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Meanwhile there are these variables too."""
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            os.environ.pop(name, None)


@contextmanager
def _log(*, shown: bool) -> Iterator[None]:
    """The agent logs to standard error, in its own words, what is said in ours."""
    before = logging.root.manager.disable
    if not shown:
        logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)
