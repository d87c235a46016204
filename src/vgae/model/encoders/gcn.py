"""The paper's encoder: a graph convolutional network of two layers without biases.

    H = ReLU(Ã X W₀),   head = Ã H W_head   for each head of the posterior,

where W₀ is shared: the heads of a VGAE are its mean and log σ, a GAE has the mean alone. Weights start
Glorot-uniform. The products are taken from the right, Ã(XW₀), so that a sparse X stays sparse; without features XW₀
is just W₀. The heads are propagated together, side by side.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from vgae.model.encoders.base import Encoder, EncoderSpec, glorot
from vgae.model.inputs import EncoderInputs
from vgae.model.spec import register


class GCNEncoder(Encoder):
    """The paper's two-layer graph convolutional network."""

    def __init__(self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator) -> None:
        super().__init__()
        self.widths = list(heads.values())
        self.input_weight = glorot(input_dim, hidden_dim, generator)
        self.head_weights = nn.ParameterDict(
            {head: glorot(hidden_dim, width, generator) for head, width in heads.items()}
        )

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name."""
        projected = self.input_weight if inputs.features is None else inputs.features @ self.input_weight
        hidden = torch.relu(inputs.propagation @ projected)
        weights = torch.cat(list(self.head_weights.values()), dim=1)
        outputs = inputs.propagation @ (hidden @ weights)
        return dict(zip(self.head_weights.keys(), torch.split(outputs, self.widths, dim=1), strict=True))


@register("encoder", "gcn")
@dataclass(frozen=True)
class GCN(EncoderSpec):
    """The paper's two-layer graph convolutional network."""

    def build(
        self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator
    ) -> GCNEncoder:
        """The network with Glorot-uniform weights."""
        return GCNEncoder(input_dim, hidden_dim, heads, generator)
