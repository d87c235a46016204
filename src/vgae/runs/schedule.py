"""When a checkpoint is written is a matter of time.

With e the seconds since training started in this process, w those spent on writing, and d what the next write should
take (the last one's time; before the first, a guess by its size), one is written as soon as

    w + d ≤ SHARE·e   and   PAUSE seconds have passed since the last one or the start.

So writing stays within that share of the time, but for what a single write takes longer than the one before it, which
later ones wait for; and a training that is over in a few seconds writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable

SHARE = 0.01  # of the time may go into writing
PAUSE = 10.0  # seconds between two checkpoints, at least
SLOW_DISK = 100e6  # bytes per second, assumed until one checkpoint has been written


class Schedule:
    """Says when the next checkpoint is due; `every` so many seconds, or (None) by the rule above."""

    def __init__(
        self, num_bytes: float = 0.0, *, every: float | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.expected, self.every, self.clock = num_bytes / SLOW_DISK, every, clock
        self.started = self.last = clock()
        self.spent = 0.0

    def due(self) -> bool:
        """Whether to write now."""
        now = self.clock()
        if self.every is not None:
            return now - self.last >= self.every
        return now - self.last >= PAUSE and self.spent + self.expected <= SHARE * (now - self.started)

    def wrote(self, seconds: float) -> None:
        """A checkpoint has just been written, in so many seconds."""
        self.spent += seconds
        self.expected = seconds
        self.last = self.clock()
