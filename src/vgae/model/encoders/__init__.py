"""Encoders: from a graph to the parameters of the posterior, its heads."""

from vgae.model.encoders.base import Encoder, EncoderCost, EncoderSpec
from vgae.model.encoders.directed import Directed, DirectedEncoder
from vgae.model.encoders.gcn import GCN, GCNEncoder
from vgae.model.encoders.linear import Linear, LinearEncoder
from vgae.model.encoders.mlp import MLP, MLPEncoder
from vgae.model.encoders.normalized import Normalized, NormalizedEncoder

__all__ = [
    "GCN",
    "MLP",
    "Directed",
    "DirectedEncoder",
    "Encoder",
    "EncoderCost",
    "EncoderSpec",
    "GCNEncoder",
    "Linear",
    "LinearEncoder",
    "MLPEncoder",
    "Normalized",
    "NormalizedEncoder",
]
