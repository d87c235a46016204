"""A stack as a run: its bases over the training graph, its meta-model as arrays, the split, and its scores.

    meta.*                  the meta-model (vgae.stack.meta)
    base.<i>.<s>.*          the weights of base i that was trained with the s-th seed, and latent.z, its embeddings
    base.<i>.embedding      the vectors of a base that is an embedding

Similarities and heuristics are formulas: they are computed from the training graph again. config.json has the options
of each auto-encoder, and the name of each column of evidence: a version of vgae that means something else by a base's
name builds the same model all the same, or refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.baselines.embedding import EmbeddingScorer
from vgae.errors import InputError, TrainingError
from vgae.evaluation.all_pairs import Candidates
from vgae.evaluation.calibration import Calibration, Evidence
from vgae.evaluation.evaluate import evaluate_split
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import LinkSplit
from vgae.model.scorer import ModelScorer
from vgae.runs.checks import HEADER, LATENT, check_keys, check_weights, has_bounded_logits, is_number, restore_model
from vgae.runs.opened import RunFiles
from vgae.runs.run import SHA256
from vgae.stack.bases import FittedBases
from vgae.stack.config import Base, StackConfig, parse_base, split_bases
from vgae.stack.meta import MetaModel, size_limit
from vgae.stack.scorer import FittedStack
from vgae.train.config import Config

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe

META, BASE, Z, EMBEDDING = "meta.", "base.", LATENT + "z", "embedding"
MOST_COLUMNS = 10_000
WIDEST = 2**16  # dimensions of an embedding

Tensors = dict[str, Tensor]


@dataclass(frozen=True)
class StackFacts:
    """What was found out about a stack beside its configuration."""

    dataset: str | None
    num_features: int
    graph_hash: str  # of the split's training graph
    seconds: float
    columns: tuple[str, ...]  # of evidence
    models: Mapping[str, Config]  # the auto-encoders among its bases
    dimensions: Mapping[str, int]  # of the embeddings among its bases

    def to_json(self) -> dict[str, Any]:
        """As config.json holds them."""
        return {
            **{each.name: getattr(self, each.name) for each in fields(self)},
            "columns": list(self.columns),
            "models": {name: config.to_json() for name, config in self.models.items()},
            "dimensions": dict(self.dimensions),
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> StackFacts:
        """Facts out of a run's config.json; ValueError where one of them cannot be."""
        check_keys(values, (each.name for each in fields(cls)), "facts")
        columns, models, dimensions = (values[name] for name in ("columns", "models", "dimensions"))
        if (
            not (values["dataset"] is None or isinstance(values["dataset"], str))
            or not (isinstance(values["graph_hash"], str) and SHA256.fullmatch(values["graph_hash"]))
            or not (type(values["num_features"]) is int and 0 <= values["num_features"] <= 2**40)
            or not (is_number(values["seconds"]) and values["seconds"] >= 0)
            or not (isinstance(columns, list) and 0 < len(columns) <= MOST_COLUMNS)
            or not all(isinstance(column, str) for column in columns)
            or not (isinstance(models, dict) and all(isinstance(each, dict) for each in models.values()))
            or not isinstance(dimensions, dict)
            or not all(type(width) is int and 0 < width <= WIDEST for width in dimensions.values())
        ):
            raise ValueError("config.json holds facts that cannot be")
        configs = {name: Config.from_json(each) for name, each in models.items()}
        return cls(**{**values, "columns": tuple(columns), "models": configs})


