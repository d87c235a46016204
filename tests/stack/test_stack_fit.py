"""Nothing is described by a base that saw its label, and what is sampled stands for all pairs."""

import gc
import weakref
from functools import cache, partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from stacking import (
    CHEAP_MODELS,
    SMALL,
    Folds,
    WithFewTrees,
    Witness,
    all_candidates,
    bipartite_graph,
    codes,
    random_graph,
    stack_of,
    weighted_auc,
)

from helpers import message_of, small_graphs
from vgae.baselines import BASELINES
from vgae.baselines.similarities import SIMILARITIES
from vgae.errors import TrainingError
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links
from vgae.graph.synthetic import stochastic_block_model
from vgae.stack import contenders, fit, shortlist
from vgae.stack.bases import fit_bases
from vgae.stack.config import StackConfig
from vgae.stack.contenders import FoldEvidence
from vgae.stack.fit import Progress, fit_stack
from vgae.stack.meta import fit_meta
from vgae.stack.strata import sample_strata

SIMILAR = "neighbours,paths,pagerank,cosines,degrees"
EVERY = f"{CHEAP_MODELS},dw,pa,cosine,{SIMILAR}"


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> type[Witness]:
    """The similarity that tells which graph it was made of, as one of the bases."""
    monkeypatch.setitem(SIMILARITIES, "witness", Witness)
    return Witness


def pairs_of(fold: FoldEvidence) -> np.ndarray:
    """The pairs of a fold, by its witness, which is the first base."""
    return fold.evidence[:, :2].astype(np.int64)


# ------------------------------------------------------------------------------------------------- nobody saw the label


def graphs() -> dict[str, Graph]:
    plain = random_graph(30, 60, 0, feature_dim=5)
    return {
        "plain": plain,
        "weighted": plain.with_parts(weights=np.linspace(0.5, 3, 60, dtype=np.float32)),
        "directed": Graph.from_edges(
            np.concatenate([plain.edges[:, ::-1], plain.edges[:9]]),
            num_nodes=30,
            features=plain.features,
            directed=True,
        ),
        "bipartite": bipartite_graph(),
        "star": Graph.from_edges([[0, i] for i in range(1, 9)]),
        "matching": Graph.from_edges([[2 * i, 2 * i + 1] for i in range(5)]),
        "isolated": Graph.from_edges([[0, 1], [1, 2], [2, 3]], num_nodes=9),
        "nearly complete": Graph.from_edges([[i, j] for i in range(7) for j in range(i)][1:], num_nodes=7),
    }


@pytest.mark.parametrize("kind", graphs())
@pytest.mark.usefixtures("witness")
def test_every_link_is_described_once_and_never_by_a_graph_that_has_it(kind: str) -> None:
    graph, store = graphs()[kind], Folds()
    stack = fit_stack(graph, stack_of(f"witness,{SIMILAR}"), store)
    known = graph.without_directions()
    described = []
    for fold in store.found.values():
        pairs, links = pairs_of(fold), fold.labels == 1
        described.append(pairs[links])
        assert (fold.evidence[:, 2] == 0).all()  # no pair is a link of the graph that its evidence comes from
        assert (fold.evidence[:, 3] == known.num_edges - links.sum()).all()
        assert not np.isin(codes(pairs[~links]), codes(known.edges)).any()
        assert len(np.unique(codes(pairs))) == len(pairs)
        if known.sides is not None:
            assert (known.sides[pairs[:, 0]] != known.sides[pairs[:, 1]]).all()
        assert (fold.weights[links] == 1).all()
        assert fold.weights[~links].sum() == pytest.approx(count_non_links(known), rel=1e-12)
    assert np.array_equal(codes(np.concatenate(described)), codes(known.edges))
    assert (stack.bases.describe(known.edges)[:, 2:4] == [1, known.num_edges]).all()


