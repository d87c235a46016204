"""Progress of a stack on standard error: which fold and which base, and about how long it will take."""

from __future__ import annotations

import time
from collections.abc import Sequence

from rich.progress import TextColumn

from vgae.objective.cost import duration
from vgae.screen import note
from vgae.stack.fit import Progress
from vgae.train.progress import FittingBar
from vgae.words import count

REST = ""  # what follows the bases of a fold: its pairs are described, or the meta-model is fitted


class TimeLeft:
    """How long the steps take that are still to come, by how long those of the same name took."""

    def __init__(self, names: Sequence[str], rounds: int) -> None:
        self.steps = [(turn, name) for turn in range(rounds) for name in (*names, REST)]
        self.took: dict[str, float] = {}
        self.step, self.since = 0, time.perf_counter()

    def begin(self, turn: int, name: str) -> None:
        """A step begins, and the one before it is over."""
        now = time.perf_counter()
        before = self.steps[self.step]
        if self.steps.index((turn, name)) == self.step + 1:
            self.took[before[1]] = now - self.since
        self.step, self.since = self.steps.index((turn, name)), now

    @property
    def done(self) -> float:
        """The share of the steps that is over."""
        return self.step / len(self.steps)

    @property
    def seconds(self) -> float | None:
        """Of this step and those after it; None as long as one of them has never been made."""
        left = [name for _, name in self.steps[self.step :]]
        return sum(self.took[name] for name in left) if set(left) <= set(self.took) else None


class StackBar(FittingBar, Progress):
    """Watches the fitting of one stack."""

    def __init__(self, bases: Sequence[str], folds: int) -> None:
        self.folds, self.restored = folds, 0
        self.left = TimeLeft(bases, folds + 1)
        self.begin_bar(1.0, TextColumn("{task.fields[status]}", markup=False))

    def on_base(self, fold: int, name: str) -> None:
        """Move the bar, and say where a fitting continues that was interrupted."""
        if self.restored:
            note(f"continuing after {count(self.restored, 'fold')} of {self.folds}")
            self.restored = 0
        self._show(fold, name, f"{self._round(fold)} · {name}")

    def on_describing(self, fold: int) -> None:
        """The bases of a fold are fitted."""
        self._show(fold, REST, f"{self._round(fold)} · describing its pairs")

    def on_fold(self, fold: int, *, restored: bool) -> None:
        """Count folds that were there already."""
        del fold
        self.restored += restored

    def on_meta(self) -> None:
        """The meta-model is next."""
        self._show(self.folds, REST, "meta-model and scores")

    def _round(self, fold: int) -> str:
        return f"fold {fold + 1} of {self.folds}" if fold < self.folds else "all training links"

    def _show(self, fold: int, name: str, status: str) -> None:
        self.left.begin(fold, name)
        seconds = self.left.seconds
        words = status if seconds is None else f"{status} · about {duration(seconds)} left"
        self.bar.update(self.task, completed=self.left.done, status=words)
