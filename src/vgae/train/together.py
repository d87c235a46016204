"""A training by a group of processes, each of which has the rows of its own nodes (docs/scale.md).

Every process begins with the weights and draws the noise that one process would, so that all of them together do what
one does, but for the order in which sums are added up.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.graph.split import HeldOut
from vgae.model.autoencoder import AutoEncoder
from vgae.model.inputs import EncoderInputs
from vgae.model.sharded import sharded_inputs
from vgae.model.spec import is_own
from vgae.objective.base import Objective
from vgae.objective.cost import Choice, require_memory, room_on
from vgae.objective.sharded import ShardedExactObjective, ShardedSampledObjective
from vgae.objective.workload import Memory
from vgae.parallel.halo import Halo
from vgae.parallel.part import GraphPart
from vgae.parallel.shards import Shards
from vgae.parallel.totals import SharedGradients
from vgae.train.callbacks import Checkpointer
from vgae.train.diverged import diverged, is_finite
from vgae.train.job import Job, workload
from vgae.train.plan import decide, objectives_of
from vgae.train.setting import layouts
from vgae.train.start import Generators
from vgae.train.state import Sharding, TrainingState
from vgae.train.step import Step
from vgae.train.validation import Validation

if TYPE_CHECKING:
    from vgae.parallel.group import Group

SUPPORTED = {
    "encoder": ("gcn", "linear", "normalized", "mlp"),
    "posterior": ("delta", "normal"),
    "prior": ("standard_normal", "learned_normal"),
    "decoder": ("inner_product", "scaled", "bilinear", "distance", "source_target"),
}
# What a step takes for a pair, for an entry of Ã and for a node, in nanoseconds of one core; only ratios count.
PER_PAIR, PER_ENTRY, PER_NODE = 0.5, 60.0, 1000.0


def require_shardable(job: Job, num_processes: int) -> None:
    """Refuse, by name, what a group of processes cannot train."""
    config = job.config
    for family, names in SUPPORTED.items():
        part = config.value_of(family)
        if part.name not in names or not is_own(type(part)):
            raise InputError(
                f"{family}: several processes cannot train with {part.name}; use {_either(names)}, or one process."
            )
    if config.batch_size is not None:
        raise InputError("batch_size: several processes take steps over all nodes; leave it out, or use one process.")
    if config.control_variate == "off":
        raise InputError(
            "control_variate: several processes sample with their control variate; use auto or on, or one process."
        )
    if isinstance(job.graph, GraphPart) and (config.mask_links or config.loss_options.observed.soft):
        what = "mask_links" if config.mask_links else "soft_labels"
        raise InputError(f"{what}: a process that has some of the links only cannot do this; leave it out.")
    if num_processes > job.graph.num_nodes:
        raise InputError(
            f"processes: {num_processes} are more than the graph has nodes, {job.graph.num_nodes}; use fewer."
        )


def _either(names: tuple[str, ...]) -> str:
    return f"{', '.join(names[:-1])} or {names[-1]}"


class Together:
    """A training by the processes of a group."""

    shards: Shards
    generators: Generators
    halo: Halo

    def __init__(self, job: Job, group: Group) -> None:
        require_shardable(job, group.size)
        self.job, self.group, self.device = job, group, group.device

    def require_memory(self, *, checkpoints: bool) -> None:
        """Refuse what does not fit into the memory of all machines together."""
        room = room_on(self.device)
        machines = self.group.size / int(os.environ.get("LOCAL_WORLD_SIZE", str(self.group.size)))
        self.work = workload(self.job, checkpoints=checkpoints)
        self.room = Memory(host=machines * room.host, device=self.group.size * room.device)
        require_memory(self.work, objectives_of(self.job), self.device, self.room)

    def open(self, checkpointer: Checkpointer) -> tuple[Choice, TrainingState | None]:
        """The first process chooses; who has which nodes depends on what was chosen, now or before an interruption."""
        found = decide(self.work, self.job, processes=self.group.size) if self.group.is_first else None
        objective, reason = self.group.share(found and [found.objective, found.reason])
        saved = self._load(checkpointer, objective)
        if saved is not None and saved.objective != objective:
            saved = self._load(checkpointer, saved.objective)
        choice = Choice(saved.objective, saved.objective_reason) if saved else Choice(objective, reason)
        require_memory(self.work, (choice.objective,), self.device, self.room)
        return choice, saved

    def _load(self, checkpointer: Checkpointer, objective: str) -> TrainingState | None:
        """Divide the nodes for an objective, and ask for the state of this process's part."""
        job = self.job
        self.shards = Shards.balanced(costs_of_nodes(job, objective), self.group.size, self.group.rank)
        by_node = job.graph.features is None
        self.generators = Generators.of_rows(job.config.seed, self.device, self.shards, weights_by_node=by_node)
        outline = job.config.composition.outline(job.input_dim, self.generators.weights)
        here, everywhere = (layouts(job, each, self.generators.noise) for each in (outline, job.outline))
        names = frozenset(name for name, kind in here[objective].items() if kind != everywhere[objective][name])
        checkpointer.on_shards(Sharding(self.shards, names))
        return checkpointer.load(here)

    def first_step(self, objective: str) -> Step:
        """With this process's rows of the graph and of weights that each node has."""
        job, config = self._with_own_links(), self.job.config
        encoder, masked = config.value_of("encoder"), config.mask_links > 0
        inputs = sharded_inputs(job.graph, encoder, self.shards, self.group, masked=masked)
        self.halo = inputs.halo
        model = config.composition.build(job.input_dim, self.generators.weights).to(self.device)
        model.decoder.begin(config.log_odds(job.labels))
        model.decoder.mean_of = self._mean_of
        by_node = self._weights_by_node(model)
        shared = [weight for name, weight in model.named_parameters() if name not in by_node]
        made = self._objective(job, model, objective)
        given = model, inputs, made, self.generators.noise, config, SharedGradients(shared, self.group)
        return Step(*given, small=self.device.type == "cpu" and torch.get_num_threads() == 1)

    def _with_own_links(self) -> Job:
        """The training with the links of this process's nodes, where it has only some of all links."""
        graph = self.job.graph
        return replace(self.job, graph=graph.on(self.shards)) if isinstance(graph, GraphPart) else self.job

    def _objective(self, job: Job, model: AutoEncoder, objective: str) -> Objective:
        config, labels = job.config, job.labels
        given: Any = (self.halo, labels, model, config.weighting_for(labels), config.loss_options)
        if objective == "exact":
            return ShardedExactObjective(*given, precision=config.precision)
        return ShardedSampledObjective(*given, num_negatives=config.num_negatives)

    def _weights_by_node(self, model: AutoEncoder) -> set[str]:
        """The weights of which this process has rows, by name."""
        whole = dict(self.job.outline.named_parameters())
        return {name for name, weight in model.named_parameters() if weight.shape != whole[name].shape}

    def _mean_of(self, z: Tensor) -> Tensor:
        """The mean over all nodes."""
        return (self.group.sum(z.sum(dim=0, dtype=torch.float64)) / self.shards.num_nodes).to(z.dtype)

    def validation(self) -> Validation | None:
        """Each process has the pairs whose first node is its own."""
        held_out = self.job.validation
        return None if held_out is None else SharedValidation(self.job, held_out, self.group, self.shards)

    def require_finite(self, values: list[Tensor], iteration: int) -> None:
        """Refuse numbers that are none in any process, in all of them."""
        if self.group.any(not all(is_finite(each) for each in values)):
            raise diverged(iteration, self.job)

    def whole(
        self, model: AutoEncoder, latent: dict[str, Tensor]
    ) -> tuple[AutoEncoder, dict[str, Tensor], range | None]:
        """In the first process the rows of all; in others their own."""
        counts, by_node = self.shards.counts, self._weights_by_node(model)
        gathered = {name: self.group.collect(values, counts) for name, values in latent.items()}
        weights = {
            name: self.group.collect(values, counts) if name in by_node else values.detach().cpu()
            for name, values in model.state_dict().items()
        }
        if not self.group.is_first:
            return model.cpu(), {name: values.cpu().contiguous() for name, values in latent.items()}, self.shards.own
        everything = self.job.config.composition.outline(self.job.input_dim)
        everything.load_state_dict({name: each for name, each in weights.items() if each is not None}, assign=True)
        return everything, {name: each for name, each in gathered.items() if each is not None}, None


