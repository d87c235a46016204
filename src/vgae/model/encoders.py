"""Encoders: from a graph to the parameters of the posterior.

The paper's encoder is a graph convolutional network of two layers without biases,

    H = ReLU(Ã X W₀),   head = Ã H W_head   for each head of the posterior,

where W₀ is shared: the heads of a VGAE are its mean and log σ, a GAE has the mean alone. Weights start
Glorot-uniform. The products are taken from the right, Ã(XW₀), so that a sparse X stays sparse; without features XW₀
is just W₀. The heads are propagated together, side by side.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from vgae.model.inputs import EncoderInputs


class GCN(nn.Module):
    """The paper's two-layer graph convolutional network."""

    def __init__(
        self,
        input_dim: int,
        hidden_dim: int,
        latent_dim: int,
        heads: Sequence[str],
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        self.latent_dim = latent_dim
        self.input_weight = _glorot(input_dim, hidden_dim, generator)
        self.head_weights = nn.ParameterDict({head: _glorot(hidden_dim, latent_dim, generator) for head in heads})

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """Each head's N×latent_dim output, by name."""
        projected = self.input_weight if inputs.features is None else inputs.features @ self.input_weight
        hidden = torch.relu(inputs.propagation @ projected)
        weights = torch.cat(list(self.head_weights.values()), dim=1)
        outputs = inputs.propagation @ (hidden @ weights)
        return dict(zip(self.head_weights.keys(), torch.split(outputs, self.latent_dim, dim=1), strict=True))


ENCODERS = {"gcn": GCN}


def _glorot(fan_in: int, fan_out: int, generator: torch.Generator) -> nn.Parameter:
    """U(-b, b) with b = √(6 / (fan_in + fan_out))."""
    bound = (6.0 / (fan_in + fan_out)) ** 0.5
    return nn.Parameter((2 * torch.rand(fan_in, fan_out, generator=generator) - 1) * bound)
