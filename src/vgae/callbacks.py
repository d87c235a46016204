"""Callbacks for `fit(callbacks=…)`: a base class for your own, and ready ones for TensorBoard and MLflow.

    model.fit(split.train, validation=split.val, callbacks=TensorBoard("logs/mine"))

Every event is a method of `Callback`; a logged iteration is a `LogEntry`, and there is one for every `eval_every`
iterations. A function in place of a callback is called with each of them. What goes wrong in TensorBoard's files or on
MLflow's server while a model is trained is a warning, and training continues without.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

from vgae.errors import InputError
from vgae.io.plain import as_path
from vgae.train.callbacks import Callback
from vgae.train.state import LogEntry

__all__ = ["Callback", "LogEntry", "MLflow", "TensorBoard", "check_target", "tracker_for"]


class Tracker(Callback):
    """Base of what follows a training in another program; the first failure there is the last attempt."""

    title: ClassVar[str]
    failures: tuple[type[Exception], ...] = (OSError,)
    _failed = False

    def on_log(self, entry: LogEntry) -> None:
        """Record the numbers of an iteration."""
        numbers = {name: value for name, value in entry.to_json().items() if value is not None and name != "iteration"}
        self._attempt(lambda: self.record(numbers, entry.iteration))

    def _attempt(self, action: Callable[[], object]) -> None:
        """Do something, unless an earlier attempt has failed; a failure is a warning."""
        if self._failed:
            return
        try:
            action()
        except self.failures as error:
            self._failed = True
            words = f"{self.title} does not take what is logged ({_first_line(error)}); training continues without."
            warnings.warn(words, RuntimeWarning, stacklevel=3)

    def record(self, numbers: dict[str, float], iteration: int) -> None:
        """Pass the numbers on."""
        raise NotImplementedError


class TensorBoard(Tracker):
    """Writes losses and validation scores for TensorBoard into a folder; needs the extra `tensorboard`.

    >>> import vgae
    >>> from vgae.callbacks import TensorBoard
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> model = vgae.VGAE(iterations=20).fit(graph, callbacks=TensorBoard("logs/mine"))  # doctest: +SKIP

    Then `tensorboard --logdir logs` shows them. A training into the same folder takes the place of an earlier one; one
    that is resumed continues its curves.
    """

    title = "TensorBoard"

    def __init__(self, folder: str | Path) -> None:
        self.folder = as_path(folder, "folder")
        self._library = _load("torch.utils.tensorboard", "TensorBoard", "tensorboard")
        self._options: dict[str, Any] = {}
        self._writer: Any = None
        self._after = 0  # the iteration that an earlier training had reached

    def on_begin(self, options: dict[str, Any]) -> None:
        """Keep the options, which are written with the first numbers."""
        self._options, self._writer, self._after, self._failed = options, None, 0, False

    def on_resume(self, iteration: int) -> None:
        """Continue the curves from there."""
        self._after = iteration

    def record(self, numbers: dict[str, float], iteration: int) -> None:
        """Write them."""
        if self._writer is None:
            self._writer = self._library.SummaryWriter(str(self.folder), purge_step=self._after)
            rows = "".join(f"| {name} | {value} |\n" for name, value in self._options.items())
            self._writer.add_text("options", f"| option | value |\n|---|---|\n{rows}", self._after)
        for name, value in numbers.items():
            self._writer.add_scalar(name, value, iteration)

    def on_end(self, error: BaseException | None) -> None:
        """Close the file."""
        del error
        if self._writer is not None:
            self._attempt(self._writer.close)


class MLflow(Tracker):
    """Records options, losses and validation scores as a run of MLflow; needs the extra `mlflow`.

    >>> import vgae
    >>> from vgae.callbacks import MLflow
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> model = vgae.VGAE(iterations=20).fit(graph, callbacks=MLflow("links", name="mine"))  # doctest: +SKIP

    Where MLflow has an active run, that is used and stays open; otherwise one is started in the experiment, and ended.
    The server is the one that MLflow is set to (MLFLOW_TRACKING_URI).
    """

    title = "MLflow"

    def __init__(self, experiment: str | None = None, *, name: str | None = None) -> None:
        self.experiment, self.name = experiment, name
        self._library = _load("mlflow", "MLflow", "mlflow")
        self.failures = (OSError, import_module("mlflow.exceptions").MlflowException)
        self._started = False

    def on_begin(self, options: dict[str, Any]) -> None:
        """Start a run, unless there is one, and record the options."""
        self._failed, self._started = False, False
        try:
            if self._library.active_run() is None:
                if self.experiment is not None:
                    self._library.set_experiment(self.experiment)
                self._library.start_run(run_name=self.name)
                self._started = True
            self._library.log_params(options)
        except self.failures as error:
            raise InputError(f"MLflow cannot be used ({_first_line(error)}).") from None

    def on_start(self, objective: str, reason: str) -> None:
        """Record which objective was chosen."""
        self._attempt(lambda: self._library.set_tags({"vgae.objective": objective, "vgae.reason": reason}))

    def record(self, numbers: dict[str, float], iteration: int) -> None:
        """Send them."""
        self._library.log_metrics(numbers, step=iteration)

    def on_end(self, error: BaseException | None) -> None:
        """End the run, if it was started here, with how it ended."""
        if self._started:
            stopped = "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED"
            self._attempt(lambda: self._library.end_run("FINISHED" if error is None else stopped))


def check_target(text: str) -> str:
    """What --log-to takes: tensorboard:FOLDER, mlflow or mlflow:EXPERIMENT."""
    kind, colon, place = text.partition(":")
    if (kind == "tensorboard" and place) or (kind == "mlflow" and (place or not colon)):
        return text
    raise InputError(f"log_to: tensorboard:FOLDER, mlflow or mlflow:EXPERIMENT is needed, got {text!r}.")


def tracker_for(target: str, name: str) -> Tracker:
    """What follows a training of that name, by what --log-to says."""
    kind, _, place = check_target(target).partition(":")
    return TensorBoard(Path(place) / name) if kind == "tensorboard" else MLflow(place or None, name=name)


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".")


def _load(module: str, title: str, extra: str) -> Any:
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{title} is not installed; install it with pip install 'vgae[{extra}]'.") from None
