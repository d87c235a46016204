"""The paper's decoder: logit_ij = z_i·z_j."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from vgae.model.decoders.base import DecoderSpec
from vgae.model.spec import register
from vgae.ops import Factors


@register("decoder", "inner_product")
@dataclass(frozen=True)
class InnerProduct(DecoderSpec):
    """logit_ij = z_i·z_j, the paper's decoder."""

    def factors(self, z: Tensor) -> Factors:
        """q = k = z."""
        return Factors(z)
