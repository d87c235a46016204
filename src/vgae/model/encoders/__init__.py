"""Encoders: from a graph to the parameters of the posterior, its heads."""

from vgae.model.encoders.base import Encoder, EncoderSpec
from vgae.model.encoders.directed import Directed, DirectedEncoder
from vgae.model.encoders.gcn import GCN, GCNEncoder

__all__ = ["GCN", "Directed", "DirectedEncoder", "Encoder", "EncoderSpec", "GCNEncoder"]
