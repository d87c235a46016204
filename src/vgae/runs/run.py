"""A run: one trained model, the split it was trained and scored on, and how it was made."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from vgae.errors import InputError, TrainingError
from vgae.evaluation.all_pairs import Candidates, census
from vgae.evaluation.calibration import Calibration, Evidence
from vgae.evaluation.evaluate import evaluate_split
from vgae.evaluation.histogram import Histogram
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut, LinkSplit
from vgae.likelihood.bernoulli import calibration_shift
from vgae.model.autoencoder import AutoEncoder
from vgae.objective.collapse import Activity
from vgae.ops import LogitRows
from vgae.runs.checks import (
    LATENT,
    check_history,
    check_keys,
    check_latent,
    check_weights,
    has_finite_logits,
    history_limit,
    is_number,
    model_limit,
    restore_model,
)
from vgae.runs.opened import RunFiles
from vgae.train.config import Config
from vgae.train.loop import Trained
from vgae.train.state import LogEntry

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe

SHA256 = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Facts:
    """What was found out about a run beside its configuration."""

    dataset: str | None
    num_features: int
    graph_hash: str
    objective: str
    objective_reason: str
    best_iteration: int
    seconds: float

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Facts:
        """Facts out of a run's config.json; ValueError where one of them cannot be."""
        check_keys(values, (field.name for field in fields(cls)), "facts")
        facts = cls(**values)
        if (
            not (facts.dataset is None or isinstance(facts.dataset, str))
            or not isinstance(facts.objective_reason, str)
            or not (isinstance(facts.graph_hash, str) and SHA256.fullmatch(facts.graph_hash))
            or not all(
                type(count) is int and 0 <= count <= 2**40 for count in (facts.num_features, facts.best_iteration)
            )
            or not (is_number(facts.seconds) and facts.seconds >= 0)
            or facts.objective not in ("exact", "sampled")
        ):
            raise ValueError("config.json holds facts that cannot be")
        return facts