@dataclass(frozen=True, eq=False)
class StackRun:
    """All that the run folder of a stack holds."""

    config: StackConfig
    stack: FittedStack
    split: LinkSplit
    metrics: dict[str, dict[str, float]]
    facts: StackFacts
    recipe: FeatureRecipe | None = None  # how a node table became the features
    calibration: Calibration = field(default_factory=Calibration)

    @classmethod
    def of(
        cls,
        stack: FittedStack,
        split: LinkSplit,
        *,
        seconds: float,
        dataset: str | None = None,
        recipe: FeatureRecipe | None = None,
    ) -> StackRun:
        """The run of a stack that was fitted on a split's training graph, scored on its held-out pairs."""
        graph = split.train
        if not stack.config.features and graph.features is not None:
            graph = graph.without_features()
        bases = stack.bases
        run = cls(
            config=stack.config,
            stack=stack,
            split=replace(split, train=graph),
            metrics=evaluate_split(stack, split),
            recipe=recipe if graph.num_features else None,
            facts=StackFacts(
                dataset=dataset,
                num_features=graph.num_features,
                graph_hash=graph.content_hash,
                seconds=seconds,
                columns=bases.columns,
                models={base.text: base.config for base in bases.bases if base.config is not None},
                dimensions={name: each.embedding.shape[1] for name, each in bases.embeddings.items()},
            ),
        )
        return replace(run, calibration=Calibration(run.shift))

    def scored_on(self, split: LinkSplit) -> StackRun:
        """The same stack with the split that its training graph is of, scored on that split's held-out pairs."""
        if not split.is_trained_by(self.split.train):
            raise InputError("split: the stack was not fitted on the training graph of this split.")
        facts, split = self.facts, replace(split, train=self.split.train)
        run = StackRun.of(self.stack, split, seconds=facts.seconds, dataset=facts.dataset, recipe=self.recipe)
        same = split.content_hash == self.split.content_hash
        return replace(run, calibration=self.calibration) if same else run

    # ---------------------------------------------------------------------------------------------------- probabilities

    @property
    def links_split(self) -> LinkSplit:
        """The split as a stack tells links apart: without directions."""
        return self.split.as_scored(symmetric=True)

    @property
    def shift(self) -> float:
        """What is to be taken off logits, where there are no validation links, to have log odds.

        Logits are log odds of the links of one fold, M of the training graph's, among all pairs that the others leave.
        Were all E links of the whole graph unseen, odds would be E/M times as high.
        """
        split = self.links_split
        return -log(self.config.folds * split.num_graph_links / max(1, split.train.num_links))

    def calibrated(self) -> StackRun:
        """The same run with probabilities that are calibrated by its validation links, if it has any."""
        split = self.links_split
        if self.calibration.is_fitted or not len(split.val.links):
            return self
        candidates = Candidates.of(split.train)
        histogram = self.stack.histogram(candidates, self.stack.listed(candidates))
        num_links = split.num_graph_links
        unseen = num_links - split.train.num_links
        evidence = Evidence(histogram, self.stack.logits(split.val.links), unseen, num_links)
        return replace(self, calibration=Calibration.fit(evidence, self.shift))

    # ----------------------------------------------------------------------------------------------------------- asking

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """Logits of links between pairs of node indices (M×2)."""
        return self.stack.logits(pairs)

    @property
    def symmetric(self) -> bool:
        """Whether the two directions of a pair have one logit: always."""
        return self.stack.symmetric

    # --------------------------------------------------------------------------------------------------------- as files

    def tensors(self) -> Tensors:
        """What model.safetensors holds of it."""
        found = {META + name: _as_tensor(array) for name, array in self.stack.meta.tensors().items()}
        bases = self.stack.bases
        for place, base in enumerate(bases.bases):
            for number, scorer in enumerate(bases.models.get(base.text, ())):
                if not has_bounded_logits(scorer.model.decoder, scorer.z):
                    raise TrainingError(
                        f"The base {base.text} has diverged: embeddings are so large that logits are infinite; "
                        "lower its learning_rate, or leave it out of bases."
                    )
                prefix = f"{BASE}{place}.{number}."
                weights = scorer.model.state_dict() | {Z: scorer.z}
                found |= {prefix + name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}
            if base.text in bases.embeddings:
                found[f"{BASE}{place}.{EMBEDDING}"] = _as_tensor(bases.embeddings[base.text].embedding)
        return found

    def described(self) -> dict[str, Any]:
        """What config.json says about it."""
        recipe = {} if self.recipe is None else {"recipe": self.recipe.to_json()}
        return {"stack": self.config.to_json(), "facts": self.facts.to_json(), **recipe}

    @classmethod
    def read(cls, files: RunFiles) -> StackRun:
        """The run of a stack, out of its files."""
        if not isinstance(files.content["stack"], dict):
            raise InputError("stack: a JSON object is needed.")
        config = StackConfig.from_json(files.content["stack"])
        facts = StackFacts.from_json(files.content["facts"])
        recipe = files.recipe(facts.num_features)
        split = files.with_features(files.split(), facts.num_features, facts.graph_hash)
        graph = config.view(split.train)
        bases = _stored_bases(config, facts, graph)
        tensors = files.tensors(_limit(config, facts, bases, graph))
        stack = _restored(config, facts, graph, bases, tensors)
        files.read("history.jsonl", 0)  # a stack has no iterations to log
        run = cls(config, stack, split, files.metrics(split), facts, recipe)
        return replace(run, calibration=replace(files.calibration() or Calibration(), shift=run.shift))


