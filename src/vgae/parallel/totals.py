"""Sums over all processes in the loss, and sums of the gradients of weights that all have.

Every process computes a part of the loss, and its backward pass the gradients of that part; rows that it has of others
send theirs back (vgae.parallel.halo, vgae.parallel.ring). What is made of a total is then the same in every process and
counts once, so that ∂L/∂total goes to each part as it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

if TYPE_CHECKING:
    from vgae.parallel.group import Group


def total(part: Tensor, group: Group) -> Tensor:
    """The sum over all processes of what each has."""
    result: Tensor = _Total.apply(part, group)  # type: ignore[no-untyped-call]
    return result


class _Total(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, part: Tensor, group: Group) -> Tensor:  # noqa: ARG004 - nothing is kept
        return group.sum(part)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:  # noqa: ARG004
        return upstream, None


def with_gradient_twice(number: Tensor) -> Tensor:
    """The number as it is, with twice its gradient: that of a sum over i, j with f_ij = f_ji, by the i alone."""
    return 2 * number - number.detach()


class SharedGradients:
    """The gradients of weights that all processes have, summed up in one message."""

    def __init__(self, weights: Iterable[nn.Parameter], group: Group) -> None:
        self.weights, self.group = list(weights), group

    def add_up(self) -> None:
        """Put the sum in the place of each process's own gradients; a weight without one counts as zero."""
        if not self.weights:
            return
        parts = [torch.zeros_like(each) if each.grad is None else each.grad for each in self.weights]
        summed = self.group.sum(torch.cat([part.flatten() for part in parts]))
        for weight, found in zip(self.weights, torch.split(summed, [part.numel() for part in parts]), strict=True):
            weight.grad = found.view(weight.shape)
