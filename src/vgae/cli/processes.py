"""A command in many processes: `--processes` starts them here, `torchrun` anywhere.

The first process speaks; the others are silent from their start. What fails in any of them is one sentence of the first
process, or of the lowest rank that is left, and none of them stays behind.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from vgae.cli.exits import exit_code_of
from vgae.cli.loading import leave, loading
from vgae.errors import InputError, VgaeError
from vgae.options import Options, option
from vgae.parallel.environment import Place, has_agent, in_group, speaks
from vgae.screen import heard_again

if TYPE_CHECKING:
    from vgae.parallel.group import Group

TERMINATED = 128 + signal.SIGTERM
LAST_WORDS = 2.0  # seconds that the first process has after SIGTERM to say why it ends
LOOK = 1.0  # seconds between two looks at whether torchrun is still there
PACKAGE = Path(__file__).parents[2]  # where this vgae was loaded from


@dataclass(frozen=True)
class ProcessOptions(Options):
    """How many processes train, and how long they wait for each other."""

    processes: int | None = option(
        None,
        least=1,
        most=4096,
        help="Train in so many processes on this machine, each with its part of the nodes; torchrun starts them on "
        "several (docs/scale.md).  [default: one]",
    )
    timeout: float = option(
        600.0, above=0, most=10**7, help="Seconds after which a process that does not answer the others is given up."
    )

    @property
    def together(self) -> bool:
        """Whether this is, or is to be, a training in several processes."""
        return (Place.here().size if in_group() else self.processes or 1) > 1

    def require_alone(self, **given: bool) -> None:
        """Refuse options that are for one process, by their names, if they are given."""
        for name, is_given in given.items():
            if is_given and self.together:
                raise InputError(
                    f"--{name.replace('_', '-')}: this option does not go with several processes; leave it out."
                )

    def run(self, task: Callable[[Group | None], None], device: str) -> None:
        """Do something in this process, in those that it starts, or as one of those that torchrun has started."""
        if in_group():
            _require_number(self.processes)
            _take_part(task, device, self.timeout)
        if (self.processes or 1) == 1:
            task(None)
            return
        leave(_start(self.processes or 1, self.timeout))  # they have said what there is to say


def _require_number(given: int | None) -> None:
    size = Place.here().size
    if given is not None and given != size:
        raise InputError(f"processes: torchrun has started {size}, not {given}; leave the option out.")


def _start(processes: int, timeout: float) -> int:
    """Start this command in so many processes; the exit code of all."""
    own_place = [] if Path.cwd() == PACKAGE else ["-P"]  # else Python would look for vgae in the working folder first
    command = [sys.executable, *own_place, "-m", "vgae", *sys.argv[1:]]
    with loading():
        launch = import_module("vgae.parallel.launch")
    try:
        code: int = launch.run_workers(command, processes, patience=timeout, debug=_debug())
    except launch.WorkersError as error:
        raise VgaeError(f"{error}; the same command with --resume continues") from None
    return code


def _take_part(task: Callable[[Group | None], None], device: str, timeout: float) -> NoReturn:
    """Do something in the group that this process was started for, and end."""
    _end_when_told()
    if has_agent():
        threading.Thread(target=_end_with_agent, args=(os.getppid(),), daemon=True).start()
    leave(exit_code_of(partial(_in_group, task, device, timeout), debug=_debug()))


def _in_group(task: Callable[[Group | None], None], device: str, timeout: float) -> None:
    with loading():
        joining, faults = import_module("vgae.parallel.joining"), import_module("vgae.parallel.faults")
    try:
        with joining.joined(device, timeout=timeout, on_failure=_speak_and_end) as group:
            task(group)
    except faults.LostError as error:
        if error.speaker == Place.here().rank:
            heard_again()
        raise


def _speak_and_end(error: BaseException) -> None:
    """Another process has failed, and this one is too busy to notice."""

    def fail() -> None:
        raise error

    leave(exit_code_of(fail))


def _end_when_told() -> None:
    """On SIGTERM, which torchrun sends when another process has failed, end; the first after a moment to say why.

    The signal wakes a thread, because the main one may wait for a message that never comes.
    """
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)

    def watch() -> None:
        while signal.SIGTERM not in os.read(reading, 1):
            pass
        time.sleep(LAST_WORDS if speaks() else 0.0)
        os._exit(TERMINATED)

    threading.Thread(target=watch, daemon=True).start()


def _end_with_agent(agent: int) -> None:
    """End when the process that has started this one, and would start it again, is gone."""
    while os.getppid() == agent:
        time.sleep(LOOK)
    os._exit(1)


def _debug() -> bool:
    return "--debug" in sys.argv[1:]
