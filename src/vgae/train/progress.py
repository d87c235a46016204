"""Progress on standard error: which objective was picked and why, then loss, its two terms, score and time left."""

from __future__ import annotations

import os
from contextlib import suppress
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn

from vgae.screen import note
from vgae.train.callbacks import Callback
from vgae.train.state import LogEntry


class Bar:
    """A bar on standard error with a text beside it, drawn only where somebody can see it, on a terminal."""

    def begin_bar(self, total: float, *columns: ProgressColumn, console: Console | None = None) -> None:
        """Make the bar; `status` is the text's field. A console that is quiet shows none."""
        console = console or Console(stderr=True, markup=False, emoji=False, highlight=False)
        hidden = console.quiet or not console.is_terminal
        self.bar = Progress(BarColumn(bar_width=12), *columns, console=console, transient=True, disable=hidden)
        self.task = self.bar.add_task("", total=total, status="")

    def __enter__(self) -> Self:
        self.bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bar.stop()


class FittingBar(Bar, Callback):
    """Watches a fitting, and says what else there is to say about it."""

    def on_threads(self, number: int) -> None:
        """Say that the number of threads is that of before."""
        note(f"using {number} threads, as this training did before")

    def on_warning(self, text: str) -> None:
        """Say what went wrong."""
        note(text)


class ProgressBar(FittingBar):
    """Watches one training run."""

    def __init__(self, iterations: int) -> None:
        status = TextColumn("{task.fields[status]}", markup=False)
        self.begin_bar(iterations, MofNCompleteColumn(), status, TimeRemainingColumn())

    def on_start(self, objective: str, reason: str) -> None:
        """Say which objective is used, and why."""
        note(f"objective: {objective} ({reason})")

    def on_resume(self, iteration: int) -> None:
        """Say where an earlier training is continued; the time left is estimated from there."""
        note(f"continuing after iteration {iteration}")
        self.bar.reset(self.task, completed=iteration)

    def on_stop_request(self) -> None:
        """Say that Ctrl-C was heard: an iteration on a large graph may take minutes.

        Written past all buffers, because a signal may come while one of them is in use.
        """
        with suppress(OSError):
            os.write(2, b"\nStopping after this iteration; Ctrl-C again stops at once.\n")

    def on_log(self, entry: LogEntry) -> None:
        """Move the bar."""
        self.bar.update(self.task, completed=entry.iteration, status=str(entry))
