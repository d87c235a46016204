"""One trial of a search: a training on the training graph, scored on the validation links, and on nothing else."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from vgae.errors import InputError, VgaeError
from vgae.evaluation.all_pairs import Candidates, sweep, top_metrics
from vgae.evaluation.evaluate import score_held_out
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.split import HeldOut, LinkSplit, split_links
from vgae.train.callbacks import Callback
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import Trained, train
from vgae.train.state import LogEntry
from vgae.words import shown

COMPLETE, PRUNED, FAILED = "complete", "pruned", "failed"
REPORT_EVERY = 5  # logged iterations between two decisions whether a trial is worth more time
PRECISION = re.compile(r"precision@([1-9][0-9]{0,8})", re.ASCII)
PLAIN = ("auc", "ap")
# What a single combination of options can end in; the search tries others.
OWN_FAILURES = (VgaeError, MemoryError, RuntimeError, ArithmeticError, np.linalg.LinAlgError)
Report = Callable[[int, float], bool]  # an iteration and the score there; whether to stop


def check_score(by: Any) -> str:
    """What trials are compared by: auc, ap, or precision@K."""
    if isinstance(by, str) and (by in PLAIN or PRECISION.fullmatch(by)):
        return by
    raise InputError(f"by: {shown(by)} is not one of auc, ap and precision@K, such as precision@100.")


@dataclass(frozen=True, eq=False)
class Material:
    """What a search sees of a split: the training graph and the validation pairs. There are no test pairs in it."""

    split: LinkSplit

    @classmethod
    def of(cls, split: LinkSplit, by: str) -> Material:
        """The same split without its test pairs, which are not even looked at."""
        if not len(split.val.links) or not len(split.val.non_links):
            raise InputError(
                "validation: there are no validation links to search by; hold some out (--val above 0, or val_links)."
            )
        found = PRECISION.fullmatch(by)
        graph = split.links_graph
        num_candidates = graph.num_candidate_pairs - graph.num_links
        if found and int(found[1]) > num_candidates:
            raise InputError(f"by: {by} needs as many pairs that are no links, and there are {num_candidates:,}.")
        return cls(LinkSplit(split.train, split.val, HeldOut.none(), split.seed, split.ordered))

    def of_round(self, number: int) -> LinkSplit:
        """The split itself, or from 1 on the training graph with other links held out of it, as many."""
        if number == 0:
            return self.split
        graph = self.split.train
        share = min(self.num_links / max(graph.num_links, 1), 0.5)
        seed = int(np.random.SeedSequence([self.split.seed, number]).generate_state(1)[0])
        return split_links(graph, val=share, test=0.0, seed=seed)

    @property
    def num_links(self) -> int:
        """Validation links."""
        return len(self.split.val.links)


@dataclass(frozen=True)
class Task:
    """A trial to be run."""

    number: int
    config: Config
    by: str
    prunable: bool = True
    round: int = 0  # which links it is scored on: 0 are the validation links

    def __str__(self) -> str:
        return f"trial {self.number}"


@dataclass(frozen=True)
class Outcome:
    """What became of a trial: its scores on the validation pairs, or why there are none."""

    state: str
    metrics: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    iterations: int | None = None
    reason: str | None = None


def run_trial(material: Material, task: Task, report: Report) -> Outcome:
    """Train and score; what goes wrong with one combination of options is an outcome, not an error."""
    started = time.perf_counter()
    watcher = _Watcher(task, report)
    iterations: int | None
    try:
        split = material.of_round(task.round)
        trained = train(Job.of(split.train, task.config, split.val), watcher)
        metrics = _scores(trained, split, task.by)
        missing = [name for name, value in metrics.items() if not np.isfinite(value)]
        if missing:
            raise VgaeError(f"there is no {missing[0]} of this model")
        state, reason, iterations = COMPLETE, None, trained.best_iteration
    except _PrunedError:
        state, reason, iterations, metrics = PRUNED, None, watcher.iteration, watcher.metrics
    except OWN_FAILURES as error:
        state, reason, iterations, metrics = FAILED, _words(error), watcher.iteration, {}
    return Outcome(state, metrics, time.perf_counter() - started, iterations, reason)


class _PrunedError(Exception):
    """A trial that is not worth more time."""


class _Watcher(Callback):
    """Reports validation scores on the way, and stops a trial that is behind the others.

    On the way to a precision@K the score is AP, which every logged iteration has anyway.
    """

    def __init__(self, task: Task, report: Report) -> None:
        self.task, self.report = task, report
        self.metrics: dict[str, float] = {}
        self.iteration: int | None = None

    def on_log(self, entry: LogEntry) -> None:
        """Look at the score, now and then."""
        if entry.val_auc is None or entry.val_ap is None:
            return
        self.iteration, self.metrics = entry.iteration, {"auc": entry.val_auc, "ap": entry.val_ap}
        if entry.iteration % (REPORT_EVERY * self.task.config.eval_every):
            return
        score = self.metrics.get(self.task.by, entry.val_ap)
        if self.report(entry.iteration, score) and self.task.prunable:
            raise _PrunedError

    def on_warning(self, text: str) -> None:
        """Nobody reads it among so many trainings."""


def _scores(trained: Trained, split: LinkSplit, by: str) -> dict[str, float]:
    found = auc_and_ap(*score_held_out(trained, split.val))
    top = PRECISION.fullmatch(by)
    if top:
        seen = split.as_scored(symmetric=trained.symmetric)
        best = sweep(trained, Candidates.of(seen.links_graph), seen.val.links, int(top[1]))
        found[by] = top_metrics(best.best, best.marked, [int(top[1])]).get(by, np.nan)
    return found


def _words(error: BaseException) -> str:
    """Why it failed, in one line."""
    text = " ".join(str(error).split())
    if isinstance(error, VgaeError):
        return text.rstrip(".")
    if isinstance(error, MemoryError):
        return "memory ran out"
    return f"{type(error).__name__}: {text}"[:500]
