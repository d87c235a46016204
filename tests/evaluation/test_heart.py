"""HeaRT against brute force: PageRank, ranks, who is chosen, who is left out, and the scores that come of it."""

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.stats import rankdata

import vgae
from helpers import message_of, small_graphs
from vgae.baselines import resource_allocation
from vgae.evaluation import heart
from vgae.evaluation.heart import evaluate_heart, heart_negatives, heuristics_of, ranks_of
from vgae.evaluation.ogb import evaluate_ogb
from vgae.evaluation.pagerank import JUMP, PRECISION, PageRank
from vgae.graph.given import NegativesOfLinks
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut, LinkSplit, split_links
from vgae.graph.synthetic import stochastic_block_model


def with_features(graph: Graph, kind: str) -> Graph:
    if kind == "none":
        return graph
    shape = (graph.num_nodes, 6)
    features: Any = np.random.default_rng(1).normal(size=shape) * (np.random.default_rng(2).random(shape) < 0.5)
    return graph.with_parts(features=sp.csr_array(features) if kind == "sparse" else features)


SHAPES: dict[str, Callable[[], Graph]] = {
    "star": lambda: Graph.from_edges([(0, leaf) for leaf in range(1, 12)]),
    "path": lambda: Graph.from_edges([(k, k + 1) for k in range(11)]),
    "cycle": lambda: Graph.from_edges([(k, (k + 1) % 9) for k in range(9)]),
    "complete minus one": lambda: Graph.from_edges(list(combinations(range(8), 2))[1:]),
    "disconnected": lambda: Graph.from_edges([(0, 1), (1, 2), (0, 2), (3, 4), (4, 5), (6, 7)], num_nodes=12),
    "blocks": lambda: stochastic_block_model(40, 3, feature_dim=4, seed=2).without_features(),
    "one link": lambda: Graph.from_edges([(1, 2)], num_nodes=4),
}


# ------------------------------------------------------------------------------------------------------------ PageRank


def dense_pagerank(graph: Graph, node: int) -> NDArray[np.float64]:
    """p = α e + (1 - α) A D⁻¹ p, solved; a walk at a node without links goes nowhere, and jumps alone bring it back."""
    adjacency = graph.adjacency.toarray().astype(np.float64)
    walk = adjacency / np.maximum(adjacency.sum(axis=0), 1)
    start = np.eye(graph.num_nodes)[node]
    solved: NDArray[np.float64] = np.linalg.solve(np.eye(graph.num_nodes) - (1 - JUMP) * walk, JUMP * start)
    return solved


@pytest.mark.parametrize("shape", SHAPES)
def test_pagerank_solves_its_equation(shape: str) -> None:
    graph = SHAPES[shape]()
    pagerank = PageRank(graph)
    nodes = np.arange(graph.num_nodes)
    sources = pagerank.sources(nodes)
    walks = pagerank.from_sources(sources)
    for node in nodes.tolist():
        found = pagerank.of(node, walks[node]) * PRECISION
        assert_allclose(found, dense_pagerank(graph, node), rtol=1e-6, atol=PRECISION)


def test_pagerank_of_a_larger_graph_is_that_of_a_plain_walk() -> None:
    graph = stochastic_block_model(3000, 6, seed=3).without_features()
    pagerank, nodes = PageRank(graph), np.array([0, 17, 2999])
    degrees = np.maximum(np.diff(graph.adjacency.indptr), 1)
    walk = sp.csr_array(graph.adjacency.astype(np.float64) @ sp.diags_array(1 / degrees))
    start = np.eye(graph.num_nodes)[:, nodes]
    plain = start
    for _ in range(200):
        plain = JUMP * start + (1 - JUMP) * (walk @ plain)
    walks = pagerank.from_sources(pagerank.sources(nodes))
    for row, node in enumerate(nodes.tolist()):
        assert_allclose(pagerank.of(node, walks[row]) * PRECISION, plain[:, row], rtol=0, atol=PRECISION)


# --------------------------------------------------------------------------------------------------------------- ranks


