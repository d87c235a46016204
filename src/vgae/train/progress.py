"""Progress on standard error: loss, its two terms, validation score, time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from vgae.train.trainer import LogEntry


@contextmanager
def progress_bar(iterations: int, *, shown: bool = True) -> Iterator[Callable[[LogEntry], None]]:
    """A bar for one training run, as the `on_log` of `train`; nothing is drawn where nobody is watching."""
    console = Console(stderr=True)
    columns = (
        TextColumn("[bold]training"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[status]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not (shown and console.is_terminal)) as progress:
        task = progress.add_task("", total=iterations, status="")
        yield lambda entry: progress.update(task, completed=entry.iteration, status=describe(entry))


def describe(entry: LogEntry) -> str:
    """One log entry in a few words."""
    text = f"loss {entry.loss:.4f} = {entry.reconstruction:.4f} + KL {entry.kl:.4f}"
    if entry.val_auc is not None and entry.val_ap is not None:
        text += f" · validation AUC {100 * entry.val_auc:.1f} AP {100 * entry.val_ap:.1f}"
    return text
