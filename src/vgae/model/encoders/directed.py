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

from vgae.model.encoders.base import Encoder, EncoderSpec, glorot
from vgae.model.inputs import EncoderInputs
from vgae.model.spec import register
from vgae.options import option

WAYS = ("out", "in", "own")


class DirectedEncoder(Encoder):
    """Two layers with weights for outgoing links, for incoming ones, and for the node itself."""

    def __init__(
        self, sizes: tuple[int, int], heads: Mapping[str, int], dropout: float, generator: torch.Generator
    ) -> None:
        super().__init__()
        self.heads, self.dropout = dict(heads), dropout
        width = sum(heads.values())
        self.input_weights = nn.ParameterDict({way: glorot(*sizes, generator) for way in WAYS})
        self.head_weights = nn.ParameterDict({way: glorot(sizes[1], width, generator) for way in WAYS})

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name."""
        projected = {
            way: weight if inputs.features is None else inputs.features @ weight
            for way, weight in self.input_weights.items()
        }
        hidden = inputs.dropout(torch.relu(_along(inputs, projected)), self.dropout)
        outputs = _along(inputs, {way: hidden @ weight for way, weight in self.head_weights.items()})
        return dict(zip(self.heads, torch.split(outputs, list(self.heads.values()), dim=1), strict=True))


def _along(inputs: EncoderInputs, values: Mapping[str, Tensor]) -> Tensor:
    """Ã_out V_out + Ã_in V_in + V_own."""
    return inputs.outgoing @ values["out"] + inputs.incoming @ values["in"] + values["own"]


@register("encoder", "directed")
@dataclass(frozen=True)
class Directed(EncoderSpec):
    """Two layers that go along the links, against them, and stay at the node, each with weights of its own."""

    dropout: float = option(0.0, least=0, most=0.95, help="Share of H that a step sets to zero.", search=(0.0, 0.7))

    def build(
        self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator
    ) -> DirectedEncoder:
        """The network with Glorot-uniform weights."""
        return DirectedEncoder((input_dim, hidden_dim), heads, self.dropout, generator)
