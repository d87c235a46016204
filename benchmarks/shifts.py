"""How exact the all-pairs op is where logits are large or small, and what that costs: all logits shifted by b.

    dense    softplus(Q·Kᵀ + b).sum() in float32 and its backward pass, as autograd has it

Errors are relative to the op in float64, in the norm: of the value, and the largest of those of the gradients in q, k
and the biases. The shift comes through the biases, half of it by row and half by column. Times are medians with
gradient and without value, every contender in every round, as ratios to dense in the same run.

    python benchmarks/shifts.py [--device cuda] [--nodes 3000] [--spread 0.5] [--timed 19717]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from vgae.machine import describe_machine
from vgae.ops import all_pairs_softplus
from vgae.ops.dispatch import HAS_NUMBA

SHIFTS = (-30, -25, -20, -16, -12, -9, -6, -4, -2, 0, 2, 4, 8, 12, 20, 30)
Op = Callable[..., Tensor]


def dense(q: Tensor, k: Tensor, row_bias: Tensor, column_bias: Tensor) -> Tensor:
    logits = q @ k.T + row_bias[:, None] + column_bias
    return torch.logaddexp(logits, logits.new_zeros(()))  # torch's softplus is linear from 20 on


def dense_sum(*given: Tensor, value: bool = True) -> Tensor:
    del value
    return dense(*given).sum()


def contenders(device: str) -> dict[str, Op]:
    ops: dict[str, Op] = {"dense": dense_sum, "blocked": partial(all_pairs_softplus, implementation="blocked")}
    if device == "cpu":
        return ops | ({"numba": partial(all_pairs_softplus, implementation="numba")} if HAS_NUMBA else {})
    for precision in ("highest", "high"):
        ops[f"triton {precision}"] = partial(all_pairs_softplus, implementation="triton", precision=precision)
    return ops


def inputs(num_nodes: int, spread: float, shift: float, device: str, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    q, k = (spread * torch.randn(num_nodes, 16, generator=generator) for _ in range(2))
    biases = [torch.full((num_nodes,), shift / 2) for _ in range(2)]
    return [tensor.to(device).requires_grad_() for tensor in (q, k, *biases)]


def results(op: Op, given: list[Tensor]) -> list[Tensor]:
    value = op(*given)
    return [value.detach().double(), *(part.double() for part in torch.autograd.grad(value, given))]


def errors(op: Op, given: list[Tensor]) -> tuple[float, float]:
    """Relative errors of the value and of the worst gradient."""
    exact = [tensor.detach().double().requires_grad_() for tensor in given]
    expected = results(partial(all_pairs_softplus, implementation="reference"), exact)
    found = results(op, given)
    each = [float((a - b).norm() / b.norm()) for a, b in zip(found, expected, strict=True)]
    return each[0], max(each[1:])


def seconds(op: Op, given: list[Tensor]) -> float:
    if given[0].is_cuda:
        torch.cuda.synchronize()
    started = time.perf_counter()
    torch.autograd.grad(op(*given, value=False), given)
    if given[0].is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - started


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors and times of the all-pairs op over shifts of the logits.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--nodes", type=int, default=3000)
    parser.add_argument("--timed", type=int, default=19717)
    parser.add_argument("--spread", type=float, default=0.5)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    ops = contenders(options.device)
    print(describe_machine())
    print(f"relative error of the value / of the gradient, N = {options.nodes:,}, factors of spread {options.spread}")
    print("shift  " + "".join(f"{name:>20}" for name in ops))
    for shift in SHIFTS:
        given = inputs(options.nodes, options.spread, shift, options.device)
        found = [errors(op, given) for op in ops.values()]
        print(
            f"{shift:5}  " + "".join(f"{f'{value:.0e} / {gradient:.0e}':>20}" for value, gradient in found), flush=True
        )
    print(f"milliseconds, times as fast as dense, N = {options.timed:,}")
    for shift in (-20, -9, -4, 0, 9):
        given = inputs(options.timed, options.spread, shift, options.device)
        times: dict[str, list[float]] = {name: [] for name in ops}
        for round_ in range(options.rounds + 1):
            for name, op in ops.items():
                took = seconds(op, given)
                times[name] += [took] if round_ else []
        median = {name: statistics.median(values) for name, values in times.items()}
        cells = (f"{1000 * took:.2f} ({median['dense'] / took:.1f}×)" for took in median.values())
        print(f"{shift:5}  " + "".join(f"{cell:>20}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
