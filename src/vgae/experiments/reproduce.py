"""Running the paper again: datasets × methods × runs.

Run i has seed i and split i mod K: with K = 1, the default, ten initialisations on one split, as in the paper. Every
run has one thread to itself: a result then depends neither on the number of cores nor on what else is running.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import torch

from vgae.baselines import BASELINES
from vgae.evaluation.evaluate import Scorer, evaluate
from vgae.experiments import results
from vgae.experiments.paper import TABLE_1
from vgae.experiments.results import USUAL, Cell, Result, Task
from vgae.experiments.store import Store, run_tasks
from vgae.experiments.store import list_tasks as plan
from vgae.graph.graph import Graph
from vgae.graph.split import split_links
from vgae.io.datasets import load_dataset
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train

METHODS = tuple(TABLE_1["cora"])
PROTOCOL: dict[str, Any] = {  # the rest are defaults, which are the paper's
    "objective": "exact",
    "device": "cpu",
    "eval_every": Config().iterations,  # nothing is logged on the way
}


def list_tasks(datasets: Sequence[str], methods: Sequence[str], *, runs: int, splits: int) -> list[Task]:
    """All tasks of a reproduction."""
    return plan(datasets, methods, known=METHODS, runs=runs, splits=splits)


def paper_store(folder: Path, *, splits: int) -> Store:
    """The folder that holds the results of one reproduction."""
    return Store(folder, splits=splits, protocol=Config(**PROTOCOL).to_json())


def run_task(task: Task) -> Result:
    """Fit the method on the split's training graph and score it on its test pairs."""
    started = time.perf_counter()
    split = split_links(load_dataset(task.dataset), seed=task.split)
    scores = evaluate(_fit(task, split.train), split.test)
    return Result(task, {name: scores[name] for name in USUAL}, time.perf_counter() - started)


def reproduce(tasks: Sequence[Task], store: Store, *, workers: int | None = None) -> Generator[Result]:
    """Results as they become known: the stored ones at once, the others when they are done."""
    return cast(Generator[Result], run_tasks(_run_in_worker, tasks, store, workers=workers))


def embed_cora(**options: Any) -> tuple[npt.NDArray[np.float32], Graph]:
    """What Figure 1 shows: the embedding of an unsupervised VGAE on Cora, and the graph it was trained on."""
    graph = split_links(load_dataset("cora"), seed=0).train
    trained = train(Job.of(graph, Config(**PROTOCOL, **options)))
    embedding: npt.NDArray[np.float32] = trained.embeddings.numpy()
    return embedding, graph


def summarise(found: Sequence[Result]) -> dict[str, dict[str, Cell]]:
    """Table 1 as far as it is known: cells by dataset and method, in the paper's order."""
    return results.summarise(found, METHODS)


def _run_in_worker(task: Task) -> Result:
    torch.set_num_threads(1)
    return run_task(task)


def _fit(task: Task, graph: Graph) -> Scorer:
    if task.method.lower() in BASELINES:
        return BASELINES[task.method.lower()](graph, task.seed)
    model, features = task.method.rstrip("*").lower(), not task.method.endswith("*")
    return train(Job.of(graph, Config(**PROTOCOL, model=model, features=features, seed=task.seed)))
