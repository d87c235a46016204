"""Trainings that are stopped, as by Ctrl-C."""

from vgae.train.callbacks import Callback
from vgae.train.state import LogEntry


class StopAfter(Callback):
    """Ctrl-C when an iteration has been logged."""

    def __init__(self, iteration: int) -> None:
        self.iteration = iteration

    def on_log(self, entry: LogEntry) -> None:
        """Stop at that iteration."""
        if entry.iteration == self.iteration:
            raise KeyboardInterrupt
