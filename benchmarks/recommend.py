"""The best new links out of all pairs, exactly, against the dense matrix and against one node at a time.

    vgae       blocks of rows, as `recommend` has them: the best of all pairs, and the best for every node
    dense      Z·Zᵀ as a whole, known links masked, torch.topk
    NumPy      a loop over nodes: Z @ z_i, known links masked, argpartition (on some nodes, taken to all)

Candidates are the pairs that are looked at, N(N-1)/2 for the best of all and N(N-1) for the best of every node. Rounds
alternate between the contenders and medians are compared; that all find the same logits is checked.

    python benchmarks/recommend.py [--nodes 20000] [--dim 16] [--top 10]
"""

import os

os.environ.setdefault("GOMP_SPINCOUNT", "2000")  # read when torch is first imported

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from vgae.graph.graph import Graph
from vgae.graph.synthetic import stochastic_block_model
from vgae.machine import describe_machine
from vgae.ops import Excluded, Factors, top_of_all, top_of_each_row

TARGET = 1e6  # candidates per second on two cores
ROUNDS = 3


def dense_logits(z: Tensor, links: Tensor) -> Tensor:
    """All logits; minus infinity for known links and for a node with itself."""
    logits = z @ z.T
    logits[links[:, 0], links[:, 1]] = -torch.inf
    logits[links[:, 1], links[:, 0]] = -torch.inf
    return logits.fill_diagonal_(-torch.inf)


def dense_of_all(z: Tensor, links: Tensor, top: int) -> Tensor:
    logits = dense_logits(z, links)
    logits.masked_fill_(torch.ones_like(logits, dtype=torch.bool).tril_(), -torch.inf)
    return logits.view(-1).topk(top).values


def numpy_of_each(z: np.ndarray, graph: Graph, top: int, nodes: range) -> np.ndarray:
    found = np.empty((len(nodes), top), dtype=np.float32)
    starts, columns = graph.adjacency.indptr, graph.adjacency.indices
    for place, node in enumerate(nodes):
        logits = z @ z[node]
        logits[node] = logits[columns[starts[node] : starts[node + 1]]] = -np.inf
        best = np.argpartition(logits, -top)[-top:]
        found[place] = np.sort(logits[best])[::-1]
    return found


def compare(title: str, contenders: dict[str, tuple[int, Callable[[], object]]]) -> None:
    """Each contender has its number of candidates; the first is ours, and the others are compared with it."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(ROUNDS):
        for name, (_, work) in contenders.items():
            started = time.perf_counter()
            work()
            times[name].append(time.perf_counter() - started)
    rates = {name: count / statistics.median(times[name]) for name, (count, _) in contenders.items()}
    ours = next(iter(rates))
    print(f"\n{title}")
    for name, rate in rates.items():
        took = contenders[ours][0] / rate
        ratio = f"(target ≥ {TARGET / 1e6:g})" if name == ours else f"vgae is {rates[ours] / rate:.1f}× as fast"
        print(f"  {name:22} {took:8.2f} s {rate / 1e6:9.1f} million candidates/s   {ratio}")


def main() -> None:
    parser = argparse.ArgumentParser(description="The best new links, exactly.")
    parser.add_argument("--nodes", type=int, default=20_000)
    parser.add_argument("--dim", type=int, default=16)
    parser.add_argument("--top", type=int, default=10)
    options = parser.parse_args()
    size, top = options.nodes, options.top
    print(f"{describe_machine()} · {torch.get_num_threads()} threads")
    graph = stochastic_block_model(size, 20, seed=0)
    z = 0.5 * torch.randn(size, options.dim, generator=torch.Generator().manual_seed(0))
    excluded, links = Excluded.of(graph.edges, size, z.device), torch.tensor(graph.edges)
    some = range(min(300, size))

    def ours_of_all() -> Tensor:
        return top_of_all(Factors(z), top=top, symmetric=True, excluded=excluded).logits

    def ours_of_each() -> Tensor:
        return top_of_each_row(Factors(z), top=top, rows=range(size), excluded=excluded).logits.view(size, top)

    torch.testing.assert_close(ours_of_all(), dense_of_all(z, links, top))
    each = ours_of_each()
    torch.testing.assert_close(each, dense_logits(z, links).topk(top, dim=1).values)
    np.testing.assert_allclose(each[: len(some)], numpy_of_each(z.numpy(), graph, top, some), rtol=1e-5)
    print(f"{graph}, {options.dim} dimensions; all find the same logits")
    pairs = size * (size - 1) // 2
    compare(
        f"the best {top} of all {pairs:,} pairs",
        {
            "vgae": (pairs, ours_of_all),
            "dense": (pairs, lambda: dense_of_all(z, links, top)),
        },
    )
    compare(
        f"the best {top} for every node, {2 * pairs:,} candidates",
        {
            "vgae": (2 * pairs, ours_of_each),
            "dense": (2 * pairs, lambda: dense_logits(z, links).topk(top, dim=1)),
            "NumPy, node by node": (
                len(some) * (size - 1),
                lambda: numpy_of_each(z.numpy(), graph, top, some),
            ),
        },
    )


if __name__ == "__main__":
    main()
