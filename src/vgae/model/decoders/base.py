"""Decoders p(A | Z): the logit of a link between two nodes, given their embeddings.

A decoder that can, declares its factors,

    logit_ij = q_i·k_j + r_i + c_j   with q, k, r, c functions of Z,

and thereby trains with the exact objective over all pairs. The inner product of the paper has q = k = Z and no biases.
Where k is q (k=None) and both biases are one tensor, half of the pairs are enough for a sweep over all of them. A
decoder without factors gives the logits of single pairs and trains with the sampled objective.

A number of each node beside its position (a bias, a mass) is the last dimension of z: so it has a posterior and a
prior, is drawn with the rest, and is there for a node that training has not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from vgae.errors import InputError
from vgae.model.spec import Spec
from vgae.ops import Factors, LogitRows
from vgae.options import option


def mean_of_rows(z: Tensor) -> Tensor:
    """The mean over nodes that are all here."""
    return z.mean(dim=0)


class Decoder(nn.Module):
    """What every decoder offers; `symmetric` promises logit_ij = logit_ji, `factorised` that there are factors."""

    symmetric: bool = True
    factorised: bool = True
    mirrored: bool = True  # whether symmetric factors have k = q and one bias, so that half of a sweep is enough
    by_ends: bool = False  # whether a logit depends on the embeddings of its two nodes alone, as `between` has it
    numbers_per_pair: int = 0  # that a step holds for a single pair, beside the two embeddings
    likeness: str = "cosine"  # what `similar` gives: cosine, or nearness, 1 / (1 + distance)
    mean_of: Callable[[Tensor], Tensor] = staticmethod(mean_of_rows)  # over all nodes, of which some may be elsewhere

    def factors(self, z: Tensor) -> Factors | None:
        """The factors at these embeddings, or None where there are none."""
        raise NotImplementedError

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Logits of M×2 pairs, from the factors or the embeddings of both ends; any other decoder has its own."""
        if self.by_ends:
            left, right = (z.index_select(0, ends) for ends in pairs.unbind(dim=1))
            return self.between(left, right)
        return self.require_factors(z).logits(pairs)

    def between(self, left: Tensor, right: Tensor) -> Tensor:  # noqa: ARG002 - as others have it
        """Logits by the embeddings at both ends of M pairs (M×d each); of a decoder `by_ends`."""
        raise TypeError(f"{type(self).__name__} needs the embeddings of all nodes.")

    def rows(self, z: Tensor) -> LogitRows:
        """The logits of all pairs by rows: from the factors, or pair by pair where there are none."""
        return self.factors(z) or _PairByPair(z, self)

    def begin(self, log_odds: float) -> None:
        """Called once before training with the log-odds of a link as the loss counts them; a bias may start there."""

    def position(self, z: Tensor) -> Tensor:
        """The dimensions of z in which nodes are alike or not: all but a bias or a mass."""
        return z

    def likeness_of(self, z: Tensor) -> LogitRows:
        """How much alike nodes are, by rows: the cosines of their positions, or how near they are."""
        at = self.position(z)
        return _Nearness(at) if self.likeness == "nearness" else Factors(nn.functional.normalize(at, dim=1))

    def bound(self, reach: Tensor) -> Tensor:
        """A number that no logit exceeds, nor what it is made of, where |z_id| ≤ reach_d (1×d, in double precision).

        Here: of factors whose size grows with that of z, or at that one point; a decoder that does otherwise says how.
        """
        factors = self.factors(reach)
        if factors is None:
            return self.logits(reach, torch.zeros(1, 2, dtype=torch.int64, device=reach.device)).abs().max()
        biases = (factors.row_bias, factors.column_bias)
        product = (factors.q.abs() * factors.columns.abs()).sum()
        return product + sum((bias.abs().sum() for bias in biases if bias is not None), start=product.new_zeros(()))

    def require_factors(self, z: Tensor) -> Factors:
        """The factors, where nothing can be done without."""
        factors = self.factors(z)
        if factors is None:
            raise TypeError(f"{type(self).__name__} has no factors.")
        return factors


@dataclass(frozen=True, eq=False)
class RowsOfEmbeddings:
    """What all rows of logits have that are made of embeddings (N×d); `block` is missing."""

    z: Tensor

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.z)

    @property
    def device(self) -> torch.device:
        """Where they are."""
        return self.z.device


