"""Nodes on a sphere, then propagated: the length of an embedding comes from the graph alone.

    mean = Ã^K s·U,   U the rows of X W_mean brought to length one,   other heads = b + Ã^K X W_head

An isolated node is not shrunk towards zero, as its features would have it: U has rows of one length for all, and s is
how far from zero they are. Ahn & Kim, "Variational Graph Normalized AutoEncoders", 2021 (GNAE, VGNAE), with K = 1. The
first head says where nodes are, whatever the posterior calls it, and is the one that is normalised; rows of zeros stay.
b is a constant that others start from, 0 in VGNAE: a log σ that starts at 0 drowns hundreds of dimensions in noise, and
takes hundreds of iterations to fall.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.model.encoders.base import (
    Encoder,
    EncoderCost,
    EncoderSpec,
    by_head,
    dropout_option,
    glorot_heads,
    hops_option,
    project,
    propagate,
    side_by_side,
    unit_rows_option,
)
from vgae.model.inputs import EncoderInputs
from vgae.model.spec import register
from vgae.options import option


class NormalizedEncoder(Encoder):
    """Ã^K of rows of one length, for the first head; Ã^K X W for others."""

    def __init__(self, spec: Normalized, input_dim: int, heads: Mapping[str, int], generator: torch.Generator) -> None:
        super().__init__()
        self.spec = spec
        self.first = next(iter(heads))  # weights are sorted by name
        self.head_weights = glorot_heads(input_dim, heads, generator, of_inputs=True)

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name."""
        spec, weights = self.spec, side_by_side(self.head_weights)
        projected = project(inputs, weights, unit_rows=spec.unit_rows, dropout=spec.dropout)
        placed = by_head(projected, self.head_weights)
        placed[self.first] = spec.scale * of_length_one(placed[self.first])
        outputs = propagate(inputs, torch.cat(list(placed.values()), dim=1), spec.hops)
        found = by_head(outputs, self.head_weights)
        if not spec.start:
            return found
        return {head: values if head == self.first else values + spec.start for head, values in found.items()}


def of_length_one(values: Tensor) -> Tensor:
    """Rows divided by their lengths; rows of zeros stay, and gradients there are finite."""
    lengths: Tensor = torch.linalg.vector_norm(values, dim=1, keepdim=True)
    return values / lengths.where(lengths > 0, 1.0)


@register("encoder", "normalized")
@dataclass(frozen=True)
class Normalized(EncoderSpec):
    """Rows of XW brought to one length, then propagated; hidden_dim plays no part."""

    hops: int = hops_option(1)
    scale: float = option(1.8, above=0, help="The length of rows before they are propagated.", search=(1.0, 5.0))
    start: float = option(0.0, help="What other heads, such as log σ, start from.", search=(-3.0, 0.0))
    unit_rows: bool = unit_rows_option()
    dropout: float = dropout_option()

    @property
    def reach(self) -> int:
        """All hops, which come after what is learned."""
        return self.hops

    def build(
        self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator
    ) -> NormalizedEncoder:
        """The matrices, Glorot-uniform."""
        del hidden_dim
        return NormalizedEncoder(self, input_dim, heads, generator)

    def cost(self, hidden_dim: int, heads: Mapping[str, int]) -> EncoderCost:
        """The heads and what they were before they were normalised, and gradients before and after."""
        del hidden_dim
        outputs = sum(heads.values())
        return EncoderCost(
            projected=outputs,
            propagated=self.hops * outputs,
            held=2 * outputs,
            returning=3 * outputs,
            joined=True,
            unit_rows=self.unit_rows,
            drops_features=self.dropout > 0,
        )
