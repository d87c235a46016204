"""Callbacks: every event in its order, whatever ends a training; functions; TensorBoard and MLflow where installed."""

import logging
import math
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import vgae
from command import run_vgae
from helpers import message_of
from vgae.callbacks import Callback, LogEntry, MLflow, TensorBoard, Tracker, check_target
from vgae.train.config import Config

GRAPH = vgae.stochastic_block_model(60, 3, seed=0)
SPLIT = vgae.split_links(GRAPH, seed=0)
with_tensorboard = pytest.mark.skipif(
    find_spec("tensorboard") is None, reason="tensorboard is not installed (pip install 'vgae[tensorboard]')"
)
with_mlflow = pytest.mark.skipif(
    find_spec("mlflow") is None, reason="mlflow is not installed (pip install 'vgae[mlflow]')"
)


class Recorder(Callback):
    """Keeps the events."""

    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def on_begin(self, options: dict[str, Any]) -> None:
        self.events.append(("begin", options))

    def on_start(self, objective: str, reason: str) -> None:
        self.events.append(("start", (objective, reason)))

    def on_resume(self, iteration: int) -> None:
        self.events.append(("resume", iteration))

    def on_log(self, entry: LogEntry) -> None:
        self.events.append(("log", entry))

    def on_end(self, error: BaseException | None) -> None:
        self.events.append(("end", error))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.events]


def entries(recorder: Recorder) -> list[LogEntry]:
    return [value for name, value in recorder.events if name == "log"]


# --------------------------------------------------------------------------------------------------------------- events


@pytest.mark.parametrize("progress", [False, True])
def test_events_come_in_order_and_tell_what_the_history_holds(progress: bool) -> None:
    first, second, seen = Recorder(), Recorder(), list[LogEntry]()
    model = vgae.VGAE(iterations=25, seed=3, progress=progress)
    model.fit(SPLIT.train, validation=SPLIT.val, callbacks=[first, seen.append, second])
    assert first.names == ["begin", "start", "log", "log", "log", "log", "end"]
    assert first.events == second.events
    assert entries(first) == seen == model.history_
    assert [entry.iteration for entry in seen] == [1, 10, 20, 25]
    assert first.events[0][1] == Config(model="vgae", iterations=25, seed=3).to_json()
    assert first.events[1][1][0] == "exact"
    assert first.events[-1] == ("end", None)


def test_callbacks_change_no_bit() -> None:
    plain, followed = vgae.VGAE(iterations=20), vgae.VGAE(iterations=20)
    plain.fit(GRAPH)
    followed.fit(GRAPH, callbacks=Recorder())
    assert (plain.transform() == followed.transform()).all()


def test_what_ends_a_training_early_is_told() -> None:
    recorder = Recorder()

    def stop(entry: LogEntry) -> None:
        if entry.iteration == 10:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        vgae.GAE(iterations=30).fit(GRAPH, callbacks=[recorder, stop])
    assert recorder.names == ["begin", "start", "log", "log", "end"]
    assert isinstance(recorder.events[-1][1], KeyboardInterrupt)


def test_a_resumed_training_is_told_from_where(tmp_path: Path) -> None:
    def stop(entry: LogEntry) -> None:
        if entry.iteration == 20:
            raise KeyboardInterrupt

    model, recorder = vgae.GAE(iterations=30), Recorder()
    with pytest.raises(KeyboardInterrupt):
        model.fit(GRAPH, checkpoint=tmp_path / "state", checkpoint_every=0, callbacks=stop)
    model.fit(GRAPH, checkpoint=tmp_path / "state", callbacks=recorder)
    assert recorder.names == ["begin", "start", "resume", "log", "log", "end"]
    assert recorder.events[2] == ("resume", 19)  # that of the 20th was not complete
    assert [entry.iteration for entry in entries(recorder)] == [20, 30]


@pytest.mark.parametrize("given", [3, "tensorboard", Recorder, [Recorder(), None]])
def test_what_is_no_callback_is_refused(given: Any) -> None:
    assert "callbacks: " in message_of(lambda: vgae.GAE().fit(GRAPH, callbacks=given))


def test_the_examples_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those that need no other program, one after the other; what the last one logs stands on the page."""
    monkeypatch.chdir(tmp_path)
    page = (Path(__file__).parents[2] / "docs" / "callbacks.md").read_text()
    names: dict[str, Any] = {}
    with caplog.at_level(logging.INFO, logger="vgae"):
        for code in re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL):
            if "MLflow" not in code:
                caplog.clear()
                exec(code, names)  # noqa: S102 - the project's own examples
    assert len(names["losses"]) == 6
    logged = [f"{record.levelname}:{record.name}:{record.message}" for record in caplog.records]
    (shown,) = re.findall(r"^```text\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert [re.sub(r"[\d.]+", "#", line) for line in logged] == [re.sub(r"[\d.]+", "#", x) for x in shown.splitlines()]


# ------------------------------------------------------------------------------------------------------- other programs


class Failing(Tracker):
    """A tracker whose disk is full from some iteration on."""

    title = "Failing"

    def __init__(self) -> None:
        self.recorded: list[int] = []

    def record(self, numbers: dict[str, float], iteration: int) -> None:
        if iteration >= 20:
            raise OSError(28, "No space left on device")
        assert set(numbers) == {"loss", "reconstruction", "kl", "seconds", "active"}
        self.recorded.append(iteration)


def test_a_training_does_not_end_with_its_tracker() -> None:
    tracker = Failing()
    with pytest.warns(RuntimeWarning, match="No space left on device") as warned:
        model = vgae.GAE(iterations=40).fit(GRAPH, callbacks=tracker)
    assert tracker.recorded == [1, 10]
    assert len(warned) == 1
    assert len(model.history_) == 5


@pytest.mark.parametrize("text", ["tensorboard", "tensorboard:", "mlflow:", "wandb:x", "", ":x"])
def test_targets_that_are_none_are_refused(text: str) -> None:
    assert "log_to: tensorboard:FOLDER" in message_of(lambda: check_target(text))


@pytest.mark.parametrize(
    ("target", "make", "extra"),
    [("tensorboard:logs", lambda: TensorBoard("logs"), "tensorboard"), ("mlflow", MLflow, "mlflow")],
)
def test_what_is_not_installed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, target: str, make: Any, extra: str
) -> None:
    for module in ("torch.utils.tensorboard", "mlflow"):
        monkeypatch.setitem(sys.modules, module, None)  # which is how Python knows that there is none
    assert message_of(make).endswith(f"pip install 'vgae[{extra}]'.")
    vgae.write_graph(tmp_path / "graph.npz", GRAPH)
    refused = run_vgae("train", "graph.npz", "--iterations", "2", "--log-to", target, cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stderr.splitlines()[-1].endswith(f"pip install 'vgae[{extra}]'.")
    assert not (tmp_path / "runs").exists()


def curves(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard itself reads out of a folder."""
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    read = accumulator.EventAccumulator(str(folder)).Reload()
    return {tag: [(each.step, each.value) for each in read.Scalars(tag)] for tag in read.Tags()["scalars"]}


