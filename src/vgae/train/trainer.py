"""One readable loop: full-batch Adam on the objective, the validation score every few iterations.

Everything random comes from two generators made from the seed: one for the initial weights, one for noise and sampled
zeros. Steps that log nothing ask the objective for gradients only.
"""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError, TrainingError
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut
from vgae.model.autoencoder import MODELS, AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import Delta, Normal
from vgae.objective.exact import ExactObjective
from vgae.objective.plan import Workload, bytes_available, choose_objective, require_memory
from vgae.objective.sampled import SampledObjective
from vgae.objective.terms import LossTerms, Weighting
from vgae.train.config import Config, choose_device

Objective = ExactObjective | SampledObjective
LARGEST_RECORDED = 200_000  # nodes; beyond, launching is a small part of a step, and a recording holds its memory
WARM_UP = 3  # steps before recording, the first with the value of the loss, the others without


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


@dataclass(frozen=True, eq=False)
class Trained:
    """What training leaves: the model, its posterior over the training graph, and how it went."""

    model: AutoEncoder
    posterior: Delta | Normal
    history: list[LogEntry]
    objective: str
    objective_reason: str
    seconds: float
    best_iteration: int

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """Logits of links between pairs of node indices (M×2), at the posterior mean."""
        return self.model.score_pairs(self.posterior.mean, pairs)


class Watcher:
    """Hears how a training run goes; this one does not care."""

    def started(self, objective: str, reason: str) -> None:
        """The objective that is used, and why."""

    def logged(self, entry: LogEntry) -> None:
        """A logged iteration."""


def train(graph: Graph, config: Config, validation: HeldOut | None = None, watcher: Watcher | None = None) -> Trained:
    """Train the configured model on a training graph."""
    device = choose_device(config.device)
    with _repeatable(device):
        return _train(graph, config, device, validation, watcher or Watcher())


def _train(
    graph: Graph,
    config: Config,
    device: torch.device,
    validation: HeldOut | None,
    watcher: Watcher,
) -> Trained:
    started = time.perf_counter()
    inputs = EncoderInputs.from_graph(graph, device)
    init, chance = _generators(config.seed, device)
    model = AutoEncoder.from_paper(config.model, inputs.input_dim, config.hidden_dim, config.latent_dim, init).to(
        device
    )
    objective, name, reason = _make_objective(graph, model, config, device)
    watcher.started(name, reason)
    step = _Step(model, inputs, objective, chance, config.learning_rate)
    validate = _Validation(validation, device) if validation is not None and len(validation) else None
    best = _Best(model, config.early_stopping if validate else None)
    history: list[LogEntry] = []

    for iteration in range(1, config.iterations + 1):
        logged = iteration % config.eval_every == 0 or iteration in (1, config.iterations)
        terms = step(value=logged)
        if not logged:
            continue
        _require_finite(terms.total, iteration, config)
        score = validate(model, inputs, iteration, config) if validate else {}
        entry = _log_entry(iteration, terms, score, time.perf_counter() - started)
        history.append(entry)
        watcher.logged(entry)
        if best.update(model, iteration, score):
            break

    best.restore(model)
    with torch.no_grad():
        posterior = model.encode(inputs)
    _require_finite(posterior.mean, best.iteration, config)
    seconds = time.perf_counter() - started
    return Trained(model, posterior, history, name, reason, seconds, best.iteration)


@contextmanager
def _repeatable(device: torch.device) -> Iterator[None]:
    """On a GPU, sums in a fixed order: the same seed gives the same bits. On the CPU they are in order anyway."""
    if device.type != "cuda":
        yield
        return
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _generators(seed: int, device: torch.device) -> tuple[torch.Generator, torch.Generator]:
    """Initial weights are drawn on the CPU, so that they do not depend on the device.

    The second seed is mixed from the first: torch's CPU generator knows only 32 bits of a seed, and two generators with
    the same 32 bits would give noise that is a function of the weights.
    """
    init = torch.Generator().manual_seed(seed)
    mixed = int(np.random.SeedSequence([seed, 1]).generate_state(1)[0])
    return init, torch.Generator(device).manual_seed(mixed)


def _make_objective(
    graph: Graph, model: AutoEncoder, config: Config, device: torch.device
) -> tuple[Objective, str, str]:
    weighting = Weighting.named(config.weighting, graph)
    name, reason = config.objective, "as asked for"
    if not hasattr(model.decoder, "factors"):
        if name == "exact":
            raise InputError("objective: this decoder has no factors, so it trains with the sampled objective only.")
        name, reason = "sampled", "the decoder has no factors"
    work = workload(graph, config, symmetric=model.decoder.symmetric)
    if name == "auto":
        choice = choose_objective(work, config.iterations, device)
        name, reason = choice.objective, choice.reason
    require_memory(work, name, bytes_available(device))
    if name == "exact":
        return ExactObjective(graph, model, weighting, device, precision=config.precision), name, reason
    sampled = SampledObjective(graph, model, weighting, device, num_negatives=config.num_negatives)
    return sampled, name, reason


