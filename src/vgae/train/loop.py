"""One readable loop: full-batch Adam on the objective, the validation score every few iterations.

Everything random comes from two generators made from the seed: one for the initial weights, one for noise and sampled
zeros. Steps that log nothing ask the objective for gradients only.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.graph.pairs import Pairs
from vgae.machine import working_on
from vgae.model.autoencoder import AutoEncoder
from vgae.model.posteriors import Posterior
from vgae.objective.cost import Choice
from vgae.objective.weighting import LossTerms
from vgae.ops import LogitRows
from vgae.train.callbacks import Callback, Checkpointer, Warnings, reported
from vgae.train.diverged import require_finite
from vgae.train.job import Job
from vgae.train.setting import Alone, Setting
from vgae.train.start import repeatable
from vgae.train.state import Best, LogEntry, Progress
from vgae.train.together import Together

if TYPE_CHECKING:
    from vgae.parallel.group import Group

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Trained:
    """What training leaves: the model, its posterior over the training graph, and how it went; all on the CPU."""

    job: Job
    model: AutoEncoder
    latent: dict[str, Tensor]  # the parameters of the posterior
    history: list[LogEntry]
    choice: Choice
    seconds: float
    best_iteration: int
    nodes: range | None = None  # the nodes that latent and weights without features are of; None: all

    @property
    def posterior(self) -> Posterior:
        """q(Z | X, A) over the training graph."""
        return self.model.posterior.build(self.latent)

    @cached_property
    def embeddings(self) -> Tensor:
        """The posterior mean (N×d)."""
        return self.posterior.mean

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """Logits of links between pairs of node indices (M×2), at the posterior mean."""
        return self.model.score_pairs(self.embeddings, pairs)

    @property
    def symmetric(self) -> bool:
        """Whether the two directions of a pair have one logit."""
        return self.model.decoder.symmetric

    def rows(self) -> LogitRows:
        """The logits of all pairs, by rows."""
        return self.model.rows(self.embeddings)


def train(
    job: Job,
    callback: Callback | None = None,
    checkpointer: Checkpointer | None = None,
    *,
    group: Group | None = None,
) -> Trained:
    """Train a model; what does not fit into memory is refused before anything is allocated.

    In a group every process calls this with the same job, and its own callback and checkpointer. The first one's result
    has the whole model and posterior; that of each other has the rows of its own nodes (`Trained.nodes`).
    """
    setting = Alone(job) if group is None or group.size == 1 else Together(job, group)
    callback = callback or Warnings()
    with working_on(setting.device), repeatable(setting.device), reported(callback, job.config.to_json()):
        return _train(setting, callback, checkpointer)


def _train(setting: Setting, callback: Callback, checkpointer: Checkpointer | None) -> Trained:
    started = time.perf_counter()
    job, config = setting.job, setting.job.config
    setting.require_memory(checkpoints=checkpointer is not None)
    checkpointer = checkpointer or Checkpointer()
    choice, saved = setting.open(checkpointer)
    logger.info("objective: %s (%s)", choice.objective, choice.reason)
    callback.on_start(choice.objective, choice.reason)

    step = setting.first_step(choice.objective)
    model, inputs = step.model, step.inputs
    validate = setting.validation()
    best = Best(model, config.early_stopping)
    progress = Progress(step, best, choice, started)
    if saved:
        progress.restore(saved)
        logger.info("continuing after iteration %d", saved.iteration)
        callback.on_resume(saved.iteration)
        del saved  # training has what it needs of it

    while progress.iteration < config.iterations and not best.is_final(progress.history):
        progress.iteration += 1
        logged = progress.iteration % config.eval_every == 0 or progress.iteration in (1, config.iterations)
        terms = step(progress.iteration, value=logged)
        if logged:
            require_finite(terms.total, progress.iteration, job)
            score = validate(model, inputs, progress.iteration) if validate else {}
            entry = _log_entry(progress.iteration, terms, score, progress.seconds)
            progress.history.append(entry)
            logger.info("iteration %d: %s", entry.iteration, entry)
            callback.on_log(entry)
            best.update(model, progress.iteration, score)
        checkpointer.after_iteration(progress.snapshot)

    best.apply(model)
    with torch.no_grad():
        latent = model.encode(inputs).parameters()
    setting.require_finite([*latent.values(), *model.decoder.parameters()], best.iteration)
    seconds = progress.seconds
    logger.info("trained %s in %.1f s", config.model.upper(), seconds)
    model, latent, nodes = setting.whole(model, latent)
    return Trained(job, model, latent, progress.history, choice, seconds, best.iteration, nodes)


def _log_entry(iteration: int, terms: LossTerms, score: dict[str, float], seconds: float) -> LogEntry:
    return LogEntry(
        iteration=iteration,
        loss=terms.total.detach().item(),
        reconstruction=terms.reconstruction.detach().item(),
        kl=terms.kl.detach().item(),
        val_auc=score.get("auc"),
        val_ap=score.get("ap"),
        seconds=seconds,
        active=None if terms.active is None else int(terms.active.item()),
    )
