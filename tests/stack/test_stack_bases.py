"""What bases say about pairs: each what it says alone, whatever the order, on graphs of every kind."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import torch
from stacking import CHEAP_MODELS, SMALL, all_candidates, bipartite_graph, random_graph, stack_of

from helpers import message_of
from vgae.baselines import BASELINES
from vgae.baselines.similarities import SIMILARITIES
from vgae.errors import TrainingError
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.synthetic import stochastic_block_model
from vgae.stack import bases as module
from vgae.stack.bases import FittedBases, by_base, fit_bases
from vgae.train.job import Job
from vgae.train.loop import train

EVERY = f"{CHEAP_MODELS},sc,pa,cosine,neighbours,paths,pagerank,cosines,degrees"
HEURISTICS = "cn,aa,ra,pa,l3,ppr,cosine"


@cache
def graph() -> Graph:
    return stochastic_block_model(140, 4, degree_within=5, degree_between=1, feature_dim=30)


def fitted(names: str, on: Graph | None = None, seed: int = 0, base_seeds: int = 1) -> FittedBases:
    on = graph() if on is None else on
    return fit_bases(on, stack_of(names, seed=seed).bases_for(on), base_seeds)


@cache
def all_kinds() -> FittedBases:
    return fitted(EVERY)


def some_pairs(num: int = 300) -> Pairs:
    pairs = np.random.default_rng(0).integers(graph().num_nodes, size=(num, 2))
    apart: Pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    return apart


def test_columns_are_what_each_base_says_alone() -> None:
    pairs = some_pairs()
    evidence = all_kinds().describe(pairs)
    assert evidence.dtype == np.float32
    assert evidence.shape == (len(pairs), len(all_kinds().columns))
    assert np.isfinite(evidence).all()
    by_column = dict(zip(all_kinds().columns, evidence.T, strict=True))
    for name in ("sc", "pa", "cosine"):
        expected = BASELINES[name](graph(), 0).logits(np.sort(pairs, axis=1))
        assert np.allclose(by_column[name], expected, atol=1e-5)
    for name, kind in SIMILARITIES.items():
        described = kind.of(graph()).describe(pairs)
        assert np.allclose(np.stack([by_column[each] for each in kind.columns], axis=1), described, atol=1e-5), name
    for base in all_kinds().bases:
        if base.config is not None:
            trained = train(Job.of(graph(), base.config))
            both_ways = (trained.logits(pairs) + trained.logits(pairs[:, ::-1])) / 2
            assert np.allclose(by_column[base.text], both_ways, atol=1e-5), base.text


def test_heuristics_by_name_are_the_columns_of_similarities() -> None:
    pairs = some_pairs()
    found = fitted(HEURISTICS)
    assert found.columns == tuple(HEURISTICS.split(","))
    similar = fitted("neighbours,paths,pagerank")
    own, others = (dict(zip(each.columns, each.describe(pairs).T, strict=True)) for each in (found, similar))
    for name in ("cn", "aa", "ra", "l3", "ppr"):
        assert np.allclose(own[name], others[name], rtol=1e-5), name


def test_orders_play_no_part_to_the_bit() -> None:
    pairs = some_pairs()
    once = all_kinds().describe(pairs)
    shuffled = np.random.default_rng(1).permutation(len(pairs))
    assert np.array_equal(all_kinds().describe(pairs[shuffled, ::-1]), once[shuffled])
    twice = all_kinds().describe(np.concatenate([pairs, pairs[:50]]))
    assert np.array_equal(twice, np.concatenate([once, once[:50]]))


def test_in_parts_it_is_the_same_up_to_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    pairs = some_pairs()
    whole = all_kinds().describe(pairs)
    assert np.allclose(np.concatenate([all_kinds().describe(pair[None]) for pair in pairs[:20]]), whole[:20], atol=1e-5)
    monkeypatch.setattr(module, "CHUNK", 7)
    assert np.allclose(all_kinds().describe(pairs), whole, atol=1e-5)


def test_no_pairs_have_no_evidence_and_pairs_out_of_range_are_refused() -> None:
    assert all_kinds().describe(np.empty((0, 2), dtype=np.int64)).shape == (0, len(all_kinds().columns))
    assert "(0, 140)" in message_of(lambda: all_kinds().describe(np.array([[0, 140]])))


def test_the_same_seed_gives_the_same_bits_and_another_one_others() -> None:
    pairs = some_pairs()
    first, again, other = (fitted(CHEAP_MODELS, seed=seed).describe(pairs) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert (np.abs(first - other).max(axis=0) > 1e-3).all()


def test_deepwalk_has_the_seed_of_the_stack() -> None:
    small = random_graph(12, 20, 0)
    pairs = all_candidates(small)
    first, again, other = (fitted("dw", small, seed).describe(pairs) for seed in (3, 3, 4))
    assert np.array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_seeds_are_averaged() -> None:
    pairs, name = some_pairs(), f"gae({SMALL})"
    each = [fitted(name, seed=seed).describe(pairs) for seed in (5, 6, 7)]
    assert np.allclose(fitted(name, seed=5, base_seeds=3).describe(pairs), np.mean(each, axis=0), atol=1e-5)


def test_a_decoder_of_directions_is_taken_both_ways_in_rows_too() -> None:
    names = ",".join(f"gae({SMALL};decoder={decoder})" for decoder in ("source_target", "bilinear:form=full"))
    found = fitted(names)
    pairs = some_pairs()
    for column, scorer in zip(found.describe(pairs).T, found.row_scorers(), strict=True):
        assert scorer.symmetric
        block = scorer.rows().block(torch.arange(graph().num_nodes)).numpy()
        assert np.allclose(block, block.T, atol=1e-5)
        assert np.allclose(block[pairs[:, 0], pairs[:, 1]], column, atol=1e-5)
        assert np.allclose(scorer.logits(pairs), column, atol=1e-5)


def test_what_ranks_all_pairs_has_factors() -> None:
    assert len(list(all_kinds().row_scorers())) == 3 + 1 + 1  # the models but networks, sc, cosines
    assert not list(fitted("degrees,networks(iterations=2),cn,ppr").row_scorers())
    near = SIMILARITIES["cosines"].of(graph())
    scorer = near.row_scorer()
    assert scorer is not None
    column = near.columns.index("cosine_1")
    assert np.allclose(scorer.logits(some_pairs()), near.describe(some_pairs())[:, column], atol=1e-5)


@pytest.mark.parametrize("kind", ["weighted", "bipartite", "without features", "isolated", "directed"])
def test_graphs_of_every_kind_are_described(kind: str) -> None:
    whole = random_graph(14, 20, 0, feature_dim=5)
    kinds: dict[str, Callable[[], Graph]] = {
        "weighted": lambda: whole.with_parts(weights=np.linspace(0.5, 3, 20, dtype=np.float32)),
        "bipartite": bipartite_graph,
        "without features": whole.without_features,
        "isolated": lambda: Graph.from_edges([[0, 1], [1, 2], [0, 2]], num_nodes=14, features=whole.features),
        "directed": lambda: stack_of("cn").view(
            Graph.from_edges(whole.edges[:, ::-1], num_nodes=14, features=whole.features, directed=True)
        ),
    }
    on = kinds[kind]()
    names = f"{CHEAP_MODELS},{HEURISTICS},dw,degrees,cosines"
    evidence = fitted(names, on).describe(all_candidates(on))
    assert np.isfinite(evidence).all()
    assert (np.ptp(evidence, axis=0) > 0).sum() >= evidence.shape[1] / 2


def test_an_error_names_its_base() -> None:
    small = random_graph(14, 20, 0)
    assert message_of(lambda: fitted("sc", small)).startswith("The base sc: Spectral embedding in 128")
    heavy = small.with_parts(weights=np.full(20, 2, dtype=np.float32))
    assert message_of(lambda: fitted("gae(soft_labels=true)", heavy)).startswith("The base gae(soft_labels=true): ")
    with pytest.raises(
        TrainingError, match=r"^The base gae\(iterations=5;learning_rate=1e30\): .* Or leave it out of bases\.$"
    ):
        fitted("degrees,gae(iterations=5;learning_rate=1e30)", small)


def test_progress_is_heard_before_each_base() -> None:
    heard: list[str] = []
    bases = stack_of("degrees,gae(iterations=1),cn").bases_for(graph())
    fit_bases(graph(), bases, 2, heard.append)
    assert heard == ["degrees", "gae(iterations=1)", "cn"]


def test_on_another_graph_they_say_what_they_would_have_said() -> None:
    found = fitted(f"{CHEAP_MODELS},cn,cosines,degrees")
    more = stochastic_block_model(150, 4, feature_dim=30, seed=9)
    moved, pairs = found.on(more), all_candidates(more)[::50]
    evidence = dict(zip(moved.columns, moved.describe(pairs).T, strict=True))
    assert np.allclose(evidence["cn"], BASELINES["cn"](more, 0).logits(pairs))
    assert np.allclose(
        np.stack([evidence[each] for each in SIMILARITIES["cosines"].columns], axis=1),
        SIMILARITIES["cosines"].of(more).describe(pairs),
        atol=1e-5,
    )
    back = moved.on(graph()).describe(some_pairs())
    assert np.allclose(back, found.describe(some_pairs()), atol=1e-4)


def test_another_graph_is_refused_where_a_base_cannot_know_it() -> None:
    more = random_graph(150, 300, 0)
    assert "The base dw knows the nodes" in message_of(lambda: fitted("dw,cn", random_graph(9, 12, 0)).on(more))
    plain = graph().without_features()
    assert "fitted without features" in message_of(lambda: fitted(f"gae({SMALL})", plain).on(more))
    assert "30 columns, but this graph has 0" in message_of(lambda: fitted("cosines").on(more))
    assert fitted("cn,degrees", plain).on(more).describe(np.array([[0, 149]])).shape == (1, 4)


def test_sums_by_base() -> None:
    found = fitted("cn,degrees,cosines")
    values = np.arange(9.0)
    assert by_base(found, values) == {"cn": 0.0, "degrees": 1.0 + 2 + 3, "cosines": 4.0 + 5 + 6 + 7 + 8}
