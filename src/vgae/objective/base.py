"""One step's loss: a posterior, a draw from it, and what the two terms make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from vgae.likelihood.positive_pairs import Observed
from vgae.model.autoencoder import AutoEncoder
from vgae.model.decoders import Decoder
from vgae.model.inputs import EncoderInputs
from vgae.model.posteriors import Posterior
from vgae.objective.collapse import num_active_dimensions
from vgae.objective.weighting import LossTerms, Weighting


@dataclass(frozen=True)
class LossOptions:
    """What the loss is made of beside its weighting."""

    observed: Observed = field(default_factory=Observed)
    mask_links: float = 0.0  # the share of links that is hidden from the encoder in each step
    free_bits: float = 0.0  # nats of KL per dimension that cost nothing


class Objective:
    """The loss of one step; the two objectives differ in how they sum over pairs."""

    weighting: Weighting
    options: LossOptions

    def reconstruction(self, decoder: Decoder, z: Tensor, generator: torch.Generator, *, value: bool) -> Tensor:
        """R, not scaled; without `value` NaN with the right gradient, where the value costs extra."""
        raise NotImplementedError

    def begin(self, model: AutoEncoder, inputs: EncoderInputs, generator: torch.Generator) -> None:
        """Called once, before the first step of a training."""

    def state(self) -> dict[str, Tensor]:
        """What the next step depends on, by name, in the tensors that are there: part of a training's state."""
        return {}

    def __call__(
        self,
        model: AutoEncoder,
        inputs: EncoderInputs,
        generator: torch.Generator,
        *,
        value: bool = True,
        warmth: Tensor | None = None,
    ) -> LossTerms:
        """The terms at one draw from the posterior; `warmth` is the share of the KL that counts yet."""
        posterior = model.encode(inputs.in_step(generator, self.options.mask_links))
        return self.at(model, posterior, inputs, generator, value=value, warmth=warmth)

    def at(
        self,
        model: AutoEncoder,
        posterior: Posterior,
        inputs: EncoderInputs,
        generator: torch.Generator,
        *,
        value: bool = True,
        warmth: Tensor | None = None,
    ) -> LossTerms:
        """The same at a posterior that is given."""
        z, kl = model.sample_with_kl(posterior, generator)
        reconstruction = self.reconstruction(model.decoder, z, generator, value=value)
        kl = self.total_kl(model.kl(posterior, z, inputs) if kl is None else kl, z.shape, value=value)
        return self._terms(reconstruction, kl, posterior, value=value, warmth=warmth)

    def _terms(
        self, reconstruction: Tensor, kl: Tensor, posterior: Posterior, *, value: bool, warmth: Tensor | None
    ) -> LossTerms:
        """Both terms, weighted; of a posterior whose active dimensions are counted where values are asked for."""
        terms = self.weighting.terms(reconstruction, kl if warmth is None else warmth * kl)
        return terms.with_active(self.num_active(posterior)) if value else terms

    def total_kl(self, kl: Tensor, shape: Sequence[int], *, value: bool) -> Tensor:  # noqa: ARG002 - of those it costs
        """Σ_i KL(q(z_i) ‖ p(z_i)) with its free bits; without `value` only its gradient is asked for."""
        return total_kl(kl, shape, self.options.free_bits)

    def num_active(self, posterior: Posterior) -> Tensor:
        """How many dimensions are active."""
        return num_active_dimensions(posterior)


def total_kl(kl: Tensor, shape: Sequence[int], free_bits: float = 0.0) -> Tensor:
    """Σ_i KL(q(z_i) ‖ p(z_i)); with free bits λ, less than λ per dimension, on average over nodes, counts as λ.

    N Σ_d max(λ, 1/N Σ_i KL_id),   or N max(λd, 1/N Σ_i KL_i) where the KL is no sum over dimensions.

    `kl` is that of each node, by dimension where it is a sum over them (N×d, or their sum, 1×d; else N), and `shape`
    has N and d.
    """
    num_nodes, latent_dim = shape
    if not free_bits:
        return kl.sum(dim=1).sum() if kl.dim() == 2 and len(kl) > 1 else kl.sum()
    if kl.dim() == 2:
        return num_nodes * (kl.sum(dim=0) / num_nodes).clamp(min=free_bits).sum()
    return num_nodes * kl.mean().clamp(min=free_bits * latent_dim)
