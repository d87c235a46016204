"""Running the paper again: datasets × methods × runs, each result stored the moment it is there.

Run i has seed i and split i mod K: with K = 1, the default, ten initialisations on one split, as in the paper. A result
is one small file, written in one step and never changed, so a reproduction that was killed continues where it stopped
and ends with the same numbers. Every run has one thread to itself, and as many run side by side as there are cores: a
result then depends neither on the number of cores nor on what else is running.
"""

from __future__ import annotations

import json
import math
import os
import statistics
import time
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from vgae.baselines import BASELINES
from vgae.errors import InputError
from vgae.evaluation.evaluate import Scorer, evaluate
from vgae.experiments.paper import TABLE_1
from vgae.experiments.workers import WorkerKilledError, results_of
from vgae.graph.graph import Graph
from vgae.graph.split import split_links
from vgae.io.atomic import atomic_write
from vgae.io.datasets import load_dataset
from vgae.io.json_files import read_json, write_json
from vgae.machine import describe_machine
from vgae.memory import bytes_free
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.version import __version__

DATASETS = tuple(TABLE_1)
METHODS = tuple(TABLE_1["cora"])
PROTOCOL: dict[str, Any] = {  # the rest are defaults, which are the paper's
    "objective": "exact",
    "device": "cpu",
    "eval_every": Config().iterations,  # nothing is logged on the way
}
FORMAT = 1
MOST_RUNS = 10_000
BYTES_OF_A_WORKER = 1.5e9  # at most, on the largest of the datasets


@dataclass(frozen=True)
class Task:
    """One run of one method on one dataset."""

    dataset: str
    method: str
    split: int
    seed: int

    @property
    def file_name(self) -> str:
        """Where its result is stored."""
        return f"{self.dataset}-{self.method.replace('*', '-star')}-split{self.split}-seed{self.seed}.json"

    def __str__(self) -> str:
        return f"{self.method} on {self.dataset} (split {self.split}, seed {self.seed})"

    @classmethod
    def from_json(cls, values: Any) -> Task:
        """A task out of a file; ValueError where it is none."""
        task = cls(**values)
        known = task.dataset in DATASETS and task.method in METHODS
        if not known or not all(type(number) is int and number >= 0 for number in (task.split, task.seed)):
            raise ValueError("not a task")
        return task


@dataclass(frozen=True)
class Result:
    """Test AUC and AP of a task, as fractions of 1, and how long it took."""

    task: Task
    auc: float
    ap: float
    seconds: float

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Result:
        """A result out of a file; ValueError or TypeError where it is none."""
        result = cls(**{**values, "task": Task.from_json(values.get("task"))})
        for value, largest in ((result.auc, 1), (result.ap, 1), (result.seconds, math.inf)):
            if type(value) not in (int, float) or not (0 <= value <= largest and math.isfinite(value)):
                raise ValueError("not a result")
        return result


@dataclass(frozen=True)
class Session:
    """One session of a reproduction: the machine, how many runs it added, and how long it took."""

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
class Cell:
    """One cell of Table 1: mean and standard error over the runs, in percent; one run alone has no standard error."""

    auc: float
    ap: float
    auc_error: float | None
    ap_error: float | None
    num_runs: int

    @classmethod
    def of(cls, results: Sequence[Result]) -> Cell:
        """The summary of one method's results on one dataset."""
        auc, ap = [100 * result.auc for result in results], [100 * result.ap for result in results]
        return cls(statistics.mean(auc), statistics.mean(ap), _error(auc), _error(ap), len(results))


@dataclass(frozen=True)
class Archive:
    """A finished reproduction in one file: every run, and the sessions it took."""

    vgae: str
    splits: int
    sessions: list[Session]
    results: list[Result]

    def write(self, path: Path) -> None:
        """Write the file, one run a line."""
        content = {"format": FORMAT, "vgae": self.vgae, "splits": self.splits}
        lines = [json.dumps({key: item})[1:-1] for key, item in content.items()]
        for name, items in (("sessions", self.sessions), ("results", self.results)):
            rows = ",\n  ".join(json.dumps(asdict(item), allow_nan=False) for item in items)
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
            sessions = [Session.from_json(session) for session in content["sessions"]]
            results = [Result.from_json(result) for result in content["results"]]
            version, splits = content["vgae"], content["splits"]
            if not isinstance(version, str) or type(splits) is not int or splits < 1 or not results:
                raise ValueError
            return cls(version, splits, sessions, results)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{path}: not the results.json that vgae reproduce writes.") from None


def list_tasks(datasets: Sequence[str], methods: Sequence[str], *, runs: int, splits: int) -> list[Task]:
    """All tasks of a reproduction, the long ones first so that no core waits for the last of them."""
    for name, chosen, known in (("dataset", datasets, DATASETS), ("model", methods, METHODS)):
        for choice in chosen:
            if choice not in known:
                raise InputError(f"{name}: {choice!r} is not one of {', '.join(known)}.")
    if runs < 1 or splits < 1:
        raise InputError(f"runs and splits: at least 1 of each is needed, got {runs} and {splits}.")
    if runs > MOST_RUNS:
        raise InputError(f"runs: at most {MOST_RUNS:,} can be asked for, got {runs:,}.")
    tasks = [
        Task(dataset, method, seed % splits, seed)
        for dataset in dict.fromkeys(datasets)
        for method in dict.fromkeys(methods)
        for seed in range(runs)
    ]
    return sorted(tasks, key=lambda task: -DATASETS.index(task.dataset))


