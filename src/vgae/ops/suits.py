"""Which implementations of sums over entries there are, and what they can take."""

from importlib import import_module

import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.ops.dispatch import HAS_NUMBA, HAS_TRITON, WIDEST_FOR_TRITON

IMPLEMENTATIONS = ("auto", "reference", "torch", "numba", "triton")
KERNELS = {"numba": "vgae.ops.entry_kernels", "triton": "vgae.ops.triton_entries"}


def triton_suits(q: Tensor, *, interpreted: bool = False) -> bool:
    """Whether kernels for a GPU can be used, which on the CPU are interpreted, for tests."""
    suited = q.dtype in (torch.float32, torch.bfloat16) and q.shape[1] <= WIDEST_FOR_TRITON
    return HAS_TRITON and suited and (interpreted or q.device.type == "cuda")


def check_implementation(implementation: str, q: Tensor) -> None:
    """Raise unless it is one that can take these factors."""
    if implementation not in IMPLEMENTATIONS:
        raise InputError(f"implementation: {implementation!r} is not one of {', '.join(IMPLEMENTATIONS)}.")
    if implementation == "numba":
        if not HAS_NUMBA:
            raise InputError("implementation: numba is not installed; use torch, or pip install 'vgae[fast]'.")
        if q.dtype not in (torch.float32, torch.bfloat16) or q.device.type != "cpu":
            raise InputError(
                f"implementation: numba takes float32 or bfloat16 on the CPU, not {q.dtype} on {q.device}; use torch."
            )
    if implementation == "triton":
        if not HAS_TRITON:
            raise InputError("implementation: triton is not installed; use torch, or pip install triton.")
        if not triton_suits(q, interpreted=import_module(KERNELS["triton"]).INTERPRETED):
            raise InputError(
                f"implementation: triton takes float32 or bfloat16 on a GPU, up to {WIDEST_FOR_TRITON} columns, not "
                f"{q.dtype} of shape {tuple(q.shape)} on {q.device}; use torch."
            )
