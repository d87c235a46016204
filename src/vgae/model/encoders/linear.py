"""A linear encoder: no hidden layer, nothing but neighbours' features and one matrix for each head.

    head = Ã^K X W_head

Salha, Hennequin & Vazirgiannis, "Keep It Simple: Graph Autoencoders Without Graph Convolutional Networks", 2019,
with K = 1.
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


class LinearEncoder(Encoder):
    """Ã^K X W for each head."""

    def __init__(self, spec: Linear, input_dim: int, heads: Mapping[str, int], generator: torch.Generator) -> None:
        super().__init__()
        self.spec = spec
        self.head_weights = glorot_heads(input_dim, heads, generator, of_inputs=True)

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name."""
        spec, weights = self.spec, side_by_side(self.head_weights)
        projected = project(inputs, weights, unit_rows=spec.unit_rows, dropout=spec.dropout)
        return by_head(propagate(inputs, projected, spec.hops - inputs.hops_done), self.head_weights)


@register("encoder", "linear")
@dataclass(frozen=True)
class Linear(EncoderSpec):
    """Ã^K X W for each head; hidden_dim plays no part."""

    hops: int = hops_option(2)
    unit_rows: bool = unit_rows_option()
    dropout: float = dropout_option()

    @property
    def reach(self) -> int:
        """All hops."""
        return self.hops

    @property
    def fixed_hops(self) -> int:
        """All of them, unless entries of X are dropped."""
        return 0 if self.dropout else self.hops

    def build(
        self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator
    ) -> LinearEncoder:
        """The matrices, Glorot-uniform."""
        del hidden_dim
        return LinearEncoder(self, input_dim, heads, generator)

    def cost(self, hidden_dim: int, heads: Mapping[str, int]) -> EncoderCost:
        """The heads, and their gradients before and after Ã."""
        del hidden_dim
        outputs = sum(heads.values())
        return EncoderCost(
            projected=outputs,
            propagated=self.hops * outputs,
            held=outputs,
            returning=2 * outputs,
            joined=True,
            unit_rows=self.unit_rows,
            drops_features=self.dropout > 0,
        )