@dataclass(frozen=True, eq=False)
class Run:
    """All that a run folder holds."""

    config: Config
    model: AutoEncoder
    latent: dict[str, Tensor]
    split: LinkSplit
    history: list[LogEntry]
    metrics: dict[str, dict[str, float]]
    facts: Facts
    recipe: FeatureRecipe | None = None  # how a node table became the features
    saved_calibration: Calibration | None = None

    @classmethod
    def of(
        cls,
        trained: Trained,
        *,
        dataset: str | None = None,
        recipe: FeatureRecipe | None = None,
    ) -> Run:
        """The run of a training, scored on its validation pairs.

        `dataset` is the name of the graph, `recipe` what made its features out of a table of nodes.
        """
        graph = trained.job.graph
        split = LinkSplit(graph, trained.job.validation or HeldOut.none(), HeldOut.none(), seed=0)
        return cls(
            config=trained.job.config,
            model=trained.model,
            latent=trained.latent,
            split=split,
            history=trained.history,
            metrics=evaluate_split(trained, split),
            recipe=recipe if graph.num_features else None,
            facts=Facts(
                dataset=dataset,
                num_features=graph.num_features,
                graph_hash=graph.content_hash,
                objective=trained.choice.objective,
                objective_reason=trained.choice.reason,
                best_iteration=trained.best_iteration,
                seconds=trained.seconds,
            ),
        )

    @classmethod
    def read(cls, files: RunFiles) -> Run:
        """The run of a trained model, out of its files."""
        content = files.content
        if not isinstance(content["config"], dict):
            raise InputError("config: a JSON object is needed.")
        facts = Facts.from_json(content["facts"])
        config = Config.from_json(content["config"], trained_with=facts.objective)
        recipe = files.recipe(facts.num_features)
        split = files.split()
        config.loss_options.observed.labels(split.train)  # which refuses weights that are no labels
        model, latent = _read_model(files, config, facts, split)
        split = files.with_features(split, facts.num_features, facts.graph_hash)
        lines = files.read("history.jsonl", history_limit(config)).splitlines()
        history = check_history([json.loads(line) for line in lines], config)
        if facts.best_iteration > history[-1].iteration:
            raise ValueError("the best iteration comes after the last")
        return cls(config, model, latent, split, history, files.metrics(split), facts, recipe, files.calibration())

    def tensors(self) -> dict[str, Tensor]:
        """What model.safetensors holds of it: the weights, and the posterior over the training graph."""
        if not has_finite_logits(self.model, self.latent):
            raise TrainingError(
                "Training has diverged: embeddings are so large that logits are infinite; lower the rate."
            )
        weights = {name: tensor.detach().cpu().contiguous() for name, tensor in self.model.state_dict().items()}
        return weights | {LATENT + name: tensor.detach().cpu().contiguous() for name, tensor in self.latent.items()}

    def described(self) -> dict[str, Any]:
        """What config.json says about it."""
        recipe = {} if self.recipe is None else {"recipe": self.recipe.to_json()}
        return {"config": self.config.to_json(), "facts": asdict(self.facts), **recipe}

    def scored_on(self, split: LinkSplit) -> Run:
        """The same run with the split that its training graph is of, scored on that split's held-out pairs."""
        if not split.is_trained_by(self.split.train):
            raise InputError("split: the model was not fitted on the training graph of this split.")
        same = split.content_hash == self.split.content_hash
        return replace(
            self,
            split=replace(split, train=self.split.train),
            metrics=evaluate_split(self, split),
            saved_calibration=self.saved_calibration if same else None,
        )

    @cached_property
    def embeddings(self) -> Tensor:
        """The posterior mean over the training graph (N×d)."""
        return self.model.posterior.build(self.latent).mean

    @cached_property
    def activity(self) -> Activity:
        """In how many dimensions the embeddings say something about the nodes."""
        return Activity.of(self.model.posterior.build(self.latent))

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

    @cached_property
    def links_split(self) -> LinkSplit:
        """The split as the model tells links apart: without directions if its decoder is symmetric."""
        return self.split.as_scored(symmetric=self.symmetric)

    @property
    def density(self) -> float:
        """The share of pairs that are links, in the whole graph as far as the split knows it."""
        return self.links_split.num_graph_links / self.links_split.train.num_candidate_pairs

    @property
    def candidates(self) -> Candidates:
        """All pairs outside the training graph."""
        return Candidates.of(self.links_split.train)

    @cached_property
    def calibration(self) -> Calibration:
        """How logits become probabilities: by the validation links or, if there are none, by the loss's weight."""
        shift = calibration_shift(self.config.weighting_for(self.links_split.train).positive_weight)
        if self.saved_calibration is not None:
            return replace(self.saved_calibration, shift=shift)
        links = self.links_split.val.links
        if not len(links):
            return Calibration(shift)
        return Calibration.fit(self.evidence(links, census(self, self.candidates)), shift)

    def evidence(self, links: Pairs, histogram: Histogram) -> Evidence:
        """What some of the unseen links, and all pairs outside the training graph, tell about probabilities."""
        num_links = self.links_split.num_graph_links
        return Evidence(histogram, self.logits(links), num_links - self.links_split.train.num_links, num_links)


def _read_model(
    files: RunFiles, config: Config, facts: Facts, split: LinkSplit
) -> tuple[AutoEncoder, dict[str, Tensor]]:
    num_nodes = split.train.num_nodes
    tensors = files.tensors(model_limit(config, num_nodes, facts.num_features))
    check_weights(tensors)
    latent = {name.removeprefix(LATENT): tensor for name, tensor in tensors.items() if name.startswith(LATENT)}
    model = restore_model(config, facts.num_features or num_nodes, tensors)
    check_latent(config, model, latent, num_nodes)
    return model, latent
