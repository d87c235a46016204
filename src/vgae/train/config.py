"""What a training run is made of. The only home of defaults: the command and the estimators take theirs from here."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch

from vgae.errors import InputError
from vgae.model.autoencoder import MODELS
from vgae.objective.terms import WEIGHTINGS
from vgae.ops import PRECISIONS

OBJECTIVES = ("exact", "sampled", "auto")
DEVICE = re.compile(r"cpu|cuda(:[0-9]{1,2})?", re.ASCII)


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
        object.__setattr__(self, "features", bool(self.features))
        object.__setattr__(self, "learning_rate", _rate(self.learning_rate))

    def _make_whole(self, name: str, *, at_least: int, at_most: int) -> None:
        """Check a whole number, and make a plain one of a NumPy one."""
        object.__setattr__(self, name, whole_number(getattr(self, name), name, at_least, at_most))

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
    if not DEVICE.fullmatch(name):  # torch takes cuda:256 for cuda:0
        raise InputError(f"device: {name!r} is not a device that is supported; use auto, cpu, cuda or cuda:1.")
    device = torch.device(name)
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device: {name!r} is not there ({torch.cuda.device_count()} GPUs found); use cpu or auto.")
    return device


def whole_number(value: Any, what: str, least: int, most: int | None = None) -> int:
    """A plain whole number out of a plain or NumPy one, or an error that names it."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        bounds = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InputError(f"{what}: a whole number {bounds} is needed, got {value!r}.")
    return int(value)


def _rate(value: Any) -> float:
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        rate = float(value) if number else math.nan
    except OverflowError:  # a whole number beyond all floating-point ones
        rate = math.inf
    if not 0 < rate < math.inf:
        raise InputError(f"learning_rate: a number above 0 is needed, got {value!r}.")
    return rate


def _one_of(name: str, value: object, known: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name}: {value!r} is not one of {', '.join(known)}.")
