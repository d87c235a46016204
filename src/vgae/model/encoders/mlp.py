"""A network on each node's own features, and the graph only after it.

    H = ReLU(X W₀),   H ← ReLU(H W_l) for each layer between the first and the last,   head = Ã^K H W_head

The order of PPNP (Gasteiger, Bojchevski & Günnemann, 2019): first predict, then propagate. Without biases.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.model.encoders.base import (
    DROPPED,
    EncoderCost,
    EncoderSpec,
    LayeredEncoder,
    by_head,
    dropout_option,
    hops_option,
    project,
    propagate,
    side_by_side,
    unit_rows_option,
)
from vgae.model.inputs import EncoderInputs
from vgae.model.spec import register
from vgae.options import option


class MLPEncoder(LayeredEncoder):
    """A network on features, then Ã^K."""

    spec: MLP

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name."""
        spec = self.spec
        hidden = torch.relu(project(inputs, self.input_weight, unit_rows=spec.unit_rows, dropout=spec.dropout))
        for weight in self.hidden_weights:
            hidden = torch.relu(inputs.dropout(hidden, spec.dropout) @ weight)
        outputs = inputs.dropout(hidden, spec.dropout) @ side_by_side(self.head_weights)
        return by_head(propagate(inputs, outputs, spec.hops), self.head_weights)


@register("encoder", "mlp")
@dataclass(frozen=True)
class MLP(EncoderSpec):
    """A network on each node's features, then Ã^K."""

    layers: int = option(2, least=2, most=100, help="How many layers.", search=(2, 4))
    hops: int = hops_option(2)
    dropout: float = dropout_option()
    unit_rows: bool = unit_rows_option()

    @property
    def reach(self) -> int:
        """All hops, which come after what is learned."""
        return self.hops

    def build(
        self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator
    ) -> MLPEncoder:
        """The network with Glorot-uniform weights."""
        return MLPEncoder(self, (input_dim, hidden_dim), heads, generator)

    def cost(self, hidden_dim: int, heads: Mapping[str, int]) -> EncoderCost:
        """Every layer's outputs are there until the way back; with dropout, what was left of them too."""
        outputs, hidden = sum(heads.values()), (self.layers - 1) * hidden_dim
        held = hidden * (DROPPED if self.dropout else 1)
        return EncoderCost(
            projected=hidden_dim,
            propagated=self.hops * outputs,
            held=held + outputs,
            returning=held + 2 * hidden_dim + outputs,
            unit_rows=self.unit_rows,
            drops_features=self.dropout > 0,
        )
