"""The top of the list and the ranks by node, against counting by hand over every pair."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from vgae.evaluation.all_pairs import Candidates, census, rank_all_pairs, ranks_by_node, sweep, top_metrics
from vgae.graph.pairs import Pairs
from vgae.ops import Factors, LogitRows


@dataclass(frozen=True, eq=False)
class Scores:
    """A scorer that is its factors."""

    q: torch.Tensor
    k: torch.Tensor | None = None

    @property
    def symmetric(self) -> bool:
        return self.k is None

    def rows(self) -> LogitRows:
        return Factors(self.q, self.k)

    def logits(self, pairs: Pairs) -> np.ndarray:
        return Factors(self.q, self.k).logits(torch.tensor(pairs)).numpy()

    @property
    def table(self) -> np.ndarray:
        return (self.q @ (self.q if self.k is None else self.k).T).numpy()


@dataclass(frozen=True, eq=False)
class World:
    """Small whole numbers as factors, so that ties are many; known and held-out links, sides or none."""

    scores: Scores
    known: np.ndarray
    links: np.ndarray
    sides: np.ndarray | None

    @property
    def candidates(self) -> Candidates:
        return Candidates(len(self.scores.q), self.known, self.sides)

    def is_candidate(self, i: int, j: int) -> bool:
        known = {tuple(sorted(pair)) for pair in self.known.tolist()}
        within = self.sides is not None and self.sides[i] == self.sides[j]
        return i != j and (min(i, j), max(i, j)) not in known and not within


@st.composite
def worlds(draw: st.DrawFn, symmetric: bool = True) -> World:
    size = draw(st.integers(4, 11))
    values = draw(st.lists(st.integers(-1, 2), min_size=2 * size, max_size=2 * size))
    q = torch.tensor(values, dtype=torch.float32).view(size, 2)
    sides = np.arange(size) % 2 if draw(st.booleans()) else None
    pairs = [(i, j) for i in range(size) for j in range(i + 1, size) if sides is None or sides[i] != sides[j]]
    order = draw(st.permutations(pairs))
    num_links, num_known = draw(st.integers(1, 4)), draw(st.integers(0, 6))
    links, known = order[:num_links], order[num_links : num_links + num_known]
    as_arrays = (np.array(each, dtype=np.int64).reshape(-1, 2) for each in (known, links))
    return World(Scores(q, None if symmetric else q.flip(0)), next(as_arrays), next(as_arrays), sides)


def expected_precision(scores: list[float], labels: list[bool], k: int) -> float:
    """The mean over all orders of equal scores: each link's chance to be among the first k, added up."""
    total = 0.0
    for score, label in zip(scores, labels, strict=True):
        above, equal = sum(other > score for other in scores), sum(other == score for other in scores)
        total += label * min(1.0, max(0.0, (k - above) / equal))
    return total / k


@pytest.mark.parametrize("symmetric", [True, False])
@given(data=st.data(), top=st.integers(1, 60))
def test_precision_and_recall_are_those_of_every_pair_in_order(symmetric: bool, data: st.DataObject, top: int) -> None:
    world = data.draw(worlds(symmetric))
    table, size = world.scores.table, len(world.scores.q)
    pairs = [(i, j) for i in range(size) for j in range(size) if world.is_candidate(i, j) and (i < j or not symmetric)]
    links = {tuple(pair) for pair in world.links.tolist()}
    scores, labels = [float(table[pair]) for pair in pairs], [pair in links for pair in pairs]
    found = sweep(world.scores, world.candidates, world.links, top)
    metrics = top_metrics(found.best, found.marked, range(1, top + 1))
    assert census(world.scores, world.candidates).total == len(pairs) / (1 if symmetric else 2)  # a pair counts once
    assert len(metrics) == 2 * min(top, len(pairs))
    for k in range(1, min(top, len(pairs)) + 1):
        precision = expected_precision(scores, labels, k)
        assert metrics[f"precision@{k}"] == pytest.approx(precision)
        assert metrics[f"recall@{k}"] == pytest.approx(precision * k / len(links))


@given(world=worlds())
def test_ranks_by_node_are_filtered_and_count_ties_by_half(world: World) -> None:
    table = world.scores.table
    held_out = {tuple(pair) for pair in world.links.tolist()} | {tuple(pair) for pair in world.links[:, ::-1].tolist()}
    expected = []
    for i, j in [*world.links.tolist(), *world.links[:, ::-1].tolist()]:
        others = [k for k in range(len(table)) if world.is_candidate(i, k) and (i, k) not in held_out]
        above, equal = sum(table[i, k] > table[i, j] for k in others), sum(table[i, k] == table[i, j] for k in others)
        expected.append(1 + above + equal / 2)
    np.testing.assert_array_equal(ranks_by_node(world.scores, world.candidates, world.links), expected)


def test_many_blocks_of_rows_give_what_one_sort_gives() -> None:
    size = 2500  # 3 million pairs, several blocks
    q = torch.randn(size, 4, generator=torch.Generator().manual_seed(1))
    generator = np.random.default_rng(0)
    pairs = np.stack(np.triu_indices(size, 1), axis=1)
    chosen = generator.choice(len(pairs), 6000, replace=False)
    known, links = pairs[chosen[:5000]], pairs[chosen[5000:]]
    scores = Scores(q)
    found = rank_all_pairs(scores, links[:, ::-1], Candidates(size, known[:, ::-1]))  # in either direction
    outside = np.delete(np.arange(len(pairs)), chosen[:5000])
    logits = (q @ q.T).numpy()[pairs[outside, 0], pairs[outside, 1]]
    order = np.argsort(-logits)
    is_link = np.isin(outside[order], chosen[5000:])
    for k in (10, 100, 1000):
        assert found[f"precision@{k}"] == pytest.approx(is_link[:k].mean())
        assert found[f"recall@{k}"] == pytest.approx(is_link[:k].sum() / 1000)
    everything = census(scores, Candidates(size, known))
    assert everything.total == len(outside)
    assert np.average(everything.values, weights=everything.counts) == pytest.approx(logits.mean(), abs=1e-3)
    some = census(scores, Candidates(size, known), most=len(outside) // 4)
    assert some.total == pytest.approx(len(outside), rel=0.02)
    for level in (0.0, 3.0, 6.0):
        share = some.counts[some.values > level].sum() / some.total
        assert share == pytest.approx((logits > level).mean(), rel=0.15)


def test_a_depth_beyond_all_candidates_is_not_reported() -> None:
    scores = Scores(torch.eye(4))
    found = rank_all_pairs(scores, np.array([[0, 1]]), Candidates(4, np.array([[2, 3]])))
    assert [name for name in found if name.startswith("precision")] == ["precision@1"]
    assert [name for name in found if name.startswith("node_hits")] == ["node_hits@1"]
    assert found["precision@1"] == pytest.approx(1 / 5)  # five candidates, all with the same score
    assert rank_all_pairs(scores, np.empty((0, 2), dtype=np.int64), Candidates(4, np.array([[2, 3]]))) == {}
