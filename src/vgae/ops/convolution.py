"""Two graph convolutions and the layer between them as one operation.

    H = ReLU(Ã X W₀),   Y = Ã H W

    ∂L/∂W = Hᵀ G,   ∂L/∂W₀ = Xᵀ Ãᵀ (G Wᵀ ⊙ [H > 0])   with G = Ãᵀ ∂L/∂Y

X is sparse, or the identity, and where a product ÃX is given the first Ã is left out. On a graph of some thousand nodes
PyTorch takes as long to call its operations, of which there are a dozen each way, as to compute them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.ops.dispatch import HAS_NUMBA, SHORTEST_FOR_NUMBA, kernels_of
from vgae.ops.sparse import SparseMatrix

LANES, WIDEST = 16, 64  # columns of a layer: a multiple of the first, which the kernels take together, and the most
LARGEST = 2**22  # numbers in a layer, so that a processor's caches hold what the next one reads


@dataclass(frozen=True, eq=False)
class Convolutions:
    """The constant part: Ã, X or None, and whether X is still to be multiplied by Ã."""

    propagation: SparseMatrix
    features: SparseMatrix | None = None
    first_hop: bool = True

    def suit(self, weight: Tensor, heads: Sequence[Tensor]) -> bool:
        """Whether there is a kernel for these W₀ and W, and a step of training to gain by it."""
        widths = weight.shape[1], sum(head.shape[1] for head in heads)
        fits = all(width % LANES == 0 and 0 < width <= WIDEST for width in widths)
        small = SHORTEST_FOR_NUMBA <= self.propagation.shape[0] <= LARGEST // max(*widths, 1)
        trained = torch.is_grad_enabled() and weight.requires_grad and not torch.compiler.is_compiling()
        plain = weight.dtype == torch.float32 and weight.device.type == "cpu"
        return HAS_NUMBA and fits and small and trained and plain

    def __call__(self, weight: Tensor, heads: Sequence[Tensor]) -> Tensor:
        """Y, differentiable in W₀ and in the matrices that W has side by side."""
        result: Tensor = _Convolve.apply(self, weight, *heads)  # type: ignore[no-untyped-call]
        return result


class _Convolve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, constant: Convolutions, weight: Tensor, *heads: Tensor) -> Tensor:
        kernels, features = kernels_of("convolution"), constant.features
        given = None if features is None else features.rows.arrays, constant.propagation.rows.arrays
        joined = torch.cat(heads, dim=1)
        out, hidden = kernels.forward(*given, (weight, joined), first_hop=constant.first_hop)
        ctx.constant, ctx.input_dim, ctx.widths = constant, len(weight), [head.shape[1] for head in heads]
        ctx.save_for_backward(joined, hidden)
        found: Tensor = out
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        kernels, constant = kernels_of("convolution"), ctx.constant
        features = None if constant.features is None else constant.features.rows_of_transpose.arrays
        given = features, constant.propagation.rows_of_transpose.arrays, *ctx.saved_tensors, upstream
        of_weight, of_heads = kernels.back(*given, ctx.input_dim, first_hop=constant.first_hop)
        return None, of_weight, *(each.contiguous() for each in torch.split(of_heads, ctx.widths, dim=1))
