"""The folder of an experiment: results one by one, each stored the moment it is there.

Run i has seed i and split i mod K. A result is one small file, written in one step and never changed, so an experiment
that was killed continues where it stopped and ends with the same numbers. Every run has one thread to itself, and as
many run side by side as there are cores, unless another number is asked for.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.experiments.results import DATASETS, FORMAT, Archive, Failure, GraphFacts, Result, Session, Task, is_graph_of
from vgae.io.datasets import load_dataset
from vgae.io.json_files import read_json, write_json
from vgae.machine import describe_machine
from vgae.memory import bytes_free
from vgae.version import __version__
from vgae.words import count
from vgae.workers import WorkerKilledError, results_of

MOST_RUNS = 10_000
BYTES_OF_A_WORKER = 1.5e9  # at most, on the largest of the datasets


class Store:
    """The folder that holds the results of one experiment; results of another kind are refused, not mixed.

    Without a number of splits, run i has split i, however many runs there are.
    """

    def __init__(
        self, folder: Path, *, splits: int | None, protocol: dict[str, Any], experiment: str = "reproduce"
    ) -> None:
        self.folder, self.splits, self.experiment = folder, splits, experiment
        description = {"format": FORMAT, "vgae": __version__, "splits": splits, "protocol": protocol}
        path = folder / "reproduction.json"
        if path.exists():
            found = read_json(path)
            changed = sorted(name for name in description if found.get(name) != description[name])
            if changed:
                raise InputError(
                    f"{folder}: it holds results of another experiment (different: {', '.join(changed)}); "
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
        result = self._read(path)
        if result.task != task:
            raise InputError(f"{path}: this is the result of another run; delete the file to have it repeated.")
        return result

    def results(self) -> list[Result]:
        """All stored results, in the order of the names of their files."""
        return [self._read(path) for path in sorted((self.folder / "runs").glob("*.json"))]

    def _read(self, path: Path) -> Result:
        try:
            result = Result.from_json(read_json(path))
            if not is_graph_of(self.experiment, result.task.dataset):
                raise ValueError
        except (KeyError, TypeError, ValueError):
            raise InputError(f"{path}: not a stored result; delete the file to have the run repeated.") from None
        return result

    def add_graph(self, name: str, facts: GraphFacts) -> None:
        """Store what a graph is; an error where results are of another graph of that name."""
        found = self.graphs().get(name)
        if found is None:
            write_json(self.folder / "graphs" / f"{name}.json", asdict(facts))
        elif found != facts:
            raise InputError(
                f"{self.folder}: it holds results of another graph called {name}; choose another folder, or give the "
                "file another name."
            )

    def graphs(self) -> dict[str, GraphFacts]:
        """What the graphs are, as far as that was stored."""
        found = {}
        for path in sorted((self.folder / "graphs").glob("*.json")):
            try:
                found[path.stem] = GraphFacts.from_json(read_json(path))
            except (TypeError, ValueError):
                raise InputError(f"{path}: not what vgae {self.experiment} writes there; delete the file.") from None
        return found

    def count(self, tasks: Sequence[Task]) -> int:
        """How many of these tasks have a result."""
        return sum(self._path(task).exists() for task in tasks)

    def record(self, session: Session) -> None:
        """Store the time of a session."""
        stored = (int(path.stem) for path in (self.folder / "sessions").glob("*.json") if path.stem.isdecimal())
        write_json(self.folder / "sessions" / f"{1 + max(stored, default=-1):04}.json", asdict(session))

    def sessions(self) -> list[Session]:
        """All sessions that came to an end, in order; one that was killed did not."""
        found = []
        for path in sorted((self.folder / "sessions").glob("*.json")):
            try:
                found.append(Session.from_json(read_json(path)))
            except (TypeError, ValueError):
                raise InputError(f"{path}: not what vgae {self.experiment} writes there; delete the file.") from None
        return found

    def archive(self, results: Sequence[Result]) -> Archive:
        """All that is known, for one file."""
        splits = self.splits or 1 + max(result.task.split for result in results)
        return Archive(__version__, splits, self.sessions(), list(results), self.experiment, self.graphs())


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
    work: Callable[[Task], Result | Failure],
    tasks: Sequence[Task],
    store: Store,
    *,
    workers: int | None = None,
    prepare: Callable[[str], object] | None = load_dataset,
) -> Generator[Result | Failure]:
    """Results as they become known: the stored ones at once, the others when they are done.

    `prepare` is called once for each dataset of which something is missing, before the workers all ask for it.
    """
    stored = {task: store.get(task) for task in tasks}
    yield from (result for result in stored.values() if result is not None)
    missing = [task for task, result in stored.items() if result is None]
    if not missing:
        return
    started = time.perf_counter()
    if prepare is not None:
        for dataset in {task.dataset for task in missing}:
            prepare(dataset)
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
