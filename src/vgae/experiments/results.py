"""Results of an experiment, datasets × methods × runs: what one is, and all of them in one file, an archive.

`store.py` has the folder in which they are collected one by one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.experiments.paper import TABLE_1
from vgae.io.atomic import atomic_write
from vgae.io.json_files import read_json

DATASETS = tuple(TABLE_1)
FORMAT = 1
USUAL = ("auc", "ap")
NAME = re.compile(r"[\w.+-]{1,100}")  # of a graph: part of the name of a file
ANY_GRAPH = ("accuracy",)  # experiments whose graphs may be files of anybody


def is_graph_of(experiment: str, name: str) -> bool:
    """Whether an experiment may have results of a graph of this name."""
    return name in DATASETS or (experiment in ANY_GRAPH and NAME.fullmatch(name) is not None)


@dataclass(frozen=True)
class Task:
    """One run of one method on one dataset; `settings` tells methods apart that have changed under the same name."""

    dataset: str
    method: str
    split: int
    seed: int
    settings: str = ""

    @property
    def file_name(self) -> str:
        """Where its result is stored."""
        method = self.method.replace("*", "-star")
        if self.settings:
            method += "-" + hashlib.sha256(self.settings.encode()).hexdigest()[:8]
        return f"{self.dataset}-{method}-split{self.split}-seed{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.method} on {self.dataset} (split {self.split}, seed {self.seed})"

    @classmethod
    def from_json(cls, values: Any) -> Task:
        """A task out of a file; ValueError where it is none."""
        task = cls(**values)
        texts = all(isinstance(text, str) for text in (task.dataset, task.method, task.settings))
        if not texts or not all(type(number) is int and number >= 0 for number in (task.split, task.seed)):
            raise ValueError("not a task")
        return task


@dataclass(frozen=True)
class Result:
    """Metrics of a task on the test pairs, as fractions of 1, by name, and how long it took.

    Where that was measured, the time of one iteration, and `fit_seconds`, by which the method was fitted and the test
    pairs had their scores; the rest is other measures. Every experiment has `auc` and `ap`; where
    there is nothing else, a file has these two without a dictionary around them.
    """

    task: Task
    metrics: Mapping[str, float]
    seconds: float
    iteration_seconds: float | None = None
    fit_seconds: float | None = None

    @property
    def auc(self) -> float:
        """The area under the ROC curve."""
        return self.metrics["auc"]

    @property
    def ap(self) -> float:
        """Average precision."""
        return self.metrics["ap"]

    def without_settings(self, settings: str) -> Result:
        """The same for a file that says elsewhere that these are its settings."""
        return replace(self, task=replace(self.task, settings="")) if self.task.settings == settings else self

    def to_json(self) -> dict[str, Any]:
        """The same for a file, without what there is none of."""
        task = asdict(self.task)
        if not self.task.settings:
            del task["settings"]
        metrics = dict(self.metrics)
        times = {"iteration_seconds": self.iteration_seconds, "fit_seconds": self.fit_seconds}
        return {
            "task": task,
            **(metrics if tuple(metrics) == USUAL else {"metrics": metrics}),
            "seconds": self.seconds,
            **{name: value for name, value in times.items() if value is not None},
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Result:
        """A result out of a file; KeyError, ValueError or TypeError where it is none."""
        rest = dict(values)
        task = Task.from_json(rest.pop("task", None))
        metrics = rest.pop("metrics") if "metrics" in rest else {name: rest.pop(name) for name in USUAL}
        result = cls(task, metrics, **rest)
        times = [each for each in (result.seconds, result.iteration_seconds, result.fit_seconds) if each is not None]
        if result.seconds is None or not isinstance(metrics, dict) or not set(USUAL) <= set(metrics):
            raise ValueError("not a result")
        for value, largest in (*((each, 1) for each in metrics.values()), *((each, math.inf) for each in times)):
            if type(value) not in (int, float) or not (0 <= value <= largest and math.isfinite(value)):
                raise ValueError("not a result")
        return result


@dataclass(frozen=True)
class Failure:
    """A task that could not be done, and why; it is not stored, and tried again the next time."""

    task: Task
    why: str


@dataclass(frozen=True)
class Session:
    """One session of an experiment: the machine, how many runs it added, and how long it took."""

    machine: str
    num_runs: int
    seconds: float

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Session:
        """A session out of a file; ValueError or TypeError where it is none."""
        session = cls(**values)
        counted = type(session.num_runs) is int and session.num_runs >= 0
        timed = type(session.seconds) in (int, float) and 0 <= session.seconds < math.inf
        if not (isinstance(session.machine, str) and counted and timed):
            raise ValueError("not a session")
        return session


@dataclass(frozen=True)
class GraphFacts:
    """What a graph is, as far as a page tells it; by its hash, results of another graph are told apart."""

    num_nodes: int
    num_links: int
    num_features: int
    num_test_links: int
    content_hash: str

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> GraphFacts:
        """Facts out of a file; ValueError or TypeError where there are none."""
        facts = cls(**values)
        *counts, content_hash = asdict(facts).values()
        if not isinstance(content_hash, str) or not all(type(each) is int and each >= 0 for each in counts):
            raise ValueError("not the facts of a graph")
        return facts


@dataclass(frozen=True)
class Cell:
    """One cell of a table: mean and standard error over the runs, in percent; one run alone has no standard error."""

    auc: float
    ap: float
    auc_error: float | None
    ap_error: float | None
    num_runs: int

    @classmethod
    def of(cls, results: Sequence[Result]) -> Cell:
        """The summary of one method's results on one dataset."""
        auc, ap = [100 * result.auc for result in results], [100 * result.ap for result in results]
        return cls(statistics.mean(auc), statistics.mean(ap), standard_error(auc), standard_error(ap), len(results))


