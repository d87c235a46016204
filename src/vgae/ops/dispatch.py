"""The all-pairs op: one signature, registered with PyTorch, and the choice of the implementation that runs it.

The result is a scalar, so its gradients are known up to one factor before anything asks for them: the sweep that
computes the value computes them too, and the backward pass only multiplies. As a registered op it passes through
torch.compile untouched.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.ops import reference
from vgae.ops.factors import Factors
from vgae.ops.sums import Sums

IMPLEMENTATIONS = ("auto", "reference", "blocked", "numba", "triton")
PRECISIONS = ("highest", "high")
WIDEST_FOR_TRITON, LONGEST_FOR_TRITON = 256, 2**23  # its indices have 32 bits
SHORTEST_FOR_NUMBA = 2000  # rows; below, 200 iterations are over before loading the kernels has paid
HAS_TRITON = find_spec("triton") is not None
HAS_NUMBA = find_spec("numba") is not None
OP = "vgae::all_pairs_softplus"
KERNELS = {"blocked": "vgae.ops.blocked", "numba": "vgae.ops.numba_kernels", "triton": "vgae.ops.triton_sweep"}


@cache
def kernels_of(name: str) -> Any:
    """The module of kernels for the CPU of that name, which takes a while to load."""
    return import_module(f"vgae.ops.{name}_kernels")


def all_pairs_softplus(
    q: Tensor,
    k: Tensor | None = None,
    row_bias: Tensor | None = None,
    column_bias: Tensor | None = None,
    *,
    rows: range | None = None,
    value: bool = True,
    implementation: str = "auto",
    precision: str = "highest",
) -> Tensor:
    """Σ_ij softplus(q_i·k_j + r_i + c_j) over all pairs of rows of q (N×F) and k (M×F), differentiable in all four.

    `k=None` means k = q. If moreover the two biases are one and the same tensor, or both absent, the logits are
    symmetric and only half of them are computed. `rows` restricts i to a range of rows of q. With `value=False` the
    result is NaN and only its gradients are computed, which is faster: for training steps that log nothing.

    `implementation` is `reference` (dense, float64), `blocked` (tiles, on any device), `numba` (fused, on the CPU,
    float32 and bfloat16), `triton` (fused, on a GPU, the same with up to 256 columns), or `auto`: the fastest that can.
    With `precision="high"` the Triton kernels compute with 11-bit products and tanh, as tf32 does, several times as
    fast; elsewhere it changes nothing.
    """
    check_factors(q, k, row_bias, column_bias, rows)
    for name, choice, known in (
        ("implementation", implementation, IMPLEMENTATIONS),
        ("precision", precision, PRECISIONS),
    ):
        if choice not in known:
            raise InputError(f"{name}: {choice!r} is not one of {', '.join(known)}.")
    symmetric = k is None and row_bias is column_bias and rows is None
    if not symmetric:
        k = q if k is None else k
    if rows is not None:
        q = q[rows.start : rows.stop]
        row_bias = None if row_bias is None else row_bias[rows.start : rows.stop]
    if implementation == "reference":
        return reference.all_pairs_softplus(q, q if k is None else k, row_bias, column_bias)
    if implementation == "triton":
        _require_triton(q)
    elif implementation == "numba":
        _require_numba(q)
    elif implementation == "auto":
        implementation = fastest(q)
    gradient = torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in (q, k, row_bias, column_bias)
    )
    result: Tensor = torch.ops.vgae.all_pairs_softplus(
        q, k, row_bias, None if symmetric else column_bias, value, gradient, implementation, precision
    )[0]
    return result


def fastest(q: Tensor, num_rows: int | None = None) -> str:
    """The fastest implementation that can take such factors; of as many rows, where others have the rest of them."""
    return "triton" if _triton_suits(q) else "numba" if _numba_suits(q, num_rows) else "blocked"


def all_pairs_gradients(
    factors: Factors, *, value: bool, gradient: bool, implementation: str, precision: str
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The sum over all pairs and its gradients in q, k, row_bias and column_bias, for whoever adds up several of them.

    Empty where there is none: k=None means that logits are symmetric, with one bias for both ends.
    """
    column_bias = None if factors.k is None else factors.column_bias
    given = factors.q, factors.k, factors.row_bias, column_bias
    found: tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
    found = torch.ops.vgae.all_pairs_softplus(*given, value, gradient, implementation, precision)
    return found


# By `define` and `impl`, because what `custom_op` wraps around an implementation imports PyTorch's compiler.
torch.library.define(
    OP,
    "(Tensor q, Tensor? k, Tensor? row_bias, Tensor? column_bias, bool value, bool gradient, str implementation, "
    "str precision) -> (Tensor, Tensor, Tensor, Tensor, Tensor)",
)