def workload(graph: Graph, config: Config, *, symmetric: bool = True) -> Workload:
    """What decides the cost of an iteration of the configured model on a graph."""
    return Workload.of(
        graph if config.features else graph.without_features(),
        hidden_dim=config.hidden_dim,
        latent_dim=config.latent_dim,
        num_heads=len(MODELS[config.model].heads),
        num_negatives=config.num_negatives,
        symmetric=symmetric,
    )


class _Step:
    """One step of training: loss, gradients, Adam.

    On a GPU a step on a small graph is a hundred tiny kernels that take longer to launch than to run. After a few steps
    it is recorded, with the value of the loss and without, and from then on replayed.
    """

    def __init__(
        self,
        model: AutoEncoder,
        inputs: EncoderInputs,
        objective: Objective,
        chance: torch.Generator,
        learning_rate: float,
    ) -> None:
        self.model, self.inputs, self.objective, self.chance = model, inputs, objective, chance
        on_gpu = chance.device.type == "cuda"
        self.optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate, fused=True, capturable=on_gpu)
        self.recordable = on_gpu and inputs.num_nodes <= LARGEST_RECORDED
        self.stream = torch.cuda.Stream() if self.recordable else None  # type: ignore[no-untyped-call]
        self.recorded: dict[bool, tuple[torch.cuda.CUDAGraph, LossTerms]] = {}
        self.num_steps = 0

    def __call__(self, *, value: bool) -> LossTerms:
        """Take the step; the terms are those before it."""
        self.num_steps += 1
        if not self.recordable:
            return self._step(value)
        if self.num_steps <= WARM_UP:
            with torch.cuda.stream(self.stream):
                terms = self._step(value)
            torch.cuda.synchronize()
            return terms
        if value not in self.recorded:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.chance)
            with torch.cuda.graph(graph, stream=self.stream):
                terms = self._step(value)
            self.recorded[value] = graph, terms
        graph, terms = self.recorded[value]
        graph.replay()
        return terms

    def _step(self, value: bool) -> LossTerms:
        self.optimizer.zero_grad()
        terms = self.objective(self.model, self.model.encode(self.inputs), self.chance, value=value)
        terms.total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return LossTerms(terms.reconstruction.detach(), terms.kl.detach())


class _Validation:
    """AUC and AP of the posterior mean on the validation pairs, and on nothing else."""

    def __init__(self, held_out: HeldOut, device: torch.device) -> None:
        self.pairs = torch.tensor(held_out.pairs, device=device)
        self.num_links = len(held_out.links)

    @torch.no_grad()
    def __call__(self, model: AutoEncoder, inputs: EncoderInputs, iteration: int, config: Config) -> dict[str, float]:
        logits = model.decoder.logits(model.encode(inputs).mean, self.pairs)
        _require_finite(logits, iteration, config)
        scores = logits.cpu().numpy()
        return auc_and_ap(scores[: self.num_links], scores[self.num_links :])


class _Best:
    """The best weights so far by AUC + AP on validation; without patience, simply the last ones."""

    def __init__(self, model: AutoEncoder, patience: int | None) -> None:
        self.patience = patience
        self.iteration = 0
        self.score = -1.0
        self.weights = copy.deepcopy(model.state_dict()) if patience else None

    def update(self, model: AutoEncoder, iteration: int, score: dict[str, float]) -> bool:
        """Take note of a validation score; True when patience has run out."""
        if self.patience is None:
            self.iteration = iteration
            return False
        if score["auc"] + score["ap"] > self.score:
            self.score = score["auc"] + score["ap"]
            self.iteration = iteration
            self.weights = copy.deepcopy(model.state_dict())
        return iteration - self.iteration >= self.patience

    def restore(self, model: AutoEncoder) -> None:
        if self.weights is not None:
            model.load_state_dict(self.weights)


def _log_entry(iteration: int, terms: LossTerms, score: dict[str, float], seconds: float) -> LogEntry:
    return LogEntry(
        iteration=iteration,
        loss=terms.total.detach().item(),
        reconstruction=terms.reconstruction.detach().item(),
        kl=terms.kl.detach().item(),
        val_auc=score.get("auc"),
        val_ap=score.get("ap"),
        seconds=seconds,
    )


def _require_finite(values: Tensor, iteration: int, config: Config) -> None:
    """Stop with a diagnosis rather than go on with numbers that are none."""
    if bool(torch.isfinite(values).all()):
        return
    raise TrainingError(
        f"Training has diverged: there are infinite or undefined values at iteration {iteration}; "
        f"lower the learning rate (now {config.learning_rate}) or scale the features down."
    )
