"""What a training reports to, and what saves its state between iterations."""

from __future__ import annotations

import warnings
from collections.abc import Callable

from vgae.train.state import Layouts, LogEntry, Sharding, TrainingState


class Callback:
    """Receives the events of a training; this one ignores all but warnings."""

    def on_start(self, objective: str, reason: str) -> None:
        """The objective that is used, and why."""

    def on_resume(self, iteration: int) -> None:
        """An earlier training continues after this iteration."""

    def on_threads(self, number: int) -> None:
        """An earlier training continues with as many threads as it had, which differs from what others would use."""

    def on_log(self, entry: LogEntry) -> None:
        """A logged iteration."""

    def on_stop_request(self) -> None:
        """Ctrl-C was pressed: training stops after this iteration."""

    def on_warning(self, text: str) -> None:
        """Something went wrong without ending the training."""
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class Checkpointer:
    """Saves the state of a training, so that another process can continue it; this one saves nothing."""

    def on_shards(self, sharding: Sharding) -> None:
        """Called before `load` in a group of processes, each of which has only some rows of the state's tensors."""

    def load(self, layouts: Layouts) -> TrainingState | None:
        """The state to continue from, if there is one; its tensors are as laid out for its objective."""
        del layouts
        return None

    def after_iteration(self, snapshot: Callable[[], TrainingState]) -> None:
        """An iteration is over; `snapshot` copies its state."""
