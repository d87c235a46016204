"""Each node has two roles: the first half of z is where its links go from, the second where they arrive.

    logit_ij = s_i·t_j + b,   z = [s, t]

The source/target model of Salha et al. (CIKM 2019), after Ou et al. (HOPE, KDD 2016).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.model.decoders.base import BiasedDecoder, DecoderSpec, bias_option
from vgae.model.spec import register
from vgae.ops import Factors


class SourceTargetDecoder(BiasedDecoder):
    """s_i·t_j + b."""

    symmetric = False
    mirrored = False

    def factors(self, z: Tensor) -> Factors:
        """q = s, k = t."""
        half = z.shape[1] // 2
        return Factors(z[:, :half], z[:, half:], self.bias_of_rows(z))


@register("decoder", "source_target")
@dataclass(frozen=True)
class SourceTarget(DecoderSpec):
    """logit_ij = s_i·t_j + b, the halves of z = [s, t]; for directed links."""

    bias: float | None = bias_option()

    def build(self, latent_dim: int, generator: torch.Generator) -> SourceTargetDecoder:  # noqa: ARG002
        """The decoder at its start."""
        return SourceTargetDecoder(self.bias)

    def check(self, latent_dim: int) -> None:
        """There are two halves."""
        if latent_dim % 2:
            raise InputError(
                f"latent_dim: the decoder {self.name} needs an even number, half of it for each node as a source and "
                f"half as a target, got {latent_dim}; use {latent_dim + 1}."
            )
