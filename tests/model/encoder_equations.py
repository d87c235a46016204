"""The equation of every encoder in dense float64 matrices, and what the tests of encoders share."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch

from vgae.graph.graph import Graph
from vgae.model.encoders import EncoderSpec
from vgae.model.spec import find

Matrices = dict[str, npt.NDArray[np.float64]]
HEADS = {"mean": 4, "log_std": 3}
SPECS = (
    "gcn",
    "gcn:layers=3",
    "gcn:layers=4,residual=true,unit_rows=true",
    "linear",
    "linear:hops=1,unit_rows=true",
    "normalized",
    "normalized:hops=3,scale=2.5,start=-1.5,unit_rows=true",
    "mlp",
    "mlp:layers=3,hops=1,unit_rows=true",
    "mlp:hops=0",
    "directed",
    "directed:unit_rows=true",
)


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def spec_of(text: str) -> EncoderSpec:
    spec = find("encoder", text)
    assert isinstance(spec, EncoderSpec)
    return spec


def with_dropout(text: str, rate: float) -> str:
    return f"{text}{',' if ':' in text else ':'}dropout={rate}"


def dense_propagation(graph: Graph) -> npt.NDArray[np.float64]:
    """Ã as the paper writes it."""
    with_loops = graph.weighted_adjacency.toarray().astype(np.float64) + np.eye(graph.num_nodes)
    scale = np.diag(with_loops.sum(axis=1) ** -0.5)
    found: npt.NDArray[np.float64] = scale @ with_loops @ scale
    return found


def dense_features(graph: Graph, kind: str, *, unit_rows: bool) -> npt.NDArray[np.float64]:
    if kind == "none":
        return np.eye(graph.num_nodes)
    matrix = sp.csr_array(graph.features).toarray().astype(np.float64)
    return unit(matrix) if unit_rows else matrix


def unit(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    lengths = np.sqrt((rows**2).sum(axis=1, keepdims=True))
    return np.where(lengths > 0, rows / np.where(lengths > 0, lengths, 1), 0.0)


def relu(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    return np.maximum(values, 0)


def gcn(spec: Any, propagation: Any, features: Any, weights: Matrices) -> Matrices:
    hidden = relu(propagation @ features @ weights["input_weight"])
    for layer in range(spec.layers - 2):
        following = relu(propagation @ hidden @ weights[f"hidden_weights.{layer}"])
        hidden = hidden + following if spec.residual else following
    return {head: propagation @ hidden @ weights[f"head_weights.{head}"] for head in HEADS}


def linear(spec: Any, propagation: Any, features: Any, weights: Matrices) -> Matrices:
    hops = np.linalg.matrix_power(propagation, spec.hops)
    return {head: hops @ features @ weights[f"head_weights.{head}"] for head in HEADS}


def normalized(spec: Any, propagation: Any, features: Any, weights: Matrices) -> Matrices:
    hops = np.linalg.matrix_power(propagation, spec.hops)
    mean = spec.scale * hops @ unit(features @ weights["head_weights.mean"])
    return {"mean": mean, "log_std": spec.start + hops @ features @ weights["head_weights.log_std"]}


def mlp(spec: Any, propagation: Any, features: Any, weights: Matrices) -> Matrices:
    hidden = relu(features @ weights["input_weight"])
    for layer in range(spec.layers - 2):
        hidden = relu(hidden @ weights[f"hidden_weights.{layer}"])
    hops = np.linalg.matrix_power(propagation, spec.hops)
    return {head: hops @ hidden @ weights[f"head_weights.{head}"] for head in HEADS}


def directed(spec: Any, propagation: Any, features: Any, weights: Matrices) -> Matrices:  # noqa: ARG001
    """Of links without directions, in which along and against are the same; tests of directions have the others."""

    def along(values: Any, names: Mapping[str, str]) -> Any:
        out, into, own = (values @ weights[names[way]] for way in ("out", "in", "own"))
        return propagation @ (out + into) + own

    hidden = relu(along(features, {way: f"input_weights.{way}" for way in ("out", "in", "own")}))
    return {head: along(hidden, {way: f"{way}_weights.{head}" for way in ("out", "in", "own")}) for head in HEADS}


REFERENCES: dict[str, Callable[[Any, Any, Any, Matrices], Matrices]] = {
    "gcn": gcn,
    "linear": linear,
    "normalized": normalized,
    "mlp": mlp,
    "directed": directed,
}
