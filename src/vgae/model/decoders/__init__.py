"""Decoders p(A | Z): the logit of a link between two nodes, given their embeddings."""

from vgae.model.decoders.base import BiasedDecoder, Decoder, DecoderSpec
from vgae.model.decoders.bilinear import Bilinear
from vgae.model.decoders.distance import Distance
from vgae.model.decoders.gravity import Gravity
from vgae.model.decoders.inner_product import InnerProduct
from vgae.model.decoders.mlp import MLP
from vgae.model.decoders.scaled import Scaled
from vgae.model.decoders.source_target import SourceTarget

__all__ = [
    "MLP",
    "BiasedDecoder",
    "Bilinear",
    "Decoder",
    "DecoderSpec",
    "Distance",
    "Gravity",
    "InnerProduct",
    "Scaled",
    "SourceTarget",
]
