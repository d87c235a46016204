"""`vgae.tune`: the parts and options that suit a graph, by its validation links alone.

The paper holds out validation links "for optimization of hyperparameters". A search trains on the split's training
graph, scores on its validation pairs, and never sees a test pair: they are left behind before it begins.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.graph.split import LinkSplit, split_links
from vgae.io.plain import as_path
from vgae.memory import bytes_free
from vgae.options import Options, option, options_of
from vgae.search import finals
from vgae.search.folder import FINALS, SearchFolder
from vgae.search.pool import run_trials
from vgae.search.result import SearchResult
from vgae.search.space import Wishes, space_for
from vgae.search.study import Rules, Study, TrialResult, require_optuna
from vgae.search.trial import PRECISION, Material, Outcome, Task, check_score
from vgae.train.config import Config, choose_device
from vgae.train.named import NAMED, with_preset

NUM_FINALISTS = 5
BYTES_OF_A_WORKER = 1e9  # of memory, at most, for a graph as large as the datasets


@dataclass(frozen=True)
class SearchOptions(Options):
    """How long a search is, what it goes by, and how many trials run at a time."""

    trials: int = option(50, least=1, most=10**6, help="Trials in all, those of earlier sessions counted.")
    by: str = option(
        "auc", convert=check_score, help="What trials are compared by: auc, ap, or precision@K over all pairs."
    )
    finalists: int = option(
        NUM_FINALISTS,
        least=1,
        most=1000,
        help="Best trials that are compared once more, on other links of the training graph; 1: none.",
    )
    workers: int | None = option(
        None, least=1, most=1024, help="Trials at a time, each with one thread.  [default: one per core, one on a GPU]"
    )
    timeout: float | None = option(None, above=0, help="Seconds after which no trial begins.  [default: none]")


class SearchReporter:
    """Receives what happens in a search; this one ignores it."""

    def on_begin(self, done: list[TrialResult], total: int, workers: int) -> None:
        """Trials begin; some may be done already."""

    def on_trial(self, result: SearchResult) -> None:
        """A trial has come to an end."""

    def on_final(self, left: int) -> None:
        """The best trials are trained again, on other links; so many trainings are left."""


def tune(
    graph: Any,
    *,
    trials: int = 50,
    by: str = "auc",
    search: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    finalists: int = NUM_FINALISTS,
    workers: int = 1,
    timeout: float | None = None,
    **options: Any,
) -> SearchResult:
    """Search for the parts and options that predict the validation links of a graph best.

    `graph` is a `LinkSplit`, whose test pairs are not looked at, or a graph, which is then split as `split_links` does
    it. Trials are compared `by` "auc", "ap" or "precision@100" on the validation links. `options` are those of the
    estimators that have one value in all trials, such as latent_dim=16; `search` names what others are searched in:
    {"encoder": ["gcn", "mlp"], "latent_dim": (16, 64), "encoder__dropout": (0.0, 0.5)}. The presets "paper" and
    "accurate" are tried first; the best `finalists` are compared once more, on other links of the training graph. `out`
    names a folder to store the search in, which `resume` continues after a kill. With more than one of `workers`,
    trials run in processes of their own, and a script needs the guard `if __name__ == "__main__"`.

    >>> import vgae
    >>> split = vgae.split_links(vgae.stochastic_block_model(60, 3, seed=0), val=0.1, seed=0)
    >>> found = vgae.tune(split, trials=3, finalists=1, workers=1, search={"latent_dim": (4, 8)}, iterations=10)
    >>> len(found.trials)
    3
    >>> model = found.best_estimator().fit(split.train)
    """
    unknown = set(options) - {each.name for each in options_of(Config)}
    if unknown:
        raise TypeError(f"tune has no parameter {', '.join(sorted(unknown))}.")
    if search is not None and not isinstance(search, Mapping):
        raise InputError(
            f"search: a dictionary is needed, such as {{'latent_dim': (16, 64)}}, got {type(search).__name__}."
        )
    split = graph if isinstance(graph, LinkSplit) else split_links(Graph.of(graph))
    chosen = SearchOptions(trials, by, finalists, workers, timeout)
    folder = None if out is None else SearchFolder(as_path(out, "out"), resume=resume)
    return run_search(split, chosen, Wishes(options, search or {}), folder)


def run_search(
    split: LinkSplit,
    options: SearchOptions,
    wishes: Wishes,
    folder: SearchFolder | None = None,
    reporter: SearchReporter | None = None,
) -> SearchResult:
    """Search on a split, into a folder if there is one; the result of all trials, earlier ones among them."""
    require_optuna()
    material = Material.of(split, options.by)
    space = space_for(split.train, material.num_links, wishes, by_top=PRECISION.fullmatch(options.by) is not None)
    rules = Rules(options.by, wishes.given.get("seed", Config().seed), presets_for(wishes, material.num_links))
    workers = _num_workers(options.workers, wishes.given.get("device", Config().device))
    with ExitStack() as entered:
        journal = None if folder is None else entered.enter_context(folder.opened(material, space, rules))
        director = _Director(Study(space, rules, journal), options, reporter or SearchReporter(), folder)
        director.reporter.on_begin(director.study.trials(), options.trials, workers)
        try:
            run_trials(material, director, workers=workers)
            if not director.late:
                final = _FinalDirector(director)
                run_trials(material, final, workers=min(workers, max(len(final.tasks), 1)))
        finally:  # interrupted or not, the files say how far it has come
            result = director.result()
            if folder is not None:
                folder.write(result)
    return result


def presets_for(wishes: Wishes, num_validation_links: int) -> dict[str, Config]:
    """The presets with what the user gave; one that cannot go with that is left out."""
    found: dict[str, Config] = {}
    config = Config(**wishes.given)
    for name in NAMED:
        try:
            preset = with_preset(config, name, tuple(wishes.given), num_validation_links)
        except InputError:
            continue
        if preset not in found.values():
            found[name] = preset
    return found


class _Director:
    """Keeps the number of trials and the time, and reports."""

    def __init__(
        self, study: Study, options: SearchOptions, reporter: SearchReporter, folder: SearchFolder | None
    ) -> None:
        self.study, self.options, self.reporter, self.folder = study, options, reporter, folder
        self.finals = finals.Finals.load(options.by, None if folder is None else folder.path / FINALS)
        self.end = None if options.timeout is None else time.monotonic() + options.timeout

    @property
    def late(self) -> bool:
        """Whether the time is over."""
        return self.end is not None and time.monotonic() >= self.end

    def next_task(self) -> Task | None:
        """The next trial, while there is time."""
        return None if self.late else self.study.next_task(self.options.trials)

    def heard(self, task: Task, iteration: int, score: float) -> bool:
        """A score on the way."""
        return self.study.heard(task.number, iteration, score)

    def finished(self, task: Task, outcome: Outcome) -> None:
        """Store what became of a trial."""
        self.study.finished(task.number, outcome)
        self.reporter.on_trial(self.result())

    def result(self) -> SearchResult:
        """All trials so far."""
        path = None if self.folder is None else self.folder.path
        trials, number = self.study.trials(), self.options.finalists
        return SearchResult(self.options.by, trials, self.study.space, self.finals, number, path)


class _FinalDirector:
    """Has the best trials trained again on other links, as far as that is not stored already."""

    def __init__(self, search: _Director) -> None:
        self.search = search
        chosen = finals.finalists(search.study.trials(), search.options.finalists)
        self.tasks = search.finals.missing(chosen) if len(chosen) > 1 else []
        self.left = len(self.tasks)

    def next_task(self) -> Task | None:
        """The next one."""
        if self.tasks:
            self.search.reporter.on_final(self.left)
        return self.tasks.pop(0) if self.tasks else None

    def heard(self, task: Task, iteration: int, score: float) -> bool:
        """None of them is stopped."""
        del task, iteration, score
        return False

    def finished(self, task: Task, outcome: Outcome) -> None:
        """Store what it scored."""
        self.left -= 1
        self.search.finals.put(task, outcome)


def _num_workers(asked: int | None, device: str) -> int:
    if asked is not None:
        return asked
    if choose_device(device).type == "cuda":
        return 1
    return int(min(os.cpu_count() or 1, max(1, bytes_free() // BYTES_OF_A_WORKER)))
