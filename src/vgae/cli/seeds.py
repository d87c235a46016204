"""`vgae train --seeds K`: the same training from several seeds, on one split, each in a folder of its own."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vgae.cli.exits import same_command
from vgae.errors import InputError, StoppedError
from vgae.report.console import print_table
from vgae.report.verdict import percent
from vgae.runs.folder import Stage, stage_of
from vgae.runs.make import Destination
from vgae.runs.run import Run
from vgae.screen import print_line
from vgae.train.config import Config
from vgae.words import count

PARTS, METRICS = ("validation", "test"), ("auc", "ap")


@dataclass(frozen=True, eq=False)
class SeedRuns:
    """The finished runs of some seeds, by their folders."""

    runs: dict[Path, Run]

    @property
    def best(self) -> Path:
        """The run with the best validation AUC; without validation, the first."""
        return max(self.runs, key=lambda folder: self.runs[folder].metrics.get("validation", {}).get("auc", 0.0))

    def values(self, part: str, metric: str) -> list[float]:
        """A score of every run; none where nothing is held out."""
        return [run.metrics[part][metric] for run in self.runs.values() if part in run.metrics]

    def summary(self, of: Callable[[list[float]], float | None]) -> dict[str, Any]:
        """The mean, or another number of all runs, of every score."""
        parts = {part: names for part in PARTS if (names := _metrics(self.runs.values(), part))}
        return {part: {metric: of(self.values(part, metric)) for metric in names} for part, names in parts.items()}

    def to_json(self) -> dict[str, Any]:
        """The best run, means and standard errors."""
        return {
            "best": str(self.best),
            "seeds": [run.config.seed for run in self.runs.values()],
            "mean": self.summary(statistics.fmean),
            "standard_error": self.summary(standard_error),
        }

    def print(self) -> None:
        """A table of AUC and AP, seed by seed, with mean and standard error."""
        columns = [(part, metric) for part in PARTS for metric in METRICS if self.values(part, metric)]
        if columns:
            titles = ["protocol paper", *(f"{part} {metric.upper()}" for part, metric in columns)]
            rows = [
                [f"seed {run.config.seed}", *(percent(run.metrics[part][metric]) for part, metric in columns)]
                for run in self.runs.values()
            ]
            rows.append(["mean", *(percent(statistics.fmean(self.values(*column))) for column in columns)])
            rows.append(["standard error", *(percent(standard_error(self.values(*column))) for column in columns)])
            print_table(titles, rows, numbers=titles[1:])
        chosen = (
            "best by validation" if self.values("validation", "auc") else "the first, without validation to choose by"
        )
        print_line(f"{self.best}: {chosen}")


def standard_error(values: list[float]) -> float | None:
    """Of a mean; none of a single value."""
    return statistics.stdev(values) / math.sqrt(len(values)) if len(values) > 1 else None


def train_seeds(
    seeds: int, config: Config, to: Destination, train_one: Callable[[Config, Destination], Run]
) -> SeedRuns:
    """Train from `seeds` consecutive seeds, the config's first, into folders named after them.

    On `resume`, runs that are complete are not trained again.
    """
    configs = [replace(config, seed=config.seed + step) for step in range(seeds)]
    places = [
        replace(to, folder=to.folder / f"seed-{each.seed}", title=f"{to.folder.name}-seed-{each.seed}")
        for each in configs
    ]
    _require_usable(to, places)
    done: dict[Path, Run] = {}
    for each, place in zip(configs, places, strict=True):
        try:
            done[place.folder] = train_one(each, place)
        except KeyboardInterrupt:
            if not done and stage_of(place.folder) is not Stage.UNFINISHED:
                raise StoppedError("Interrupted; nothing was saved.") from None
            raise StoppedError(
                f"Interrupted in seed {each.seed}; {len(done)} of {count(seeds, 'run')} complete. "
                f"To continue, run: {same_command('--resume')}"
            ) from None
    return SeedRuns(done)


def _require_usable(to: Destination, places: list[Destination]) -> None:
    """Refuse before anything is trained what would be refused after hours."""
    if stage_of(to.folder) in (Stage.COMPLETE, Stage.UNFINISHED):
        raise InputError(
            f"{to.folder}: a run is there; with --seeds every seed has a folder of its own in it, so choose another."
        )
    for place in places:
        if not (to.overwrite or to.resume) and stage_of(place.folder) is not Stage.EMPTY:
            raise InputError(
                f"{place.folder}: this folder is already used; --resume to continue, --overwrite, or choose another."
            )


def _metrics(runs: Iterable[Run], part: str) -> list[str]:
    """The scores that every run has."""
    found = [run.metrics.get(part, {}) for run in runs]
    return [name for name in found[0] if all(name in each for each in found)]
