"""One step of training, and its recording on a GPU."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from vgae.machine import in_one_thread
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.priors import Prior
from vgae.objective import cost
from vgae.objective.base import Objective
from vgae.objective.weighting import LossTerms
from vgae.ops import pages
from vgae.parallel.totals import SharedGradients
from vgae.train.adam import Adam
from vgae.train.config import Config

WARM_UP = 3  # steps before the first recording


class Step:
    """One step of training: loss, gradients, Adam.

    On a GPU a step is a hundred kernels, which up to a million nodes take longer to launch than to run. After a few
    steps it is recorded, with the value of the loss and without, and from then on replayed. A kind of step is recorded
    only after one of it has run, because kernels are loaded when they first run: a training that was resumed may meet
    the kind with the value late. Both recordings have the same memory: nothing in it lasts from one step to the next,
    but the terms, which either has for itself.
    """

    def __init__(
        self,
        model: AutoEncoder,
        inputs: EncoderInputs,
        objective: Objective,
        generator: torch.Generator,
        config: Config,
        shared: SharedGradients | None = None,
        *,
        small: bool = False,
    ) -> None:
        self.model, self.inputs, self.objective, self.generator = model, inputs, objective, generator
        on_gpu = generator.device.type == "cuda"
        if not on_gpu:
            pages.keep_freed()
        for weights in model.parameters():
            weights.data = pages.moved(weights.data)
        self.optimizer = Adam(model.named_parameters(), config.learning_rate)
        self.shared = shared  # in a group of processes
        self.small = small  # so that operations of PyTorch's are done before a second thread has begun, if there is one
        recordable = inputs.num_nodes <= cost.LARGEST_RECORDED and config.batch_size is None and shared is None
        self.recordable = on_gpu and recordable
        self.stream = torch.cuda.Stream(generator.device) if self.recordable else None  # type: ignore[no-untyped-call]
        self.recorded: dict[bool, tuple[torch.cuda.CUDAGraph, LossTerms]] = {}
        self.pool: Any = None  # the memory of recordings
        self.has_run: set[bool] = set()
        self.num_steps = 0
        self.warm_up = config.warm_up
        self.warmth = torch.ones((), device=generator.device) if config.warm_up else None

    def __call__(self, iteration: int, *, value: bool) -> LossTerms:
        """Take the step of this iteration; the terms are those before it."""
        self.num_steps += 1
        if self.warmth is not None:
            self.warmth.fill_(min(1.0, iteration / (self.warm_up + 1)))
        if iteration == 1:
            with torch.no_grad():
                self.objective.begin(self.model, self.inputs, self.generator)
        if iteration == self.warm_up + 1:
            self._begin_prior()
        if not self.recordable:
            with in_one_thread() if self.small else nullcontext():
                return self._step(value)
        if self.num_steps <= WARM_UP or value not in self.has_run:
            self.has_run.add(value)
            self.recorded.clear()  # so that this step finds the memory of recordings, which are made again
            self.pool = None
            torch.cuda.synchronize(self.generator.device)
            with torch.cuda.stream(self.stream):
                terms = self._step(value)
            torch.cuda.synchronize(self.generator.device)
            return terms
        if value not in self.recorded:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            torch.cuda.empty_cache()  # of what steps have left there, which a recording cannot use
            with torch.cuda.graph(graph, pool=self.pool, stream=self.stream):
                terms = self._step(value)
            self.pool = graph.pool()
            self.recorded[value] = graph, terms
        graph, terms = self.recorded[value]
        graph.replay()
        return terms

    def _step(self, value: bool) -> LossTerms:
        self.optimizer.zero_grad()
        terms = self.objective(self.model, self.inputs, self.generator, value=value, warmth=self.warmth)
        terms.total.backward()  # type: ignore[no-untyped-call]
        if self.shared is not None:
            self.shared.add_up()
        self.optimizer.step()
        return terms.detached()

    @torch.no_grad()
    def _begin_prior(self) -> None:
        """From here on the KL counts in full, and a prior that starts from the embeddings can look at them."""
        if type(self.model.prior).begin is not Prior.begin:
            self.model.prior.begin(self.model.encode(self.inputs), self.model.seen(self.inputs), self.generator)
