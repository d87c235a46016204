"""The paper's encoder: a graph convolutional network of two layers without biases.

    H = ReLU(Ã X W₀),   head = Ã H W_head   for each head of the posterior,

where W₀ is shared: the heads of a VGAE are its mean and log σ, a GAE has the mean alone. Weights start
Glorot-uniform. The products are taken from the right, Ã(XW₀), so that a sparse X stays sparse; without features XW₀
is just W₀. The heads are propagated together, side by side.

With more layers, H ← ReLU(Ã H W_l) for each layer between the first and the last, or H ← H + ReLU(Ã H W_l) with
residual connections (Kipf & Welling, 2017, appendix B).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.model.encoders.base import (
    DROPPED,
    EncoderCost,
    EncoderSpec,
    LayeredEncoder,
    by_head,
    dropout_option,
    first_rows,
    project,
    propagate,
    side_by_side,
    taken_features,
    unit_rows_option,
)
from vgae.model.inputs import EncoderInputs
from vgae.model.spec import register
from vgae.ops import SparseMatrix
from vgae.ops.convolution import Convolutions
from vgae.ops.pages import product
from vgae.options import option


class GCNEncoder(LayeredEncoder):
    """A graph convolutional network."""

    spec: GCN

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name."""
        spec = self.spec
        at_once = self._at_once(inputs)
        if at_once is not None:
            return by_head(at_once, self.head_weights)
        hidden = project(inputs, self.input_weight, unit_rows=spec.unit_rows, dropout=spec.dropout)
        # In the memory of the product, which nobody needs.
        hidden = torch.relu_(propagate(inputs, hidden, 1 - inputs.hops_done))
        for weight in self.hidden_weights:
            layer = torch.relu(inputs.propagation @ (inputs.dropout(hidden, spec.dropout) @ weight))
            hidden = first_rows(hidden, layer) + layer if spec.residual else layer
        dropped = inputs.dropout(hidden, spec.dropout)
        return by_head(inputs.propagation @ product(dropped, side_by_side(self.head_weights)), self.head_weights)

    def _at_once(self, inputs: EncoderInputs) -> Tensor | None:
        """The same of the paper's two layers as one operation, where there is one and a step gains by it; else None."""
        spec, weight = self.spec, self.input_weight
        if spec.layers > 2 or spec.dropout or type(inputs.propagation) is not SparseMatrix:
            return None
        features = taken_features(inputs, unit_rows=spec.unit_rows)
        sparse = None if isinstance(features, Tensor) else features
        convolve = Convolutions(inputs.propagation, sparse, first_hop=not inputs.hops_done)
        heads = tuple(self.head_weights.values())
        if not convolve.suit(weight, heads):
            return None
        return convolve(features @ weight if isinstance(features, Tensor) else weight, heads)


@register("encoder", "gcn")
@dataclass(frozen=True)
class GCN(EncoderSpec):
    """The paper's graph convolutional network, of two layers or more."""

    layers: int = option(2, least=2, most=100, help="How many layers.", search=(2, 4))
    dropout: float = dropout_option()
    residual: bool = option(False, help="Add each layer between the first and the last to what it is made of.")
    unit_rows: bool = unit_rows_option()

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.residual and self.layers < 3:
            raise InputError(
                "encoder gcn, residual: a network of two layers has none to add to one of the same width; use layers=3 "
                "or more."
            )

    @property
    def reach(self) -> int:
        """Once in each layer."""
        return self.layers

    @property
    def fixed_hops(self) -> int:
        """ÃX, unless entries of X are dropped."""
        return 0 if self.dropout else 1

    def build(
        self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator
    ) -> GCNEncoder:
        """The network with Glorot-uniform weights."""
        return GCNEncoder(self, (input_dim, hidden_dim), heads, generator)

    def cost(self, hidden_dim: int, heads: Mapping[str, int]) -> EncoderCost:
        """Every layer's outputs are there until the way back; with dropout, what was left of them too."""
        outputs, hidden = sum(heads.values()), (self.layers - 1) * hidden_dim
        held = hidden * (DROPPED if self.dropout else 1)
        if self.residual and not self.dropout:
            held += (self.layers - 2) * hidden_dim  # sums, which the next product takes
        return EncoderCost(
            projected=hidden_dim,
            propagated=hidden + outputs,
            held=held + outputs,
            returning=held + 2 * hidden_dim + outputs,
            unit_rows=self.unit_rows,
            drops_features=self.dropout > 0,
        )
