"""What each part scores: the paper's VGAE and the preset `accurate`, each with one part exchanged for every other.

Parts are those that are registered, at the defaults of their options, so that a new part is in the table by itself. A
part that makes no sense in one of the two without another has that other beside it (`BESIDE`). Every run sees the whole
split: its validation pairs stop the models that stop early, and its test pairs are scored once, at the end.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch

from vgae.errors import InputError, VgaeError
from vgae.evaluation.evaluate import evaluate
from vgae.experiments.results import USUAL, Failure, Result, Task
from vgae.experiments.store import Store
from vgae.graph.split import split_links
from vgae.io.datasets import load_dataset
from vgae.model.spec import FAMILIES, is_own, registered
from vgae.options import as_arguments
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.named import NAMED
from vgae.train.state import LogEntry

EXPERIMENT = "models"
BASE = "vgae"  # what times are relative to
BASES: dict[str, dict[str, Any]] = {BASE: {}, "accurate": NAMED["accurate"]}
BESIDE: dict[str, dict[str, Any]] = {  # what a part is tried with, in place of the base's
    "posterior=power_spherical": {"decoder": "scaled:scale=5"},  # inner products of unit vectors are at most 1
    "prior=uniform_sphere": {"posterior": "power_spherical", "decoder": "scaled:scale=5"},
    "accurate+encoder=gcn": {"encoder": "gcn:unit_rows=true", "hidden_dim": 256},
    "accurate+encoder=directed": {"encoder": "directed:unit_rows=true", "hidden_dim": 256},
    "accurate+encoder=linear": {"encoder": "linear:unit_rows=true"},
    "accurate+encoder=mlp": {"encoder": "mlp:unit_rows=true", "hidden_dim": 256},
}
MORE: dict[str, dict[str, Any]] = {  # what is not a part
    "vgae+mask_links": {"mask_links": 0.3},
    "vgae+elbo": {"weighting": "elbo"},
    "vgae+elbo+posterior=power_spherical": {
        "weighting": "elbo",
        "posterior": "power_spherical",
        "decoder": "scaled:scale=5",
    },
}
WARM_UP = 20  # iterations before the time of one is measured


@dataclass(frozen=True)
class Model:
    """A composition with a name."""

    name: str
    settings: dict[str, Any]

    @cached_property
    def config(self) -> Config:
        """The same, checked."""
        return Config(**self.settings)

    @cached_property
    def identity(self) -> tuple[Any, ...]:
        """What makes it another model than another: all options, and the parts by whatever name of a model."""
        return tuple(value for name, value in self.config.to_json().items() if name != "model")

    @property
    def text(self) -> str:
        """The options of `vgae train` that give it."""
        return " ".join(as_arguments(self.config))

    def with_part(self, family: str, name: str) -> Model | None:
        """This model with another part than it has; None where that cannot go together."""
        change = f"{family}={name}"
        settings = self.settings | {family: name} | BESIDE.get(change, {})
        changed = Model(f"{self.name}+{change}", settings | BESIDE.get(f"{self.name}+{change}", {}))
        if self.config.value_of(family).name == name or not _is_allowed(changed.settings):
            return None
        return changed


def all_models() -> dict[str, Model]:
    """All models that are compared, by name; a composition is there once, under the name that it has first."""
    found = {"gae": Model("gae", {"model": "gae"})}
    for name, settings in BASES.items():
        base = found.setdefault(name, Model(name, settings))
        for family in FAMILIES:
            for part, spec in registered(family).items():
                model = base.with_part(family, part) if is_own(spec) else None
                if model is not None and model.identity not in {each.identity for each in found.values()}:
                    found[model.name] = model
    return found | {name: Model(name, settings) for name, settings in MORE.items()}


def model_with(base: str, family: str, part: str) -> str | None:
    """The name of the model that shows a part in one of the two bases, whatever it is called; None where none does."""
    models = all_models()
    if models[base].config.value_of(family).name == part:
        return base
    model = models[base].with_part(family, part)
    identity = None if model is None else model.identity
    return next((name for name, each in models.items() if each.identity == identity), None)


def chosen_models(patterns: Sequence[str]) -> dict[str, Model]:
    """The models whose names fit one of some patterns, such as accurate*."""
    known = all_models()
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in known):
            raise InputError(f"model: {pattern!r} is not one of {', '.join(known)}; * stands for anything.")
    return {name: each for name, each in known.items() if any(fnmatchcase(name, pattern) for pattern in patterns)}


def models_store(folder: Path, *, runs: int, device: str) -> Store:
    """The folder that holds the results; those of another device are refused."""
    return Store(folder, splits=runs, protocol={"experiment": EXPERIMENT, "device": device}, experiment=EXPERIMENT)


def run_model(task: Task, device: str) -> Result | Failure:
    """Train the model of a task on its split and score it on the test pairs."""
    torch.set_num_threads(1)
    started = time.perf_counter()
    config = replace(all_models()[task.method].config, seed=task.seed, device=device)
    split = split_links(load_dataset(task.dataset), seed=task.split)
    try:
        job = Job.of(split.train, config, split.val)
        if job.outline.decoder.factorised:  # which auto comes to as well, after it has measured the machine
            job = replace(job, config=replace(config, objective="exact"))
        trained = train(job)
    except (VgaeError, RuntimeError) as error:  # it diverged, or a device cannot do what it needs: the others can go on
        return Failure(task, " ".join(str(error).split()))
    scores = evaluate(trained, split.test)
    seconds = time.perf_counter() - started
    alone = trained.job.device.type == "cpu"  # runs that share a GPU wait for each other
    metrics = {name: scores[name] for name in USUAL}
    return Result(task, metrics, seconds, iteration_seconds(trained.history) if alone else None)


def iteration_seconds(history: Sequence[LogEntry]) -> float | None:
    """The time of one iteration, scores on validation included: the median over what lies between two logged ones."""
    late = [entry for entry in history if entry.iteration >= WARM_UP]
    times = [
        (after.seconds - before.seconds) / (after.iteration - before.iteration) for before, after in pairwise(late)
    ]
    return statistics.median(times) if times else None


def _is_allowed(settings: dict[str, Any]) -> bool:
    try:
        Config(**settings)
    except InputError:
        return False
    return True
