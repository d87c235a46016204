"""Draws for a search space without Optuna: at random, from a seed, and written down."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np


class RandomTrial:
    """A trial whose values are drawn uniformly, by factors where that is asked for."""

    def __init__(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.drawn: dict[str, Any] = {}

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        del step
        drawn = math.exp(self.generator.uniform(math.log(low), math.log(high + 1))) if log else None
        value = int(self.generator.integers(low, high + 1)) if drawn is None else min(int(drawn), high)
        return int(self._noted(name, value))

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        del step
        ends = (math.log(low), math.log(high)) if log else (low, high)
        value = self.generator.uniform(*ends)
        return float(self._noted(name, min(max(math.exp(value), low), high) if log else value))

    def suggest_categorical(self, name: str, choices: Sequence[Any]) -> Any:
        return self._noted(name, choices[int(self.generator.integers(len(choices)))])

    def _noted(self, name: str, value: Any) -> Any:
        assert name not in self.drawn, f"{name} is drawn twice"
        self.drawn[name] = value
        return value
