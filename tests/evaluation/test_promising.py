"""The best of all pairs by bounds: the same pairs and the same bits as by a look at all of them, for fewer looks."""

import numpy as np
import pytest
import torch

from vgae.evaluation import promising
from vgae.evaluation.promising import best_of_all, promising_blocks
from vgae.ops import Excluded, Factors, blocks_of, top_of_all

SIZE = 400


@pytest.fixture(autouse=True)
def small_graphs_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promising, "LEAST_NODES", 0)
    monkeypatch.setattr(promising, "NUM_FIRST", 8)


def factors(kind: str, seed: int) -> Factors:
    """Factors with a few long ones among many short ones, or all alike; some equal, so that logits tie."""
    generator = torch.Generator().manual_seed(seed)
    q, k = torch.randn(2, SIZE, 5, generator=generator)
    if kind != "alike":
        q, k = (each * torch.rand(SIZE, 1, generator=generator).pow(-0.7) for each in (q, k))
    if kind == "ties":
        q = q.round()
    row, column = torch.randn(2, SIZE, generator=generator) * 3
    if kind == "ordered":
        return Factors(q, k, row, column)
    return Factors(q, None, row, row) if kind == "biases" else Factors(q)


def known(seed: int, sides: np.ndarray | None = None, *, ordered: bool = False) -> Excluded:
    pairs = np.random.default_rng(seed).integers(0, SIZE, (2000, 2))
    return Excluded.of(pairs, SIZE, torch.device("cpu"), sides, ordered=ordered)


@pytest.mark.parametrize("kind", ["hubs", "alike", "ties", "biases", "ordered"])
@pytest.mark.parametrize("top", [1, 30, 3000, 10**6])
def test_the_best_are_those_of_a_look_at_all(kind: str, top: int) -> None:
    for seed in range(1 if top > SIZE**2 else 3):
        source, excluded = factors(kind, seed), known(seed, ordered=kind == "ordered")
        expected = top_of_all(source, top=top, symmetric=kind != "ordered", excluded=excluded)
        found = best_of_all(source, top=top, symmetric=kind != "ordered", excluded=excluded)
        assert torch.equal(found.pairs, expected.pairs)
        assert torch.equal(found.logits, expected.logits)


def test_two_sides_are_left_out_within() -> None:
    sides = (np.arange(SIZE) % 3 == 0).astype(np.int8)
    source, excluded = factors("hubs", 0), known(0, sides)
    expected = top_of_all(source, top=50, symmetric=True, excluded=excluded)
    assert torch.equal(best_of_all(source, top=50, symmetric=True, excluded=excluded).pairs, expected.pairs)


@pytest.mark.parametrize("symmetric", [True, False])
def test_every_block_that_is_left_out_is_worse_and_those_looked_at_are_the_same(symmetric: bool) -> None:
    source, excluded = factors("hubs", 1), known(1)
    if not symmetric:
        source = factors("ordered", 1)
    every = list(blocks_of(source, excluded, symmetric=symmetric, block_size=2000))
    looked_at = list(promising_blocks(source, excluded, symmetric=symmetric, top=10, block_size=2000))
    worst = top_of_all(source, top=10, symmetric=symmetric, excluded=excluded).logits[-1]
    places = [int(block.rows[0]) for block in looked_at]
    assert len(looked_at) < 0.7 * len(every)
    for block in every:
        if int(block.rows[0]) in places:
            assert torch.equal(looked_at[places.index(int(block.rows[0]))].logits, block.logits)
        else:
            assert (block.logits < worst).all()


def test_undefined_logits_hide_nothing() -> None:
    source = factors("hubs", 2)
    source.q[7] = torch.nan
    found = list(promising_blocks(source, known(2), symmetric=True, top=10, block_size=2000))
    assert any(7 in block.rows for block in found)
