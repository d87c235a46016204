"""How accurate models, presets, the stack and baselines are: graphs × methods × splits, for docs/accuracy.md.

Run i has seed i and split i (85/5/10), whatever the number of runs. A method sees the training graph of its split and,
to stop by or to choose by, the validation pairs; test pairs are scored once, at the end, by all measures of
`measures.py`. A star marks methods that leave features out; they are all that is run on a graph without features.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

import torch

from vgae.errors import InputError, VgaeError
from vgae.experiments.measures import column_metrics, more_metrics, sampled_metrics
from vgae.experiments.methods import Method, all_methods, fit
from vgae.experiments.results import NAME, Archive, Failure, GraphFacts, Result, Task
from vgae.experiments.store import MOST_RUNS, Store
from vgae.graph.graph import Graph
from vgae.graph.split import split_links
from vgae.io.catalog import DATASETS
from vgae.io.datasets import load_dataset
from vgae.io.graphs import read_npz_graph
from vgae.io.npz import names_in
from vgae.io.npz_layouts import is_foreign

EXPERIMENT = "accuracy"
HARD = ("cora", "citeseer", "pubmed")  # the graphs that HeaRT is published for, of ours
RUNS = dict.fromkeys(HARD, 10)  # unless another number is asked for
OTHER_RUNS = 5
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


# --------------------------------------------------------------------------------------------------------------- graphs


@dataclass(frozen=True)
class Source:
    """A dataset by name, or the graph of a file, which goes by the file's name without its ending."""

    name: str
    path: Path | None = None

    def load(self) -> Graph:
        """The graph."""
        if self.path is None:
            return load_dataset(self.name)
        if self.path.suffix == ".npz" and not is_foreign(names_in(self.path)):
            return read_npz_graph(self.path)  # vgae's own layout, which takes nothing else to read
        graph: Graph = import_module("vgae.io.tables").read_graph(self.path)  # which loads pyarrow
        return graph


def find_sources(given: Sequence[str] | None) -> dict[str, Source]:
    """The graphs that are asked for, by name; all datasets unless some are."""
    found: dict[str, Source] = {}
    for text in given or DATASETS:
        source = Source(text.lower()) if text.lower() in DATASETS else Source(Path(text).stem, Path(text))
        if source.path is not None and not source.path.exists():
            raise InputError(f"graph: {text!r} is neither a dataset ({', '.join(DATASETS)}) nor a file.")
        if source.path is not None and (source.name in DATASETS or NAME.fullmatch(source.name) is None):
            raise InputError(
                f"graph: results of {text} would go by the name {source.name!r}; give the file another name."
            )
        if found.setdefault(source.name, source) != source:
            raise InputError(f"graph: two files go by the name {source.name}; give one of them another name.")
    return found


def facts_of(graph: Graph) -> GraphFacts:
    """What a page tells of a graph."""
    num_test_links = len(split_links(graph, seed=0).test.links)
    return GraphFacts(graph.num_nodes, graph.num_links, graph.num_features, num_test_links, graph.content_hash)


def list_tasks(graphs: Mapping[str, GraphFacts], methods: Sequence[Method], runs: int | None = None) -> list[Task]:
    """All tasks: one split after the other, so that an interrupted experiment has whole ones; large graphs first."""
    if runs is not None and not 1 <= runs <= MOST_RUNS:
        raise InputError(f"runs: from 1 to {MOST_RUNS:,} can be asked for, got {runs:,}.")
    tasks = [
        Task(name, method.name, seed, seed, method.settings)
        for name, facts in graphs.items()
        for method in methods
        if facts.num_features or not method.uses_features
        for seed in range(runs or RUNS.get(name, OTHER_RUNS))
    ]
    if not tasks:
        raise InputError("method: all of these use features, and the graph has none; choose one with a star.")
    return sorted(tasks, key=lambda task: (task.seed, -graphs[task.dataset].num_nodes))


