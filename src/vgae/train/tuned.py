"""The defaults that were tuned on real graphs, for a graph and what is held out of it.

`tuned` puts them in place of every option that was not given. Whether features help is found out by `try_features`: two
short trainings, with and without them, compared on the validation pairs.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from vgae.errors import TrainingError
from vgae.graph.graph import Graph
from vgae.graph.split import HeldOut
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.presets import ENOUGH_TO_STOP, TRIAL_ITERATIONS, TRIAL_MARGIN, TUNED, TUNED_TO_STOP

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True)
class Trial:
    """The mean of AUC and AP on validation after a short training, with features and without; NaN if it diverged."""

    with_features: float
    without: float

    @property
    def features_help(self) -> bool:
        """Whether to use features: unless the model is clearly better without."""
        if math.isnan(self.with_features) or math.isnan(self.without):
            return math.isnan(self.without)
        return self.without <= self.with_features + TRIAL_MARGIN


def tuned(config: Config, given: Collection[str], num_validation_links: int) -> Config:
    """A configuration with tuned defaults where an option was not given."""
    values = TUNED | (TUNED_TO_STOP if num_validation_links >= ENOUGH_TO_STOP else {})
    return replace(config, **{name: value for name, value in values.items() if name not in given})


def can_try_features(graph: Graph, validation: HeldOut | None) -> bool:
    """Whether there are features, and enough validation links to compare by."""
    return graph.features is not None and validation is not None and len(validation.links) >= ENOUGH_TO_STOP


def try_features(graph: Graph, validation: HeldOut, config: Config, group: Group | None = None) -> Trial:
    """Train twice for a short time, with features and without, in this process or a group; nothing is saved."""
    short = replace(config, iterations=min(TRIAL_ITERATIONS, config.iterations), early_stopping=None, stop_by="scores")
    return Trial(
        with_features=_best_score(graph, validation, replace(short, features=True), group),
        without=_best_score(graph, validation, replace(short, features=False), group),
    )


def _best_score(graph: Graph, validation: HeldOut, config: Config, group: Group | None) -> float:
    try:
        history = train(Job.of(graph, config, validation), group=group).history
    except TrainingError:  # it diverged
        return math.nan
    return max(
        (entry.val_auc + entry.val_ap) / 2
        for entry in history
        if entry.val_auc is not None and entry.val_ap is not None
    )
