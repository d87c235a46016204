"""A scorer made of one vector per node: logit_ij = z_i·z_j, read as σ(ZZᵀ), as the paper scores SC and DW."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from vgae.graph.pairs import Pairs
from vgae.ops import Factors


@dataclass(frozen=True, eq=False)
class EmbeddingScorer:
    """N×d embeddings, scored by their inner products."""

    embedding: npt.NDArray[np.float32]
    symmetric: bool = True

    def logits(self, pairs: Pairs) -> npt.NDArray[np.float32]:
        """z_i·z_j for each pair."""
        result: npt.NDArray[np.float32] = np.einsum(
            "md,md->m", self.embedding[pairs[:, 0]], self.embedding[pairs[:, 1]]
        )
        return result

    def rows(self) -> Factors:
        """q = k = z."""
        return Factors(torch.from_numpy(self.embedding))
