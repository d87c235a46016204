"""Results of an experiment, datasets × methods × runs, each stored the moment it is there.

Run i has seed i and split i mod K. A result is one small file, written in one step and never changed, so an experiment
that was killed continues where it stopped and ends with the same numbers. Every run has one thread to itself, and as
many run side by side as there are cores, unless another number is asked for.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.experiments.paper import TABLE_1
from vgae.io.atomic import atomic_write
from vgae.io.datasets import load_dataset
from vgae.io.json_files import read_json, write_json
from vgae.machine import describe_machine
from vgae.memory import bytes_free
from vgae.version import __version__
from vgae.words import count
from vgae.workers import WorkerKilledError, results_of

DATASETS = tuple(TABLE_1)
FORMAT = 1
MOST_RUNS = 10_000
BYTES_OF_A_WORKER = 1.5e9  # at most, on the largest of the datasets


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
        known = task.dataset in DATASETS and isinstance(task.method, str) and isinstance(task.settings, str)
        if not known or not all(type(number) is int and number >= 0 for number in (task.split, task.seed)):
            raise ValueError("not a task")
        return task


@dataclass(frozen=True)
class Result:
    """Test AUC and AP of a task, as fractions of 1, how long it took and, where that was measured, one iteration."""

    task: Task
    auc: float
    ap: float
    seconds: float
    iteration_seconds: float | None = None

    def to_json(self) -> dict[str, Any]:
        """The same for a file, without what there is none of."""
        values = asdict(self)
        if not self.task.settings:
            del values["task"]["settings"]
        if self.iteration_seconds is None:
            del values["iteration_seconds"]
        return values

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Result:
        """A result out of a file; ValueError or TypeError where it is none."""
        result = cls(**{**values, "task": Task.from_json(values.get("task"))})
        times = [result.seconds, *([] if result.iteration_seconds is None else [result.iteration_seconds])]
        for value, largest in ((result.auc, 1), (result.ap, 1), *((each, math.inf) for each in times)):
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
        return cls(statistics.mean(auc), statistics.mean(ap), _error(auc), _error(ap), len(results))


@dataclass(frozen=True)
class Archive:
    """A finished experiment in one file: every run, and the sessions it took."""

    vgae: str
    splits: int
    sessions: list[Session]
    results: list[Result]
    experiment: str = "reproduce"  # the command that made it

    def write(self, path: Path) -> None:
        """Write the file, one run a line; the settings of each method once."""
        content: dict[str, Any] = {"format": FORMAT, "vgae": self.vgae, "splits": self.splits}
        settings = {result.task.method: result.task.settings for result in self.results if result.task.settings}
        if self.experiment != Archive.experiment:
            content["experiment"] = self.experiment
        lines = [json.dumps({key: item})[1:-1] for key, item in content.items()]
        if settings:
            rows = ",\n  ".join(json.dumps({key: item})[1:-1] for key, item in settings.items())
            lines.append(f'"settings": {{\n  {rows}\n}}')
        plain = [replace(result, task=replace(result.task, settings="")).to_json() for result in self.results]
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
            tasks = [replace(each.task, settings=str(settings.get(each.task.method, ""))) for each in found]
            results = [replace(each, task=task) for each, task in zip(found, tasks, strict=True)]
            version, splits = content["vgae"], content["splits"]
            if not isinstance(version, str) or type(splits) is not int or splits < 1 or not results:
                raise ValueError
            return cls(version, splits, sessions, results, str(content.get("experiment", cls.experiment)))
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{path}: not the results.json that vgae reproduce or vgae models writes.") from None


class Store:
    """The folder that holds the results of one experiment; results of another kind are refused, not mixed."""

    def __init__(self, folder: Path, *, splits: int, protocol: dict[str, Any], experiment: str = "reproduce") -> None:
        self.folder, self.splits, self.experiment = folder, splits, experiment
        description = {"format": FORMAT, "vgae": __version__, "splits": splits, "protocol": protocol}
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
        write_json(self._path(result.task), result.to_json())

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
        """All sessions that came to an end, in order; one that was killed did not."""
        found = []
        for path in sorted((self.folder / "sessions").glob("*.json")):
            try:
                found.append(Session.from_json(read_json(path)))
            except (TypeError, ValueError):
                raise InputError(f"{path}: not what vgae reproduce writes there; delete the file.") from None
        return found

    def archive(self, results: Sequence[Result]) -> Archive:
        """All that is known, for one file."""
        return Archive(__version__, self.splits, self.sessions(), list(results), self.experiment)


def list_tasks(
    datasets: Sequence[str],
    methods: Sequence[str],
    *,
    known: Sequence[str],
    runs: int,
    splits: int,
    settings: Mapping[str, str] | None = None,
) -> list[Task]:
    """All tasks of an experiment, the long ones first so that no core waits for the last of them."""
    for name, chosen, names in (("dataset", datasets, DATASETS), ("model", methods, known)):
        for choice in chosen:
            if choice not in names:
                raise InputError(f"{name}: {choice!r} is not one of {', '.join(names)}.")
    if runs < 1 or splits < 1:
        raise InputError(f"runs and splits: at least 1 of each is needed, got {runs} and {splits}.")
    if runs > MOST_RUNS:
        raise InputError(f"runs: at most {MOST_RUNS:,} can be asked for, got {runs:,}.")
    tasks = [
        Task(dataset, method, seed % splits, seed, (settings or {}).get(method, ""))
        for dataset in dict.fromkeys(datasets)
        for method in dict.fromkeys(methods)
        for seed in range(runs)
    ]
    return sorted(tasks, key=lambda task: -DATASETS.index(task.dataset))


def run_tasks(
    work: Callable[[Task], Result | Failure], tasks: Sequence[Task], store: Store, *, workers: int | None = None
) -> Generator[Result | Failure]:
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
    machine = describe_machine() + ("" if workers is None else f" · {count(number, 'run')} at a time")
    added = 0
    with closing(results_of(work, missing, num_workers=number)) as results:
        try:
            for result in results:
                if isinstance(result, Result):
                    store.put(result)
                    added += 1
                yield result
        except WorkerKilledError as error:
            raise WorkerKilledError(
                f"{error}; {store.count(tasks)} of {len(tasks)} results are stored in {store.folder}; "
                "to continue, run the same command again"
            ) from None
        finally:  # interrupted or not
            if added:
                store.record(Session(machine, added, time.perf_counter() - started))


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


def _error(values: Sequence[float]) -> float | None:
    """Standard error of the mean; a single value has none."""
    return statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else None
