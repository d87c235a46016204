"""Which implementation of an op runs: the best one that can, or exactly the one that was asked for."""

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.ops import blocked, reference

IMPLEMENTATIONS = ("auto", "reference", "blocked")


def all_pairs_softplus(
    q: Tensor,
    k: Tensor | None = None,
    row_bias: Tensor | None = None,
    column_bias: Tensor | None = None,
    *,
    rows: range | None = None,
    value: bool = True,
    implementation: str = "auto",
) -> Tensor:
    """Σ_ij softplus(q_i·k_j + r_i + c_j) over all pairs of rows of q (N×F) and k (M×F), differentiable in all four.

    `k=None` means k = q. If moreover the two biases are one and the same tensor, or both absent, the logits are
    symmetric and only half of them are computed. `rows` restricts i to a range of rows of q. With `value=False` the
    result is NaN and only its gradients are computed, which is faster: for training steps that log nothing.
    """
    _check(q, k, row_bias, column_bias, rows)
    if implementation not in IMPLEMENTATIONS:
        known = ", ".join(IMPLEMENTATIONS)
        raise InputError(f"implementation: {implementation!r} is not one of {known}.")
    if rows is not None:
        k = q if k is None else k
        q = q[rows.start : rows.stop]
        row_bias = None if row_bias is None else row_bias[rows.start : rows.stop]
    if implementation == "reference":
        return reference.all_pairs_softplus(q, q if k is None else k, row_bias, column_bias)
    return blocked.all_pairs_softplus(q, k, row_bias, column_bias, value=value)


def _check(
    q: Tensor, k: Tensor | None, row_bias: Tensor | None, column_bias: Tensor | None, rows: range | None
) -> None:
    other = q if k is None else k
    if q.ndim != 2 or other.ndim != 2 or q.shape[1] != other.shape[1]:
        raise InputError(f"q and k: expected N×F and M×F, got {tuple(q.shape)} and {tuple(other.shape)}.")
    for name, bias, factor in (("row_bias", row_bias, q), ("column_bias", column_bias, other)):
        if bias is not None and bias.shape != factor.shape[:1]:
            raise InputError(f"{name}: expected {len(factor)} entries, got the shape {tuple(bias.shape)}.")
    given = [tensor for tensor in (q, k, row_bias, column_bias) if tensor is not None]
    if len({(tensor.dtype, tensor.device) for tensor in given}) > 1 or q.dtype not in (
        torch.float32,
        torch.float64,
    ):
        raise InputError("q, k and the biases must all be float32 or all float64, on one device.")
    if rows is not None and not (rows.step == 1 and 0 <= rows.start < rows.stop <= len(q)):
        raise InputError(f"rows: {rows} is not a range of the {len(q)} rows of q.")
