"""An auto-encoder: encoder, kind of posterior, prior and decoder. GAE and VGAE differ in the posterior alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from vgae.model.decoders import InnerProduct
from vgae.model.encoders import GCN
from vgae.model.inputs import EncoderInputs
from vgae.model.kl import kl_divergence
from vgae.model.posteriors import Delta, Normal
from vgae.model.priors import StandardNormal

MODELS: dict[str, type[Delta] | type[Normal]] = {"gae": Delta, "vgae": Normal}


class AutoEncoder(nn.Module):
    """Encoder → posterior → decoder, and the prior that the posterior is held against."""

    def __init__(
        self,
        encoder: GCN,
        posterior: type[Delta] | type[Normal],
        prior: StandardNormal,
        decoder: InnerProduct,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.posterior = posterior
        self.prior = prior
        self.decoder = decoder

    @classmethod
    def from_paper(
        cls, model: str, input_dim: int, hidden_dim: int, latent_dim: int, generator: torch.Generator
    ) -> AutoEncoder:
        """The paper's GAE or VGAE, freshly initialised."""
        posterior = MODELS[model]
        encoder = GCN(input_dim, hidden_dim, latent_dim, posterior.heads, generator)
        return cls(encoder, posterior, StandardNormal(), InnerProduct())

    def encode(self, inputs: EncoderInputs) -> Delta | Normal:
        """q(Z | X, A)."""
        return self.posterior(**self.encoder(inputs))

    @torch.no_grad()
    def score_pairs(self, z: Tensor, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Logits of pairs of node indices (M×2) at these embeddings."""
        index = torch.tensor(np.ascontiguousarray(pairs), device=z.device)
        logits: npt.NDArray[np.float32] = self.decoder.logits(z, index).cpu().numpy()
        return logits

    def kl(self, posterior: Delta | Normal) -> Tensor:
        """KL(q ‖ p), summed over nodes."""
        return kl_divergence(posterior, self.prior).sum()
