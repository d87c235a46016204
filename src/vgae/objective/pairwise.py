"""Sums over pairs whose logits are computed one by one: some pairs at a time, and their gradients with them.

    R = Σ_m f_m(s_m),   s_m = logit of the embeddings at the two ends of pair m

for decoders without factors, of which a logit depends on the embeddings of its two nodes and on the decoder's weights.
R is a scalar, so that its gradients are known up to a factor as soon as it is: each piece of PIECE pairs is scored and
differentiated before the next, and what a network holds for a pair is there for one piece, in a processor's cache. The
backward pass only multiplies.

Threads take pieces as they are free, and add what they have found in the order of the pieces: the bits do not depend on
how many threads there are. On a GPU all pairs are one piece.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from threading import Condition
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from vgae.machine import in_one_thread, in_threads, num_threads
from vgae.model.decoders import Decoder
from vgae.ops.pages import scaled

PIECE = 2**12  # pairs that are scored together
FEWEST = 2**14  # that are divided into pieces: fewer are done at once before threads have begun

Loss = Callable[[slice, Tensor], Tensor]  # Σ f_m(s_m) over some of the pairs, by which they are and their logits


def sum_over_pairs(decoder: Decoder, z: Tensor, pairs: Tensor, loss: Loss) -> Tensor:
    """R over M×2 pairs, differentiable in the embeddings and in the decoder's weights."""
    in_pieces = decoder.by_ends and len(pairs) >= FEWEST and z.device.type == "cpu" and z.requires_grad
    if not in_pieces or not torch.is_grad_enabled() or torch.compiler.is_compiling():
        return loss(slice(0, len(pairs)), decoder.logits(z, pairs))
    weights = [weight for weight in decoder.parameters() if weight.requires_grad]
    total: Tensor = _SumOverPairs.apply(z, decoder, pairs, loss, *weights)  # type: ignore[no-untyped-call]
    return total


class _SumOverPairs(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, decoder: Decoder, pairs: Tensor, loss: Loss, *weights: Tensor) -> Tensor:
        found, num_pieces = _Found(z.detach(), weights), -(-len(pairs) // PIECE)
        pieces = iter(range(num_pieces))

        def work(_: int) -> None:
            torch.set_num_threads(1)  # of this thread, where it is a new one
            try:
                for piece in pieces:
                    part = slice(piece * PIECE, (piece + 1) * PIECE)
                    found.take(piece, pairs[part], partial(loss, part), decoder)
            except BaseException:  # such as Ctrl-C: no thread is to wait for a piece that will not come
                found.fail()
                raise

        with in_one_thread():
            in_threads(work, min(num_threads(), num_pieces))
        ctx.save_for_backward(*found.gradients)
        return z.new_tensor(found.total)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor | None, ...]:
        of_z, *of_weights = (scaled(gradient, upstream) for gradient in ctx.saved_tensors)
        return of_z, None, None, None, *of_weights


class _Found:
    """What pieces have added up to so far."""

    def __init__(self, z: Tensor, weights: Sequence[Tensor]) -> None:
        self.z, self.weights = z, weights
        self.total = 0.0
        self.gradients = [torch.zeros_like(each) for each in (z, *weights)]
        self.next, self.failed, self.turn = 0, False, Condition()  # whose turn it is to add

    def take(self, piece: int, pairs: Tensor, loss: Callable[[Tensor], Tensor], decoder: Decoder) -> None:
        """Score a piece and differentiate it, and add what was found when all before it have, unless one has failed."""
        if self.failed:
            return
        total, gradients = self._differentiated(pairs, loss, decoder)
        with self.turn:
            self.turn.wait_for(lambda: self.failed or self.next == piece)
            if self.next != piece:
                return
            self.total += total
            of_z, *of_weights = self.gradients
            for ends, gradient in zip(pairs.unbind(dim=1), gradients[:2], strict=True):
                of_z.index_add_(0, ends, gradient)
            for gradient, more in zip(of_weights, gradients[2:], strict=True):
                gradient += more
            self.next += 1
            self.turn.notify_all()

    def fail(self) -> None:
        """Nothing more is added, and nobody waits: what happened is raised where it did."""
        with self.turn:
            self.failed = True
            self.turn.notify_all()

    def _differentiated(
        self, pairs: Tensor, loss: Callable[[Tensor], Tensor], decoder: Decoder
    ) -> tuple[float, Sequence[Tensor]]:
        """The sum over some pairs, and its gradients in the embeddings at both ends and in the weights."""
        left, right = (self.z.index_select(0, ends).requires_grad_() for ends in pairs.unbind(dim=1))
        with torch.enable_grad():
            total = loss(decoder.between(left, right))
            gradients = torch.autograd.grad(total, [left, right, *self.weights], materialize_grads=True)
        return float(total.detach()), gradients
