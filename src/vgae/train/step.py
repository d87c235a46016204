"""One step of training, and its recording on a GPU."""

from __future__ import annotations

import torch

from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.objective import cost
from vgae.objective.exact import ExactObjective
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import LossTerms
from vgae.train.adam import Adam

Objective = ExactObjective | SampledObjective
WARM_UP = 3  # steps before the first recording


class Step:
    """One step of training: loss, gradients, Adam.

    On a GPU a step on a small graph is a hundred tiny kernels that take longer to launch than to run. After a few steps
    it is recorded, with the value of the loss and without, and from then on replayed. A kind of step is recorded only
    after one of it has run, because kernels are loaded when they first run: a training that was resumed may meet the
    kind with the value late.
    """

    def __init__(
        self,
        model: AutoEncoder,
        inputs: EncoderInputs,
        objective: Objective,
        generator: torch.Generator,
        learning_rate: float,
    ) -> None:
        self.model, self.inputs, self.objective, self.generator = model, inputs, objective, generator
        on_gpu = generator.device.type == "cuda"
        self.optimizer = Adam(model.named_parameters(), learning_rate)
        self.recordable = on_gpu and inputs.num_nodes <= cost.LARGEST_RECORDED
        self.stream = torch.cuda.Stream(generator.device) if self.recordable else None  # type: ignore[no-untyped-call]
        self.recorded: dict[bool, tuple[torch.cuda.CUDAGraph, LossTerms]] = {}
        self.has_run: set[bool] = set()
        self.num_steps = 0

    def __call__(self, *, value: bool) -> LossTerms:
        """Take the step; the terms are those before it."""
        self.num_steps += 1
        if not self.recordable:
            return self._step(value)
        if self.num_steps <= WARM_UP or value not in self.has_run:
            self.has_run.add(value)
            torch.cuda.synchronize(self.generator.device)
            with torch.cuda.stream(self.stream):
                terms = self._step(value)
            torch.cuda.synchronize(self.generator.device)
            return terms
        if value not in self.recorded:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with torch.cuda.graph(graph, stream=self.stream):
                terms = self._step(value)
            self.recorded[value] = graph, terms
        graph, terms = self.recorded[value]
        graph.replay()
        return terms

    def _step(self, value: bool) -> LossTerms:
        self.optimizer.zero_grad()
        terms = self.objective(self.model, self.model.encode(self.inputs), self.generator, value=value)
        terms.total.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()
        return LossTerms(terms.reconstruction.detach(), terms.kl.detach())
