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
from contextlib import contextmanager, nullcontext, suppress
from types import FrameType, TracebackType
from typing import NoReturn

from vgae.parallel.environment import speaks

INTERRUPTED = 130  # the exit code
_process = {"own": False}


@contextmanager
def loading() -> Iterator[None]:
    """Meanwhile Ctrl-C ends the process at once, unless it is ignored or the program has a handler of its own.

    In a process of the command's own, no garbage is collected meanwhile, and what is there afterwards is never looked
    at again: what modules make stays, and looking through it takes a sixth of the time.
    """
    with _no_collection() if _process["own"] else nullcontext(), _ending_at_once():
        yield


def own_process() -> None:
    """Say that this process is the command's own, which nothing else has to live with."""
    _process["own"] = True
    sys.excepthook = _end_quietly


def leave(code: int) -> NoReturn:
    """End the process without taking modules down one by one, which takes half a second once torch is loaded."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # nobody reads any more, or it is closed
            stream.flush()
    os._exit(code)


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


def _end_quietly(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """For sys.excepthook: a second Ctrl-C, while the first is being answered, has no traceback."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(INTERRUPTED)
    sys.__excepthook__(kind, error, trace)


def _stop(number: int, frame: FrameType | None) -> None:
    """End past all buffers and past whatever would catch an exception."""
    del number, frame
    if speaks():
        os.write(2, b"\nvgae: Interrupted; nothing was saved.\n")
    os._exit(INTERRUPTED)
