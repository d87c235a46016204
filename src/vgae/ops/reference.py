"""The ops, dense and obvious, in float64: the truth for every test, and no faster than that.

all_pairs_softplus(q, k, r, c) = Σ_ij softplus(q_i·k_j + r_i + c_j)
"""

import torch
from torch import Tensor

from vgae.ops.factors import Factors


def all_pairs_softplus(q: Tensor, k: Tensor, row_bias: Tensor | None, column_bias: Tensor | None) -> Tensor:
    """The sum over all N×M pairs in float64; autograd does the rest."""
    logits = q.double() @ k.double().T
    if row_bias is not None:
        logits = logits + row_bias.double()[:, None]
    if column_bias is not None:
        logits = logits + column_bias.double()[None, :]
    # log(e^s + e^0), without the linear short-cut that torch's softplus takes for large s.
    return torch.logaddexp(logits, torch.zeros_like(logits)).sum()


def sum_at_entries(
    factors: Factors,
    entries: tuple[Tensor, Tensor],
    labels: Tensor | None,
    numbers: list[float],
    as_zeros: bool,
    parabola: Tensor,
) -> Tensor:
    """F of vgae.ops.ones over entries (i, j); `numbers` are those of `Counted`."""
    num_rows, num_columns = len(factors.q), len(factors.columns)
    logits = factors.q.double() @ factors.columns.double().T
    for bias, shape in ((factors.row_bias, (num_rows, 1)), (factors.column_bias, (1, num_columns))):
        logits = logits if bias is None else logits + bias.double().view(shape)
    i, j = entries[0].long(), entries[1].long()
    s = logits[i, j]
    zero = torch.zeros_like(s)
    weight, diagonal_weight, given = numbers
    label = torch.full_like(s, given) if labels is None else labels.to(s)
    as_one = torch.where(i == j, diagonal_weight, weight * label)
    as_zero = 1 - label if as_zeros else zero
    times = torch.ones_like(s) if as_zeros else label
    a, b = parabola.double()
    values: Tensor = (
        as_one * torch.logaddexp(-s, zero) + as_zero * torch.logaddexp(s, zero) - times * (a * s + b * s**2)
    )
    return values.sum()
