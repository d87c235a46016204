"""What a training run is made of. The only home of defaults: the command and the estimators take theirs from here."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import torch

from vgae.errors import InputError
from vgae.model.autoencoder import MODELS
from vgae.objective.terms import WEIGHTINGS

OBJECTIVES = ("exact", "sampled", "auto")


@dataclass(frozen=True)
class Config:
    """One model and how it is trained; the defaults are the paper's, with the last iteration kept."""

    model: str = "vgae"
    features: bool = True  # without: X = I, the paper's GAE* and VGAE*
    hidden_dim: int = 32
    latent_dim: int = 16
    iterations: int = 200
    learning_rate: float = 0.01
    objective: str = "auto"
    weighting: str = "paper"
    num_negatives: int | None = None  # zeros drawn per step by the sampled objective; None: 2E, one for each one of A
    eval_every: int = 10  # iterations between two validation scores and log entries
    early_stopping: int | None = None  # stop after so many iterations without a better validation score; None: never
    seed: int = 0  # initialisation, noise and sampled zeros
    device: str = "auto"

    def __post_init__(self) -> None:
        _one_of("model", self.model, tuple(MODELS))
        _one_of("objective", self.objective, OBJECTIVES)
        _one_of("weighting", self.weighting, tuple(WEIGHTINGS))
        for name in ("hidden_dim", "latent_dim", "iterations", "eval_every"):
            _whole(name, getattr(self, name), at_least=1)
        for name in ("num_negatives", "early_stopping"):
            if getattr(self, name) is not None:
                _whole(name, getattr(self, name), at_least=1)
        _whole("seed", self.seed, at_least=0)
        if not (isinstance(self.learning_rate, int | float) and 0 < self.learning_rate < math.inf):
            raise InputError(f"learning_rate: a number above 0 is needed, got {self.learning_rate!r}.")

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Config:
        """A config out of a run's config.json."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"config: {', '.join(sorted(unknown))}: not known to this version of vgae.")
        return cls(**values)


def choose_device(name: str) -> torch.device:
    """The device of that name; auto means a CUDA GPU where there is one, else the CPU."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device: {name!r} is not a device; use auto, cpu, cuda or cuda:1.") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device: {name!r} is not supported; use auto, cpu or cuda.")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device: {name!r} is not there ({torch.cuda.device_count()} GPUs found); use cpu or auto.")
    return device


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if value not in known:
        raise InputError(f"{name}: {value!r} is not one of {', '.join(known)}.")


def _whole(name: str, value: object, *, at_least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
        raise InputError(f"{name}: a whole number of at least {at_least} is needed, got {value!r}.")
