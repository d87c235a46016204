"""A run in short: what `train` and `evaluate` print about it."""

from pathlib import Path
from typing import Any

from vgae.experiments.paper import paper_result
from vgae.model.spec import FAMILIES
from vgae.report.collapse import has_collapsed
from vgae.runs.baseline_run import BaselineRun
from vgae.runs.run import Run
from vgae.runs.stack_run import StackRun

AnyRun = Run | BaselineRun | StackRun


def run_summary(folder: Path, run: AnyRun) -> dict[str, Any]:
    """What a run is and how well it does, for JSON."""
    about = {"run": str(folder), "dataset": run.facts.dataset}
    scores = {
        "seconds": run.facts.seconds,
        "split": run.split.content_hash,
        "protocol": "paper",
        "validation": run.metrics.get("validation"),
        "test": run.metrics.get("test"),
    }
    if isinstance(run, BaselineRun):
        return about | {"baseline": run.config.method, "features": False} | scores
    if isinstance(run, StackRun):
        made_of = {name: getattr(run.config, name) for name in ("bases", "folds", "base_seeds", "seed")}
        return about | {"model": "stack", "features": run.facts.num_features > 0} | made_of | scores
    trained = {
        "model": run.config.model,
        "features": run.facts.num_features > 0,
        "objective": run.facts.objective,
        "objective_reason": run.facts.objective_reason,
        "iterations": run.history[-1].iteration,
        "best_iteration": run.facts.best_iteration,
        "latent_dim": run.activity.latent_dim,
        "active_dimensions": run.activity.active,
        "collapsed": has_collapsed(run),
    }
    return about | trained | scores


def paper_scores(run: AnyRun) -> tuple[float, float] | None:
    """The AUC and AP that the paper reports for the same model on the same dataset, if it does."""
    if isinstance(run, BaselineRun):
        return paper_result(run.facts.dataset, run.config.method, features=True)
    if isinstance(run, StackRun):
        return None
    if any(getattr(run.config, family) is not None for family in FAMILIES):
        return None  # a part of it is not the paper's
    return paper_result(run.facts.dataset, run.config.model, features=run.facts.num_features > 0)
