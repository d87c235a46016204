"""One readable loop: full-batch Adam on the objective, the validation score every few iterations.

Everything random comes from two generators made from the seed: one for the initial weights, one for noise and sampled
zeros. Steps that log nothing ask the objective for gradients only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError, TrainingError
from vgae.evaluation.metrics import auc_and_ap, average_precision
from vgae.graph.features import remedy_for
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut
from vgae.machine import working_on
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import Posterior
from vgae.objective.cost import Choice, require_memory, room_on
from vgae.objective.weighting import LossTerms
from vgae.ops import LogitRows
from vgae.train.callbacks import Callback, Checkpointer
from vgae.train.job import Job, workload
from vgae.train.non_links import more_non_links
from vgae.train.plan import decide, objectives_of
from vgae.train.start import Generators, first_step, repeatable
from vgae.train.state import Best, LogEntry, Progress, layouts_of

if TYPE_CHECKING:
    from vgae.parallel.group import Group


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
    rows: range | None = None  # the nodes that latent and weights without features are of; None: all

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
    has the whole model and posterior; that of each other has the rows of its own nodes (`Trained.rows`).
    """
    if group is not None and group.size > 1:
        raise InputError("processes: a group of more than one cannot train yet.")
    with working_on(job.device), repeatable(job.device):
        return _train(job, callback or Callback(), checkpointer)


def _train(job: Job, callback: Callback, checkpointer: Checkpointer | None) -> Trained:
    started = time.perf_counter()
    config, device = job.config, job.device
    work, room = workload(job, checkpoints=checkpointer is not None), room_on(device)
    require_memory(work, objectives_of(job), device, room)
    checkpointer = checkpointer or Checkpointer()
    validate = None if job.validation is None else _Validation(job, job.validation)
    generators = Generators.of(config.seed, device)
    layouts = layouts_of(
        job.outline,
        generators.noise,
        best=config.early_stopping is not None,
        control_variate=job.with_control_variate and not job.sweeps_batches,
        partition=job.batch is not None,
    )
    saved = checkpointer.load(layouts)
    # What was chosen before an interruption is not chosen again.
    choice = Choice(saved.objective, saved.objective_reason) if saved else decide(work, job)
    require_memory(work, (choice.objective,), device, room)
    callback.on_start(choice.objective, choice.reason)

    step = first_step(job, choice.objective, generators)
    model, inputs = step.model, step.inputs
    best = Best(model, config.early_stopping)
    progress = Progress(step, best, choice, started)
    if saved:
        progress.restore(saved)
        callback.on_resume(saved.iteration)
        del saved  # training has what it needs of it

    while progress.iteration < config.iterations and not best.is_final(progress.history):
        progress.iteration += 1
        logged = progress.iteration % config.eval_every == 0 or progress.iteration in (1, config.iterations)
        terms = step(progress.iteration, value=logged)
        if logged:
            _require_finite(terms.total, progress.iteration, job)
            score = validate(model, inputs, progress.iteration, job) if validate else {}
            entry = _log_entry(progress.iteration, terms, score, progress.seconds)
            progress.history.append(entry)
            callback.on_log(entry)
            best.update(model, progress.iteration, score)
        checkpointer.after_iteration(progress.snapshot)

    best.apply(model)
    with torch.no_grad():
        latent = model.encode(inputs).parameters()
    for values in (*latent.values(), *model.decoder.parameters()):
        _require_finite(values, best.iteration, job)
    seconds = progress.seconds
    latent = {name: values.cpu().contiguous() for name, values in latent.items()}
    return Trained(job, model.cpu(), latent, progress.history, choice, seconds, best.iteration)


class _Validation:
    """AUC and AP of the posterior mean on the validation pairs; to stop by the top, AP among more non-links too."""

    def __init__(self, job: Job, held_out: HeldOut) -> None:
        config, pairs = job.config, held_out.pairs
        self.num_links, self.num_pairs = len(held_out.links), len(pairs)
        if config.early_stopping is not None and config.stop_by == "top":
            pairs = np.concatenate([pairs, more_non_links(job.labels, held_out, config.seed)])
        self.pairs = torch.tensor(pairs, device=job.device)

    @torch.no_grad()
    def __call__(self, model: AutoEncoder, inputs: EncoderInputs, iteration: int, job: Job) -> dict[str, float]:
        logits = model.decoder.logits(model.encode(inputs).mean, self.pairs)
        _require_finite(logits, iteration, job)
        links, non_links, more = np.split(logits.cpu().numpy(), [self.num_links, self.num_pairs])
        found = auc_and_ap(links, non_links)
        return found | {"top": average_precision(links, more)} if len(more) else found


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


def _require_finite(values: Tensor, iteration: int, job: Job) -> None:
    """Stop with a diagnosis rather than continue with numbers that are none."""
    if bool(torch.isfinite(values).all()):
        return
    remedy = f"lower the learning rate (now {job.config.learning_rate})"
    features: Any = job.graph.features
    how = None if features is None else remedy_for(features)
    if how is not None:
        largest = abs(features).max()
        remedy = f"features are as large as {largest:.3g}, so bring them to scale (--normalize {how}), or {remedy}"
    raise TrainingError(
        f"Training has diverged: there are infinite or undefined values at iteration {iteration}; {remedy}."
    )
