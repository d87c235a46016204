"""The course of a search: which trials there were, which is next, and which are not worth more time; by Optuna.

Each trial has a sampler of its own seed, so that with one worker a search is the same trials every time, interrupted or
not. A trial that was running when the search ended is void: it does not count, and is run again. What a trial was and
became is in its attributes, as JSON.
"""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vgae.errors import InputError
from vgae.search.space import Space
from vgae.search.trial import COMPLETE, FAILED, PRUNED, Outcome, Task
from vgae.train.config import Config

NAME = "vgae"  # of the one study in a journal
MOST_ATTEMPTS = 3  # to run a trial during which the search ended; it may be what ends it
MOST_REFUSALS = 100  # of parts that cannot go together, in a row
RANDOM_TRIALS = 10  # before the sampler goes by what it has seen
COMPLETE_TO_PRUNE = 5  # trials that there must be to compare others with
WARM_UP = 0.1  # of the iterations, in which no trial is stopped


@dataclass(frozen=True)
class TrialResult:
    """One trial that counts: what was tried, and what became of it."""

    number: int
    config: Config
    outcome: Outcome
    score: float | None  # by which trials are compared
    params: dict[str, Any]  # its place in the search space
    preset: str | None = None
    wanted: bool = True  # whether it is within what the user asked for

    @property
    def state(self) -> str:
        """How it ended: complete, pruned or failed."""
        return self.outcome.state

    @property
    def metrics(self) -> dict[str, float]:
        """Its scores on the validation pairs; of a trial that was stopped, the last ones."""
        return self.outcome.metrics

    @property
    def reason(self) -> str | None:
        """Why it failed."""
        return self.outcome.reason


@dataclass(frozen=True)
class Rules:
    """What decides the course of a search, beside its space."""

    by: str
    seed: int
    presets: dict[str, Config]  # tried first


class NoLock:
    """The folder has a lock already, which ends with its process."""

    def acquire(self) -> bool:
        """Nobody else is there."""
        return True

    def release(self) -> None:
        """Nobody waits."""


def require_optuna() -> Any:
    """Optuna, with its own messages off; a sentence where it is not installed."""
    try:
        optuna = import_module("optuna")
    except ImportError:
        raise InputError("A search needs optuna; install it with pip install 'vgae[tune]'.") from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    return optuna


