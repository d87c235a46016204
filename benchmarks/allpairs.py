"""The all-pairs op alone, as ratios against dense PyTorch in the same run: time with gradient, with value, memory.

    dense    softplus(Z·Zᵀ).sum() and its backward pass, as autograd has it

Rounds alternate between the contenders, each warmed up by one untimed run, and medians are compared. As in the command
`vgae`, threads that wait soon go to sleep (GOMP_SPINCOUNT), for all contenders.

    python benchmarks/allpairs.py [--device cuda] [--nodes 2708 19717 …] [--dim 16]
    python benchmarks/allpairs.py --tune     # which tiles are fastest here
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import itertools
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor

from vgae.machine import describe_machine
from vgae.ops import all_pairs_softplus, blocked

DENSE_BYTES = 12  # per pair: logits, softplus, gradient
TARGETS = {"cpu": {2708: 8.0, 19717: 20.0}}  # least speed-up of the gradient over dense


def op(z: Tensor, *, value: bool, precision: str = "highest") -> None:
    z = z.detach().requires_grad_()
    all_pairs_softplus(z, value=value, precision=precision).backward()  # type: ignore[no-untyped-call]


def blocked_op(z: Tensor) -> None:
    """The tiles of matrix products that a CPU uses where numba is not installed."""
    all_pairs_softplus(z.detach().requires_grad_(), value=False, implementation="blocked").backward()  # type: ignore[no-untyped-call]


def dense(z: Tensor) -> None:
    z.grad = None
    torch.nn.functional.softplus(z @ z.T).sum().backward()  # type: ignore[no-untyped-call]


def seconds(work: Callable[[], None], device: str) -> float:
    if device == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def extra_megabytes(work: Callable[[], None], device: str) -> float:
    """Peak memory beyond what there was before."""
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
        before = float(torch.cuda.memory_allocated())
        work()
        return (torch.cuda.max_memory_allocated() - before) / 1e6
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = _resident("VmRSS")
    work()
    return (_resident("VmHWM") - before) / 1e6


def _resident(kind: str) -> float:
    """Bytes of memory that this process holds (VmRSS), or held at its peak (VmHWM); Linux only."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(kind))
    return 1024.0 * int(line.split()[1])


def compare(num_nodes: int, dim: int, device: str, rounds: int) -> None:
    z = (0.5 * torch.randn(num_nodes, dim, device=device)).requires_grad_()
    precisions = ("highest", "high") if device == "cuda" else ("highest",)
    contenders: dict[str, Callable[[], None]] = {}
    for precision in precisions:
        contenders[f"gradient, {precision}"] = lambda p=precision: op(z, value=False, precision=p)  # type: ignore[misc]
        contenders[f"gradient and value, {precision}"] = lambda p=precision: op(z, value=True, precision=p)  # type: ignore[misc]
    op(torch.randn(2000, dim, device=device).requires_grad_(), value=True)  # what the libraries allocate once
    memory = {name: extra_megabytes(work, device) for name, work in contenders.items()}
    if DENSE_BYTES * num_nodes**2 < (100e9 if device == "cuda" else 12e9):
        contenders["dense"] = lambda: dense(z)
        memory["dense"] = extra_megabytes(contenders["dense"], device)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            work()  # untimed: the first run after another contender finds the caches full of that one's data
            times[name].append(seconds(work, device))
    median = {name: statistics.median(values) for name, values in times.items()}
    print(f"\nN = {num_nodes:,}, F = {dim}: {num_nodes**2 / 2:.3g} pairs of a symmetric matrix")
    for name, took in median.items():
        ratio = f"   {median['dense'] / took:6.1f}× as fast as dense" if "dense" in median and name != "dense" else ""
        target = TARGETS.get(device, {}).get(num_nodes)
        wanted = f" (target ≥ {target:g}×)" if target and name.startswith("gradient, ") else ""
        rate = num_nodes**2 / took / 1e9
        print(f"  {name:28} {1000 * took:10.2f} ms {rate:8.1f} Gpair/s {memory[name]:9.1f} MB{ratio}{wanted}")
    for precision in precisions:
        added = median[f"gradient and value, {precision}"] / median[f"gradient, {precision}"] - 1
        print(f"  the value adds {100 * added:.0f}% to the op ({precision})")


