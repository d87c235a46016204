"""The best trials once more, on other links: among many trials, one wins by a validation set that happened to suit it.

A few hundred validation links tell two good models apart only roughly. So the best trials are trained again on the
training graph without some more of its links, as many as there are for validation, and scored on those; the mean over
all sets decides. Test links play no part in it.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from vgae.errors import InputError
from vgae.io.json_files import read_json, write_json
from vgae.search.study import TrialResult
from vgae.search.trial import COMPLETE, Outcome, Task

FORMAT = 1
ROUNDS = 2  # sets of links beside the validation links


@dataclass
class Finals:
    """What the best trials scored on other links, by trial and round; stored in a file, if there is one."""

    by: str
    path: Path | None = None
    found: dict[tuple[int, int], Outcome] = field(default_factory=dict)

    @classmethod
    def load(cls, by: str, path: Path | None) -> Finals:
        """What was stored before."""
        if path is None or not path.exists():
            return cls(by, path)
        content = read_json(path)
        try:
            rows = [((row["trial"], row["round"]), Outcome(**row["outcome"])) for row in content["results"]]
            if content["format"] != FORMAT or not all(type(number) is int for key, _ in rows for number in key):
                raise ValueError
        except (AttributeError, KeyError, TypeError, ValueError):
            raise InputError(f"{path}: not what vgae tune writes there; delete the file.") from None
        return cls(by, path, dict(rows))

    def put(self, task: Task, outcome: Outcome) -> None:
        """Store one more."""
        self.found[task.number, task.round] = outcome
        if self.path is not None:
            rows = [{"trial": key[0], "round": key[1], "outcome": asdict(each)} for key, each in self.found.items()]
            write_json(self.path, {"format": FORMAT, "results": rows}, durable=True)

    def mean(self, trial: TrialResult) -> float | None:
        """The mean over all sets of links; None where a set is missing, and nothing counts less than a failure."""
        outcomes = [self.found.get((trial.number, number)) for number in range(1, ROUNDS + 1)]
        if trial.score is None or None in outcomes:
            return None
        scores = [each.metrics.get(self.by, -math.inf) for each in outcomes if each is not None]
        return statistics.fmean([trial.score, *scores])

    def missing(self, trials: Sequence[TrialResult]) -> list[Task]:
        """What is to be run for these trials."""
        return [
            Task(each.number, each.config, self.by, prunable=False, round=number)
            for number in range(1, ROUNDS + 1)
            for each in trials
            if (each.number, number) not in self.found
        ]


def finalists(trials: Sequence[TrialResult], number: int) -> list[TrialResult]:
    """The trials with the highest scores that ran to their end, within what was asked for; of equals the first."""
    complete = [each for each in trials if each.state == COMPLETE and each.wanted and each.score is not None]
    return sorted(complete, key=lambda each: -(each.score or 0.0))[:number]
