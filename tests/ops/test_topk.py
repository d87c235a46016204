"""The best pairs against brute force: every order, every tie, nothing that is known."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vgae.ops import Excluded, Factors, top_of_all, top_of_each_row

CPU = torch.device("cpu")


def brute_force(logits: torch.Tensor, known: set[tuple[int, int]], *, undirected: bool) -> list[tuple[float, int, int]]:
    """Every admissible pair in the order that is promised."""
    size = len(logits)
    return sorted(
        (-float(logits[i, j]), i, j)
        for i in range(size)
        for j in range(size)
        if i != j and (i < j or not undirected) and (i, j) not in known and (j, i) not in known
    )


@st.composite
def problems(draw: st.DrawFn) -> tuple[torch.Tensor, np.ndarray, int]:
    """Small whole numbers as factors, so that logits are exact and ties are many; some known links; a number."""
    size = draw(st.integers(2, 12))
    values = draw(st.lists(st.integers(-2, 2), min_size=2 * size, max_size=2 * size))
    links = draw(st.sets(st.tuples(st.integers(0, size - 1), st.integers(0, size - 1)), max_size=12))
    known = np.array(sorted({(min(a, b), max(a, b)) for a, b in links if a != b}), dtype=np.int64).reshape(-1, 2)
    return torch.tensor(values, dtype=torch.float32).view(size, 2), known, draw(st.integers(1, 20))


@pytest.mark.parametrize("block", [1, 30, 4_000_000])
@given(problem=problems())
def test_all_pairs_match_brute_force(block: int, problem: tuple[torch.Tensor, np.ndarray, int]) -> None:
    q, links, top = problem
    excluded = Excluded.of(links, len(q), CPU)
    expected = brute_force(q @ q.T, set(map(tuple, links.tolist())), undirected=True)[:top]
    found = top_of_all(Factors(q), top=top, symmetric=True, excluded=excluded, block_size=block)
    assert found.pairs.tolist() == [[i, j] for _, i, j in expected]
    assert found.logits.tolist() == [-value for value, _, _ in expected]


@pytest.mark.parametrize("block", [1, 30, 4_000_000])
@given(problem=problems())
def test_all_directed_pairs_match_brute_force(block: int, problem: tuple[torch.Tensor, np.ndarray, int]) -> None:
    q, links, top = problem
    size = len(q)
    k, r, c = q.flip(0), torch.arange(size) % 3 - 1.0, torch.arange(size) % 2 * 1.0
    excluded = Excluded.of(links, size, CPU)
    expected = brute_force(q @ k.T + r[:, None] + c, set(map(tuple, links.tolist())), undirected=False)[:top]
    found = top_of_all(Factors(q, k, r, c), top=top, symmetric=False, excluded=excluded, block_size=block)
    assert found.pairs.tolist() == [[i, j] for _, i, j in expected]
    assert found.logits.tolist() == [-value for value, _, _ in expected]


@given(problem=problems())
def test_each_row_matches_brute_force(problem: tuple[torch.Tensor, np.ndarray, int]) -> None:
    q, links, top = problem
    size = len(q)
    k, r, c = q.flip(0), torch.arange(size) % 3 - 1.0, torch.arange(size) % 2 * 1.0
    rows = [size - 1, 0]
    everything = brute_force(q @ k.T + r[:, None] + c, set(map(tuple, links.tolist())), undirected=False)
    expected = [[i, j] for row in rows for _, i, j in [pair for pair in everything if pair[1] == row][:top]]
    found = top_of_each_row(Factors(q, k, r, c), top=top, rows=rows, excluded=Excluded.of(links, size, CPU))
    assert found.pairs.tolist() == expected


@pytest.mark.parametrize("block", [1, 30, 4_000_000])
@given(problem=problems())
def test_nodes_with_sides_are_paired_across_only(block: int, problem: tuple[torch.Tensor, np.ndarray, int]) -> None:
    q, links, top = problem
    sides = np.arange(len(q)) % 3 == 1
    excluded = Excluded.of(links, len(q), CPU, sides)
    within = {(i, j) for i in range(len(q)) for j in range(len(q)) if sides[i] == sides[j]}
    everything = brute_force(q @ q.T, set(map(tuple, links.tolist())) | within, undirected=True)
    found = top_of_all(Factors(q), top=top, symmetric=True, excluded=excluded, block_size=block)
    assert found.pairs.tolist() == [[i, j] for _, i, j in everything[:top]]
    row = top_of_each_row(Factors(q), top=top, rows=[1], excluded=excluded)
    of_row = [[1, i + j - 1] for _, i, j in everything if 1 in (i, j)]
    assert sorted(row.pairs.tolist()) == sorted(of_row) if len(of_row) <= top else len(row.pairs) == top