def assert_curves(folder: Path, history: list[LogEntry]) -> None:
    found = curves(folder)
    assert set(found) == {"loss", "reconstruction", "kl", "val_auc", "val_ap", "seconds", "active"}
    for name, points in found.items():
        assert [step for step, _ in points] == [entry.iteration for entry in history]
        assert all(
            math.isclose(value, getattr(entry, name), rel_tol=1e-6)
            for (_, value), entry in zip(points, history, strict=True)
        )


@with_tensorboard
def test_tensorboard_shows_the_history(tmp_path: Path) -> None:
    callback = TensorBoard(tmp_path / "logs")
    for iterations in (35, 30):  # the second takes the place of the first
        model = vgae.VGAE(iterations=iterations)
        model.fit(SPLIT.train, validation=SPLIT.val, callbacks=callback)
    assert_curves(tmp_path / "logs", model.history_)


@with_tensorboard
def test_tensorboard_continues_the_curves_of_a_resumed_training(tmp_path: Path) -> None:
    def stop(entry: LogEntry) -> None:
        if entry.iteration == 20:
            raise KeyboardInterrupt

    model, checkpoint = vgae.VGAE(iterations=40), tmp_path / "state"
    fitting: dict[str, Any] = {"validation": SPLIT.val, "checkpoint": checkpoint, "checkpoint_every": 0}
    with pytest.raises(KeyboardInterrupt):
        model.fit(SPLIT.train, **fitting, callbacks=[TensorBoard(tmp_path / "logs"), stop])
    model.fit(SPLIT.train, **fitting, callbacks=TensorBoard(tmp_path / "logs"))
    assert_curves(tmp_path / "logs", model.history_)


@with_tensorboard
def test_the_command_logs_every_seed_by_its_name(tmp_path: Path) -> None:
    vgae.write_graph(tmp_path / "graph.npz", GRAPH)
    options = ("--preset", "paper", "--iterations", "20", "--no-verdict", "--seeds", "2", "--out", "mine")
    done = run_vgae("train", "graph.npz", *options, "--log-to", "tensorboard:logs", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    for seed in (0, 1):
        history = vgae.load(tmp_path / "mine" / f"seed-{seed}").history_
        assert_curves(tmp_path / "logs" / f"mine-seed-{seed}", history)


def mlflow_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """MLflow with its records in a folder."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(folder)
    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    return mlflow


@with_mlflow
@pytest.mark.filterwarnings("ignore")  # MLflow's own, about what it depends on
def test_mlflow_has_options_numbers_and_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = mlflow_in(tmp_path, monkeypatch)

    def stop(entry: LogEntry) -> None:
        del entry
        raise KeyboardInterrupt

    model = vgae.VGAE(iterations=20, seed=7).fit(SPLIT.train, validation=SPLIT.val, callbacks=MLflow("links", name="a"))
    with pytest.raises(KeyboardInterrupt):
        vgae.VGAE(iterations=20).fit(GRAPH, callbacks=[MLflow("links", name="b"), stop])
    client = mlflow.MlflowClient()
    experiment = client.get_experiment_by_name("links").experiment_id
    runs = {run.info.run_name: run for run in client.search_runs([experiment])}
    assert {name: run.info.status for name, run in runs.items()} == {"a": "FINISHED", "b": "KILLED"}
    assert runs["a"].data.params["seed"] == "7"
    assert runs["a"].data.tags["vgae.objective"] == "exact"
    points = client.get_metric_history(runs["a"].info.run_id, "loss")
    assert [(point.step, point.value) for point in points] == [(each.iteration, each.loss) for each in model.history_]

    with mlflow.start_run() as run:  # one that is active is used, and stays open
        vgae.GAE(iterations=5).fit(GRAPH, callbacks=MLflow())
        assert mlflow.active_run().info.run_id == run.info.run_id
    assert set(mlflow.get_run(run.info.run_id).data.metrics) >= {"loss", "kl"}


@with_mlflow
@pytest.mark.filterwarnings("ignore")  # MLflow's own, about what it depends on
def test_a_server_that_is_not_there_is_told_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mlflow = mlflow_in(tmp_path, monkeypatch)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    mlflow.set_tracking_uri("http://127.0.0.1:9")
    assert message_of(lambda: vgae.GAE().fit(GRAPH, callbacks=MLflow("links"))).startswith("MLflow cannot be used (")
