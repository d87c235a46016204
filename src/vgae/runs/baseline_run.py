"""A baseline as a run: which one, on which split, its scores, and its embedding if it has one.

A heuristic is a formula: its folder has no numbers of it, and it is computed from the training graph again.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.evaluation.calibration import Calibration
from vgae.graph.split import LinkSplit
from vgae.options import Options, option
from vgae.runs.checks import HEADER, check_keys, check_weights, is_number
from vgae.runs.opened import RunFiles
from vgae.runs.run import SHA256

EMBEDDING = "embedding"
NAME = 20  # characters


@dataclass(frozen=True)
class BaselineConfig(Options):
    """Which baseline it is."""

    method: str = option("", help="Its name.")
    seed: int = option(0, least=0, most=2**32 - 1, help="Of walks and eigenvectors.")
    dim: int = option(0, least=0, most=2**16, help="Dimensions of its embedding; 0 if it has none.")


@dataclass(frozen=True)
class BaselineFacts:
    """What was found out about it."""

    dataset: str | None
    num_features: int
    graph_hash: str
    seconds: float

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> BaselineFacts:
        """Facts out of a run's config.json; ValueError where one of them cannot be."""
        check_keys(values, (each.name for each in fields(cls)), "facts")
        facts = cls(**values)
        if (
            not (facts.dataset is None or isinstance(facts.dataset, str))
            or not (isinstance(facts.graph_hash, str) and SHA256.fullmatch(facts.graph_hash))
            or not (type(facts.num_features) is int and 0 <= facts.num_features <= 2**40)
            or not (is_number(facts.seconds) and facts.seconds >= 0)
        ):
            raise ValueError("config.json holds facts that cannot be")
        return facts


@dataclass(frozen=True, eq=False)
class BaselineRun:
    """All that the run folder of a baseline holds."""

    config: BaselineConfig
    embedding: npt.NDArray[np.float32] | None
    split: LinkSplit
    metrics: dict[str, dict[str, float]]
    facts: BaselineFacts
    calibration: Calibration = field(default_factory=Calibration)  # without validation links: none

    @classmethod
    def read(cls, files: RunFiles) -> BaselineRun:
        """The run of a baseline, out of its files."""
        content = files.content
        config, facts = read_config(content["baseline"]), BaselineFacts.from_json(content["facts"])
        split = files.split()
        num_nodes = split.train.num_nodes
        embedding = embedding_of(config, files.tensors(embedding_limit(config, num_nodes)), num_nodes)
        split = files.with_features(split, facts.num_features, facts.graph_hash)
        return cls(config, embedding, split, files.metrics(split), facts, files.calibration() or Calibration())

    def tensors(self) -> dict[str, Tensor]:
        """What model.safetensors holds of it."""
        return {} if self.embedding is None else {EMBEDDING: torch.from_numpy(np.ascontiguousarray(self.embedding))}

    def described(self) -> dict[str, Any]:
        """What config.json says about it."""
        return {"baseline": self.config.to_json(), "facts": asdict(self.facts)}


def read_config(values: Any) -> BaselineConfig:
    """Which baseline a config.json names."""
    if not isinstance(values, dict):
        raise InputError("baseline: a JSON object is needed.")
    config = BaselineConfig.from_json(values)
    if not 0 < len(config.method) <= NAME:
        raise InputError("baseline: the name of one is needed.")
    return config


def embedding_limit(config: BaselineConfig, num_nodes: int) -> int:
    """Bytes that model.safetensors can have."""
    return HEADER + 4 * num_nodes * config.dim


def embedding_of(config: BaselineConfig, tensors: dict[str, Tensor], num_nodes: int) -> Any:
    """The embedding that a run of this baseline holds, checked; None where it has none."""
    check_weights(tensors)
    shapes = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
    if shapes != ({EMBEDDING: (num_nodes, config.dim)} if config.dim else {}):
        raise InputError("model.safetensors: this is not the embedding of the baseline in config.json.")
    return tensors[EMBEDDING].numpy() if config.dim else None
