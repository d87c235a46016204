"""The all-pairs op, dense and obvious, in float64: the truth for every test, and no faster than that.

all_pairs_softplus(q, k, r, c) = Σ_ij softplus(q_i·k_j + r_i + c_j)
"""

import torch
from torch import Tensor


def all_pairs_softplus(q: Tensor, k: Tensor, row_bias: Tensor | None, column_bias: Tensor | None) -> Tensor:
    """The sum over all N×M pairs in float64; autograd does the rest."""
    logits = q.double() @ k.double().T
    if row_bias is not None:
        logits = logits + row_bias.double()[:, None]
    if column_bias is not None:
        logits = logits + column_bias.double()[None, :]
    # log(e^s + e^0), without the linear short-cut that torch's softplus takes for large s.
    return torch.logaddexp(logits, torch.zeros_like(logits)).sum()
