"""One readable loop: full-batch Adam on the objective, the validation score every few iterations.

Everything random comes from two generators made from the seed: one for the initial weights, one for noise and sampled
zeros. Steps that log nothing ask the objective for gradients only. What the next iteration depends on can be taken down
between any two of them and put back in another process, which then goes on to the same bits.
"""

from __future__ import annotations

import copy
import math
import os
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import TrainingError
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut
from vgae.machine import working_on
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import Delta, Normal
from vgae.objective.cost import Choice, require_memory, room_on
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.terms import LossTerms, Weighting
from vgae.objective.workload import Workload
from vgae.train.config import Config, choose_device
from vgae.train.plan import decide, objectives_of, workload
from vgae.train.step import Objective, Step

ADAM = ("step", "exp_avg", "exp_avg_sq")  # its state for each parameter


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

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> LogEntry:
        """An entry out of a file; ValueError where it holds anything but an iteration and finite numbers."""
        entry = cls(**values)
        if type(entry.iteration) is not int or entry.iteration < 1:
            raise ValueError(f"iteration {entry.iteration!r} in the history")
        for name, value in values.items():
            absent = value is None and name in ("val_auc", "val_ap")
            if not absent and not (type(value) in (int, float) and math.isfinite(value)):
                raise ValueError(f"{name} {value!r} in the history")
        return entry


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


@dataclass(frozen=True, eq=False)
class TrainingState:
    """A training run between two iterations: what the next one depends on, and what has been logged so far.

    The tensors are on the CPU: `weights.*`, `best.*` where there is early stopping, `adam.*`, and `generator`.
    """

    iteration: int
    seconds: float
    objective: str
    objective_reason: str
    best_iteration: int
    best_score: float
    history: list[LogEntry]
    tensors: dict[str, Tensor]
    threads: int | None = None  # None where it is not known


Layout = dict[str, tuple[torch.Size, torch.dtype]]  # of the tensors in a state


class Watcher:
    """Hears how a training run goes; this one does not care."""

    def started(self, objective: str, reason: str) -> None:
        """The objective that is used, and why."""

    def resumed(self, iteration: int) -> None:
        """The iteration after which an earlier training goes on."""

    def threads(self, number: int) -> None:
        """An earlier training goes on with as many threads as it had, which are not as many as others have now."""

    def logged(self, entry: LogEntry) -> None:
        """A logged iteration."""

    def stopping(self) -> None:
        """Ctrl-C was pressed: training stops after this iteration."""

    def noted(self, text: str) -> None:
        """Something that went wrong without ending the training; who does not watch is warned."""
        warnings.warn(text, RuntimeWarning, stacklevel=2)


class Keeper:
    """Keeps the state of a training run, so that another process can go on with it; this one keeps nothing."""

    def restore(self, layout: Layout) -> TrainingState | None:
        """The state to go on from, if there is one; its tensors are as laid out."""
        del layout
        return None

    def offer(self, take_down: Callable[[], TrainingState]) -> None:
        """An iteration is over, and its state can be taken down."""


def train(
    graph: Graph,
    config: Config,
    validation: HeldOut | None = None,
    watcher: Watcher | None = None,
    keeper: Keeper | None = None,
) -> Trained:
    """Train the configured model on a training graph; what does not fit is refused before anything is allocated."""
    device = choose_device(config.device)
    with working_on(device), _repeatable(device):
        return _train(graph, config, device, validation, watcher or Watcher(), keeper)


