"""A part that ends the process of a worker which builds it; workers load this file."""

import os
from dataclasses import dataclass
from multiprocessing import parent_process

import torch

from vgae.model.decoders import Decoder, DecoderSpec


@dataclass(frozen=True)
class Dying(DecoderSpec):
    """An inner product that nobody lives to see."""

    def build(self, latent_dim: int, generator: torch.Generator) -> Decoder:
        if parent_process() is not None:
            os._exit(7)
        return super().build(latent_dim, generator)


Dying.family, Dying.name = "decoder", "dying"
