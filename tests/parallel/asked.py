"""What processes are asked to do by test_functions.py; they load this file, which therefore loads little."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from vgae.ops import Factors
from vgae.parallel.group import SMALL, Group
from vgae.parallel.halo import Halo
from vgae.parallel.matrix import ShardedMatrix
from vgae.parallel.ring import Ring
from vgae.parallel.shards import Shards
from vgae.parallel.totals import total, with_gradient_twice

# Ranges of nodes, by the number of processes: none of the same size, one of a single node.
BOUNDS = {2: (0, 18, 37), 3: (0, 5, 6, 37), 4: (0, 12, 21, 22, 37)}
NUM_NODES, WIDTH = 37, 5


def shards_of(group: Group) -> Shards:
    return Shards(BOUNDS[group.size], group.rank)


def rows_of(shards: Shards, whole: Tensor) -> Tensor:
    return whole[shards.own.start : shards.own.stop].clone().requires_grad_()


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def matrix() -> sp.csr_array:
    """Symmetric, with a hub, and nodes that are linked to nobody."""
    dense = sp.random_array((NUM_NODES, NUM_NODES), density=0.1, rng=np.random.default_rng(0)).toarray()
    dense[20] = 1.0
    dense = np.triu(dense, 1)
    dense[-4:] = dense[:, -4:] = 0
    return sp.csr_array((dense + dense.T + np.eye(NUM_NODES)).astype(np.float32))


def talk(group: Group) -> dict[str, Any]:
    """What each process hears."""
    rank, size = group.rank, group.size
    counts = [2 * other for other in range(size)]
    rows = torch.full((counts[rank], 3), float(rank))
    sent = [other + 1 for other in range(size)]  # to each one more than to the one before
    outgoing = torch.cat([torch.full((number, 2), 10.0 * rank + other) for other, number in enumerate(sent)])
    part = torch.linspace(0, 1, SMALL // 2) * (rank + 1) ** 0.5
    return {
        "sum": group.sum(torch.tensor([[rank, 1.0]])),
        "large": group.sum(part),
        "parts": part,
        "gather": group.gather(rows, counts),
        "collect": group.collect(rows, counts),
        "exchange": group.exchange(outgoing, sent, [rank + 1] * size).wait(),
        "shift": group.shift(rows, counts[rank - 1]).wait(),
        "back": group.shift(rows, counts[(rank + 1) % size], -1).wait(),
        "share": group.share({"a": [0.1, None]} if group.is_first else None),
        "any": (group.any(rank == size - 1), group.any(False)),
    }


def fetch(group: Group, needed: list[list[int]]) -> tuple[Tensor, Tensor | None, Tensor]:
    """Rows of the halo, the gradient of own rows, and what their places say."""
    shards = shards_of(group)
    halo = Halo.of(group, shards, np.array(needed[group.rank], dtype=np.int64))
    rows = rows_of(shards, numbers(NUM_NODES, WIDTH))
    around = halo.extend(rows)
    (around * numbers(len(around), WIDTH, seed=group.rank)).sum().backward()  # type: ignore[no-untyped-call]
    places = halo.places(np.concatenate([np.array(shards.own), halo.needed]))
    return halo.fetch(rows).detach(), rows.grad, torch.from_numpy(places)


def multiply(group: Group) -> tuple[Tensor, Tensor | None]:
    """Ã² H and the gradient of a function of it."""
    shards = shards_of(group)
    sharded = ShardedMatrix(matrix()[shards.own.start : shards.own.stop], shards, group)
    rows = rows_of(shards, numbers(NUM_NODES, WIDTH))
    product = sharded @ torch.tanh(sharded @ rows)
    (product * rows_of(shards, numbers(NUM_NODES, WIDTH, seed=1)).detach()).sum().backward()  # type: ignore[no-untyped-call]
    return product.detach(), rows.grad


def add_up(group: Group) -> tuple[Tensor, Tensor | None]:
    rows = rows_of(shards_of(group), numbers(NUM_NODES, WIDTH))
    loss = total(rows.sum(dim=0), group).square().sum() + total(with_gradient_twice(rows.square().sum()), group)
    loss.backward()  # type: ignore[no-untyped-call]
    return loss.detach(), rows.grad


def factors_of(kind: str, given: list[Tensor]) -> Factors:
    q, k, r, c = given
    return {
        "inner product": Factors(q),
        "one bias": Factors(q, None, r, r),
        "two biases": Factors(q, None, r, c),
        "row bias": Factors(q, None, r),
        "q and k": Factors(q, k),
        "all": Factors(q, k, r, c),
        "column bias": Factors(q, k, None, c),
    }[kind]


def given_factors() -> list[Tensor]:
    return [
        numbers(NUM_NODES, WIDTH),
        numbers(NUM_NODES, WIDTH, seed=1),
        numbers(NUM_NODES, seed=2),
        numbers(NUM_NODES, seed=3),
    ]


def sweep(group: Group, kind: str) -> tuple[Tensor, Tensor, list[Tensor | None], list[Tensor | None]]:
    """The sum over all pairs and its gradients, with its value and without."""
    shards = shards_of(group)
    values, gradients = [], []
    for value in (True, False):
        own = [rows_of(shards, each) for each in given_factors()]
        part = Ring(group, shards).softplus(factors_of(kind, own), value=value)
        (3 * part).backward()  # type: ignore[no-untyped-call]
        values.append(group.sum(part))
        gradients.append([each.grad for each in own])
    with torch.no_grad():
        plain = Ring(group, shards).softplus(factors_of(kind, [rows_of(shards, each) for each in given_factors()]))
    assert torch.equal(group.sum(plain), values[0])
    return values[0], values[1], gradients[0], gradients[1]
