"""The files of a run while they are read: each opened at once and read once, so that what is checked is what is used.

What all kinds of runs hold is read here: the split, the features of its graph, the scores and the calibration.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import scipy.sparse as sp
from safetensors.torch import load as deserialize
from torch import Tensor

from vgae.errors import InputError
from vgae.evaluation.calibration import Calibration
from vgae.graph.graph import Graph
from vgae.graph.pairs import AnyArray, check_pairs
from vgae.graph.split import LinkSplit
from vgae.io.json_files import json_limit, parse_json
from vgae.io.plain import open_plain, read_open
from vgae.io.splits import read_split
from vgae.memory import bytes_free
from vgae.runs.checks import check_metrics, check_recipe, features_limit

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe

CONFIG = "config.json"
FILES = ("model.safetensors", "split.npz", "features.safetensors", "history.jsonl", "metrics.json")
LONGEST_METRICS = 2**16  # bytes


class RunFiles:
    """The files of a run.

    config.json comes from the first of the places, each other file from the first that has it as config.json says.
    """

    def __init__(self, places: Sequence[Path], opened: ExitStack) -> None:
        self.path = places[0] / CONFIG
        try:
            config = opened.enter_context(open_plain(self.path))
        except FileNotFoundError:
            raise InputError(f"{self.path}: the file is missing from the run; train it again.") from None
        self.files = {name: _open_first(places, name, opened) for name in FILES}
        self.content = parse_json(read_open(config, self.path, json_limit()), self.path)

    def read(self, name: str, at_most: float) -> bytes:
        """The bytes of a file, if their size can be and their hash is that in config.json."""
        expected, path = hashes_in(self.content)[name], self.files[name][0][0]
        for path, file in self.files[name]:
            data = read_open(file, path, at_most)
            if hashlib.sha256(data).hexdigest() == expected:
                return data
        raise InputError(f"{path}: the file does not match the hash in config.json; it is damaged or was replaced.")

    def tensors(self, at_most: float) -> dict[str, Tensor]:
        """What model.safetensors holds, not checked yet."""
        return deserialize(self.read("model.safetensors", at_most))

    def split(self) -> LinkSplit:
        """The split, its training graph still without features."""
        data = self.read("split.npz", bytes_free() / 2)
        split = read_split(self.files["split.npz"][-1][0], content=data)
        if split.content_hash != self.content["split_hash"]:
            raise InputError("split.npz is not the split that config.json names")
        for name, held_out in (("validation", split.val), ("test", split.test)):
            check_pairs(held_out.pairs, split.train.num_nodes, f"split.npz, {name}")
        return split

    def with_features(self, split: LinkSplit, num_features: int, graph_hash: str) -> LinkSplit:
        """The split with the features of its training graph, which then has to be the one that was trained on."""
        shape = (split.train.num_nodes, num_features)
        tensors = deserialize(self.read("features.safetensors", features_limit(*shape)))
        parts = {name: tensor.numpy() for name, tensor in tensors.items()}
        features: Any = parts.pop("features", None)
        if parts:
            features = sp.csr_array((parts.pop("data"), parts.pop("indices"), parts.pop("indptr")), shape=shape)
        graph = split.train.with_parts(features=features)
        if parts or graph.content_hash != graph_hash:
            raise InputError("features.safetensors: these are not the features that the model was trained on.")
        return replace(split, train=graph)

    def metrics(self, split: LinkSplit) -> dict[str, dict[str, float]]:
        """The scores on the split's held-out pairs."""
        return check_metrics(parse_json(self.read("metrics.json", LONGEST_METRICS), Path("metrics.json")), split)

    def calibration(self) -> Calibration | None:
        """How logits become probabilities, if the run says it."""
        return Calibration.from_json(self.content["calibration"]) if "calibration" in self.content else None

    def recipe(self, num_features: int) -> FeatureRecipe | None:
        """How a table of nodes became the features, if it did."""
        if "recipe" not in self.content:  # what reads it takes its time to import, and few runs have one
            return None
        recipe: FeatureRecipe = import_module("vgae.io.recipe").FeatureRecipe.from_json(self.content["recipe"])
        check_recipe(recipe, num_features)
        return recipe


def hashes_in(content: dict[str, Any]) -> dict[str, str]:
    """The hashes of a run's files out of its config.json."""
    hashes = content["files"]
    if not isinstance(hashes, dict) or set(hashes) != set(FILES):
        raise InputError(f"config.json names other files than {', '.join(FILES)}; it is damaged or was edited")
    return hashes


def file_hash(path: Path) -> str:
    """SHA-256 of a plain file."""
    with open_plain(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pack_features(graph: Graph) -> dict[str, AnyArray]:
    """What features.safetensors holds."""
    features: Any = graph.features
    if features is None:
        return {}
    if sp.issparse(features):
        return {"data": features.data, "indices": features.indices, "indptr": features.indptr}
    return {"features": features}


def _open_first(places: Sequence[Path], name: str, opened: ExitStack) -> list[tuple[Path, BinaryIO]]:
    """A file of the run, opened in all places that have it."""
    found: list[tuple[Path, BinaryIO]] = []
    for place in places:
        try:
            found.append((place / name, opened.enter_context(open_plain(place / name))))
        except FileNotFoundError:
            continue
    if not found:
        raise InputError(f"{places[-1] / name}: the file is missing from the run; train it again.")
    return found
