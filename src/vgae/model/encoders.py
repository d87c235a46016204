"""Encoders: from a graph to the parameters of the posterior, its heads.

The paper's encoder is a graph convolutional network of two layers without biases,

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

from vgae.model.inputs import EncoderInputs
from vgae.model.spec import Spec, register


class Encoder(nn.Module):
    """What every encoder offers."""

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name, N rows each."""
        raise NotImplementedError


class EncoderSpec(Spec):
    """A kind of encoder."""

    def build(self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator) -> Encoder:
        """The encoder of so many feature columns, with heads of these widths."""
        raise NotImplementedError


class GCNEncoder(Encoder):
    """The paper's two-layer graph convolutional network."""

    def __init__(self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator) -> None:
        super().__init__()
        self.widths = list(heads.values())
        self.input_weight = _glorot(input_dim, hidden_dim, generator)
        self.head_weights = nn.ParameterDict(
            {head: _glorot(hidden_dim, width, generator) for head, width in heads.items()}
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


def _glorot(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Parameter:
    """U(-b, b) with b = √(6 / (fan_in + fan_out))."""
    bound = (6.0 / (fan_in + fan_out)) ** 0.5
    draws = torch.rand(fan_in, fan_out, generator=generator)
    return nn.Parameter(draws if draws.is_meta else (2 * draws - 1) * bound)  # on meta, arithmetic imports the compiler