@dataclass(frozen=True, eq=False)
class _PairByPair(RowsOfEmbeddings):
    """The rows of a decoder without factors."""

    decoder: Decoder

    @torch.no_grad()
    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        columns = torch.arange(first, len(self.z), device=rows.device)
        return self.decoder.logits(self.z, torch.cartesian_prod(rows, columns)).view(len(rows), len(columns))


@dataclass(frozen=True, eq=False)
class _Nearness(RowsOfEmbeddings):
    """1 / (1 + ‖z_i - z_j‖) by rows: larger is nearer, as it is with cosines."""

    @torch.no_grad()
    def block(self, rows: Tensor, first: int = 0) -> Tensor:
        return 1 / (1 + distances(self.z[rows], self.z[first:]))


def distances(left: Tensor, right: Tensor) -> Tensor:
    """‖a_i - b_j‖ for all rows of two matrices, by differences: products would cancel where points are near."""
    return torch.cdist(left, right, compute_mode="donot_use_mm_for_euclid_dist")


def squared_distances(z: Tensor, pairs: Tensor) -> Tensor:
    """‖z_i - z_j‖² of M×2 pairs, by differences."""
    sources, targets = pairs.unbind(dim=1)
    return (z.index_select(0, sources) - z.index_select(0, targets)).square().sum(dim=1)


class BiasedDecoder(Decoder):
    """A decoder with a bias b that is learned: it is what makes a sparse graph likely where embeddings say nothing.

    It starts from the given number, or (None) from the log-odds of a link as the loss counts them: 0 with the paper's
    weighting, under which ones and zeros weigh the same, and those of the graph's density under the true bound.
    """

    def __init__(self, bias: float | None) -> None:
        super().__init__()
        self.starts_at = bias
        self.bias = learned(0.0 if bias is None else bias)

    def bias_of_rows(self, z: Tensor) -> Tensor:
        """b for each node, as one side of the factors has it."""
        return self.bias + z.new_zeros(len(z))

    def begin(self, log_odds: float) -> None:
        """Start from the log-odds, unless another number was given."""
        if self.starts_at is None:
            nn.init.constant_(self.bias, log_odds)


def learned(start: float) -> nn.Parameter:
    """A number to learn."""
    return nn.Parameter(torch.tensor(start, dtype=torch.float32))


BIASES: dict[str, Any] = {"least": -1000, "most": 1000, "search": (-10.0, 10.0)}


def bias_option() -> Any:
    """What the bias of a `BiasedDecoder` starts from."""
    words = "What the learned bias starts from; none: the log-odds of a link, as the loss counts them."
    return option(None, **BIASES, help=words)


class DecoderSpec(Spec):
    """A kind of decoder.

    One that has nothing to learn defines `factors`, or `logits` with factorised = False; one that has weights builds a
    `Decoder` of its own.
    """

    symmetric: ClassVar[bool] = True
    factorised: ClassVar[bool] = True

    def build(self, latent_dim: int, generator: torch.Generator) -> Decoder:  # noqa: ARG002 - of those with weights
        """The decoder of embeddings of so many dimensions; its weights are drawn from the generator."""
        return _Weightless(self)

    def check(self, latent_dim: int) -> None:
        """Refuse a number of dimensions that it cannot do with; most take any."""

    def require_dimensions(self, latent_dim: int, least: int, why: str) -> None:
        """Refuse fewer dimensions than these."""
        if latent_dim < least:
            raise InputError(f"latent_dim: the decoder {self.name} needs at least {least}, {why}; got {latent_dim}.")

    def factors(self, z: Tensor) -> Factors | None:  # noqa: ARG002 - of those that have factors
        """The factors at these embeddings."""
        return None

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        """Logits of M×2 pairs."""
        factors = self.factors(z)
        if factors is None:
            raise NotImplementedError(f"{type(self).__name__} defines neither factors nor logits")
        return factors.logits(pairs)


class _Weightless(Decoder):
    """A decoder that is its options and nothing else."""

    def __init__(self, spec: DecoderSpec) -> None:
        super().__init__()
        self.spec = spec
        self.symmetric, self.factorised = spec.symmetric, spec.factorised

    def factors(self, z: Tensor) -> Factors | None:
        return self.spec.factors(z)

    def logits(self, z: Tensor, pairs: Tensor) -> Tensor:
        return self.spec.logits(z, pairs)
