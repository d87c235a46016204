"""Adam (Kingma & Ba, 2015), by PyTorch's fused kernel.

    m ← β₁m + (1 - β₁)g,   v ← β₂v + (1 - β₂)g²,   θ ← θ - η·m̂ / (√v̂ + ε),   m̂ = m/(1 - β₁ᵗ),   v̂ = v/(1 - β₂ᵗ)

The same bits as `torch.optim.Adam(fused=True)`, whose first use imports PyTorch's compiler: a second that a short
training does not have.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

BETAS = (0.9, 0.999)
EPSILON = 1e-8


class Adam:
    """The optimizer of some named parameters; its state lies on their device, the step count included."""

    def __init__(self, parameters: Iterable[tuple[str, Tensor]], learning_rate: float) -> None:
        named = dict(parameters)
        self.names, self.parameters = list(named), list(named.values())
        self.learning_rate = learning_rate
        self.steps = [torch.zeros((), dtype=torch.float32, device=each.device) for each in self.parameters]
        self.means, self.squares = (
            [torch.zeros(each.shape, dtype=each.dtype, device=each.device) for each in self.parameters]
            for _ in range(2)
        )

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for each in self.parameters:
            each.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Take a step along the gradients."""
        gradients = [torch.zeros_like(each) if each.grad is None else each.grad for each in self.parameters]
        torch._foreach_add_(self.steps, 1)
        torch._fused_adam_(
            self.parameters,
            gradients,
            self.means,
            self.squares,
            [],
            self.steps,
            lr=self.learning_rate,
            beta1=BETAS[0],
            beta2=BETAS[1],
            weight_decay=0.0,
            eps=EPSILON,
            amsgrad=False,
            maximize=False,
        )

    def state(self) -> dict[str, Tensor]:
        """The tensors that the next step depends on, by name; what is copied into them is its state."""
        kinds = {"step": self.steps, "exp_avg": self.means, "exp_avg_sq": self.squares}
        return {
            f"{name}.{kind}": tensors[place] for place, name in enumerate(self.names) for kind, tensors in kinds.items()
        }
