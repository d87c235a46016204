"""What a search found: its trials, the best of them, and what mattered."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vgae.errors import TrainingError
from vgae.io.exports import write_csv
from vgae.options import options_of
from vgae.search.finals import Finals, finalists
from vgae.search.space import Space
from vgae.search.study import TrialResult, require_optuna
from vgae.search.trial import COMPLETE, FAILED, PRUNED
from vgae.train.config import Config
from vgae.words import count

ENOUGH_FOR_IMPORTANCE = 10  # trials with a score
TREES = 32  # of the forest that importance is read from
FILLS = 2  # how often options that play no part in a trial are filled in by chance
COLUMNS = ("trial", "state", "preset", "score", "mean_score", "auc", "ap", "seconds", "best_iteration", "reason")


@dataclass(frozen=True, eq=False, repr=False)
class SearchResult:
    """The trials of a search, in order, and what they were compared by."""

    by: str
    trials: list[TrialResult]
    space: Space
    finals: Finals
    num_finalists: int = 1
    folder: Path | None = None

    def __repr__(self) -> str:
        ranked = self.ranked()
        best = f", best {self.by} {ranked[0].score:.4f} in trial {ranked[0].number}" if ranked else ""
        return f"SearchResult({count(len(self.trials), 'trial')}{best})"

    @property
    def best(self) -> TrialResult:
        """The trial with the highest score within what was asked for: of the best on the validation links, the one with
        the highest mean over these and other links.
        """
        ranked = self.ranked()
        if not ranked:
            raise TrainingError(self._no_best())
        return ranked[0]

    def ranked(self) -> list[TrialResult]:
        """The trials that ran to their end, the best first; those that were scored on other links come first."""
        ranked = finalists(self.trials, len(self.trials))
        means = {each.number: self.mean(each) for each in ranked}
        final = [each for each in ranked if means[each.number] is not None]
        final.sort(key=lambda each: -(means[each.number] or 0.0))
        return final + [each for each in ranked if means[each.number] is None]

    def mean(self, trial: TrialResult) -> float | None:
        """The mean score over validation and other links, of the finalists once all of them have one."""
        chosen = finalists(self.trials, self.num_finalists)
        if len(chosen) < 2 or trial.number not in {each.number for each in chosen}:
            return None
        complete = all(self.finals.mean(each) is not None for each in chosen)
        return self.finals.mean(trial) if complete else None

    @property
    def best_config(self) -> Config:
        """The configuration of the best trial."""
        return self.best.config

    def best_estimator(self) -> Any:
        """A `GAE` or `VGAE` with the parameters of the best trial, not fitted yet."""
        config = self.best_config
        values = {each.name: getattr(config, each.name) for each in options_of(Config)}
        return import_module("vgae.estimators.base").ESTIMATORS[values.pop("model")](**values)

    def preset(self, name: str) -> TrialResult | None:
        """The trial of a preset, if it has come to an end."""
        return next((each for each in self.trials if each.preset == name), None)

    def counts(self) -> dict[str, int]:
        """How many trials ended in which way."""
        return {state: sum(each.state == state for each in self.trials) for state in (COMPLETE, PRUNED, FAILED)}

    @cached_property
    def importances(self) -> dict[str, float]:
        """How much of what options explain of the scores each explains alone (fANOVA; they add up to 1), largest first.

        Options that play no part in a trial, such as those of another encoder, are filled in there by chance, so that
        nothing follows from them. Empty where there are too few trials.
        """
        scored = [each for each in self.trials if each.score is not None and each.params]
        if len(scored) < ENOUGH_FOR_IMPORTANCE or len({each.score for each in scored}) < 2:
            return {}
        found = [_importances(self.space, scored, seed) for seed in range(FILLS)]
        means = {name: statistics.fmean(each.get(name, 0.0) for each in found) for name in found[0]}
        return dict(sorted(means.items(), key=lambda item: -item[1]))

    def write_trials(self, path: Path) -> None:
        """All trials as CSV: what became of them, and their options."""
        names = [each.name for each in options_of(Config) if each.rule.identifies]
        write_csv(path, [*COLUMNS, *names], [list(_row(each, self.mean(each), names)) for each in self.trials])

    def _no_best(self) -> str:
        if not self.trials:
            return "No trial has ended yet"
        failed = next((each for each in self.trials if each.state == FAILED), None)
        why = f"; of the first that failed: {failed.reason}" if failed else ""
        return f"None of {count(len(self.trials), 'trial')} ran to its end{why}"


def _row(trial: TrialResult, mean: float | None, names: list[str]) -> Iterator[str]:
    """What a row of the table holds; what is not known is empty."""
    outcome, metrics, config = trial.outcome, trial.metrics, trial.config.to_json()
    values: list[Any] = [
        trial.number,
        trial.state,
        trial.preset,
        trial.score,
        mean,
        metrics.get("auc"),
        metrics.get("ap"),
    ]
    for value in (
        *values,
        round(outcome.seconds, 2),
        outcome.iterations,
        outcome.reason,
        *(config[name] for name in names),
    ):
        yield "" if value is None else str(value)


def _importances(space: Space, trials: list[TrialResult], seed: int) -> dict[str, float]:
    """By a study of the same trials in which every option has a value."""
    optuna = require_optuna()
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.RandomSampler(seed=seed))
    dimensions = space.all_dimensions()
    seen = {name for trial in trials for name in trial.params} & set(dimensions)
    for trial in trials:
        filled = study.ask()
        for name in dimensions:
            if name in seen:
                dimensions[name].draw(filled)
        params = filled.params | {name: value for name, value in trial.params.items() if name in seen}
        made = optuna.trial.create_trial(params=params, distributions=filled.distributions, value=trial.score)
        study.add_trial(made)
    evaluator = optuna.importance.FanovaImportanceEvaluator(n_trees=TREES, seed=seed)
    try:
        found = optuna.importance.get_param_importances(study, evaluator=evaluator)
    except RuntimeError:  # no tree of the forest finds a difference between scores
        return {}
    return {name: float(value) for name, value in found.items() if np.isfinite(value)}
