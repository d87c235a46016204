"""A network on the product of two embeddings, dimension by dimension.

    h = z_i∘z_j,   h = ReLU(h W_l + b_l) for each hidden layer,   logit_ij = h·w + b

Symmetric, and without factors. The first layer of a block of rows is a product of matrices: (z_i∘z_j) W = z_j (z_i∘W),
so that the products of all pairs are never laid out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from vgae.model.decoders.base import BiasedDecoder, DecoderSpec, RowsOfEmbeddings, bias_option
from vgae.model.encoders.base import glorot
from vgae.model.spec import register
from vgae.ops import LogitRows
from vgae.options import option

HELD = 2**19  # numbers of a hidden layer that are held at a time where there are no gradients: in a cache


class MLPDecoder(BiasedDecoder):
    """A network on z_i∘z_j."""

    factorised = False
    mirrored = False
    by_ends = True

    def __init__(self, widths: list[int], bias: float | None, generator: torch.Generator) -> None:
        super().__init__(bias)
        self.numbers_per_pair = widths[0] + 3 * sum(widths[1:])  # before and after ReLU, and a gradient
        self.weights = nn.ParameterList(
            glorot(width, following, generator) for width, following in zip(widths, [*widths[1:], 1], strict=True)
        )
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(width)) for width in widths[1:])

    @property
    def widest(self) -> int:
        """The width of the widest layer."""
        return max(int(weight.shape[0]) for weight in self.weights)

    def factors(self, z: Tensor) -> None:  # noqa: ARG002 - as others have it
        """There are none."""
        return

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Of M×2 pairs; without gradients some at a time."""
        if torch.is_grad_enabled():
            return super().logits(z, pairs)
        size = max(1, HELD // self.widest)
        parts = [pairs[start : start + size] for start in range(0, max(1, len(pairs)), size)]
        return torch.cat([super(MLPDecoder, self).logits(z, part) for part in parts])

    def between(self, left: Tensor, right: Tensor) -> Tensor:
        """Of embeddings at both ends."""
        return self.above((left * right) @ self.weights[0])

    def above(self, values: Tensor) -> Tensor:
        """The logits out of what the first layer's product gives."""
        for bias, weight in zip(self.biases, list(self.weights)[1:], strict=True):
            values = torch.relu(values + bias) @ weight
        return values.squeeze(-1) + self.bias

    def rows(self, z: Tensor) -> LogitRows:
        """All pairs, by products of matrices."""
        return _MLPRows(z, self)

    def bound(self, reach: Tensor) -> Tensor:
        """Layer by layer, with all weights as large as they are; the largest value of any layer."""
        values = reach.square()
        largest = values.max()
        for index, weight in enumerate(self.weights):
            values = values @ weight.abs() + (self.biases[index].abs() if index < len(self.biases) else self.bias.abs())
            largest = torch.maximum(largest, values.max())
        return largest


@dataclass(frozen=True, eq=False)
class _MLPRows(RowsOfEmbeddings):
    decoder: MLPDecoder

    @torch.no_grad()
    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        decoder, columns = self.decoder, self.z[first:]
        logits = columns.new_empty(len(rows), len(columns))
        width = max(1, min(len(columns), HELD // decoder.widest))
        height = max(1, HELD // (max(width, self.z.shape[1]) * decoder.widest))
        for top in range(0, len(rows), height):
            weights = self.z[rows[top : top + height], :, None] * decoder.weights[0]
            for start in range(0, len(columns), width):
                part = slice(start, start + width)
                logits[top : top + height, part] = decoder.above(columns[part] @ weights)
        return logits


@register("decoder", "mlp")
@dataclass(frozen=True)
class MLP(DecoderSpec):
    """logit_ij = a network on z_i∘z_j; learned, without factors."""

    factorised: ClassVar[bool] = False

    width: int = option(64, least=1, most=65536, help="Units of each hidden layer.", search=(16, 256))
    layers: int = option(1, least=0, most=16, help="Hidden layers.", search=(1, 3))
    bias: float | None = bias_option()

    def build(self, latent_dim: int, generator: torch.Generator) -> MLPDecoder:
        """The network with Glorot-uniform weights."""
        return MLPDecoder([latent_dim, *[self.width] * self.layers], self.bias, generator)
