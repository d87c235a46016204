"""Features as an encoder takes them, made once: with rows of length one, or multiplied by Ã.

An encoder whose first h hops come before anything that is learned or drawn computes Ã^h (X W) in every step, or
(Ã^h X) W, the same by another order, with Ã^h X made before the first step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.model import mapped
from vgae.model.encoders import EncoderSpec
from vgae.model.inputs import EncoderInputs, Features, Layout, laid_out
from vgae.ops import SparseMatrix


@dataclass(frozen=True, eq=False)
class PreparedInputs(EncoderInputs):
    """Inputs whose features are what the encoder takes: of length one, or multiplied by Ã, where it wants them so."""

    along: tuple[SparseMatrix, SparseMatrix] | None = None

    @property
    def unit_features(self) -> Features:
        """The features, which have been brought to length one before."""
        return self.features

    @property
    def outgoing(self) -> SparseMatrix:
        """Along the links."""
        return super().outgoing if self.along is None else self.along[0]

    @property
    def incoming(self) -> SparseMatrix:
        """Against them."""
        return super().incoming if self.along is None else self.along[1]


def inputs_for(encoder: EncoderSpec, layout: Layout, hops: int) -> EncoderInputs:
    """The inputs for all nodes at once, with so many hops made already."""
    if not hops:
        return EncoderInputs.of_layout(layout)
    graph, device = layout.graph, layout.device
    if sp.issparse(graph.features):
        features = laid_out(propagated(graph, encoder, on_host(layout.propagation), hops), device)
        return PreparedInputs(layout.propagation, features, layout, hops_done=hops)
    dense = torch.tensor(_taken(graph, encoder), device=device)
    for _ in range(hops):
        dense = layout.propagation @ dense
    return PreparedInputs(layout.propagation, dense, layout, hops_done=hops)


def propagated(graph: Graph, encoder: EncoderSpec, propagation: sp.csr_array, hops: int) -> Any:
    """Ã^h X on the host, of features that there are, with rows of length one if the encoder takes them so.

    A sparse X stays sparse, and one in a file becomes one in a file.
    """
    features: Any = _taken(graph, encoder)
    for _ in range(hops):
        sparse = sp.issparse(features)
        features = sp.csr_array(propagation @ features) if sparse else mapped.product(propagation, features)
    return features


def _taken(graph: Graph, encoder: EncoderSpec) -> Any:
    """X, with rows of length one if the encoder takes it so."""
    features: Any = graph.features
    if not encoder.cost(1, {"mean": 1}).unit_rows:
        return features
    return graph.normalized("rows").features if sp.issparse(features) else mapped.unit_rows(features)


def on_host(matrix: SparseMatrix) -> sp.csr_array:
    """The same numbers for SciPy, without a copy where they are on the host already."""
    rows = matrix.rows
    parts: tuple[Tensor, ...] = (rows.values, rows.columns, rows.starts)
    data, columns, starts = (part.cpu().numpy() for part in parts)
    return sp.csr_array((data, columns, starts), shape=matrix.shape)
