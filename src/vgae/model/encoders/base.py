"""What every encoder offers: from a graph to the parameters of the posterior, its heads."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from vgae.model.inputs import EncoderInputs
from vgae.model.spec import Spec


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


def glorot(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Parameter:
    """Weights from U(-b, b) with b = √(6 / (fan_in + fan_out))."""
    bound = (6.0 / (fan_in + fan_out)) ** 0.5
    draws = torch.rand(fan_in, fan_out, generator=generator)
    return nn.Parameter(draws if draws.is_meta else (2 * draws - 1) * bound)  # on meta, arithmetic imports the compiler