@dataclass(frozen=True)
class Archive:
    """A finished experiment in one file: every run, and the sessions it took."""

    vgae: str
    splits: int
    sessions: list[Session]
    results: list[Result]
    experiment: str = "reproduce"  # the command that made it
    graphs: dict[str, GraphFacts] = field(default_factory=dict)  # where those are not the paper's datasets alone

    def settings_of(self, method: str) -> dict[str, list[str]]:
        """All settings that runs of a method had, each with its graphs, in their order."""
        found: dict[str, list[str]] = {}
        for task in self._tasks():
            if task.method == method:
                graphs = found.setdefault(task.settings, [])
                graphs += [] if task.dataset in graphs else [task.dataset]
        return found

    def _tasks(self) -> list[Task]:
        return [result.task for result in self.results]

    def write(self, path: Path) -> None:
        """Write the file, one run a line; the settings of each method once, and beside a run where it had others."""
        content: dict[str, Any] = {"format": FORMAT, "vgae": self.vgae, "splits": self.splits}
        settings = {task.method: task.settings for task in self._tasks() if task.settings}
        settings = {method: text for method, text in settings.items() if "" not in self.settings_of(method)}
        if self.experiment != Archive.experiment:
            content["experiment"] = self.experiment
        lines = [json.dumps({key: item})[1:-1] for key, item in content.items()]
        graphs = {name: asdict(facts) for name, facts in self.graphs.items()}
        for name, entries in (("graphs", graphs), ("settings", settings)):
            if entries:
                rows = ",\n  ".join(json.dumps({key: item})[1:-1] for key, item in entries.items())
                lines.append(f'"{name}": {{\n  {rows}\n}}')
        plain = [result.without_settings(settings.get(result.task.method, "")).to_json() for result in self.results]
        for name, items in (("sessions", [asdict(session) for session in self.sessions]), ("results", plain)):
            rows = ",\n  ".join(json.dumps(item, allow_nan=False) for item in items)
            lines.append(f'"{name}": [\n  {rows}\n]')
        with atomic_write(path) as file:
            file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode())

    @classmethod
    def read(cls, path: Path) -> Archive:
        """Read the file."""
        content = read_json(path)
        try:
            if content["format"] != FORMAT:
                raise ValueError
            settings = content.get("settings", {})
            sessions = [Session.from_json(session) for session in content["sessions"]]
            found = [Result.from_json(result) for result in content["results"]]
            own = [each.task.settings or str(settings.get(each.task.method, "")) for each in found]
            tasks = [replace(each.task, settings=text) for each, text in zip(found, own, strict=True)]
            results = [replace(each, task=task) for each, task in zip(found, tasks, strict=True)]
            version, splits = content["vgae"], content["splits"]
            experiment = str(content.get("experiment", cls.experiment))
            graphs = {name: GraphFacts.from_json(facts) for name, facts in content.get("graphs", {}).items()}
            names = {result.task.dataset for result in results}
            known = all(is_graph_of(experiment, name) for name in names)
            told = experiment not in ANY_GRAPH or names <= set(graphs)
            numbered = type(splits) is int and splits >= 1
            if not (isinstance(version, str) and numbered and results and known and told):
                raise ValueError
            return cls(version, splits, sessions, results, experiment, graphs)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(
                f"{path}: not the results.json that vgae reproduce writes, nor what vgae models or vgae accuracy does."
            ) from None


def summarise(results: Sequence[Result], methods: Sequence[str]) -> dict[str, dict[str, Cell]]:
    """A table as far as it is known: cells by dataset and method, in the order of the methods."""
    return {
        dataset: {
            method: Cell.of(cell)
            for method in methods
            if (cell := [r for r in results if (r.task.dataset, r.task.method) == (dataset, method)])
        }
        for dataset in DATASETS
        if any(result.task.dataset == dataset for result in results)
    }


def standard_error(values: Sequence[float]) -> float | None:
    """Standard error of the mean; a single value has none."""
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