def ranks_in_full(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """As the authors' program ranks: above 0 from the highest down, then 0, then what is below."""
    ranks = np.zeros(len(scores))
    above = scores > 0
    last = 0.0
    if above.any():
        upward = rankdata(scores[above], method="min")
        ranks[above] = upward.max() - upward + 1
        last = float(ranks[above].max())
    ranks[scores == 0] = last + 1
    ranks[scores < 0] = last + 2
    return ranks


@given(st.lists(st.integers(-1, 6), min_size=1, max_size=40), st.integers(1, 40))
def test_ranks_are_exact_as_far_as_they_are_needed(values: list[int], most: int) -> None:
    scores = np.array(values, dtype=np.float64)
    found, whole = ranks_of(scores, most), ranks_in_full(scores)
    known = np.isfinite(found)
    assert_array_equal(found[known], whole[known])
    assert known[scores <= 0].all()
    assert int(np.count_nonzero(known & (scores > 0))) >= min(most, int(np.count_nonzero(scores > 0)))
    if not known.all():  # what is not known is worse than all that is
        assert whole[~known].min() > whole[known & (scores > 0)].max()


# -------------------------------------------------------------------------------------------------------------- choice


def chosen_by_hand(graph: Graph, node: int, other: int, known: set[frozenset[int]], half: int) -> list[set[int]]:
    """Who has to be chosen, and among whom chance decides, candidate by candidate."""
    adjacency = graph.adjacency.toarray().astype(np.float64)
    degrees = np.maximum(adjacency.sum(axis=0), 1)
    pagerank = PageRank(graph)
    walks = pagerank.from_sources(pagerank.sources(np.array([node])))
    scores = [pagerank.of(node, walks[0]), np.round((adjacency / degrees) @ adjacency, heart.DIGITS)[node]]
    if graph.features is not None:
        features: Any = graph.features
        dense = np.asarray(features.toarray() if sp.issparse(features) else features, dtype=np.float64)
        lengths = np.linalg.norm(dense, axis=1, keepdims=True)
        unit = dense / np.where(lengths > 0, lengths, 1)
        scores.insert(1, np.round(unit @ unit[node], heart.DIGITS))
    free = [
        each
        for each in range(graph.num_nodes)
        if each not in (node, other) and frozenset((node, each)) not in known and not adjacency[node, each]
    ]
    ranks = np.array([ranks_in_full(values[free]) for values in scores]).min(axis=0)
    near = [place for place, each in enumerate(free) if any(values[each] != 0 for values in scores)]
    near.sort(key=lambda place: (ranks[place], *(-values[free[place]] for values in scores[:-1]), free[place]))
    best = {free[place] for place in near[:half]}
    return [best, set(free) - {free[place] for place in near}]


@pytest.mark.parametrize("num_negatives", [2, 6, 500])
@pytest.mark.parametrize("features", ["none", "dense", "sparse"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_hardest_candidates_are_chosen(shape: str, features: str, num_negatives: int) -> None:
    graph = with_features(SHAPES[shape](), features)
    nodes = graph.num_nodes
    links = np.array([[0, nodes - 1], [nodes - 2, 1], *graph.edges[:3].tolist()])
    known = np.array([[0, 2], [nodes - 1, 3]])
    found = heart_negatives(graph, links, known=known, num_negatives=num_negatives, seed=4)
    half = num_negatives // 2
    assert found.shape == (len(links), 2 * half, 2)
    for link, rows in zip(links.tolist(), found, strict=True):
        for side in (0, 1):
            pairs = rows[side * half : (side + 1) * half]
            pairs = pairs[pairs[:, 0] >= 0]
            assert (pairs[:, side] == link[side]).all()
            others = pairs[:, 1 - side].tolist()
            assert len(set(others)) == len(others)
            best, rest = chosen_by_hand(graph, link[side], link[1 - side], {frozenset(k) for k in known.tolist()}, half)
            assert best <= set(others)
            assert set(others) - best <= rest
            assert len(others) == min(half, len(best) + len(rest))


@given(st.data())
def test_no_negative_is_a_known_link_or_an_end_whatever_the_graph(data: st.DataObject) -> None:
    graph = data.draw(small_graphs(3))
    pairs = list(combinations(range(graph.num_nodes), 2))
    links = np.array(data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=5, unique=True)))
    known = np.array(data.draw(st.lists(st.sampled_from(pairs), max_size=5, unique=True))).reshape(-1, 2).astype(int)
    found = heart_negatives(graph, links, known=known, num_negatives=data.draw(st.sampled_from([2, 4, 10])))
    linked = {frozenset(pair) for pair in [*graph.edges.tolist(), *known.tolist()]}
    for link, rows in zip(links.tolist(), found.tolist(), strict=True):
        for pair in rows:
            if pair != [-1, -1]:
                assert len(set(pair)) == 2
                assert frozenset(pair) not in linked
                assert frozenset(pair) != frozenset(link)


def test_in_a_bipartite_graph_negatives_go_across() -> None:
    sides = np.array([0] * 6 + [1] * 8, dtype=np.uint8)
    edges = [(i, 6 + (i * k) % 8) for i in range(6) for k in (1, 3)]
    graph = Graph.from_edges(edges, num_nodes=14).with_parts(sides=sides)
    found = heart_negatives(graph, [[0, 9], [5, 13]], num_negatives=500)
    for rows in found:
        pairs = rows[rows[:, 0] >= 0]
        assert len(pairs)
        assert (sides[pairs[:, 0]] != sides[pairs[:, 1]]).all()


def test_the_choice_does_not_depend_on_the_size_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = with_features(SHAPES["blocks"](), "sparse")
    links = split_links(graph, seed=1).test.links
    whole = heart_negatives(graph, links, num_negatives=30)
    for size in (1, 100, 333):
        monkeypatch.setattr(heart, "BLOCK", size)
        assert_array_equal(heart_negatives(graph, links, num_negatives=30), whole)


def test_chance_decides_by_the_seed_where_all_heuristics_are_0() -> None:
    graph = Graph.from_edges([(0, 1)], num_nodes=50)
    found = [heart_negatives(graph, [[5, 6]], num_negatives=20, seed=seed) for seed in (0, 0, 1)]
    assert_array_equal(found[0], found[1])
    assert (found[0] != found[2]).any()


# -------------------------------------------------------------------------------------------------------------- scores


class Table:
    """A scorer that looks pairs up, with many equal scores, and not the same in both directions."""

    def __init__(self, num_nodes: int) -> None:
        self.scores = np.random.default_rng(3).integers(0, 5, size=(num_nodes, num_nodes)).astype(np.float32)

    def logits(self, pairs: Pairs) -> NDArray[np.float32]:
        return np.asarray(self.scores[pairs[:, 0], pairs[:, 1]])


@pytest.mark.parametrize("shape", ["path", "disconnected", "blocks", "cycle"])
def test_links_are_ranked_among_their_own_negatives(shape: str) -> None:
    graph = SHAPES[shape]()
    split = split_links(graph, val=0.2, test=0.3, seed=2)
    scorer = Table(graph.num_nodes)
    found = evaluate_heart(scorer, split, num_negatives=8)
    for name, links, known in (
        ("validation", split.val.links, None),
        ("test", split.test.links, split.val.links),
    ):
        negatives = heart_negatives(split.train, links, known=known, num_negatives=8)
        ranks, sizes = [], []
        for (i, j), rows in zip(links.tolist(), negatives, strict=True):
            own = scorer.scores[i, j]
            others = [scorer.scores[a, b] for a, b in rows.tolist() if a >= 0]
            ranks.append(1 + sum(other > own for other in others) + sum(other == own for other in others) / 2)
            sizes.append(len(others))
        assert found[name]["mrr"] == pytest.approx(np.mean([1 / rank for rank in ranks]))
        for k in (1, 3, 10, 100):
            if k <= min(sizes):
                assert found[name][f"hits@{k}"] == pytest.approx(np.mean([rank <= k for rank in ranks]))
            else:
                assert f"hits@{k}" not in found[name]


def test_a_perfect_scorer_is_first_and_chance_is_what_it_should_be() -> None:
    graph = SHAPES["blocks"]()
    split = split_links(graph, val=0, test=0.2, seed=2)
    links = {frozenset(pair) for pair in graph.edges.tolist()}

    class Oracle:
        def logits(self, pairs: Pairs) -> NDArray[np.float32]:
            return np.array([frozenset(pair) in links for pair in pairs.tolist()], dtype=np.float32)

    class Constant:
        def logits(self, pairs: Pairs) -> NDArray[np.float32]:
            return np.zeros(len(pairs), dtype=np.float32)

    truth = LinkSplit(split.train, split.val, split.test, seed=0)
    own = heart_negatives(split.train, split.test.links, known=graph.edges, num_negatives=10)
    assert not any(frozenset(pair) in links for pair in own.reshape(-1, 2).tolist() if pair[0] >= 0)
    assert evaluate_heart(Constant(), truth, num_negatives=10)["test"]["mrr"] == pytest.approx(1 / 6)
    assert evaluate_heart(Oracle(), truth, num_negatives=10)["test"]["mrr"] > 0.5  # other test links are hard ones


def test_what_cannot_be_ranked_is_refused() -> None:
    graph = SHAPES["blocks"]()

    class Undefined:
        def logits(self, pairs: Pairs) -> NDArray[np.float32]:
            return np.full(len(pairs), np.nan, dtype=np.float32)

    assert "finite numbers" in message_of(lambda: evaluate_heart(Undefined(), split_links(graph)))
    nothing = split_links(graph, val=0, test=0)
    assert "no held-out links" in message_of(lambda: evaluate_heart(Table(40), nothing))
    assert "num_negatives" in message_of(lambda: heart_negatives(graph, [[0, 1]], num_negatives=1))
    assert "node indices run" in message_of(lambda: heart_negatives(graph, [[0, 40]]))
    assert heuristics_of(graph) == ("ra", "pagerank")
    assert heuristics_of(with_features(graph, "dense")) == ("ra", "pagerank", "cosine")


def test_hard_negatives_are_harder_than_random_ones_on_cora() -> None:
    split = split_links(vgae.load_dataset("cora"), val=0)
    scorer = resource_allocation(split.train)
    links = split.test.links[:200]
    few = LinkSplit(split.train, split.val, HeldOut(links, split.test.non_links[:200]), seed=0)
    random = np.random.default_rng(0).integers(split.train.num_nodes, size=(len(links), 2000))
    known = {frozenset(pair) for pair in vgae.load_dataset("cora").edges.tolist()}
    others = np.array(
        [
            [node for node in row if node != i and frozenset((i, node)) not in known][:500]
            for (i, _), row in zip(links.tolist(), random.tolist(), strict=True)
        ]
    )
    hard = evaluate_heart(scorer, few)["test"]
    easy = evaluate_ogb(scorer, few, {"test": NegativesOfLinks("random", links, others)}).metrics["test"]
    assert hard["mrr"] < 0.5 * easy["mrr"]
    assert hard["hits@10"] < 0.8 * easy["hits@10"]
