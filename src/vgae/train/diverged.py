"""Numbers that are none: a training that has diverged is stopped, with what can be done about it."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from vgae.errors import TrainingError
from vgae.graph.features import remedy_for
from vgae.train.job import Job


def require_finite(values: Tensor, iteration: int, job: Job) -> None:
    """Stop with a diagnosis rather than continue with numbers that are none."""
    if not is_finite(values):
        raise diverged(iteration, job)


def is_finite(values: Tensor) -> bool:
    """Whether all numbers are."""
    return bool(torch.isfinite(values).all())


def diverged(iteration: int, job: Job) -> TrainingError:
    """What to say."""
    remedy = f"lower the learning rate (now {job.config.learning_rate})"
    features: Any = job.graph.features
    how = None if features is None else remedy_for(features)
    if how is not None:
        largest = abs(features).max()
        remedy = f"features are as large as {largest:.3g}, so bring them to scale (--normalize {how}), or {remedy}"
    return TrainingError(
        f"Training has diverged: there are infinite or undefined values at iteration {iteration}; {remedy}."
    )
