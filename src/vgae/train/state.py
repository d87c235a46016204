"""The state of a training between two iterations: what the next one depends on, and what has been logged so far.

A snapshot can be taken after any iteration and restored in another process, which then continues to the same bits.
"""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from vgae.machine import num_threads
from vgae.model.autoencoder import AutoEncoder
from vgae.objective.cost import Choice
from vgae.objective.partition import STATE
from vgae.objective.variate import MEANS
from vgae.parallel.shards import Shards
from vgae.train.adam import Adam
from vgae.train.step import Step

MOST_DIMENSIONS = 2**16
Layout = dict[str, tuple[torch.Size, torch.dtype]]  # of the tensors in a state
Layouts = dict[str, Layout]  # by the objective that was chosen


@dataclass(frozen=True)
class LogEntry:
    """What one logged iteration looked like: the loss before its step, the validation score after it."""

    iteration: int
    loss: float
    reconstruction: float
    kl: float
    val_auc: float | None
    val_ap: float | None
    seconds: float
    active: int | None = None  # dimensions that say something about the nodes; earlier versions did not count them

    def __str__(self) -> str:
        text = f"loss {self.loss:.3f} = {self.reconstruction:.3f} + KL {self.kl:.3f}"
        if self.val_auc is not None and self.val_ap is not None:
            text += f" · AUC {100 * self.val_auc:.1f} AP {100 * self.val_ap:.1f}"
        return text if self.active is None else f"{text} · {self.active} active"

    def to_json(self) -> dict[str, Any]:
        """The inverse of `from_json`; what was not counted is left out."""
        return {name: value for name, value in asdict(self).items() if name != "active" or value is not None}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> LogEntry:
        """An entry out of a file; ValueError where it holds anything but an iteration and finite numbers."""
        entry = cls(**values)
        if type(entry.iteration) is not int or entry.iteration < 1:
            raise ValueError(f"iteration {entry.iteration!r} in the history")
        if entry.active is not None and (type(entry.active) is not int or not 0 <= entry.active <= MOST_DIMENSIONS):
            raise ValueError(f"active {entry.active!r} in the history")
        for name, value in values.items():
            absent = value is None and name in ("val_auc", "val_ap")
            if not absent and not (type(value) in (int, float) and math.isfinite(value)):
                raise ValueError(f"{name} {value!r} in the history")
        return entry


@dataclass(frozen=True)
class Sharding:
    """How the state of a training is divided among the processes of a group.

    Of the tensors named in `names` each process has the rows of its own nodes, and layouts and snapshots have as many
    rows; all others are the same in every process.
    """

    shards: Shards
    names: frozenset[str]


@dataclass(frozen=True, eq=False)
class TrainingState:
    """A snapshot; its tensors are on the CPU, and `state_tensors` names them."""

    iteration: int
    seconds: float
    objective: str
    objective_reason: str
    best_iteration: int
    best_score: float
    history: list[LogEntry]
    tensors: dict[str, Tensor]
    threads: int | None = None  # None where it is not known


class Best:
    """The best weights so far by the sum of the validation scores; without patience, simply the last ones."""

    def __init__(self, model: AutoEncoder, patience: int | None) -> None:
        self.patience = patience
        self.iteration = 0
        self.score = -1.0
        self.weights = _copies(model.state_dict()) if patience else None

    def update(self, model: AutoEncoder, iteration: int, score: dict[str, float]) -> None:
        """Compare a validation score with the best so far."""
        if self.patience is None:
            self.iteration = iteration
        elif sum(score.values()) > self.score:
            self.score = sum(score.values())
            self.iteration = iteration
            self.weights = _copies(model.state_dict())

    def is_final(self, history: list[LogEntry]) -> bool:
        """Whether patience had run out at the last logged iteration."""
        if self.patience is None or not history:
            return False
        return history[-1].iteration - self.iteration >= self.patience

    def apply(self, model: AutoEncoder) -> None:
        """Give the model its best weights."""
        if self.weights is not None:
            model.load_state_dict(self.weights)


class Progress:
    """How far a training is."""

    def __init__(self, step: Step, best: Best, choice: Choice, started: float) -> None:
        self.step, self.best, self.choice, self.started = step, best, choice, started
        self.iteration = 0
        self.history: list[LogEntry] = []
        self.threads = num_threads()

    @property
    def seconds(self) -> float:
        """Time in training, that of earlier processes counted."""
        return time.perf_counter() - self.started

    def snapshot(self) -> TrainingState:
        """The state after the last iteration, copied to the CPU."""
        return TrainingState(
            iteration=self.iteration,
            seconds=self.seconds,
            objective=self.choice.objective,
            objective_reason=self.choice.reason,
            best_iteration=self.best.iteration,
            best_score=self.best.score,
            history=list(self.history),
            tensors={name: tensor.detach().cpu().clone() for name, tensor in self._tensors().items()},
            threads=self.threads,
        )

    @torch.no_grad()
    def restore(self, state: TrainingState) -> None:
        """Continue from a snapshot; recorded steps start from it as others do, because nothing is recorded yet."""
        for name, tensor in self._tensors().items():
            tensor.copy_(state.tensors[name])  # into the memory that there is
        self.step.generator.set_state(state.tensors["generator"])
        self.best.iteration, self.best.score = state.best_iteration, state.best_score
        self.iteration, self.history = state.iteration, list(state.history)
        self.started -= state.seconds

    def _tensors(self) -> dict[str, Tensor]:
        step = self.step
        of_objective = {f"objective.{name}": tensor for name, tensor in step.objective.state().items()}
        return state_tensors(step.model, step.optimizer, step.generator, self.best.weights) | of_objective


def state_tensors(
    model: AutoEncoder, optimizer: Adam, generator: torch.Generator, best: dict[str, Tensor] | None
) -> dict[str, Tensor]:
    """The tensors of a state, by name: weights, the best weights if there are any, Adam's moments, the generator."""
    return (
        {f"weights.{name}": tensor for name, tensor in model.state_dict().items()}
        | {f"best.{name}": tensor for name, tensor in (best or {}).items()}
        | {f"adam.{name}": tensor for name, tensor in optimizer.state().items()}
        | {"generator": generator.get_state()}
    )


def layouts_of(
    outline: AutoEncoder, generator: torch.Generator, *, best: bool, control_variate: bool, partition: bool = False
) -> Layouts:
    """What the tensors of a state look like with either objective, by an outline of the model that takes no memory."""
    optimizer = Adam(outline.named_parameters(), learning_rate=0.0)
    tensors = state_tensors(outline, optimizer, generator, outline.state_dict() if best else None)
    layout = {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}
    sampled = dict(layout)
    if control_variate:
        sampled["objective.means"] = (MEANS, torch.float64)
    if partition:
        sampled["objective.partition"] = (STATE, torch.int64)
    return {"exact": layout, "sampled": sampled}


def _copies(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in tensors.items()}
