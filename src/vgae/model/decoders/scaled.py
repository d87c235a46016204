"""The inner product with a scale and a bias that are learned and, where asked for, a bias of each node.

    logit_ij = s·z_i·z_j + b   or   s·z_i·z_j + b + a_i + a_j,   s > 0,

with a the last dimension of z and the products over the others. The bias b tells how dense the graph is, which inner
products of random directions, zero on average, cannot; a_i tells how many links a node has whoever the others are (the
degree correction of Karrer and Newman, Phys. Rev. E 83, 2011; the sender and receiver effects of Hoff, 2005), so that
lengths of embeddings need not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.model.decoders.base import BiasedDecoder, DecoderSpec, bias_option, learned
from vgae.model.spec import register
from vgae.ops import Factors
from vgae.options import option


class ScaledDecoder(BiasedDecoder):
    """s·z_i·z_j + b, and with a bias for each node a_i + a_j."""

    def __init__(self, scale: float, bias: float | None, *, node_bias: bool) -> None:
        super().__init__(bias)
        self.log_scale = learned(math.log(scale))
        self.node_bias = node_bias

    def position(self, z: Tensor) -> Tensor:
        """All but the bias of each node."""
        return z[:, :-1] if self.node_bias else z

    def factors(self, z: Tensor) -> Factors:
        """q = k = √s·z; half of b for the row, half for the column."""
        bias = self.bias / 2 + (z[:, -1] if self.node_bias else z.new_zeros(len(z)))
        return Factors((self.log_scale / 2).exp() * self.position(z), None, bias, bias)


@register("decoder", "scaled")
@dataclass(frozen=True)
class Scaled(DecoderSpec):
    """logit_ij = s·z_i·z_j + b, with s and b learned, and a_i + a_j with a bias for each node."""

    scale: float = option(1.0, above=0, most=1e6, help="What the learned scale starts from.", search=(0.1, 10.0))
    bias: float | None = bias_option()
    node_bias: bool = option(
        False, help="Whether each node has a bias, the last dimension of its embedding.", search=(False, True)
    )

    def build(self, latent_dim: int, generator: torch.Generator) -> ScaledDecoder:  # noqa: ARG002 - nothing is drawn
        """The decoder at its start."""
        return ScaledDecoder(self.scale, self.bias, node_bias=self.node_bias)

    def check(self, latent_dim: int) -> None:
        """A bias for each node takes a dimension."""
        if self.node_bias:
            self.require_dimensions(latent_dim, 2, "one of which is the bias of each node")