def _train(
    graph: Graph,
    config: Config,
    device: torch.device,
    validation: HeldOut | None,
    watcher: Watcher,
    keeper: Keeper | None,
) -> Trained:
    started = time.perf_counter()
    work, room = workload(graph, config, checkpoints=keeper is not None), room_on(device)
    require_memory(work, objectives_of(config), device, room)
    keeper = keeper or Keeper()
    validate = _Validation(validation, device) if validation is not None and len(validation) else None
    patience = config.early_stopping if validate else None
    init, chance = _generators(config.seed, device)
    kept = keeper.restore(_layout(_outline(config, work), chance, best=patience is not None))
    # What was chosen before an interruption is not chosen again.
    choice = Choice(kept.objective, kept.objective_reason) if kept else decide(work, config, device)
    require_memory(work, (choice.objective,), device, room)
    watcher.started(choice.objective, choice.reason)

    inputs = EncoderInputs.from_graph(graph if config.features else graph.without_features(), device)
    model = AutoEncoder.from_paper(config.model, work.input_dim, config.hidden_dim, config.latent_dim, init).to(device)
    best = _Best(model, patience)
    step = Step(model, inputs, _make_objective(graph, model, config, device, choice), chance, config.learning_rate)
    run = _Progress(step, best, choice, started)
    if kept:
        run.put_back(kept)
        watcher.resumed(kept.iteration)
        del kept  # training has what it needs of it

    while run.iteration < config.iterations and not best.is_final(run.history):
        run.iteration += 1
        logged = run.iteration % config.eval_every == 0 or run.iteration in (1, config.iterations)
        terms = step(value=logged)
        if logged:
            _require_finite(terms.total, run.iteration, config)
            score = validate(model, inputs, run.iteration, config) if validate else {}
            entry = _log_entry(run.iteration, terms, score, run.seconds)
            run.history.append(entry)
            watcher.logged(entry)
            best.update(model, run.iteration, score)
        keeper.offer(run.take_down)

    best.restore(model)
    with torch.no_grad():
        posterior = model.encode(inputs)
    for head in posterior.heads:
        _require_finite(getattr(posterior, head), best.iteration, config)
    return Trained(model, posterior, run.history, choice.objective, choice.reason, run.seconds, best.iteration)


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
    graph: Graph, model: AutoEncoder, config: Config, device: torch.device, choice: Choice
) -> Objective:
    weighting = Weighting.named(config.weighting, graph)
    if choice.objective == "exact":
        return ExactObjective(graph, model, weighting, device, precision=config.precision)
    return SampledObjective(graph, model, weighting, device, num_negatives=config.num_negatives)


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

    def update(self, model: AutoEncoder, iteration: int, score: dict[str, float]) -> None:
        """Take note of a validation score."""
        if self.patience is None:
            self.iteration = iteration
        elif score["auc"] + score["ap"] > self.score:
            self.score = score["auc"] + score["ap"]
            self.iteration = iteration
            self.weights = copy.deepcopy(model.state_dict())

    def is_final(self, history: list[LogEntry]) -> bool:
        """Whether patience had run out at the last logged iteration."""
        if self.patience is None or not history:
            return False
        return history[-1].iteration - self.iteration >= self.patience

    def restore(self, model: AutoEncoder) -> None:
        if self.weights is not None:
            model.load_state_dict(self.weights)


class _Progress:
    """How far training is, to be taken down after any iteration and put back before the first."""

    def __init__(self, step: Step, best: _Best, choice: Choice, started: float) -> None:
        self.step, self.best, self.choice, self.started = step, best, choice, started
        self.iteration = 0
        self.history: list[LogEntry] = []
        self.threads = torch.get_num_threads()

    @property
    def seconds(self) -> float:
        """Time in training, that of earlier processes counted."""
        return time.perf_counter() - self.started

    def take_down(self) -> TrainingState:
        """The state after the last iteration, copied to the CPU."""
        step, best = self.step, self.best
        tensors = {f"weights.{name}": tensor for name, tensor in step.model.state_dict().items()}
        tensors |= {f"best.{name}": tensor for name, tensor in (best.weights or {}).items()}
        for name, parameter in step.model.named_parameters():
            tensors |= {f"adam.{name}.{part}": step.optimizer.state[parameter][part] for part in ADAM}
        tensors["generator"] = step.chance.get_state()
        return TrainingState(
            iteration=self.iteration,
            seconds=self.seconds,
            objective=self.choice.objective,
            objective_reason=self.choice.reason,
            best_iteration=best.iteration,
            best_score=best.score,
            history=list(self.history),
            tensors={name: tensor.detach().cpu().clone() for name, tensor in tensors.items()},
            threads=self.threads,
        )

    def put_back(self, state: TrainingState) -> None:
        """Go on from a state. Nothing has been recorded yet, so recorded steps will start from it as others do."""
        step, best = self.step, self.best
        step.model.load_state_dict(_below("weights.", state.tensors))  # copied into the memory that there is
        moments = {
            index: _below(f"adam.{name}.", state.tensors)
            for index, (name, _) in enumerate(step.model.named_parameters())
        }
        step.optimizer.load_state_dict({"state": moments, "param_groups": step.optimizer.state_dict()["param_groups"]})
        step.chance.set_state(state.tensors["generator"])
        if best.weights is not None:
            best.weights = _below("best.", state.tensors)
        best.iteration, best.score = state.best_iteration, state.best_score
        self.iteration, self.history = state.iteration, list(state.history)
        self.started -= state.seconds


def _outline(config: Config, work: Workload) -> AutoEncoder:
    """The model with the shapes of its weights, and no memory for them."""
    with torch.device("meta"):
        return AutoEncoder.from_paper(
            config.model, work.input_dim, config.hidden_dim, config.latent_dim, torch.Generator("cpu")
        )


def _layout(model: AutoEncoder, chance: torch.Generator, *, best: bool) -> Layout:
    """The tensors of a state, by name; with the best weights beside the last where there is early stopping."""
    weights = model.state_dict()
    tensors = {
        f"{part}.{name}": tensor for part in ("weights", "best")[: 2 if best else 1] for name, tensor in weights.items()
    }
    for name, parameter in model.named_parameters():
        for part in ADAM:
            tensors[f"adam.{name}.{part}"] = torch.zeros(()) if part == "step" else parameter
    tensors["generator"] = chance.get_state()
    return {name: (tensor.shape, tensor.dtype) for name, tensor in tensors.items()}


def _below(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


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
