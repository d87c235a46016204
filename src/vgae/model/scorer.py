"""A trained auto-encoder at the embeddings of a graph's nodes, as something that scores pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from torch import Tensor

from vgae.graph.pairs import Pairs
from vgae.model.autoencoder import AutoEncoder
from vgae.ops import LogitRows


@dataclass(frozen=True, eq=False)
class ModelScorer:
    """A trained model at the embeddings of a graph's nodes (N×d)."""

    model: AutoEncoder
    z: Tensor

    @property
    def symmetric(self) -> bool:
        """Whether the two directions of a pair have one logit."""
        return self.model.decoder.symmetric

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """Logits of pairs of node indices (M×2)."""
        return self.model.score_pairs(self.z, pairs)

    def rows(self) -> LogitRows:
        """The logits of all pairs, by rows."""
        return self.model.rows(self.z)
