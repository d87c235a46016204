"""What tests about signals need to know about other processes."""

import signal
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 180.0  # seconds, for a busy machine


def hear_ctrl_c() -> None:
    """In a suite that runs in the background, Ctrl-C is ignored, also by the processes that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def is_running(process: int) -> bool:
    """Whether a process is there and has not ended; who it was started by may not have taken notice yet."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def children_of(process: int) -> list[int]:
    """The processes that it has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(path.read_text().rpartition(")")[2].split()[1])
        except (FileNotFoundError, ProcessLookupError):
            continue
        if parent == process:
            found.append(int(path.parent.name))
    return found


def wait_until(condition: Callable[[], object]) -> None:
    """Wait for something to come true, and fail if it does not."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)
