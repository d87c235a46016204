"""How sure a logit is: the posterior's spread of each node, and how the decoder carries it to logits.

Of independent normal embeddings the mean and variance of a logit have a closed form, which the page computes:

    product    q_i·k_j + r_i + c_j   var = Σ_d q_id² vk_jd + k_jd² vq_id + vq_id vk_jd  (+ σ_i² + σ_j² of node biases)
    distance   b - ½‖q_i - q_j‖²     of ½‖…‖²: mean = ½ Σ_d δ_d² + v_d,  var = Σ_d δ_d² v_d + ½ v_d²
    bilinear   z_iᵀ W z_j + b        var = Σ_a σ_ia² (W z_j)_a² + Σ_b σ_jb² (Wᵀ z_i)_b² + Σ_ab W_ab² σ_ia² σ_jb²

with vq and vk the variances of q and k, δ = q_i - q_j and v = vq_i + vq_j. On the unit sphere the inner product, the
scaled one and the distance are straight lines in the cosine of two embeddings, b + s z_i·z_j. With t = μ_i·μ_j, ρμ the
mean of a node's embedding, and its variances c across μ and c + e along,

    E z_i·z_j = ρ_i ρ_j t
    var       = ρ_i² (c_j + e_j t²) + ρ_j² (c_i + e_i t²) + c_i c_j d + c_i e_j + c_j e_i + e_i e_j t²

The spread of the probability is that of a normal logit; where ½‖q_i - q_j‖² has a gamma distribution, for distances of
normal embeddings; or where the cosine has a beta distribution.
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
from vgae.model.posteriors import NormalPosterior, Posterior, PowerSphericalPosterior

STEP = 0.1  # of log σ, at least: 3 % of σ on average are no more than what a spread is good for


@dataclass(frozen=True, eq=False)
class Noise:
    """log σ of each node and dimension of z (N×d), on the sphere log κ (N×1), and what the decoder makes of it.

    `decoder` is what the page is told: of products, dimension d of q is z's times q_scale[d], that of k is z's
    dimension d + k_from times k_scale[d], and `bias` is z's dimension that is a bias of each node.
    """

    logs: npt.NDArray[np.float32]
    kind: str
    decoder: dict[str, Any]

    def described(self) -> dict[str, Any]:
        """What the page is told beside σ."""
        return {"kind": self.kind, **self.decoder}

    def codes(self) -> tuple[npt.NDArray[np.uint8], float, float]:
        """The logarithms in 8 bits: codes by dimensions, the smallest, and the step from each code to the next."""
        least, most = float(self.logs.min(initial=0)), float(self.logs.max(initial=0))
        step = max((most - least) / 255, STEP)
        return np.rint((self.logs.T - least) / step).astype(np.uint8), least, step


def noise_of(posterior: Posterior, decoder: Decoder) -> Noise | None:
    """The spread of a posterior through a decoder, where both are known here; None of any other."""
    if isinstance(posterior, NormalPosterior):
        return _normal(posterior.log_std.numpy(), decoder)
    if isinstance(posterior, PowerSphericalPosterior):
        logs = posterior.kappa.clamp(min=1e-6).log().numpy()[:, None]
        return _spherical(logs, posterior.direction.shape[1], decoder)
    return None


def _normal(log_std: npt.NDArray[np.float32], decoder: Decoder) -> Noise | None:
    width = log_std.shape[1]
    ones = [1.0] * width
    product: dict[str, Any] = {"q_scale": ones, "k_scale": ones, "k_from": 0, "bias": None}
    if isinstance(getattr(decoder, "spec", None), InnerProduct):
        return Noise(log_std, "product", product)
    if isinstance(decoder, ScaledDecoder):
        places = width - 1 if decoder.node_bias else width
        scale = [_number((decoder.log_scale / 2).exp())] * places
        bias = places if decoder.node_bias else None
        return Noise(log_std, "product", product | {"q_scale": scale, "k_scale": scale, "bias": bias})
    if isinstance(decoder, DiagonalDecoder):
        return Noise(log_std, "product", product | {"q_scale": decoder.weight.tolist()})
    if isinstance(decoder, SourceTargetDecoder):
        half = ones[: width // 2]
        return Noise(log_std, "product", product | {"q_scale": half, "k_scale": half, "k_from": width // 2})
    if isinstance(decoder, FullDecoder):
        return Noise(log_std, "bilinear", {"weight": decoder.weight.flatten().tolist()})
    if isinstance(decoder, DistanceDecoder):
        return Noise(log_std, "distance", {"q_scale": [2**0.5 * _number((decoder.log_scale / 2).exp())] * width})
    return None


def _spherical(logs: npt.NDArray[np.float32], width: int, decoder: Decoder) -> Noise | None:
    """A straight line in the cosine, b + s z_i·z_j."""
    if isinstance(getattr(decoder, "spec", None), InnerProduct):
        line = {"base": 0.0, "scale": 1.0}
    elif isinstance(decoder, ScaledDecoder) and not decoder.node_bias:
        line = {"base": _number(decoder.bias), "scale": _number(decoder.log_scale.exp())}
    elif isinstance(decoder, DistanceDecoder):
        scale = 2 * _number(decoder.log_scale.exp())
        line = {"base": _number(decoder.bias) - scale, "scale": scale}
    else:
        return None
    return Noise(logs, "sphere", {**line, "width": width})


def _number(value: Tensor) -> float:
    return float(value.detach())
