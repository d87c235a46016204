"""What a training reports to, and what saves its state between iterations."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from vgae.errors import InputError
from vgae.train.state import Layouts, LogEntry, Sharding, TrainingState
from vgae.words import shown


class Callback:
    """Receives the events of a training; this one ignores them all. A callback of your own overrides some."""

    def on_begin(self, options: dict[str, Any]) -> None:
        """A training with these options is about to begin; whatever happens then, `on_end` is called."""

    def on_start(self, objective: str, reason: str) -> None:
        """The objective that is used, and why."""

    def on_resume(self, iteration: int) -> None:
        """An earlier training continues after this iteration."""

    def on_threads(self, number: int) -> None:
        """An earlier training continues with as many threads as it had, which differs from what others would use."""

    def on_log(self, entry: LogEntry) -> None:
        """A logged iteration."""

    def on_stop_request(self) -> None:
        """Ctrl-C was pressed: training stops after this iteration. Called from a signal handler."""

    def on_warning(self, text: str) -> None:
        """Something went wrong without ending the training."""

    def on_end(self, error: BaseException | None) -> None:
        """Training is over; `error` is what ended it early, such as a KeyboardInterrupt."""


class Warnings(Callback):
    """Turns warnings into Python's own, which is what a training reports to where nothing else is given."""

    def on_warning(self, text: str) -> None:
        """Warn, as of the line that is training."""
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class OnLog(Callback):
    """A function that is called with each logged iteration."""

    def __init__(self, function: Callable[[LogEntry], object]) -> None:
        self.function = function

    def on_log(self, entry: LogEntry) -> None:
        """Call it."""
        self.function(entry)


class Callbacks(Callback):
    """Several callbacks as one; each event reaches them in their order."""

    def __init__(self, *each: Callback) -> None:
        self.each = each

    def on_begin(self, options: dict[str, Any]) -> None:
        """To all."""
        for callback in self.each:
            callback.on_begin(options)

    def on_start(self, objective: str, reason: str) -> None:
        """To all."""
        for callback in self.each:
            callback.on_start(objective, reason)

    def on_resume(self, iteration: int) -> None:
        """To all."""
        for callback in self.each:
            callback.on_resume(iteration)

    def on_threads(self, number: int) -> None:
        """To all."""
        for callback in self.each:
            callback.on_threads(number)

    def on_log(self, entry: LogEntry) -> None:
        """To all."""
        for callback in self.each:
            callback.on_log(entry)

    def on_stop_request(self) -> None:
        """To all."""
        for callback in self.each:
            callback.on_stop_request()

    def on_warning(self, text: str) -> None:
        """To all."""
        for callback in self.each:
            callback.on_warning(text)

    def on_end(self, error: BaseException | None) -> None:
        """To all."""
        for callback in self.each:
            callback.on_end(error)


def callbacks_of(given: Any) -> list[Callback]:
    """What is given as `callbacks`, in a list: one or several, each a `Callback` or a function of a `LogEntry`."""
    if given is None:
        return []
    found = []
    for each in given if isinstance(given, list | tuple) else [given]:
        if isinstance(each, Callback):
            found.append(each)
        elif callable(each) and not isinstance(each, type):
            found.append(OnLog(each))
        else:
            raise InputError(
                f"callbacks: a vgae.callbacks.Callback, or a function of one log entry, is needed, got {shown(each)}."
            )
    return found


@contextmanager
def reported(callback: Callback, options: dict[str, Any]) -> Iterator[None]:
    """A training between its first and its last event."""
    callback.on_begin(options)
    try:
        yield
    except BaseException as error:
        callback.on_end(error)
        raise
    callback.on_end(None)


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
