"""Decoders p(A | Z): the logit of a link between two nodes, given their embeddings.

A decoder that can, declares its factors,

    logit_ij = q_i·k_j + r_i + c_j   with q, k, r, c functions of Z,

and thereby trains with the exact objective over all pairs. The inner product of the paper has q = k = Z and no biases.
A decoder without factors gives the logits of single pairs and trains with the sampled objective.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from vgae.model.spec import Spec
from vgae.ops import Factors, LogitRows


class Decoder(nn.Module):
    """What every decoder offers; `symmetric` promises logit_ij = logit_ji, `factorised` that there are factors."""

    symmetric: bool = True
    factorised: bool = True

    def factors(self, z: Tensor) -> Factors | None:
        """The factors at these embeddings, or None where there are none."""
        raise NotImplementedError

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Logits of M×2 pairs, from the factors; a decoder without them has its own."""
        return self.require_factors(z).logits(pairs)

    def rows(self, z: Tensor) -> LogitRows:
        """The logits of all pairs by rows: from the factors, or pair by pair where there are none."""
        return self.factors(z) or _PairByPair(self, z)

    def require_factors(self, z: Tensor) -> Factors:
        """The factors, where nothing can be done without."""
        factors = self.factors(z)
        if factors is None:
            raise TypeError(f"{type(self).__name__} has no factors.")
        return factors


@dataclass(frozen=True, eq=False)
class _PairByPair:
    """The rows of a decoder without factors."""

    decoder: Decoder
    z: Tensor

    @property
    def num_nodes(self) -> int:
        return len(self.z)

    @property
    def device(self) -> torch.device:
        return self.z.device

    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        columns = torch.arange(first, len(self.z), device=rows.device)
        return self.decoder.logits(self.z, torch.cartesian_prod(rows, columns)).view(len(rows), len(columns))


class DecoderSpec(Spec):
    """A kind of decoder.

    One that has nothing to learn defines `factors`, or `logits` with factorised = False; one that has weights builds a
    `Decoder` of its own.
    """

    symmetric: ClassVar[bool] = True
    factorised: ClassVar[bool] = True

    def build(self, latent_dim: int, generator: torch.Generator) -> Decoder:  # noqa: ARG002 - of those with weights
        """The decoder of embeddings of so many dimensions; its weights are drawn from the generator."""
        return _Weightless(self)

    def check(self, latent_dim: int) -> None:
        """Refuse a number of dimensions that it cannot do with; most take any."""

    def factors(self, z: Tensor) -> Factors | None:  # noqa: ARG002 - of those that have factors
        """The factors at these embeddings."""
        return None

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Logits of M×2 pairs."""
        factors = self.factors(z)
        if factors is None:
            raise NotImplementedError(f"{type(self).__name__} defines neither factors nor logits")
        return factors.logits(pairs)


class _Weightless(Decoder):
    """A decoder that is its options and nothing else."""

    def __init__(self, spec: DecoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.symmetric, self.factorised = spec.symmetric, spec.factorised

    def factors(self, z: Tensor) -> Factors | None:
        return self.spec.factors(z)

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        return self.spec.logits(z, pairs)
