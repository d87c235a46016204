"""Ctrl-C while modules are loaded.

Loading torch and the rest takes seconds, in which Ctrl-C would end in a traceback out of another library, or be
swallowed by it. This file itself loads next to nothing, so that Ctrl-C is listened for early.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

INTERRUPTED = 130  # the exit code


@contextmanager
def loading() -> Iterator[None]:
    """Meanwhile Ctrl-C ends the process at once, unless it is ignored or the program has a handler of its own."""
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not in_main_thread or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    signal.signal(signal.SIGINT, _stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def end_quietly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For sys.excepthook: a second Ctrl-C, while the first is being answered, has no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


def _stop(number: int, frame: FrameType | None) -> None:
    """End past all buffers and past whatever would catch an exception."""
    del number, frame
    os.write(2, b"\nvgae: Interrupted; nothing was saved.\n")
    os._exit(INTERRUPTED)
