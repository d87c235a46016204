"""Decoders p(A | Z): the logit of a link between two nodes, given their embeddings."""

from vgae.model.decoders.base import Decoder, DecoderSpec
from vgae.model.decoders.inner_product import InnerProduct

__all__ = ["Decoder", "DecoderSpec", "InnerProduct"]
