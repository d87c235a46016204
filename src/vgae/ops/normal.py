"""A draw from N(μ, σ²), σ = exp(log σ), together with its KL from N(0, 1), and the gradients of both in one pass.

    z_id = μ_id + σ_id·ε_id,   KL_d = Σ_i ½ (μ_id² + σ_id² - 1 - 2 log σ_id)

    ∂/∂μ_id = ∂L/∂z_id + ∂L/∂KL_d·μ_id,   ∂/∂log σ_id = ∂L/∂z_id·σ_id·ε_id + ∂L/∂KL_d·(σ_id² - 1)

A step of training on a large graph has a dozen passes over N×d numbers for these otherwise, most of which go to memory
that is new.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.ops.dispatch import HAS_NUMBA, SHORTEST_FOR_NUMBA, kernels_of


def kernels_suit(mean: Tensor) -> bool:
    """Whether there are kernels, and pay: on the CPU, in a step of training."""
    suited = mean.dtype == torch.float32 and mean.device.type == "cpu" and mean.requires_grad
    return HAS_NUMBA and suited and len(mean) >= SHORTEST_FOR_NUMBA and not torch.compiler.is_compiling()


def draw_with_kl(
    mean: Tensor, log_std: Tensor, noise: Tensor, *, implementation: str = "numba"
) -> tuple[Tensor, Tensor]:
    """z (N×d) and the KL of each dimension, summed over nodes (d); `implementation` is `numba` or `torch`."""
    if implementation == "torch":
        std = log_std.exp()
        return mean + std * noise, 0.5 * (mean.square() + std.square() - 1 - 2 * log_std).sum(dim=0)
    z, kl = _DrawWithKL.apply(mean, log_std, noise)  # type: ignore[no-untyped-call]
    return z, kl


class _DrawWithKL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(mean, log_std, noise)
        z, kl = kernels_of("normal").draw(mean, log_std, noise)
        return z, kl

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, of_z: Tensor, of_kl: Tensor) -> tuple[Tensor, Tensor, None]:
        of_mean, of_log_std = kernels_of("normal").gradients(*ctx.saved_tensors, of_z, of_kl)
        return of_mean, of_log_std, None
