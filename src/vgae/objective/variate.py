"""The control variate of the sampled objective: a parabola in the logit, whose sum over all pairs has a closed form.

For p(s) = a·s + b·s², any a and b, and M of the N₀ zeros drawn uniformly,

    Σ_{L_ij = 0} softplus(s_ij) ≈ Σ_ij p(s_ij) - Σ_{L_ij = 1} p(s_ij) + N₀/M Σ_{m ≤ M} (softplus - p)(s_{i_m j_m})

has the left side as its expectation, and so has its gradient, as long as the draw has no say in a and b. They are
fitted to the draw of the step before. What varies in the gradient is σ(s) - p'(s), times the factors of the other node:
its second moment over all pairs is, up to a constant,

    E w_ij (σ(s_ij) - p'(s_ij))²,   p'(s) = a + 2b·s,   w_ij = ‖q_i‖² + ‖k_j‖² + one for each bias,

and the two numbers are the least squares of σ by a line with these weights. Six means over each half of a draw are
all that it takes; they are the state that goes from step to step.

A draw may miss what matters: a few nodes with enormous factors have pairs that are rare and logits to which no line
should be extended. But E w, E w·s and E w·s² over all pairs, and with them E w·p'², are known exactly (`PowerSums`),
at the embeddings of this very step, which the draw has no say in either. So, with p' as a level at the draw's mean
logit and a slope,

- a level or slope whose second moment over all pairs is more than twice that in the draw is shrunk by their ratio,
- and both are dropped, which leaves plain sampling, unless E w (σ - p')² = E w·σ² - 2 E w·σ·p' + E w·p'² is half of the
  E w·σ² of plain sampling or less: by either half of the draw, so that no single pair decides, and with no more credit
  for a half that has seen more of w or of w·(s - mean)² than there is. Less than half is asked for because w is only
  near to what a pair weighs in the gradient of the model's weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.ops import Factors, one_pass, sum_at_pairs
from vgae.ops.ones import numba_suits
from vgae.ops.powers import Described, PowerSums, Weighted

MEANS = torch.Size([2, 6])
FEWEST_PAIRS = 10_000  # in a draw, unless another number is asked for
TOLERANCE = 2.0  # second moment over all pairs in a draw's: beyond it, p' would cost more than it saves
WORTH = 2.0  # by what the second moment has to fall, since weights by factors are not quite those of the model's
ROUNDING = 100  # units in the last place by which sums over all pairs may be wrong
LEAST_SPREAD = 1e-12  # of logits, relative to their second moment: below, they are one number
FITTED = 2.0  # numbers fitted to a draw: with M pairs both are shrunk by M / (M + 2)


@dataclass(frozen=True, eq=False)
class AllPairs:
    """What a step knows of all pairs: the closed forms, the logits of nodes with themselves, the weights by end."""

    factors: Factors
    sums: PowerSums
    diagonal: Tensor
    weights: tuple[Tensor, Tensor]  # ‖q_i‖² and ‖k_j‖², of which one is the other where k = q
    described: Described | None = None  # where a kernel has found more along with these

    @classmethod
    def of(cls, factors: Factors) -> AllPairs:
        """Of the factors of a step."""
        if one_pass.is_plain(factors):
            return cls.by_description(factors, Described.of(factors.q))
        given = factors.row_bias, factors.column_bias
        biases = factors.weight_of_biases
        wide = torch.promote_types(factors.q.dtype, torch.float32)
        with torch.no_grad():
            q = factors.q.to(wide)
            squares = products_of_rows(q, q)
            if factors.k is None:
                rows = columns = squares + biases
                diagonal = squares + sum(bias.to(wide) for bias in given if bias is not None)
            else:
                k = factors.k.to(wide)
                rows, columns = squares + biases, products_of_rows(k, k) + biases
                diagonal = factors.diagonal()
        return cls(factors, PowerSums.of(factors), diagonal, (rows, columns))

    @classmethod
    def by_description(cls, factors: Factors, described: Described, **given: Any) -> Self:
        """Of factors that are one side, described."""
        side = described.side(factors.q)
        weights = described.squares, described.squares
        return cls(factors, PowerSums(side, side), described.squares, weights, described, **given)

    @property
    def dtype(self) -> torch.dtype:
        """What sums are in."""
        return self.weights[0].dtype

    @property
    def num_nodes(self) -> int:
        """N."""
        return self.factors.num_nodes

    @torch.no_grad()
    def means(self) -> Tensor:
        """E w, E w·s and E w·s² over all pairs of two nodes; the first and the last may be too large by rounding."""
        num_pairs = max(1, self.num_nodes * (self.num_nodes - 1))
        if self.described is not None:  # few numbers, for which PyTorch takes as long as for thousands
            almost_all = _almost_all(self.dtype, self.sums.left.rows.device).numpy()
            of_two = self.described.over_all() - almost_all * self.described.of_nodes()
            return torch.from_numpy(of_two / num_pairs)
        everywhere, of_nodes = self.weighted_sums()
        return (everywhere - _almost_all(self.dtype, everywhere.device) * of_nodes) / num_pairs

    def weighted_sums(self) -> tuple[Tensor, Tensor]:
        """Σ w, Σ w·s and Σ w·s² over all pairs, and over those of a node with itself."""
        if self.described is not None:
            return torch.from_numpy(self.described.over_all()), torch.from_numpy(self.described.of_nodes())
        return self.sums.weighted(self.of_rows(), self.of_columns()), self.of_nodes()

    @property
    def mirrored(self) -> bool:
        """Whether rows are columns, and weigh the same."""
        return self.sums.left is self.sums.right and self.weights[0] is self.weights[1]

    def of_rows(self) -> Weighted:
        """Sums over the rows with their weights."""
        return self.sums.left.weighted(self.weights[0])

    def of_columns(self) -> Weighted | None:
        """The same over the columns, None where these are the rows."""
        return None if self.mirrored else self.sums.right.weighted(self.weights[1])

    def of_nodes(self) -> Tensor:
        """Σ w, Σ w·s and Σ w·s² over the pairs of a node with itself."""
        s = self.diagonal.detach()
        if numba_suits(self.factors.q):
            found: Tensor = import_module("vgae.ops.draw_kernels").weighted_sums(*self.weights, s.to(self.dtype))
            return found
        weight, s = (self.weights[0] + self.weights[1]).double(), s.double()
        return torch.stack([weight.sum(), weight @ s, weight @ (s * s)])


@cache
def _almost_all(dtype: torch.dtype, device: torch.device) -> Tensor:
    """What is taken off of sums that must not become too small by rounding, and, in the middle, of one that may.

    It is on its device once and for all: steps that are recorded on a GPU bring nothing there.
    """
    exact = 1 - ROUNDING * torch.finfo(dtype).eps
    return torch.tensor([exact, 1.0, exact], dtype=torch.float64, device=device)


class ControlVariate:
    """An estimate of Σ softplus(s_ij) over all N₀ zeros by a draw of M of them, and what the draw before has taught."""

    def __init__(self, num_zeros: int, num_pairs: int, device: torch.device | str) -> None:
        self.num_zeros, self.num_pairs = num_zeros, num_pairs
        # Means over the two halves of the last draw of w, w·s, w·s², w·σ, w·σ·s and w·σ²; none before the first.
        self.means = torch.zeros(MEANS, dtype=torch.float64, device=device)

    def estimate(
        self,
        known: AllPairs,
        at_ones: tuple[Tensor, Tensor] | None,
        pairs: Tensor,
        parabola: tuple[Tensor, Tensor] | None = None,
    ) -> Tensor:
        """Of zeros that were drawn (M×2), given Σ s and Σ s² at the ones; the draw is remembered for the next step.

        Without `at_ones` it is too large by what a·s + b·s² is at the ones, which whoever sums over these takes off.
        `parabola` is a and b, where they are known.
        """
        a, b = self.coefficients(known) if parabola is None else parabola
        residual, logits = sum_at_pairs(known.factors, pairs, (a, b))
        of_zeros = known.sums.parabola(a, b)
        if at_ones is not None:
            of_zeros = of_zeros - a * at_ones[0] - b * at_ones[1]
        self.learn(known, pairs, logits)
        return (of_zeros + self.num_zeros / self.num_pairs * residual).to(logits.dtype)

    @torch.no_grad()
    def learn(self, known: AllPairs, pairs: Tensor, logits: Tensor | None = None) -> None:
        """Take the means over this draw in place of the last one's, in the memory that there is."""
        found = known.factors.logits(pairs) if logits is None else logits.detach()
        self.take(moments_of(known.weights, pairs, found, fused=numba_suits(known.factors.q)), len(pairs))

    def take(self, moments: Tensor, num_pairs: int) -> None:
        """Take the means by the sums over the two halves of a draw of so many pairs."""
        numbers = max(1, (num_pairs + 1) // 2), max(1, num_pairs // 2)
        if self.means.device.type == "cpu":
            np.divide(moments.numpy(), np.array(numbers)[:, None], out=self.means.numpy())
            return
        for mean, sums, number in zip(self.means, moments, numbers, strict=True):  # nothing is copied: it is recorded
            torch.div(sums, number, out=mean)

    @torch.no_grad()
    def coefficients(self, known: AllPairs) -> tuple[Tensor, Tensor]:
        """a and b by the last draw, and by what all pairs are now; 0 and 0 is plain sampling."""
        if self.means.device.type == "cpu":
            a, b = (torch.tensor(each, dtype=known.dtype) for each in self.coefficients_as_numbers(known))
        else:
            a, b = torch.stack(_fitted(self.means, known.means(), self._trust, torch)).to(known.dtype)
        return a, b

    def coefficients_as_numbers(self, known: AllPairs) -> tuple[float, float]:
        """The same on the CPU, where PyTorch takes as long for a few dozen numbers as for thousands."""
        with np.errstate(all="ignore"):
            a, b = _fitted(self.means.numpy(), known.means().numpy(), self._trust, _Numbers)
        return float(a), float(b)

    @property
    def _trust(self) -> float:
        return self.num_pairs / (self.num_pairs + FITTED)


class _Numbers:
    """Of what is below, NumPy's functions for single numbers, which are faster than those for arrays."""

    isfinite, isnan = np.isfinite, np.isnan

    @staticmethod
    def where(condition: Any, yes: Any, no: Any) -> Any:
        return yes if condition else no


@torch.no_grad()
def moments_of(
    weights: tuple[Tensor, Tensor], pairs: Tensor, logits: Tensor, first: int = 0, *, fused: bool = False
) -> Tensor:
    """Sums of w, w·s, w·s², w·σ, w·σ·s and w·σ² over each half of some pairs (2×6), in double precision.

    The halves are the pairs with even and with odd numbers, and `first` is the number of the first one. `fused` asks
    for the kernel for the CPU.
    """
    if fused:
        found: Tensor = import_module("vgae.ops.draw_kernels").weighted_moments(pairs, logits, weights, first)
        return found
    sources, targets = pairs.unbind(dim=1)
    weight = (weights[0].index_select(0, sources) + weights[1].index_select(0, targets)).double()
    s = logits.double()
    probability = s.sigmoid()
    basis = torch.stack([torch.ones_like(s), s, s * s, probability, probability * s, probability**2])
    return torch.stack([basis[:, half::2] @ weight[half::2] for half in (first % 2, 1 - first % 2)])


def _fitted(halves: Any, over_all: Any, trust: float, library: Any) -> tuple[Any, Any]:
    """a and b by the means of either half of a draw and those over all pairs, numbers of NumPy's or PyTorch's."""
    where = library.where

    def shrinkage(in_draw: Any, in_all: Any) -> Any:
        """1, or where there is far more than the draw has seen, the share that it has."""
        return where(in_all <= TOLERANCE * in_draw, 1.0, in_draw / in_all)

    def at_most_one(share: Any) -> Any:
        return where(share > 1, 1.0, share)

    all_w, all_ws, all_wss = over_all
    w, ws, wss, with_level, wps, _ = (halves[0] + halves[1]) / 2
    middle = ws / w
    with_slope, spread = wps - middle * with_level, wss - middle * ws
    all_spread = all_wss - 2 * middle * all_ws + middle**2 * all_w
    level = trust * with_level / w * shrinkage(w, all_w)
    slope = trust * with_slope / spread * shrinkage(spread, all_spread)
    slope = where(spread > LEAST_SPREAD * wss, slope, 0.0)
    cost = level**2 * all_w + 2 * level * slope * (all_ws - middle * all_w) + slope**2 * all_spread
    pays = library.isfinite(cost)
    for w, ws, wss, with_level, wps, plain in halves:
        seen = all_spread / (wss - 2 * middle * ws + middle**2 * w)
        gained = level * with_level * at_most_one(all_w / w)
        gained = gained + slope * (wps - middle * with_level) * at_most_one(where(library.isnan(seen), 1.0, seen))
        pays = pays & (plain - 2 * gained + cost <= plain / WORTH)
    return where(pays, level - slope * middle, 0.0), where(pays, slope / 2, 0.0)


def products_of_rows(left: Tensor, right: Tensor) -> Tensor:
    """The product of each row with the other's: as one of matrices, three times as fast as a sum of products."""
    return torch.bmm(left[:, None, :], right[:, :, None]).flatten()


def num_pairs_for(graph: Graph, *, control_variate: bool) -> int:
    """M where none is given; of a graph as the decoder sees it."""
    return max(graph.num_nodes, FEWEST_PAIRS) if control_variate else graph.num_arcs
