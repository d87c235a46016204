"""The posterior's spread carried through to links, by K draws of the embeddings.

    z⁽ᵏ⁾ ~ q(Z | X, A),   p_ij⁽ᵏ⁾ = f(logit_ij(z⁽ᵏ⁾)),   mean = 1/K Σ_k p⁽ᵏ⁾,   std² = 1/(K - 1) Σ_k (p⁽ᵏ⁾ - mean)²

Mean and std are brought up to date draw by draw (Welford), pairs are taken block by block: what is held is one draw and
two numbers per pair, whatever K is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.model.decoders import Decoder
from vgae.model.posteriors import Posterior

Values = npt.NDArray[np.float64]
BLOCK = 1_000_000  # pairs scored at a time


@dataclass(frozen=True, eq=False)
class Moments:
    """Mean and standard deviation of each pair."""

    mean: Values
    std: Values


@torch.no_grad()
def moments_of_draws(
    posterior: Posterior,
    decoder: Decoder,
    pairs: Tensor,
    function: Callable[[npt.NDArray[np.float32]], Values],
    *,
    num_draws: int,
    generator: torch.Generator,
    block_size: int = BLOCK,
) -> Moments:
    """Moments of a function of the logits of M×2 pairs, over draws from the posterior."""
    mean, squares = np.zeros(len(pairs)), np.zeros(len(pairs))
    for count in range(1, num_draws + 1):
        z = posterior.sample(generator)
        for start in range(0, len(pairs), block_size):
            block = slice(start, start + block_size)
            values = function(decoder.logits(z, pairs[block]).cpu().numpy())
            change = values - mean[block]
            mean[block] += change / count
            squares[block] += change * (values - mean[block])
    return Moments(mean, np.sqrt(squares / (num_draws - 1)))
