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

import torch
from torch import Tensor
from torch.nn.functional import softplus

from vgae.graph.graph import Graph
from vgae.ops import Factors
from vgae.ops.powers import PowerSums

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

    @classmethod
    def of(cls, factors: Factors) -> AllPairs:
        """Of the factors of a step."""
        biases = sum(bias is not None for bias in (factors.row_bias, factors.column_bias)) / 2  # half on either side
        wide = torch.promote_types(factors.q.dtype, torch.float32)
        rows = factors.q.detach().to(wide).square().sum(dim=1) + biases
        columns = rows if factors.k is None else factors.k.detach().to(wide).square().sum(dim=1) + biases
        return cls(factors, PowerSums.of(factors), factors.diagonal(), (rows, columns))

    @property
    def dtype(self) -> torch.dtype:
        """What sums are in."""
        return self.weights[0].dtype

    @torch.no_grad()
    def means(self) -> tuple[Tensor, Tensor, Tensor]:
        """E w, E w·s and E w·s² over all pairs of two nodes; the first and the last may be too large by rounding."""
        weight, s = (self.weights[0] + self.weights[1]).double(), self.diagonal.detach().double()
        exact = 1 - ROUNDING * torch.finfo(self.dtype).eps
        num_pairs = max(1, self.factors.num_nodes * (self.factors.num_nodes - 1))
        w, ws, wss = self.sums.weighted(*self.weights).unbind()
        w, ws, wss = w - exact * weight.sum(), ws - weight @ s, wss - exact * (weight @ (s * s))
        return w / num_pairs, ws / num_pairs, wss / num_pairs


class ControlVariate:
    """An estimate of Σ softplus(s_ij) over all N₀ zeros by a draw of M of them, and what the draw before has taught."""

    def __init__(self, num_zeros: int, num_pairs: int, device: torch.device | str) -> None:
        self.num_zeros, self.num_pairs = num_zeros, num_pairs
        # Means over the two halves of the last draw of w, w·s, w·s², w·σ, w·σ·s and w·σ²; none before the first.
        self.means = torch.zeros(MEANS, dtype=torch.float64, device=device)

    def estimate(self, known: AllPairs, at_ones: tuple[Tensor, Tensor], pairs: Tensor) -> Tensor:
        """Of zeros that were drawn (M×2), given Σ s and Σ s² at the ones; the draw is remembered for the next step."""
        a, b = self.coefficients(known)
        logits = known.factors.logits(pairs)
        s = logits.to(known.dtype)
        residual = (softplus(s) - (a + b * s) * s).sum()
        of_zeros = a * (known.sums.total - at_ones[0]) + b * (known.sums.squares - at_ones[1])
        self.learn(known, pairs, logits)
        return (of_zeros + self.num_zeros / self.num_pairs * residual).to(logits.dtype)

    @torch.no_grad()
    def learn(self, known: AllPairs, pairs: Tensor, logits: Tensor | None = None) -> None:
        """Take the means over this draw in place of the last one's, in the memory that there is."""
        sources, targets = pairs.unbind(dim=1)
        weight = (known.weights[0].index_select(0, sources) + known.weights[1].index_select(0, targets)).double()
        s = (known.factors.logits(pairs) if logits is None else logits.detach()).double()
        probability = s.sigmoid()
        basis = torch.stack([torch.ones_like(s), s, s * s, probability, probability * s, probability**2])
        for mean, part in zip(self.means, (slice(0, None, 2), slice(1, None, 2)), strict=True):
            mean.copy_(basis[:, part] @ weight[part] / max(1, len(s[part])))

    @torch.no_grad()
    def coefficients(self, known: AllPairs) -> tuple[Tensor, Tensor]:
        """a and b by the last draw, and by what all pairs are now; 0 and 0 is plain sampling."""
        all_w, all_ws, all_wss = known.means()
        w, ws, wss, with_level, wps, _ = self.means.mean(dim=0).unbind()
        middle = ws / w
        with_slope, spread = wps - middle * with_level, wss - middle * ws
        all_spread = all_wss - 2 * middle * all_ws + middle**2 * all_w
        trust = self.num_pairs / (self.num_pairs + FITTED)
        level = trust * with_level / w * _shrinkage(w, all_w)
        slope = trust * with_slope / spread * _shrinkage(spread, all_spread)
        slope = torch.where(spread > LEAST_SPREAD * wss, slope, 0.0)
        cost = level**2 * all_w + 2 * level * slope * (all_ws - middle * all_w) + slope**2 * all_spread
        w, ws, wss, with_level, wps, plain = self.means.unbind(dim=1)  # of each half
        spread = wss - 2 * middle * ws + middle**2 * w
        gained = level * with_level * (all_w / w).clamp(max=1)
        gained = gained + slope * (wps - middle * with_level) * (all_spread / spread).nan_to_num(1.0).clamp(max=1)
        pays = (plain - 2 * gained + cost <= plain / WORTH).all() & torch.isfinite(cost)
        found = torch.where(pays, torch.stack([level - slope * middle, slope / 2]), 0.0).to(known.dtype)
        return found[0], found[1]


def _shrinkage(in_draw: Tensor, over_all: Tensor) -> Tensor:
    """1, or where there is far more than the draw has seen, the share that it has."""
    return torch.where(over_all <= TOLERANCE * in_draw, 1.0, in_draw / over_all)


def num_pairs_for(graph: Graph, *, control_variate: bool) -> int:
    """M where none is given; of a graph as the decoder sees it."""
    return max(graph.num_nodes, FEWEST_PAIRS) if control_variate else graph.num_arcs
