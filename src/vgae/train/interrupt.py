"""Ctrl-C in training: the first asks for a stop after this iteration, the second stops at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self


class StopRequest:
    """Listens for Ctrl-C while it is entered, unless the program has a handler of its own or this is another thread."""

    def __init__(self, tell: Callable[[], None]) -> None:
        self.asked = False
        self.tell = tell
        self.listening = False

    def __enter__(self) -> Self:
        in_main_thread = threading.current_thread() is threading.main_thread()
        if in_main_thread and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._hear)
            self.listening = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.listening:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            self.listening = False

    def _hear(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.tell()
