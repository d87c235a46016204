"""An encoder that knows in and out: two layers, each with weights of its own for each way along the links.

    H = ReLU(Ã_out X W_out + Ã_in X W_in + X W_own),   head = Ã_out H V_out + Ã_in H V_in + H V_own

Ã_out brings what the nodes have that a node links to, Ã_in what those have that link to it (`vgae.model.directions`). A
node that many link to and that links to few differs in H from one of which the reverse is true, which a propagation
that is the same both ways cannot show. Separate weights for the two ways are those of Dir-GNN (Rossi et al. 2023:
Edge Directionality Improves Learning on Heterophilic Graphs).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vgae.model.encoders.base import (
    DROPPED,
    Encoder,
    EncoderCost,
    EncoderSpec,
    by_head,
    dropout_option,
    first_rows,
    glorot,
    glorot_heads,
    project,
    side_by_side,
    unit_rows_option,
)
from vgae.model.inputs import EncoderInputs
from vgae.model.spec import register

WAYS = ("out", "in", "own")


class DirectedEncoder(Encoder):
    """Two layers with weights for outgoing links, for incoming ones, and for the node itself."""

    def __init__(
        self, spec: Directed, sizes: tuple[int, int], heads: Mapping[str, int], generator: torch.Generator
    ) -> None:
        super().__init__()
        self.spec = spec
        self.input_weights = nn.ParameterDict({way: glorot(*sizes, generator) for way in WAYS})
        self.out_weights, self.in_weights, self.own_weights = (glorot_heads(sizes[1], heads, generator) for _ in WAYS)

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name."""
        spec, joined = self.spec, side_by_side(self.input_weights)
        projected = project(inputs, joined, unit_rows=spec.unit_rows, dropout=spec.dropout)
        hidden = torch.relu(_along(inputs, by_head(projected, self.input_weights)))
        hidden = inputs.dropout(hidden, spec.dropout)
        weights = {"out": self.out_weights, "in": self.in_weights, "own": self.own_weights}
        outputs = _along(inputs, {way: hidden @ side_by_side(weight) for way, weight in weights.items()})
        return by_head(outputs, self.own_weights)


def _along(inputs: EncoderInputs, values: Mapping[str, Tensor]) -> Tensor:
    """Ã_out V_out + Ã_in V_in + V_own."""
    out = inputs.outgoing @ values["out"]
    return out + inputs.incoming @ values["in"] + first_rows(values["own"], out)


@register("encoder", "directed")
@dataclass(frozen=True)
class Directed(EncoderSpec):
    """Two layers along the links, against them, and at the node itself, each with weights of its own."""

    dropout: float = dropout_option()
    unit_rows: bool = unit_rows_option()

    @property
    def reach(self) -> int:
        """Once in each layer, along the links and against them."""
        return 2

    def build(
        self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator
    ) -> DirectedEncoder:
        """The network with Glorot-uniform weights."""
        return DirectedEncoder(self, (input_dim, hidden_dim), heads, generator)

    def cost(self, hidden_dim: int, heads: Mapping[str, int]) -> EncoderCost:
        """Three times the weights of two layers, propagated both ways."""
        outputs, ways = sum(heads.values()), len(WAYS)
        hidden = hidden_dim * (DROPPED if self.dropout else 1)
        return EncoderCost(
            projected=ways * hidden_dim,
            propagated=2 * (hidden_dim + outputs),
            held=hidden + outputs,
            returning=hidden + (ways + 2) * hidden_dim,
            joined=True,
            unit_rows=self.unit_rows,
            drops_features=self.dropout > 0,
            along_links=True,
        )