# ----------------------------------------------------------------------------------------------------------------- runs


@dataclass(frozen=True)
class Setting:
    """How runs are made: on which device, with how many threads each, and which graphs are files."""

    device: str
    threads: int
    sources: Mapping[str, Source]


def run_accuracy(task: Task, setting: Setting) -> Result | Failure:
    """Fit the method of a task on its split and measure it."""
    torch.set_num_threads(setting.threads)
    started = time.perf_counter()
    split = split_links(setting.sources[task.dataset].load(), seed=task.split)
    try:
        began = time.perf_counter()
        fitted = fit(all_methods()[task.method], split, task.seed, setting.device)
        sampled = sampled_metrics(fitted.scorer, split)  # heuristics do all their work here
        fit_seconds = time.perf_counter() - began
        metrics = sampled | more_metrics(
            fitted.scorer, split, recommender=fitted.recommender, hard=task.dataset in HARD
        )
        if fitted.composed is not None:
            metrics |= column_metrics(fitted.composed, split)
    except (VgaeError, RuntimeError) as error:  # it diverged, or a device cannot do what it needs: the others can go on
        return Failure(task, " ".join(str(error).split()))
    return Result(task, metrics, time.perf_counter() - started, fit_seconds=fit_seconds)


@contextmanager
def limited_threads(number: int) -> Iterator[None]:
    """Processes that are started meanwhile have so many threads, in all libraries."""
    before = {name: os.environ.get(name) for name in THREADS}
    os.environ.update(dict.fromkeys(THREADS, str(number)))
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            os.environ.update({} if value is None else {name: value})


# --------------------------------------------------------------------------------------------------------------- stored


def accuracy_store(folder: Path) -> Store:
    """The folder that holds the results, of whatever device: the sessions say which."""
    return Store(folder, splits=None, protocol={"experiment": EXPERIMENT}, experiment=EXPERIMENT)


def merge(store: Store, other: Archive) -> int:
    """Take over what an archive has and a folder has not; the number of results taken."""
    for name, facts in other.graphs.items():
        store.add_graph(name, facts)
    new = [result for result in other.results if store.get(result.task) is None]
    for result in new:
        store.put(result)
    known = store.sessions()
    for session in other.sessions if new else ():
        if session not in known:
            store.record(session)
    return len(new)


def read_results(path: Path) -> Archive:
    """All results of another folder, finished or not, or of an archive."""
    if path.is_dir():
        if not (path / "reproduction.json").exists():
            raise InputError(f"{path}: there are no results of vgae accuracy in this folder.")
        store = accuracy_store(path)
        found = store.results()
        if not found:
            raise InputError(f"{path}: there are no results of vgae accuracy in this folder yet.")
        return store.archive(found)
    archive = Archive.read(path)
    if archive.experiment != EXPERIMENT:
        raise InputError(f"{path}: these are results of vgae {archive.experiment}, not of vgae accuracy.")
    return archive


def archive_of(store: Store) -> tuple[Archive | None, int]:
    """All results of a folder for one file, and how many are left out, because their method has changed since."""
    known = all_methods()
    found = store.results()
    current = [each for each in found if _is_current(each.task, known)]
    if not current:
        return None, len(found)
    places = {name: place for place, name in enumerate(known)}
    graphs = {name: place for place, name in enumerate(DATASETS)}

    def order(result: Result) -> tuple[Any, ...]:
        task = result.task
        return graphs.get(task.dataset, len(graphs)), task.dataset, places.get(task.method, len(places)), task.seed

    archive = store.archive(sorted(current, key=order))
    used = sorted(archive.graphs, key=lambda name: (graphs.get(name, len(graphs)), name))
    return replace(archive, graphs={name: archive.graphs[name] for name in used}), len(found) - len(current)


def _is_current(task: Task, known: Mapping[str, Method]) -> bool:
    method = known.get(task.method)
    return method is None or method.missing is not None or task.settings == method.settings