class SharedValidation(Validation):
    """Logits are computed by whoever has the first node of a pair, the scores by the first process."""

    def __init__(self, job: Job, held_out: HeldOut, group: Group, shards: Shards) -> None:
        super().__init__(job, held_out, group.device)
        self.group, pairs = group, self.pairs.cpu().numpy()
        owners = shards.owners(pairs[:, 0])
        order = np.argsort(owners, kind="stable")
        self.counts = np.bincount(owners, minlength=shards.size).tolist()
        self.order = torch.from_numpy(order).to(group.device)
        own = pairs[owners == shards.rank]
        outside = np.unique(own[:, 1])
        inside = (outside >= shards.own.start) & (outside < shards.own.stop)
        self.halo = Halo.of(group, shards, outside[~inside])
        places = np.stack([self.halo.places(ends) for ends in own.T], axis=1)
        self.own = torch.from_numpy(places).to(group.device)

    def logits(self, model: AutoEncoder, inputs: EncoderInputs) -> Tensor:
        """Of all pairs, in every process."""
        z = self.halo.extend(model.encode(inputs).mean)
        found = self.group.gather(model.decoder.logits(z, self.own), self.counts)
        return torch.empty_like(found).index_copy_(0, self.order, found)

    def scores(self, logits: npt.NDArray[np.float32]) -> dict[str, float]:
        """Those of the first process, in all of them."""
        found: dict[str, float] = self.group.share(super().scores(logits) if self.group.is_first else None)
        return found


def costs_of_nodes(job: Job, objective: str) -> npt.NDArray[np.float64]:
    """What each node costs in a step: its pairs, its links and itself."""
    entries = 1 + job.graph.degrees()
    pairs = job.graph.num_nodes * PER_PAIR if objective == "exact" else 0.0
    return PER_ENTRY * entries + (PER_NODE + pairs)
