"""What every prior p(Z) offers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import PLANE, Posterior
from vgae.model.spec import Spec


@dataclass(frozen=True, eq=False)
class PriorInputs:
    """What a prior may look at beside its own weights: the training graph, and the inference network."""

    inputs: EncoderInputs
    infer: Callable[[EncoderInputs], Posterior]


class Prior(nn.Module):
    """A distribution over embeddings; it may hold parameters to be learned."""

    def log_prob(self, z: Tensor, seen: PriorInputs | None = None) -> Tensor:
        """Log density of each row of z."""
        raise NotImplementedError

    def begin(self, posterior: Posterior, seen: PriorInputs, generator: torch.Generator) -> None:
        """Called once, before the first step in which the KL counts in full; most have nothing to do."""


class PriorSpec(Spec):
    """A kind of prior."""

    spaces: ClassVar[tuple[str, ...]] = (PLANE,)  # of the posteriors that it goes with
    couples_nodes: ClassVar[bool] = False  # whether p(Z) is no product over nodes; it then needs the training graph

    def build(self, latent_dim: int, generator: torch.Generator, input_dim: int) -> Prior:
        """The prior over embeddings of so many dimensions, of a graph with so many feature columns."""
        raise NotImplementedError
