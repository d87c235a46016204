"""What a training run is made of. The only home of defaults: the command and the estimators take theirs from here."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from vgae.errors import InputError
from vgae.model.autoencoder import MODELS
from vgae.objective.terms import WEIGHTINGS
from vgae.ops import PRECISIONS

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
    precision: str = "high"  # of the exact objective on a GPU: high (11 bits) or highest (float32)

    def __post_init__(self) -> None:
        _one_of("model", self.model, tuple(MODELS))
        _one_of("objective", self.objective, OBJECTIVES)
        _one_of("weighting", self.weighting, tuple(WEIGHTINGS))
        _one_of("precision", self.precision, PRECISIONS)
        if not isinstance(self.features, bool | np.bool_):
            raise InputError(f"features: True or False is needed, got {type(self.features).__name__}.")
        if not isinstance(self.device, str):
            raise InputError(f"device: a name such as cpu or cuda is needed, got {type(self.device).__name__}.")
        for name, at_most in (
            ("hidden_dim", 2**16),
            ("latent_dim", 2**16),
            ("iterations", 10**9),
            ("eval_every", 10**9),
        ):
            self._make_whole(name, at_least=1, at_most=at_most)
        for name in ("num_negatives", "early_stopping"):
            if getattr(self, name) is not None:
                self._make_whole(name, at_least=1, at_most=10**10)
        self._make_whole("seed", at_least=0, at_most=2**32 - 1)
        rate: Any = self.learning_rate
        if not isinstance(rate, int | float | np.number) or isinstance(rate, bool) or not 0 < rate < math.inf:
            raise InputError(f"learning_rate: a number above 0 is needed, got {rate!r}.")
        object.__setattr__(self, "features", bool(self.features))
        object.__setattr__(self, "learning_rate", float(rate))

    def _make_whole(self, name: str, *, at_least: int, at_most: int) -> None:
        """Check a whole number, and make a plain one of a NumPy one."""
        value: Any = getattr(self, name)
        if not isinstance(value, int | np.integer) or isinstance(value, bool) or not at_least <= value <= at_most:
            raise InputError(f"{name}: a whole number from {at_least} to {at_most} is needed, got {value!r}.")
        object.__setattr__(self, name, int(value))

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Config:
        """A config out of a run's config.json."""
        unknown = set(values) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"config: {', '.join(sorted(unknown))}: not known to this version of vgae.")
        return cls(**values)


def differences(theirs: Config, ours: Config) -> list[str]:
    """In what two configs differ, option by option; the device says where a run is made, not which it is."""
    names = [field.name for field in fields(Config) if field.name != "device"]
    pairs = [(name, getattr(theirs, name), getattr(ours, name)) for name in names]
    return [f"{name} {their}, not {our}" for name, their, our in pairs if their != our]


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