@torch.library.impl(OP, "default")
def _all_pairs_softplus(
    q: Tensor,
    k: Tensor | None,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    value: bool,
    gradient: bool,
    implementation: str,
    precision: str,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """The sum and its gradients in q, k, row_bias and column_bias, empty where there is none; k=None means symmetric.

    In the symmetric case `row_bias` stands for both biases.
    """
    symmetric, dtype = k is None, q.dtype
    left, right = (q, q) if k is None else (q, k)
    biases = (row_bias, row_bias if symmetric else column_bias)
    if dtype == torch.bfloat16:  # the sums are far wider than their terms
        left, right = left.float(), right.float()
        biases = (_float(biases[0]), _float(biases[1]))
    sweep: Callable[..., Sums] = import_module(KERNELS[implementation]).sweep
    if implementation == "triton":
        sweep = partial(sweep, precision=precision)
    sums = sweep(left, right, *biases, symmetric=symmetric, value=value, gradient=gradient)
    nothing = q.new_empty(0, dtype=dtype)
    if not gradient:
        return sums.total.to(dtype), nothing, nothing.clone(), nothing.clone(), nothing.clone()
    twice = 2 if symmetric else 1  # as rows and as columns
    return (
        sums.total.to(dtype),
        (twice * sums.by_row).to(dtype),
        nothing if symmetric else sums.by_column.to(dtype, copy=True),
        nothing.clone() if row_bias is None else (twice * sums.row_sums).to(dtype),
        nothing.clone() if column_bias is None else sums.column_sums.to(dtype, copy=True),
    )


def _shapes(
    q: Tensor,
    k: Tensor | None,
    row_bias: Tensor | None,
    column_bias: Tensor | None,
    value: bool,  # noqa: ARG001 - the registered signature
    gradient: bool,
    implementation: str,  # noqa: ARG001
    precision: str,  # noqa: ARG001
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    gradients = [
        torch.empty_like(tensor, memory_format=torch.contiguous_format)
        if gradient and tensor is not None
        else q.new_empty(0)
        for tensor in (q, k, row_bias, column_bias)
    ]
    return q.new_empty(()), gradients[0], gradients[1], gradients[2], gradients[3]


def _keep_gradients(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
    ctx.save_for_backward(*output[1:])
    ctx.given = [tensor is not None for tensor in inputs[:4]]
    ctx.mark_non_differentiable(*output[1:])  # there is no second derivative


def _backward(ctx: Any, upstream: Tensor, *_: Tensor | None) -> tuple[Tensor | None, ...]:
    gradients = [
        upstream * gradient if given else None for given, gradient in zip(ctx.given, ctx.saved_tensors, strict=True)
    ]
    return (*gradients, None, None, None, None)


torch.library.register_fake(OP, _shapes)
torch.library.register_autograd(OP, _backward, setup_context=_keep_gradients)


def _float(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.float()


def _triton_suits(q: Tensor) -> bool:
    suited = q.dtype in (torch.float32, torch.bfloat16) and q.shape[1] <= WIDEST_FOR_TRITON
    return HAS_TRITON and suited and q.device.type == "cuda" and len(q) <= LONGEST_FOR_TRITON


def _numba_suits(q: Tensor, num_rows: int | None = None) -> bool:
    suited = q.dtype in (torch.float32, torch.bfloat16) and q.device.type == "cpu"
    return HAS_NUMBA and suited and (num_rows or len(q)) >= SHORTEST_FOR_NUMBA


def _require_numba(q: Tensor) -> None:
    if not HAS_NUMBA:
        raise InputError("implementation: numba is not installed; use blocked, or pip install 'vgae[fast]'.")
    if q.dtype not in (torch.float32, torch.bfloat16) or q.device.type != "cpu":
        raise InputError(
            f"implementation: numba takes float32 or bfloat16 on the CPU, not {q.dtype} on {q.device}; use blocked."
        )


def _require_triton(q: Tensor) -> None:
    if not HAS_TRITON:
        raise InputError("implementation: triton is not installed; use blocked, or pip install triton.")
    kernels = import_module("vgae.ops.triton_sweep")
    if q.device.type != "cuda" and not kernels.INTERPRETED:
        raise InputError(f"implementation: triton needs a GPU, and q is on the {q.device.type}; use blocked.")
    fits = q.shape[1] <= WIDEST_FOR_TRITON and len(q) <= LONGEST_FOR_TRITON
    if q.dtype not in (torch.float32, torch.bfloat16) or not fits:
        raise InputError(
            f"implementation: triton takes float32 or bfloat16, up to {WIDEST_FOR_TRITON} columns and "
            f"{LONGEST_FOR_TRITON:,} rows, not {q.dtype} of shape {tuple(q.shape)}; use blocked."
        )


def check_factors(
    q: Tensor, k: Tensor | None, row_bias: Tensor | None, column_bias: Tensor | None, rows: range | None
) -> None:
    """Raise unless the factors and biases of an op fit together."""
    other = q if k is None else k
    if q.ndim != 2 or other.ndim != 2 or q.shape[1] != other.shape[1]:
        raise InputError(f"q and k: expected N×F and M×F, got {tuple(q.shape)} and {tuple(other.shape)}.")
    for name, bias, factor in (("row_bias", row_bias, q), ("column_bias", column_bias, other)):
        if bias is not None and bias.shape != factor.shape[:1]:
            raise InputError(f"{name}: expected {len(factor)} entries, got the shape {tuple(bias.shape)}.")
    given = [tensor for tensor in (q, k, row_bias, column_bias) if tensor is not None]
    known = (torch.float32, torch.float64, torch.bfloat16)
    if len({(tensor.dtype, tensor.device) for tensor in given}) > 1 or q.dtype not in known:
        raise InputError("q, k and the biases must all be float32, all float64 or all bfloat16, on one device.")
    if rows is not None and not (rows.step == 1 and 0 <= rows.start < rows.stop <= len(q)):
        raise InputError(f"rows: {rows} is not a range of the {len(q)} rows of q.")