def _as_tensor(array: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(array))


# ------------------------------------------------------------------------------------------------------------- reading


def _stored_bases(config: StackConfig, facts: StackFacts, graph: Graph) -> tuple[Base, ...]:
    """The bases as they were when the stack was fitted."""
    known = [parse_base(text) for text in split_bases(config.bases)]
    bases = [base for base in known if graph.features is not None or not base.needs_features]
    names = [base.text for base in bases]
    models = {base.text for base in bases if base.config is not None}
    if set(facts.models) != models or not set(facts.dimensions) <= set(names) - models:
        raise InputError("config.json names other bases in facts than in stack; it is damaged or was edited")
    found = tuple(replace(base, config=facts.models.get(base.text)) for base in bases)
    columns = tuple(column for base in found for column in base.columns)
    if columns != facts.columns:
        raise InputError(
            "The evidence of this stack is other than what its bases give in this version of vgae; fit it again."
        )
    return found


def _limit(config: StackConfig, facts: StackFacts, bases: tuple[Base, ...], graph: Graph) -> int:
    """Bytes that model.safetensors can have."""
    numbers = graph.num_nodes * sum(facts.dimensions.values())
    for base in bases:
        if base.config is not None:
            outline = base.config.composition.outline(graph.num_features or graph.num_nodes)
            weights = sum(int(tensor.numel()) for tensor in outline.state_dict().values())
            numbers += config.base_seeds * (weights + graph.num_nodes * base.config.latent_dim)
    header = HEADER * (1 + config.base_seeds * len(bases))
    return header + 4 * numbers + size_limit(config.meta, len(facts.columns))


def _restored(
    config: StackConfig, facts: StackFacts, graph: Graph, bases: tuple[Base, ...], tensors: Tensors
) -> FittedStack:
    """The stack of these numbers, if they are its numbers."""
    meta = {name.removeprefix(META): tensor for name, tensor in tensors.items() if name.startswith(META)}
    rest = {name: tensor for name, tensor in tensors.items() if not name.startswith(META)}
    check_weights(rest)
    models: dict[str, tuple[ModelScorer, ...]] = {}
    embeddings: dict[str, EmbeddingScorer] = {}
    for place, base in enumerate(bases):
        if base.config is not None:
            models[base.text] = tuple(
                _restored_model(base.config, graph, _taken(rest, f"{BASE}{place}.{number}."))
                for number in range(config.base_seeds)
            )
        elif base.text in facts.dimensions:
            shape = (graph.num_nodes, facts.dimensions[base.text])
            vectors = _taken(rest, f"{BASE}{place}.")
            if {name: tuple(each.shape) for name, each in vectors.items()} != {EMBEDDING: shape}:
                raise InputError(f"model.safetensors: these are not the vectors of the base {base.text}.")
            embeddings[base.text] = EmbeddingScorer(vectors[EMBEDDING].clone().numpy())
    if rest:
        raise InputError(f"model.safetensors: {', '.join(sorted(rest))[:200]}: not known.")
    arrays = {name: tensor.clone().numpy() for name, tensor in meta.items()}
    fitted = FittedBases(graph, bases, models, embeddings)
    return FittedStack(config, fitted, MetaModel.from_tensors(arrays, len(facts.columns)))


def _taken(tensors: Tensors, prefix: str) -> Tensors:
    """Those of a base, which are taken out of the rest."""
    names = [name for name in tensors if name.startswith(prefix)]
    return {name.removeprefix(prefix): tensors.pop(name) for name in names}


def _restored_model(config: Config, graph: Graph, tensors: Tensors) -> ModelScorer:
    z = tensors.get(Z)
    if z is None or tuple(z.shape) != (graph.num_nodes, config.latent_dim):
        raise InputError(f"model.safetensors: {Z} of each base should be {graph.num_nodes}×{config.latent_dim}.")
    others = {name for name in tensors if name.startswith(LATENT)} - {Z}
    if others:
        raise InputError(f"model.safetensors: {min(others)}: not known.")
    model = restore_model(config, graph.num_features or graph.num_nodes, tensors)
    if not has_bounded_logits(model.decoder, z):
        raise InputError("model.safetensors: embeddings are so large that logits would be infinite.")
    return ModelScorer(model, z.clone())
