"""What every encoder offers: from a graph to the parameters of the posterior, its heads.

What encoders are made of is here too: XW with sparse, dense and no features, Ã^K, and heads side by side. Weights
start Glorot-uniform, and there are no biases. With dropout, in a step of training, a share of the entries of X and of
hidden values is set to zero and the rest is scaled up, so that the mean over draws is what it is without.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from vgae.model.inputs import EncoderInputs, Features
from vgae.model.spec import Spec
from vgae.options import option
from vgae.parallel.draws import RowGenerator

DROPPED = 2.25  # columns for each that dropout is applied to: as it was, what is left, and which (a byte each)


class Encoder(nn.Module):
    """What every encoder offers."""

    def forward(self, inputs: EncoderInputs) -> dict[str, Tensor]:
        """The output of each head, by name, N rows each."""
        raise NotImplementedError


class Layered(Protocol):
    """Options of an encoder with layers."""

    @property
    def layers(self) -> int:
        """How many, the heads' counted."""


@dataclass(frozen=True)
class EncoderCost:
    """What an encoder takes in a step, for the plan; columns have a number for each node."""

    projected: float  # columns of XW
    propagated: float  # columns that are multiplied by Ã, all layers and hops together
    held: float  # columns that are there until the way back, the heads among them
    returning: float  # columns at the largest moment of the way back through the encoder
    joined: bool = False  # whether all weights are joined for one product, whose gradient is there beside theirs
    unit_rows: bool = False  # whether X is there with rows of length one too
    drops_features: bool = False  # whether entries of X are dropped
    along_links: bool = False  # whether links are followed by their directions, out and in


class EncoderSpec(Spec):
    """A kind of encoder."""

    @property
    def reach(self) -> int | None:
        """How often Ã is applied, one time after the other: a node's outputs depend on nodes so many links away.

        None where that is not known; such an encoder sees all nodes in every step.
        """
        return None

    @property
    def fixed_hops(self) -> int:
        """How many of these times come before anything is learned or drawn: of Ã^h X, which can be computed once."""
        return 0

    def build(self, input_dim: int, hidden_dim: int, heads: Mapping[str, int], generator: torch.Generator) -> Encoder:
        """The encoder of so many feature columns, with heads of these widths."""
        raise NotImplementedError

    def cost(self, hidden_dim: int, heads: Mapping[str, int]) -> EncoderCost:
        """What it takes in a step; unless an encoder knows better, what the paper's takes."""
        outputs = sum(heads.values())
        return EncoderCost(
            projected=hidden_dim,
            propagated=hidden_dim + outputs,
            held=hidden_dim + outputs,
            returning=3 * hidden_dim + outputs,
        )


class LayeredEncoder(Encoder):
    """An encoder with W₀, a square matrix for each layer between the first and the last, and one for each head."""

    def __init__(
        self, spec: Layered, sizes: tuple[int, int], heads: Mapping[str, int], generator: torch.Generator
    ) -> None:
        super().__init__()
        self.spec = spec
        self.input_weight = glorot(*sizes, generator, of_inputs=True)
        between = range(spec.layers - 2)
        self.hidden_weights = nn.ParameterList([glorot(sizes[1], sizes[1], generator) for _ in between])
        self.head_weights = glorot_heads(sizes[1], heads, generator)


def dropout_option() -> float:
    """The option that encoders share."""
    rate: float = option(
        0.0, least=0, most=0.95, help="Share of X and of hidden values that a step sets to zero.", search=(0.0, 0.7)
    )
    return rate


def unit_rows_option() -> bool:
    """The option that encoders share."""
    given: bool = option(False, help="Take the features with rows of length one.", search=(False, True))
    return given


def hops_option(default: int) -> int:
    """The option that encoders share."""
    hops: int = option(default, least=0, most=100, help="How often Ã is applied.", search=(1, 4))
    return hops


def glorot(fan_in: int, fan_out: int, generator: torch.Generator, *, of_inputs: bool = False) -> nn.Parameter:
    """Weights from U(-b, b) with b = √(6 / (fan_in + fan_out)).

    Weights of inputs have a row for each node where there are no features: of those a generator by rows draws some.
    """
    bound = (6.0 / (fan_in + fan_out)) ** 0.5
    if of_inputs and isinstance(generator, RowGenerator):
        draws = generator.uniform((len(generator.rows), fan_out))
    else:
        draws = torch.rand(fan_in, fan_out, generator=generator)
    return nn.Parameter(draws if draws.is_meta else (2 * draws - 1) * bound)  # on meta, arithmetic imports the compiler


def glorot_heads(
    fan_in: int, heads: Mapping[str, int], generator: torch.Generator, *, of_inputs: bool = False
) -> nn.ParameterDict:
    """Weights for each head, each by its own shape."""
    made = {head: glorot(fan_in, width, generator, of_inputs=of_inputs) for head, width in heads.items()}
    return nn.ParameterDict(made)


def side_by_side(weights: nn.ParameterDict) -> Tensor:
    """The weights of all heads as one matrix."""
    return torch.cat(list(weights.values()), dim=1)


def by_head(outputs: Tensor, weights: nn.ParameterDict) -> dict[str, Tensor]:
    """What `side_by_side` joined, by the names of the heads."""
    widths = [weight.shape[1] for weight in weights.values()]
    return dict(zip(weights.keys(), torch.split(outputs, widths, dim=1), strict=True))


def taken_features(inputs: EncoderInputs, *, unit_rows: bool) -> Features:
    """X as an encoder takes it."""
    return inputs.unit_features if unit_rows else inputs.features


def project(inputs: EncoderInputs, weight: Tensor, *, unit_rows: bool = False, dropout: float = 0.0) -> Tensor:
    """XW: a sparse X stays sparse, and without features it is W."""
    features = taken_features(inputs, unit_rows=unit_rows)
    if features is None:
        return inputs.dropout_rows(weight, dropout)
    if isinstance(features, Tensor):
        return inputs.dropout(features, dropout) @ weight
    return inputs.dropout_entries(features, dropout) @ weight


def first_rows(values: Tensor, like: Tensor) -> Tensor:
    """Rows of the nodes that are left where a hop has made values for fewer: they come first. Else the values."""
    return values if len(values) == len(like) else values[: len(like)]


def propagate(inputs: EncoderInputs, values: Tensor, hops: int) -> Tensor:
    """Ã^K applied to columns of values."""
    for _ in range(hops):
        values = inputs.propagation @ values
    return values
