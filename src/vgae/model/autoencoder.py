"""An auto-encoder: encoder, kind of posterior, prior and decoder. GAE and VGAE differ in the posterior alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from vgae.model.decoders import Decoder, DecoderSpec
from vgae.model.encoders import Encoder, EncoderSpec
from vgae.model.inputs import EncoderInputs
from vgae.model.kl import kl_divergence, sample_with_kl
from vgae.model.posteriors import Posterior, PosteriorSpec
from vgae.model.priors import Prior, PriorInputs, PriorSpec, check_prior
from vgae.ops import LogitRows


class AutoEncoder(nn.Module):
    """Encoder → posterior → decoder, and the prior that the posterior is held against."""

    def __init__(self, encoder: Encoder, posterior: PosteriorSpec, prior: Prior, decoder: Decoder) -> None:
        super().__init__()
        self.encoder = encoder
        self.posterior = posterior
        self.prior = prior
        self.decoder = decoder

    def encode(self, inputs: EncoderInputs) -> Posterior:
        """q(Z | X, A)."""
        return self.posterior.build(self.encoder(inputs))

    @torch.no_grad()
    def score_pairs(self, z: Tensor, pairs: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Logits of pairs of node indices (M×2) at these embeddings."""
        index = torch.tensor(np.ascontiguousarray(pairs), device=z.device)
        logits: npt.NDArray[np.float32] = self.decoder.logits(z, index).cpu().numpy()
        return logits

    @torch.no_grad()
    def rows(self, z: Tensor) -> LogitRows:
        """The logits of all pairs at these embeddings, by rows."""
        return self.decoder.rows(z)

    def kl(self, posterior: Posterior, z: Tensor, inputs: EncoderInputs) -> Tensor:
        """KL(q ‖ p) for each node, by dimension where it is a sum over them (N×d, else N); z is a draw from q."""
        return kl_divergence(posterior, self.prior, z, self.seen(inputs))

    def sample_with_kl(self, posterior: Posterior, generator: torch.Generator) -> tuple[Tensor, Tensor | None]:
        """A draw from q and, where it is made along with it, the KL summed over nodes (1×d)."""
        return sample_with_kl(posterior, self.prior, generator)

    def seen(self, inputs: EncoderInputs) -> PriorInputs:
        """What the prior may look at."""
        return PriorInputs(inputs, self.encode)


@dataclass(frozen=True)
class Composition:
    """The four parts of an auto-encoder and its widths: all that is needed to build one, but for the graph's."""

    encoder: EncoderSpec
    posterior: PosteriorSpec
    prior: PriorSpec
    decoder: DecoderSpec
    hidden_dim: int
    latent_dim: int

    def check(self) -> None:
        """Refuse parts that cannot go together, by name, with what does."""
        check_prior(self.posterior, self.prior)
        self.posterior.check(self.latent_dim)
        self.decoder.check(self.latent_dim)

    @property
    def heads(self) -> dict[str, int]:
        """The outputs of the encoder, by name, and their widths."""
        return self.posterior.heads(self.latent_dim)

    def build(self, input_dim: int, generator: torch.Generator) -> AutoEncoder:
        """A freshly initialised auto-encoder of a graph with so many feature columns."""
        return AutoEncoder(
            encoder=self.encoder.build(input_dim, self.hidden_dim, self.heads, generator),
            posterior=self.posterior,
            prior=self.prior.build(self.latent_dim, generator, input_dim),
            decoder=self.decoder.build(self.latent_dim, generator),
        )

    def outline(self, input_dim: int, generator: torch.Generator | None = None) -> AutoEncoder:
        """The same with the shapes of its weights, and no memory for them; nothing is drawn."""
        generator = generator or torch.Generator("cpu")
        with torch.device("meta"):
            return self.build(input_dim, generator)
