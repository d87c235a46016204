"""How sure a logit is: the posterior's spread of each node, and how the decoder carries it to logits.

Of independent normal embeddings the mean and variance of a logit have a closed form, which the page computes:

    product    q_i·k_j + r_i + c_j   var = Σ_d q_id² vk_jd + k_jd² vq_id + vq_id vk_jd  (+ σ_i² + σ_j² of node biases)
    distance   b - ½‖q_i - q_j‖²     of ½‖…‖²: mean = ½ Σ_d δ_d² + v_d,  var = Σ_d δ_d² v_d + ½ v_d²
    bilinear   z_iᵀ W z_j + b        var = Σ_a σ_ia² (W z_j)_a² + Σ_b σ_jb² (Wᵀ z_i)_b² + Σ_ab W_ab² σ_ia² σ_jb²

with vq and vk the variances of q and k, δ = q_i - q_j and v = vq_i + vq_j. The spread of the
probability follows as that of a normal logit and, for distances, of one whose distance has a gamma distribution.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from vgae.model.decoders import Decoder
from vgae.model.decoders.bilinear import DiagonalDecoder, FullDecoder
from vgae.model.decoders.distance import DistanceDecoder
from vgae.model.decoders.inner_product import InnerProduct
from vgae.model.decoders.scaled import ScaledDecoder
from vgae.model.decoders.source_target import SourceTargetDecoder
from vgae.model.posteriors import NormalPosterior, Posterior

STEP = 0.1  # of log σ, at least: 3 % of σ on average are no more than what a spread is good for


@dataclass(frozen=True, eq=False)
class Noise:
    """log σ of each node and dimension of z (N×d), and what the page needs to know of the decoder.

    Dimension d of q is z's dimension d + q_from times q_scale[d], and k's likewise; `bias` is z's dimension that is a
    bias of each node.
    """

    log_std: npt.NDArray[np.float32]
    kind: str
    q_scale: list[float]
    k_scale: list[float]
    k_from: int = 0
    bias: int | None = None
    weight: list[float] | None = None  # W, row by row

    def described(self) -> dict[str, Any]:
        """What the page is told beside σ."""
        values = {"kind": self.kind, "q_scale": self.q_scale, "k_scale": self.k_scale}
        return values | {"k_from": self.k_from, "bias": self.bias, "weight": self.weight}

    def codes(self) -> tuple[npt.NDArray[np.uint8], float, float]:
        """Log σ in 8 bits: the codes by dimensions, the smallest, and the step from each code to the next."""
        least, most = float(self.log_std.min(initial=0)), float(self.log_std.max(initial=0))
        step = max((most - least) / 255, STEP)
        return np.rint((self.log_std.T - least) / step).astype(np.uint8), least, step


def noise_of(posterior: Posterior, decoder: Decoder) -> Noise | None:
    """The spread of a normal posterior through a decoder that is known here; None of any other."""
    if not isinstance(posterior, NormalPosterior):
        return None
    log_std, width = posterior.log_std.numpy(), posterior.log_std.shape[1]
    ones = [1.0] * width
    if isinstance(getattr(decoder, "spec", None), InnerProduct):
        return Noise(log_std, "product", ones, ones)
    if isinstance(decoder, ScaledDecoder):
        places = width - 1 if decoder.node_bias else width
        scale = [_number((decoder.log_scale / 2).exp())] * places
        return Noise(log_std, "product", scale, scale, bias=places if decoder.node_bias else None)
    if isinstance(decoder, DiagonalDecoder):
        return Noise(log_std, "product", decoder.weight.tolist(), ones)
    if isinstance(decoder, SourceTargetDecoder):
        half = ones[: width // 2]
        return Noise(log_std, "product", half, half, k_from=width // 2)
    if isinstance(decoder, FullDecoder):
        return Noise(log_std, "bilinear", ones, ones, weight=decoder.weight.flatten().tolist())
    if isinstance(decoder, DistanceDecoder):
        scale = [2**0.5 * _number((decoder.log_scale / 2).exp())] * width
        return Noise(log_std, "distance", scale, scale)
    return None


def _number(value: Tensor) -> float:
    return float(value.detach())