@pytest.mark.parametrize("graph", [random_graph(40, 90, 0, feature_dim=5), bipartite_graph()], ids=["plain", "sides"])
@pytest.mark.usefixtures("witness")
def test_evidence_depends_on_nothing_but_the_graph_without_the_fold(graph: Graph) -> None:
    store, config = Folds(), stack_of(f"witness,{EVERY}")
    fit_stack(graph, config, store)
    for fold in list(store.found.values())[:2]:
        pairs, links = pairs_of(fold), fold.labels == 1
        left = np.setdiff1d(graph.all_pairs.ranks(graph.edges), graph.all_pairs.ranks(pairs[links]))
        seen = graph.with_edges(graph.all_pairs.pairs(left))
        expected = fit_bases(seen, config.bases_for(seen), 1).describe(pairs)
        # described with other pairs at a time, so that the last bits may differ
        np.testing.assert_allclose(fold.evidence, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.usefixtures("witness")
def test_links_that_were_held_out_change_nothing() -> None:
    whole = random_graph(60, 150, 0, feature_dim=5)
    train = whole.with_edges(whole.edges[np.arange(150) % 5 > 0])
    drawn, stores = [], (Folds(), Folds())
    for store, more in zip(stores, (whole.edges[::5], whole.edges[:0]), strict=True):
        known = train.with_edges(train.edges)  # a graph is all that is given: what was held out is nowhere in it
        stack = fit_stack(known, stack_of(f"witness,gae({SMALL}),{SIMILAR}"), store)
        drawn.append(stack.logits(np.concatenate([all_candidates(whole), more]))[: len(all_candidates(whole))])
    assert np.allclose(drawn[0], drawn[1], atol=1e-4)
    for fold in range(3):
        assert np.array_equal(stores[0].found[fold].evidence, stores[1].found[fold].evidence)
    negatives = np.concatenate([pairs_of(fold)[fold.labels == 0] for fold in stores[0].found.values()])
    assert np.isin(codes(whole.edges[::5]), codes(negatives)).any()  # to the stack they are non-links like any other


def leaking_folds(graph: Graph, config: StackConfig) -> list[FoldEvidence]:
    """The known mistake: bases are fitted on all links, and describe those links with the links in place."""
    fitted = fit_bases(graph, config.bases_for(graph), config.base_seeds)
    sample = sample_strata(graph, graph, np.empty((0, 2), dtype=np.int64), seed=config.seed)
    pairs = np.concatenate([graph.edges, sample.pairs])
    labels = (np.arange(len(pairs)) < graph.num_edges).astype(np.uint8)
    weights = np.concatenate([np.full(graph.num_edges, 1 / config.folds), sample.weights])
    return [FoldEvidence(fitted.describe(pairs), labels, weights)]


def columns_auc(folds: list[FoldEvidence]) -> np.ndarray:
    """AUC of every column as it is, mean of the folds."""
    found = [[weighted_auc(column, each.labels, each.weights) for column in each.evidence.T] for each in folds]
    mean: np.ndarray = np.array(found).mean(axis=0)
    return mean


def test_where_links_are_random_no_evidence_tells_links_from_non_links() -> None:
    found, leaking, num_links, seeds = [], [], 150, range(2)
    for seed in seeds:
        graph, store = random_graph(60, num_links, seed, feature_dim=20), Folds()
        config = stack_of(EVERY, folds=2, seed=seed)
        fit_stack(graph, config, store)
        found.append(columns_auc(list(store.found.values())))
        leaking.append(columns_auc(leaking_folds(graph, config)))
    error = np.sqrt(1 / 12 / (len(seeds) * num_links))  # of a mean of uniform ranks
    assert np.abs(np.mean(found, axis=0) - 0.5).max() < 4 * error
    names = [column for base in config.bases_for(graph) for column in base.columns]
    leaks = dict(zip(names, np.mean(leaking, axis=0), strict=True))
    for name in ("l3", "ppr", "dw", "cosine_1", "cosine_0_1", "degree_sum"):
        assert leaks[name] > 0.5 + 4 * error, name
    assert sum(abs(auc - 0.5) > 4 * error for auc in leaks.values()) >= 12


def test_where_links_are_random_a_stack_knows_nothing_and_says_so() -> None:
    aucs, sums, leaking_sums, num_links, folds = [], [], [], 150, 3
    seeds = range(5)
    for seed in seeds:
        whole = random_graph(70, num_links * (folds + 1) // folds, seed, feature_dim=10)
        held_out = np.random.default_rng(seed).choice(whole.num_edges, size=num_links // folds, replace=False)
        train = whole.with_edges(np.delete(whole.edges, held_out, axis=0))
        config = stack_of(f"gae({SMALL}),{SIMILAR}", folds=folds, seed=seed)
        stack = fit_stack(train, config)
        others = all_candidates(whole)
        links, non_links = stack.logits(whole.edges[held_out]), stack.logits(others)
        aucs.append(auc_and_ap(links, non_links)["auc"])
        sums.append(sum(float((1 / (1 + np.exp(-each.astype(np.float64)))).sum()) for each in (links, non_links)))
        wrong = leaking_folds(train, config)[0]
        meta = fit_meta(wrong.evidence, wrong.labels, wrong.weights, config.meta)
        log_odds = meta.log_odds(stack.bases.describe(np.concatenate([whole.edges[held_out], others])))
        leaking_sums.append(float((1 / (1 + np.exp(-log_odds))).sum()))
    error = np.sqrt(1 / 12 / (len(seeds) * num_links / folds))
    assert abs(np.mean(aucs) - 0.5) < 4 * error
    assert np.mean(sums) == pytest.approx(num_links / folds, rel=0.25)  # as likely as in a fold
    assert np.mean(leaking_sums) < 0.5 * num_links / folds  # all that is unlinked looks impossible


def test_where_there_is_something_to_learn_it_is_learned() -> None:
    whole = stochastic_block_model(80, 4, degree_within=8, degree_between=1, feature_dim=60)
    train = whole.with_edges(whole.edges[np.arange(whole.num_edges) % 6 > 0])
    stack = fit_stack(train, stack_of(SIMILAR))
    scores = auc_and_ap(stack.logits(whole.edges[::6]), stack.logits(all_candidates(whole)))
    assert scores["auc"] > 0.8


# ----------------------------------------------------------------------------------------------- weights, probabilities


@pytest.mark.usefixtures("witness")
def test_weighted_sums_are_those_over_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name, value in (
        (fit, "FEWEST_OTHERS", 300),
        (fit, "FEWEST_TWO_HOP", 300),
        (fit, "FIRST_STAGE", 60),
        (shortlist, "SHARING", 300),
        (contenders, "TOP_OF_COLUMN", 20),
        (contenders, "REST", 50),
    ):
        monkeypatch.setattr(module, name, value)
    graph = stochastic_block_model(90, 3, degree_within=6, feature_dim=30)
    config, store = stack_of("witness,neighbours,cosines,degrees"), Folds()
    fit_stack(graph, config, store)
    for fold in store.found.values():
        links = fold.labels == 1
        assert (~links).sum() < count_non_links(graph) / 3
        left = np.setdiff1d(graph.all_pairs.ranks(graph.edges), graph.all_pairs.ranks(pairs_of(fold)[links]))
        seen = graph.with_edges(graph.all_pairs.pairs(left))
        every = fit_bases(seen, config.bases_for(seen), 1).describe(all_candidates(graph)).astype(np.float64)
        sampled = fold.evidence[~links].astype(np.float64)
        for column in range(4, every.shape[1]):
            deviation = (fold.weights[~links] * np.abs(sampled[:, column] - every[:, column].mean())) ** 2
            difference = fold.weights[~links] @ sampled[:, column] - every[:, column].sum()
            assert abs(difference) < 4.5 * np.sqrt(deviation.sum())


@cache
def planted(seed: int) -> Graph:
    return stochastic_block_model(150, 15, degree_within=6, degree_between=1, feature_dim=60, seed=seed)


@pytest.mark.parametrize("boosting", [0, 0.5], ids=["linear", "with trees"])
def test_probabilities_hold_over_all_pairs_and_at_the_top(boosting: float) -> None:
    folds = 4
    config = WithFewTrees(bases="neighbours,paths,cosines,degrees", folds=folds, boosting=boosting, device="cpu")
    stack = fit_stack(planted(0), config)
    probabilities, labels = [], []
    for seed in (1, 2, 3, 4):  # other graphs of the same kind, of which a fold is missing: all pairs, by brute force
        whole = planted(seed)
        missing = np.random.default_rng(seed).permutation(whole.num_edges) % folds == 0
        seen = whole.with_edges(whole.edges[~missing])
        pairs = all_candidates(seen)
        probabilities.append(1 / (1 + np.exp(-stack.on(seen).logits(pairs).astype(np.float64))))
        labels.append(np.isin(pairs[:, 0] * 1000 + pairs[:, 1], codes(whole.edges[missing], 1000)))
    p, y = np.concatenate(probabilities), np.concatenate(labels)
    order = np.argsort(-p)
    parts = [order, order[:300], order[:1000], order[1000:5000], order[5000:]]
    for part in parts if boosting else parts[:1]:  # a regression alone is too straight for these blocks, part by part
        expected, error = p[part].sum(), np.sqrt((p[part] * (1 - p[part])).sum())
        assert abs(y[part].sum() - expected) < 4 * error + 0.1 * expected
    assert p[order[:300]].mean() > 15 * p.mean()  # and there is a top


# -------------------------------------------------------------------------------------------------------- the same bits


def test_the_same_seed_gives_the_same_bits() -> None:
    graph = random_graph(25, 60, 0, feature_dim=5)
    pairs, bases = all_candidates(graph), f"{CHEAP_MODELS},neighbours,cosines"
    found = [
        fit_stack(graph, WithFewTrees(bases=bases, folds=2, base_seeds=2, seed=seed, device="cpu")).logits(pairs)
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2], atol=1e-3)


class Heard(Progress):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_base(self, fold: int, name: str) -> None:
        self.events.append((fold, name))

    def on_fold(self, fold: int, *, restored: bool) -> None:
        self.events.append((fold, restored))

    def on_meta(self) -> None:
        self.events.append(("meta",))


def test_folds_that_are_stored_are_not_fitted_again() -> None:
    graph = random_graph(25, 60, 0, feature_dim=5)
    config, heard = stack_of(f"gae({SMALL}),degrees", folds=3), Heard()
    store = Folds()
    whole = fit_stack(graph, config, store, heard)
    names = [f"gae({SMALL})", "degrees"]
    fresh = [[*((fold, name) for name in names), (fold, False)] for fold in range(3)]
    last = [*((3, name) for name in names), ("meta",)]
    assert heard.events == [*fresh[0], *fresh[1], *fresh[2], *last]
    del store.found[1]
    heard = Heard()
    again = fit_stack(graph, config, store, heard)
    assert heard.events == [(0, True), *fresh[1], (2, True), *last]
    assert np.array_equal(again.logits(all_candidates(graph)), whole.logits(all_candidates(graph)))
    assert "stored fold 0 is of another stack" in message_of(lambda: fit_stack(graph, stack_of("cn"), store))


def test_the_bases_of_a_fold_are_released_before_the_next(
    witness: type[Witness], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[weakref.ref[Witness]] = []

    def on_made(one: Witness) -> None:
        assert all(each() is None for each in made)
        made.append(weakref.ref(one))

    monkeypatch.setattr(witness, "on_made", staticmethod(on_made))
    gc.disable()  # what is released is gone at once, not at the next collection
    try:
        stack = fit_stack(random_graph(20, 40, 0), stack_of("witness,neighbours"))
        stack.logits(np.array([[0, 1]]))
    finally:
        gc.enable()
    assert len(made) == 4


# --------------------------------------------------------------------------------------------------------- small graphs


@given(small_graphs(least_nodes=2), st.integers(2, 4))
@settings(max_examples=40)
def test_the_smallest_graphs_are_fitted_or_refused_in_a_sentence(graph: Graph, folds: int) -> None:
    config = stack_of("neighbours,paths,degrees,pa,ppr", folds=folds)
    if count_non_links(graph) == 0:
        assert "links every pair" in message_of(lambda: fit_stack(graph, config))
    elif graph.num_edges < folds:
        assert f"folds: {folds} folds need" in message_of(lambda: fit_stack(graph, config))
    else:
        assert np.isfinite(fit_stack(graph, config).logits(all_candidates(graph))).all()


@pytest.mark.parametrize("num_nodes", [3, 4, 6, 10])
def test_small_paths_with_bases_of_all_kinds(num_nodes: int) -> None:
    path = Graph.from_edges([[i, i + 1] for i in range(num_nodes - 1)], features=np.eye(num_nodes)[:, :2])
    config = stack_of(f"{CHEAP_MODELS},dw,pa,cosine,{SIMILAR}", folds=2)
    assert np.isfinite(fit_stack(path, config).logits(all_candidates(path))).all()


def test_bad_input_is_refused_before_anything_is_fitted() -> None:
    graph, heard = random_graph(12, 20, 0), Heard()
    for config, said in (
        (stack_of("gae", folds=21), "folds: 21 folds need at least 21 links, and the graph has 20."),
        (stack_of("cosines"), "can do nothing without features"),
        (StackConfig(bases="degrees", device="gpu"), "device: 'gpu'"),
    ):
        assert said in message_of(partial(fit_stack, graph, config, None, heard))
    complete = Graph.from_edges([[0, 1], [0, 2], [1, 2]])
    assert "links every pair" in message_of(lambda: fit_stack(complete, stack_of("gae", folds=2), None, heard))
    assert heard.events == []
    with pytest.raises(TrainingError, match=r"^The base gae\(iterations=3;learning_rate=1e30\): "):
        fit_stack(graph, stack_of("gae(iterations=3;learning_rate=1e30)"))


def test_a_baseline_registered_for_the_test_sees_the_folds_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, int]] = []

    def watched(graph: Graph, seed: int) -> Any:
        seen.append((graph.num_edges, seed))
        return BASELINES["cn"](graph, seed)

    monkeypatch.setitem(BASELINES, "watched", watched)
    fit_stack(random_graph(20, 40, 0), stack_of("watched", folds=4, seed=6))
    assert set(seen) == {(30, 6), (40, 6)}
