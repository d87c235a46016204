"""Sums over the ones of a graph, sparse products and whole training steps: fused kernels against PyTorch's own.

On a GPU `triton` is held against `torch`, on a CPU `numba`. Two graphs of the same size are looked at, a block model
and R-MAT, whose hubs have thousands of links: what a graph costs is to depend on its size alone. As in training, sums
on a GPU have to be in a fixed order (torch.use_deterministic_algorithms), for all contenders.

    ones       Σ over the ones of A + I, with its gradient, as a step of training has it; without the value
    zeros      the same for a draw of as many pairs as nodes
    product    Ã·H with H as wide as the hidden layer, and its gradient
    step       a whole step of the sampled objective, without features; one in ten with the value

Rounds alternate between the contenders, each warmed up by one untimed run, and medians are compared.

    python benchmarks/ones.py [--nodes 1000000] [--degree 20] [--dim 16] [--rounds 21]
    python benchmarks/ones.py --tune     # which blocks of Triton's kernels are fastest here
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import count, product

import torch
from torch import Tensor

import vgae
from vgae.graph.synthetic import rmat, stochastic_block_model
from vgae.likelihood.positive_pairs import ones_of
from vgae.machine import describe_machine
from vgae.model.inputs import EncoderInputs
from vgae.objective.sampled import SampledObjective
from vgae.objective.weighting import Weighting
from vgae.ops import Counted, Factors, SparseMatrix, ones, sparse, suits, sum_at_ones, sum_at_pairs
from vgae.train.config import Config
from vgae.train.step import Step

Work = Callable[[], object]
CONFIG = Config()
MOST_LONGER = 1.2  # a step on R-MAT over one on the block model
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FUSED = "triton" if DEVICE == "cuda" else "numba"


@contextmanager
def only(implementation: str) -> Iterator[None]:
    """While this is entered, what is made and run does without fused kernels, if it is `torch`."""
    places = [(module, name) for module in (ones, sparse, suits) for name in ("HAS_TRITON", "HAS_NUMBA")]
    before = [(module, name, getattr(module, name)) for module, name in places if hasattr(module, name)]
    try:
        for module, name, has in before:
            setattr(module, name, has and implementation != "torch")
        yield
    finally:
        for module, name, has in before:
            setattr(module, name, has)


def seconds(work: Work) -> float:
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if DEVICE == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def medians(contenders: dict[str, Work], rounds: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            work()  # untimed: the first run after another contender finds the caches full of that one's data
            times[name].append(seconds(work))
    return {name: statistics.median(values) for name, values in times.items()}


def gradient(total: Tensor, *of: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad(total, of)


def parts_of(graph: vgae.Graph, dim: int) -> dict[str, dict[str, Work]]:
    """What there is to time, by implementation."""
    entries, num_nodes = ones_of(graph, symmetric=True, device=DEVICE), graph.num_nodes
    z = (0.5 * torch.randn(num_nodes, dim, device=DEVICE)).requires_grad_()
    pairs = torch.randint(0, num_nodes, (num_nodes, 2), device=DEVICE)
    pairs = pairs[pairs[:, 0].argsort()]
    line = torch.tensor(0.5, device=DEVICE), torch.tensor(0.1, device=DEVICE)
    hidden = torch.randn(num_nodes, CONFIG.hidden_dim, device=DEVICE, requires_grad=True)
    upstream = torch.randn_like(hidden)
    found: dict[str, dict[str, Work]] = {"ones": {}, "ones, with the value": {}, "zeros": {}, "product": {}}
    propagation = EncoderInputs.from_graph(graph, DEVICE).propagation
    for name in ("torch", FUSED):

        def at_ones(*, value: bool, name: str = name) -> object:
            return gradient(sum_at_ones(Factors(z), entries, Counted(50.0), line, value=value, implementation=name), z)

        def at_zeros(name: str = name) -> object:
            return gradient(sum_at_pairs(Factors(z), pairs, line, implementation=name)[0], z)

        def multiply(matrix: SparseMatrix = with_kernels(propagation, name)) -> object:  # noqa: B008
            return torch.autograd.grad(matrix @ hidden, hidden, upstream)

        found["ones"][name] = lambda work=at_ones: work(value=False)  # type: ignore[misc]
        found["ones, with the value"][name] = lambda work=at_ones: work(value=True)  # type: ignore[misc]
        found["zeros"][name] = at_zeros
        found["product"][name] = multiply
    if DEVICE == "cpu":
        del found["product"]  # PyTorch's own kernel is the only one there
    return found


def with_kernels(matrix: SparseMatrix, name: str) -> SparseMatrix:
    """The matrix, without what Triton's kernels need where PyTorch's are to be timed."""
    if name != "torch":
        return matrix
    other = matrix.transposed().transposed()
    other.rows = other.rows_of_transpose = replace(matrix.rows, chunks=None)
    return other


def step_of(graph: vgae.Graph, implementation: str) -> Work:
    with only(implementation):
        inputs, generator = EncoderInputs.from_graph(graph, DEVICE), torch.Generator(DEVICE).manual_seed(0)
        model = CONFIG.composition.build(inputs.input_dim, torch.Generator().manual_seed(0)).to(DEVICE)
        objective = SampledObjective(graph, model, Weighting.named("paper", graph), DEVICE)
        step, iterations = Step(model, inputs, objective, generator, CONFIG), count(1)

    def work() -> object:
        iteration = next(iterations)
        with only(implementation):
            return step(iteration, value=iteration % 10 == 0)

    for _ in range(11):  # recorded by now, with the value and without
        work()
    return work


def compare(nodes: int, degree: int, dim: int, rounds: int) -> None:
    took: dict[tuple[str, str], float] = {}
    kinds = {
        "blocks": stochastic_block_model(nodes, 8, degree_within=0.8 * degree, degree_between=0.2 * degree),
        "rmat": rmat(nodes, nodes * degree // 2),
    }
    for kind, graph in kinds.items():
        print(f"\n{kind}: {graph}, the largest hub has {int(graph.adjacency.sum(axis=1).max()):,} links")
        works = parts_of(graph, dim)
        works["step"] = {name: step_of(graph, name) for name in ("torch", FUSED)}
        for part, contenders in works.items():
            found = medians(contenders, rounds)
            took[kind, part] = found[FUSED]
            print(
                f"  {part:22} torch {1000 * found['torch']:9.3f} ms   {FUSED} {1000 * found[FUSED]:9.3f} ms   "
                f"{found['torch'] / found[FUSED]:5.2f}× as fast",
                flush=True,
            )
        if DEVICE == "cuda":
            torch.cuda.reset_peak_memory_stats()
            step = step_of(graph, FUSED)
            step()
            print(f"  peak of a step, everything above included: {torch.cuda.max_memory_allocated() / 1e9:.2f} GB")
        del works
    print(f"\nR-MAT over blocks, by {FUSED}:")
    for part in dict.fromkeys(part for _, part in took):
        wanted = f"   (at most {MOST_LONGER}×)" if part == "step" else ""
        print(f"  {part:22} {took['rmat', part] / took['blocks', part]:5.2f}×{wanted}")


def tune(nodes: int, degree: int) -> None:
    """Times of sums and products over the best, by pieces × entries and warps; for vgae.ops.triton_entries.BLOCKS."""
    kernels = import_module("vgae.ops.triton_entries")
    graph = rmat(nodes, nodes * degree // 2)
    entries = ones_of(graph, symmetric=True, device=DEVICE)
    values, pattern = torch.ones(len(entries.columns), device=DEVICE), entries.pattern("triton")
    line, numbers, asked = torch.tensor([0.5, 0.1], device=DEVICE), [50.0, 50.0, 1.0], (False, False, True, False)
    for dim in (16, 32, 64, 128, 256):
        z = 0.5 * torch.randn(nodes, dim, device=DEVICE)
        sums: dict[str, float] = {}
        products: dict[str, float] = {}
        for pieces, taken, warps in product((1, 2, 4, 8, 16, 32), (2, 4, 8, 16), (1, 2, 4, 8)):
            if not 4 <= pieces * taken * dim / (32 * warps) <= 64:
                continue
            blocks, name = kernels.Blocks(pieces, taken, warps), f"{pieces}×{taken} w{warps}"
            works: list[tuple[dict[str, float], Work]] = [
                (sums, partial(kernels.sums_of, (z, z, None, None), pattern, line, numbers, asked, blocks)),
                (products, partial(kernels.multiply, entries.columns, values, entries.chunks, z, nodes, blocks)),
            ]
            for found, work in works:
                work()
                found[name] = min(seconds(work) for _ in range(3))
        for title, found in (("sums", sums), ("products", products)):
            ranked = sorted(found.items(), key=lambda item: item[1])
            print(f"\n{title}, F = {dim}: best {1000 * ranked[0][1]:.3f} ms; time over the best:")
            print("  " + "  ".join(f"{name}: {took / ranked[0][1]:.2f}×" for name, took in ranked[:10]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Sums over the ones by fused kernels and by PyTorch's own.")
    parser.add_argument("--nodes", type=int, default=1_000_000 if DEVICE == "cuda" else 20_000)
    parser.add_argument("--degree", type=int, default=20)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=21)
    parser.add_argument("--tune", action="store_true")
    options = parser.parse_args()
    print(describe_machine())
    if DEVICE == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    if options.tune:
        tune(options.nodes, options.degree)
    else:
        compare(options.nodes, options.degree, options.dim, options.rounds)


if __name__ == "__main__":
    main()
