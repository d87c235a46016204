"""Loading modules: quickly, and with an ear for Ctrl-C.

Loading torch and the rest takes seconds, in which Ctrl-C would end in a traceback out of another library, or be
swallowed by it. This file itself loads next to nothing, so that Ctrl-C is listened for early.
"""

import gc
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType, TracebackType

INTERRUPTED = 130  # the exit code


@contextmanager
def loading() -> Iterator[None]:
    """Meanwhile Ctrl-C ends the process at once, unless it is ignored or the program has a handler of its own.

    In the command's own process, no garbage is collected meanwhile, and what is there afterwards is left alone for good:
    what modules make stays, and looking through it again and again takes a sixth of the time.
    """
    with _no_collection() if sys.excepthook is end_quietly else nullcontext(), _ending_at_once():
        yield


@contextmanager
def _no_collection() -> Iterator[None]:
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def _ending_at_once() -> Iterator[None]:
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
    """For sys.excepthook of the command's own process: a second Ctrl-C, during the first, has no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


def _stop(number: int, frame: FrameType | None) -> None:
    """End past all buffers and past whatever would catch an exception."""
    del number, frame
    os.write(2, b"\nvgae: Interrupted; nothing was saved.\n")
    os._exit(INTERRUPTED)
