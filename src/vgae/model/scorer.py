"""A decoder at given embeddings: the logits of pairs, and of all pairs a block of rows at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.ops import LogitRows

PAIRS = 1_000_000  # at a time: a decoder without factors may hold several vectors for each of them


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """A trained model at the embeddings of a graph's nodes (N×d)."""

    model: AutoEncoder
    z: Tensor

    @property
    def symmetric(self) -> bool:
        """Whether logit_ij = logit_ji."""
        return self.model.decoder.symmetric

    def logits(self, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Logits of pairs of node indices (M×2)."""
        return self.model.score_pairs(self.z, pairs)

    @torch.no_grad()
    def rows(self) -> LogitRows:
        """The decoder's factors; pair by pair where it has none, which takes far longer."""
        return self.model.decoder.factors(self.z) or DecoderRows(self.model.decoder, self.z)


@dataclass(frozen=True, eq=False)
class DecoderRows:
    """Rows of logits of a decoder without factors."""

    decoder: Decoder
    z: Tensor

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.z)

    @property
    def device(self) -> torch.device:
        """Where the embeddings are."""
        return self.z.device

    @torch.no_grad()
    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        """The logits of some rows, from the first column wanted on."""
        columns = torch.arange(first, self.num_nodes, device=self.device)
        pairs = torch.cartesian_prod(rows, columns)
        logits = torch.cat([self.decoder.logits(self.z, part) for part in torch.split(pairs, PAIRS)])
        return logits.float().view(len(rows), len(columns))