class Study:
    """A search as far as it has come; its trials are in the journal, or in memory without one."""

    def __init__(self, space: Space, rules: Rules, journal: Path | None = None) -> None:
        self.optuna = require_optuna()
        self.space, self.rules = space, rules
        self.running: dict[int, Any] = {}
        with _opening(journal):
            self.study = self.optuna.create_study(
                storage=self._storage(journal),
                study_name=NAME,
                direction="maximize",
                pruner=self._pruner(),
                load_if_exists=True,
            )
            self._void_interrupted()

    def next_task(self, total: int) -> Task | None:
        """What to try next, unless there are that many trials already."""
        for attempt in range(MOST_REFUSALS):
            if len(self._counted()) >= total:
                return None
            number = self._next_number()
            self._enqueue_preset(number)
            self.study.sampler = self._sampler(number, attempt)
            trial = self.study.ask()
            number = trial.user_attrs.get("number", number)
            try:
                config = self._config(trial)
            except InputError as error:
                self._void(trial, str(error))
                refusal = error
                continue
            preset = trial.user_attrs.get("preset")
            trial.set_user_attr("proposal", {"number": number, "config": config.to_json()})
            self.running[number] = trial
            return Task(number, config, self.rules.by, prunable=preset is None)
        raise InputError(f"search: parts that cannot go together were drawn {MOST_REFUSALS} times in a row: {refusal}")

    def heard(self, number: int, iteration: int, score: float) -> bool:
        """A score on the way; whether the trial is behind the others."""
        trial = self.running[number]
        trial.report(score, iteration)
        return bool(trial.should_prune())

    def finished(self, number: int, outcome: Outcome) -> None:
        """What became of a trial."""
        trial = self.running.pop(number)
        trial.set_user_attr("outcome", asdict(outcome))
        state = {COMPLETE: "COMPLETE", PRUNED: "PRUNED", FAILED: "FAIL"}[outcome.state]
        value = outcome.metrics[self.rules.by] if outcome.state == COMPLETE else None
        self.study.tell(trial, value, state=self.optuna.trial.TrialState[state], skip_if_finished=False)

    def trials(self) -> list[TrialResult]:
        """All trials that came to an end and count, in order."""
        found = [self._result(each) for each in self._counted() if each.state.is_finished()]
        return sorted(found, key=lambda each: each.number)

    # ------------------------------------------------------------------------------------------------------------ parts

    def _storage(self, journal: Path | None) -> Any:
        storages = self.optuna.storages
        if journal is None:
            return storages.InMemoryStorage()
        return storages.JournalStorage(storages.journal.JournalFileBackend(str(journal), lock_obj=NoLock()))

    def _pruner(self) -> Any:
        longest = self.space.fixed.get("iterations", Config().iterations)
        return self.optuna.pruners.MedianPruner(
            n_startup_trials=COMPLETE_TO_PRUNE, n_warmup_steps=math.ceil(WARM_UP * longest), n_min_trials=2
        )

    def _sampler(self, number: int, attempt: int) -> Any:
        seed = int(np.random.SeedSequence([self.rules.seed, number, attempt]).generate_state(1)[0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", self.optuna.exceptions.ExperimentalWarning)
            return self.optuna.samplers.TPESampler(
                seed=seed, n_startup_trials=RANDOM_TRIALS, multivariate=True, group=True, constant_liar=True
            )

    # ----------------------------------------------------------------------------------------------------------- trials

    def _counted(self) -> list[Any]:
        """All trials that have begun, but for the void ones."""
        waiting = self.optuna.trial.TrialState.WAITING
        return [
            each
            for each in self.study.get_trials(deepcopy=False)
            if each.state != waiting and "void" not in each.user_attrs
        ]

    def _next_number(self) -> int:
        """The first that no trial has, those among them that wait to be run again."""
        waiting = self.study.get_trials(deepcopy=False, states=(self.optuna.trial.TrialState.WAITING,))
        taken = {each.user_attrs["proposal"]["number"] for each in self._counted()}
        taken |= {each.user_attrs.get("number") for each in waiting}
        return next(number for number in itertools.count() if number not in taken)

    def _enqueue_preset(self, number: int) -> None:
        """The presets come first, unless a trial waits to be run again."""
        waiting = self.study.get_trials(deepcopy=False, states=(self.optuna.trial.TrialState.WAITING,))
        names = list(self.rules.presets)
        done = {each.user_attrs.get("preset") for each in self._counted()}
        left = [name for name in names if name not in done]
        if waiting or not left or number >= len(names):
            return
        params, wanted = self.space.locate(self.rules.presets[left[0]])
        self.study.enqueue_trial(params, user_attrs={"preset": left[0], "wanted": wanted})

    def _config(self, trial: Any) -> Config:
        """What a trial tries: a preset, or what the space proposes."""
        preset = trial.user_attrs.get("preset")
        if preset is None:
            return self.space.propose(trial)
        config = self.rules.presets[preset]
        dimensions = self.space.all_dimensions()
        for name in self.space.locate(config)[0]:
            if name in dimensions:
                dimensions[name].draw(trial)  # which is the preset's value
        return config

    def _void_interrupted(self) -> None:
        """Trials that nobody runs any more: they do not count, and are run again as they were."""
        for each in self.study.get_trials(deepcopy=False, states=(self.optuna.trial.TrialState.RUNNING,)):
            attempts = int(each.user_attrs.get("attempts", 0)) + 1
            storage = self.study._storage
            if attempts >= MOST_ATTEMPTS and "proposal" in each.user_attrs:
                words = f"the search ended {attempts} times while this trial was running"
                storage.set_trial_user_attr(each._trial_id, "outcome", asdict(Outcome(FAILED, reason=words)))
                self.study.tell(each.number, state=self.optuna.trial.TrialState.FAIL)
                continue
            storage.set_trial_user_attr(each._trial_id, "void", "interrupted")
            self.study.tell(each.number, state=self.optuna.trial.TrialState.FAIL)
            if "proposal" in each.user_attrs:
                passed_on = {name: each.user_attrs[name] for name in ("preset", "wanted") if name in each.user_attrs}
                passed_on |= {"number": each.user_attrs["proposal"]["number"], "attempts": attempts}
                self.study.enqueue_trial(each.params, user_attrs=passed_on)

    def _void(self, trial: Any, why: str) -> None:
        trial.set_user_attr("void", why)
        self.study.tell(trial, state=self.optuna.trial.TrialState.FAIL)

    def _result(self, frozen: Any) -> TrialResult:
        """A trial out of the journal."""
        known, proposal = frozen.user_attrs, frozen.user_attrs["proposal"]
        outcome = Outcome(**known["outcome"])
        return TrialResult(
            number=proposal["number"],
            config=Config.from_json(proposal["config"]),
            outcome=outcome,
            score=outcome.metrics.get(self.rules.by),
            params=dict(frozen.params),
            preset=known.get("preset"),
            wanted=known.get("wanted", True),
        )


@contextmanager
def _opening(journal: Path | None) -> Iterator[None]:
    """A journal is cut after its last whole line: what follows was being written when the process ended."""
    if journal is not None and journal.exists():
        content = journal.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with journal.open("r+b") as file:
                file.truncate(whole)
    try:
        yield
    except (AssertionError, KeyError, TypeError, ValueError) as error:
        if journal is None or isinstance(error, InputError):
            raise
        raise InputError(
            f"{journal}: not a journal of trials; --overwrite to begin again, or choose another folder."
        ) from None
