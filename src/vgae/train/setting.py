"""Where a training runs: in one process, which has all of it, or in a group (vgae.train.together)."""

from __future__ import annotations

from typing import Protocol

import torch
from torch import Tensor

from vgae.model.autoencoder import AutoEncoder
from vgae.objective.cost import Choice, require_memory, room_on
from vgae.train.callbacks import Checkpointer
from vgae.train.diverged import require_finite
from vgae.train.job import Job, workload
from vgae.train.plan import decide, objectives_of
from vgae.train.start import Generators, first_step
from vgae.train.state import Layouts, TrainingState, layouts_of
from vgae.train.step import Step
from vgae.train.validation import Validation


class Setting(Protocol):
    """What the loop asks of wherever it runs."""

    job: Job
    device: torch.device

    def require_memory(self, *, checkpoints: bool) -> None:
        """Refuse what does not fit, before anything is allocated."""

    def open(self, checkpointer: Checkpointer) -> tuple[Choice, TrainingState | None]:
        """The objective, and the state to continue from, if there is one."""

    def first_step(self, objective: str) -> Step:
        """The step with its model and inputs; none has been taken."""

    def validation(self) -> Validation | None:
        """What the training is judged by while it runs."""

    def require_finite(self, values: list[Tensor], iteration: int) -> None:
        """Refuse numbers that are none, wherever they are."""

    def whole(
        self, model: AutoEncoder, latent: dict[str, Tensor]
    ) -> tuple[AutoEncoder, dict[str, Tensor], range | None]:
        """Model and posterior on the CPU, and the nodes that they are of; None: all."""


class Alone:
    """A training in this process."""

    def __init__(self, job: Job) -> None:
        self.job, self.device = job, job.device
        self.generators = Generators.of(job.config.seed, self.device)

    def require_memory(self, *, checkpoints: bool) -> None:
        """Refuse what does not fit with any objective that may be chosen."""
        self.work, self.room = workload(self.job, checkpoints=checkpoints), room_on(self.device)
        require_memory(self.work, objectives_of(self.job), self.device, self.room)

    def open(self, checkpointer: Checkpointer) -> tuple[Choice, TrainingState | None]:
        """What was chosen before an interruption is not chosen again."""
        saved = checkpointer.load(layouts(self.job, self.job.outline, self.generators.noise))
        choice = Choice(saved.objective, saved.objective_reason) if saved else decide(self.work, self.job)
        require_memory(self.work, (choice.objective,), self.device, self.room)
        return choice, saved

    def first_step(self, objective: str) -> Step:
        """With the whole graph."""
        return first_step(self.job, objective, self.generators)

    def validation(self) -> Validation | None:
        """All pairs."""
        held_out = self.job.validation
        return None if held_out is None else Validation(self.job, held_out, self.device)

    def require_finite(self, values: list[Tensor], iteration: int) -> None:
        """Refuse numbers that are none."""
        for each in values:
            require_finite(each, iteration, self.job)

    def whole(
        self, model: AutoEncoder, latent: dict[str, Tensor]
    ) -> tuple[AutoEncoder, dict[str, Tensor], range | None]:
        """As they are."""
        return model.cpu(), {name: values.cpu().contiguous() for name, values in latent.items()}, None


def layouts(job: Job, outline: AutoEncoder, generator: torch.Generator) -> Layouts:
    """What the tensors of a state look like, by an outline of the model."""
    return layouts_of(
        outline,
        generator,
        best=job.config.early_stopping is not None,
        control_variate=job.with_control_variate and not job.sweeps_batches,
        partition=job.batch is not None,
    )