def run_task(task: Task) -> Result:
    """Fit the method on the split's training graph and score it on its test pairs."""
    started = time.perf_counter()
    split = split_links(load_dataset(task.dataset), seed=task.split)
    scores = evaluate(_fit(task, split.train), split.test)
    return Result(task, scores["auc"], scores["ap"], time.perf_counter() - started)


class Store:
    """The folder that holds the results of one reproduction; results of another kind are refused, not mixed."""

    def __init__(self, folder: Path, *, splits: int) -> None:
        self.folder, self.splits = folder, splits
        description = {
            "format": FORMAT,
            "vgae": __version__,
            "splits": splits,
            "protocol": Config(**PROTOCOL).to_json(),
        }
        path = folder / "reproduction.json"
        if path.exists():
            found = read_json(path)
            changed = sorted(name for name in description if found.get(name) != description[name])
            if changed:
                raise InputError(
                    f"{folder}: it holds results of another reproduction (different: {', '.join(changed)}); "
                    "choose another folder."
                )
            return
        if folder.exists() and any(folder.iterdir()):
            raise InputError(f"{folder}: this folder is already used for something else; choose another.")
        try:
            write_json(path, description)
        except OSError as error:
            raise InputError(f"{folder}: the folder cannot be written ({error.strerror}); choose another.") from None

    def _path(self, task: Task) -> Path:
        return self.folder / "runs" / task.file_name

    def put(self, result: Result) -> None:
        """Store a result, in one step."""
        write_json(self._path(result.task), asdict(result))

    def get(self, task: Task) -> Result | None:
        """The stored result of a task, if there is one."""
        path = self._path(task)
        if not path.exists():
            return None
        try:
            result = Result.from_json(read_json(path))
        except (TypeError, ValueError):
            raise InputError(f"{path}: not a stored result; delete the file to have the run repeated.") from None
        if result.task != task:
            raise InputError(f"{path}: this is the result of another run; delete the file to have it repeated.")
        return result

    def count(self, tasks: Sequence[Task]) -> int:
        """How many of these tasks have a result."""
        return sum(self._path(task).exists() for task in tasks)

    def record(self, session: Session) -> None:
        """Store the time of a session."""
        write_json(self.folder / "sessions" / f"{len(self.sessions()):04}.json", asdict(session))

    def sessions(self) -> list[Session]:
        """All sessions that were completed, in order."""
        found = []
        for path in sorted((self.folder / "sessions").glob("*.json")):
            try:
                found.append(Session.from_json(read_json(path)))
            except (TypeError, ValueError):
                raise InputError(f"{path}: not what vgae reproduce writes there; delete the file.") from None
        return found


def reproduce(tasks: Sequence[Task], store: Store, *, workers: int | None = None) -> Generator[Result]:
    """Results as they become known: the stored ones at once, the others when they are done."""
    stored = {task: store.get(task) for task in tasks}
    yield from (result for result in stored.values() if result is not None)
    missing = [task for task, result in stored.items() if result is None]
    if not missing:
        return
    started = time.perf_counter()
    for dataset in {task.dataset for task in missing}:
        load_dataset(dataset)  # once, before the workers all ask for it
    number = int(min(workers or os.cpu_count() or 1, max(1, bytes_free() // BYTES_OF_A_WORKER)))
    with closing(results_of(_run_in_worker, missing, num_workers=number)) as results:
        try:
            for result in results:
                store.put(result)
                yield result
        except WorkerKilledError as error:
            raise WorkerKilledError(
                f"{error}; {store.count(tasks)} of {len(tasks)} results are stored in {store.folder}; "
                "to continue, run the same command again"
            ) from None
    store.record(Session(describe_machine(), len(missing), time.perf_counter() - started))


def embed_cora(**options: Any) -> tuple[npt.NDArray[np.float32], Graph]:
    """What Figure 1 shows: the embedding of an unsupervised VGAE on Cora, and the graph it was trained on."""
    graph = split_links(load_dataset("cora"), seed=0).train
    trained = train(Job.of(graph, Config(**PROTOCOL, **options)))
    embedding: npt.NDArray[np.float32] = trained.embeddings.numpy()
    return embedding, graph


def summarise(results: Sequence[Result]) -> dict[str, dict[str, Cell]]:
    """Table 1 as far as it is known: cells by dataset and method, in the paper's order."""
    return {
        dataset: {
            method: Cell.of(cell)
            for method in METHODS
            if (cell := [r for r in results if (r.task.dataset, r.task.method) == (dataset, method)])
        }
        for dataset in DATASETS
        if any(result.task.dataset == dataset for result in results)
    }


def _run_in_worker(task: Task) -> Result:
    torch.set_num_threads(1)
    return run_task(task)


def _fit(task: Task, graph: Graph) -> Scorer:
    if task.method.lower() in BASELINES:
        return BASELINES[task.method.lower()](graph, task.seed)
    model, features = task.method.rstrip("*").lower(), not task.method.endswith("*")
    return train(Job.of(graph, Config(**PROTOCOL, model=model, features=features, seed=task.seed)))


def _error(values: Sequence[float]) -> float | None:
    """Standard error of the mean; a single value has none."""
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