def tune_cpu(dim: int) -> None:
    for num_nodes, rounds in ((2708, 30), (19717, 5)):
        z = (0.5 * torch.randn(num_nodes, dim)).requires_grad_()
        sides = (256, 400, 512, 600, 720, 800, 1000, 1024, 1200, 1500)
        times: dict[int, list[float]] = {side: [] for side in sides}
        for _, side in itertools.product(range(rounds), sides):
            blocked.TILE_SIDE["cpu"] = side
            times[side].append(seconds(lambda z=z: blocked_op(z), "cpu"))  # type: ignore[misc]
        report({f"{side}": statistics.median(values) for side, values in times.items()}, f"N = {num_nodes}")


def tune_cuda(num_nodes: int) -> None:
    """Without biases and with such that most σ are small, so that both forms of the weights are looked at."""
    kernels = import_module("vgae.ops.triton_sweep")
    shapes = [
        kernels.Blocks(rows, columns, warps, stages)
        for rows, columns, warps, stages in itertools.product((32, 64, 128, 256), (32, 64), (4, 8), (2, 3))
        if rows >= columns
    ]
    for precision, dim, biased in itertools.product(("high", "highest"), (16, 32, 64, 128, 256), (False, True)):
        size = num_nodes // (1 if precision == "high" else 4)
        z = 0.5 * torch.randn(size, dim, device="cuda") / (dim / 16) ** 0.5
        bias = torch.full((size,), -5.0, device="cuda") if biased else None
        found: dict[str, float] = {}
        for shape in shapes:
            if (shape.rows > 128 or shape.num_stages > 2) if precision == "highest" else shape.rows < 64:
                continue

            def work(
                z: Tensor = z, bias: Tensor | None = bias, precision: str = precision, shape: object = shape
            ) -> None:
                options = {"symmetric": True, "value": False, "gradient": True, "precision": precision}
                kernels.sweep(z, z, bias, bias, **options, blocks=shape)

            try:
                work()
                found[f"{shape.rows}×{shape.columns} w{shape.num_warps} s{shape.num_stages}"] = min(
                    seconds(work, "cuda") for _ in range(2)
                )
            except Exception as error:  # noqa: BLE001 - a shape that does not fit the chip is just not a candidate
                print(f"  {shape}: {str(error)[:80]}")
        report(found, f"{precision}, F = {dim}{', biases' * biased}, N = {size:,}")


def report(found: dict[str, float], title: str) -> None:
    ranked = sorted(found.items(), key=lambda item: item[1])[:10]
    best = ranked[0][1]
    print(f"\n{title}: best {1000 * best:.2f} ms; time over the best, by tile:")
    print("  " + "  ".join(f"{name}: {took / best:.2f}×" for name, took in ranked), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="The all-pairs op against dense PyTorch.")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--nodes", nargs="*", type=int)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--tune", action="store_true")
    options = parser.parse_args()
    print(describe_machine())
    if options.tune:
        if options.device == "cpu":
            tune_cpu(options.dim)
        else:
            tune_cuda(200_000)
        return
    loading = extra_megabytes(lambda: op(torch.randn(2000, options.dim, device=options.device), value=True), "cpu")
    print(f"loading the kernels takes {loading:.0f} MB of the process's memory, once")
    usual = (2708, 19717, 100_000, 1_000_000) if options.device == "cuda" else (2708, 19717)
    for num_nodes in options.nodes or usual:
        rounds = 3 if num_nodes > 500_000 else 7 if num_nodes > 5_000 else 51
        compare(num_nodes, options.dim, options.device, rounds)


if __name__ == "__main__":
    main()
