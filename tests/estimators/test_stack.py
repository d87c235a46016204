"""`vgae.Stack`: parameters, what it recommends, its probabilities, new nodes, and what it refuses."""

import inspect
from dataclasses import replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import scipy.sparse as sp
from rich.console import Console
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import cross_val_score

import vgae
from helpers import message_of
from vgae.estimators.baseline import fitted_of
from vgae.estimators.stack import base_text
from vgae.estimators.stacked import StackPredictor
from vgae.evaluation.all_pairs import ListScorer
from vgae.graph.pairs import Pairs
from vgae.options import options_of
from vgae.stack import scorer, shortlist
from vgae.stack.config import StackConfig
from vgae.train.config import Config

CHEAP: dict[str, Any] = {
    "bases": "gae(iterations=5;latent_dim=4),neighbours,degrees",
    "folds": 2,
    "base_seeds": 1,
    "boosting": 0.0,
    "device": "cpu",
}


def planted(num_nodes: int = 40, feature_dim: int = 12, seed: int = 3) -> vgae.Graph:
    return vgae.stochastic_block_model(num_nodes, 2, degree_within=8, feature_dim=feature_dim, seed=seed)


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    return vgae.split_links(planted(), seed=0)


@pytest.fixture(scope="module")
def model(split: vgae.LinkSplit) -> vgae.Stack:
    return vgae.Stack(**CHEAP).fit(split.train, validation=split.val)


def best_of(model: StackPredictor, pairs: list[tuple[int, int]], k: int) -> list[tuple[int, int]]:
    """The best of some pairs, by their logits one by one; of equal logits the smaller indices."""
    logits = model.logits(np.array(pairs))
    order = sorted(range(len(pairs)), key=lambda place: (-logits[place], pairs[place]))
    return [pairs[place] for place in order[:k]]


def as_tuples(pairs: Pairs) -> list[tuple[int, int]]:
    return [(int(first), int(second)) for first, second in pairs]


def new_pairs(model: StackPredictor) -> list[tuple[int, int]]:
    known = {*as_tuples(model.graph_.edges), *as_tuples(np.sort(model.excluded_pairs_, axis=1))}
    return [pair for pair in combinations(range(model.graph_.num_nodes), 2) if pair not in known]


# ------------------------------------------------------------------------------------------------------ parameters


def test_parameters_are_the_options_of_the_configuration() -> None:
    assert vgae.Stack().get_params() == StackConfig().to_json() | {"progress": False}
    changed = vgae.Stack().set_params(folds=3, bases=["cn", "ra"])
    assert changed.get_params()["folds"] == 3
    assert repr(changed) == "Stack(bases=['cn', 'ra'], folds=3)"
    copy = clone(changed)
    assert copy.get_params() == changed.get_params()
    with pytest.raises(TypeError, match="Stack has no parameter fold"):
        vgae.Stack(fold=3)
    with pytest.raises(ValueError, match="Invalid parameter"):
        vgae.Stack().set_params(fold=3)


def test_every_parameter_is_in_the_signature_and_in_the_documentation() -> None:
    parameters = inspect.signature(vgae.Stack).parameters
    assert {name: each.default for name, each in parameters.items()} == vgae.Stack().get_params()
    assert {each.kind for each in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    for estimator, options in ((vgae.Stack, StackConfig), (vgae.GAE, Config), (vgae.VGAE, Config)):
        listed = inspect.getdoc(estimator).partition("Parameters:")[2].strip().splitlines()  # type: ignore[union-attr]
        helped = [f"{each.name}: {each.rule.help}" for each in options_of(options) if each.name != "model"]
        helped.append("progress: Show a progress bar on standard error.")
        for line, words in zip(listed, helped, strict=True):
            assert line.startswith(words)  # which parts there are follows, where an option names one


def test_progress_is_shown_fold_by_fold(
    split: vgae.LinkSplit, model: vgae.Stack, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    console = partial(Console, force_terminal=True, width=120, no_color=True)
    with patch("vgae.train.progress.Console", console):
        shown = vgae.Stack(**CHEAP, progress=True).fit(split.train, validation=split.val, checkpoint=tmp_path / "folds")
        first = capsys.readouterr().err
        again = vgae.Stack(**CHEAP, progress=True).fit(split.train, validation=split.val, checkpoint=tmp_path / "folds")
        second = capsys.readouterr().err
    assert "meta-model and scores" in first  # where the bar ends; it is drawn a few times a second
    assert "meta-model and scores" in second
    assert "continuing" not in first
    assert "continuing after 2 folds of 2" in second
    for each in (shown, again):
        assert each.logits(split.test.pairs).tobytes() == model.logits(split.test.pairs).tobytes()
    vgae.Stack(**CHEAP).fit(split.train)
    assert capsys.readouterr().err == ""
    assert "progress: True or False" in message_of(lambda: vgae.Stack(**CHEAP, progress=1).fit(split.train))


def test_bases_may_be_names_and_estimators(split: vgae.LinkSplit) -> None:
    given = [vgae.GAE(iterations=5, latent_dim=4), "neighbours", "degrees"]
    assert [base_text(each) for each in given] == ["gae(latent_dim=4;iterations=5)", "neighbours", "degrees"]
    text = vgae.Stack(**CHEAP).fit(split.train).logits(split.test.pairs)
    listed = vgae.Stack(**CHEAP | {"bases": given}).fit(split.train).logits(split.test.pairs)
    assert listed.tobytes() == text.tobytes()
    assert base_text(vgae.Baseline("ra")) == "ra"
    assert base_text(vgae.VGAE()) == "vgae"
    parts = vgae.VGAE(encoder="normalized:hops=1,scale=2.0", decoder="mlp", mask_links=0.3, diagonal=False)
    config = StackConfig(bases=[base_text(parts), "cn"])  # type: ignore[arg-type]  # a sequence is joined
    (base, _) = config.bases_for(split.train)
    assert base.config is not None
    assert [base.config.mask_links, base.config.diagonal] == [0.3, False]
    assert str(base.config.encoder).startswith("normalized:hops=1,scale=2.0")
    assert str(base.config.decoder).startswith("mlp")


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"bases": "magic"}, "bases: 'magic' is not one of"),
        ({"bases": []}, "bases: there are none"),
        ({"bases": ["cn", 5]}, "bases: names are needed"),
        ({"bases": "cn,cn"}, "bases: 'cn' is there twice"),
        ({"bases": ["cn", vgae.GAE(seed=1)]}, "bases: seed of a base cannot be given"),
        ({"bases": ["cn", vgae.GAE(early_stopping=1)]}, "bases: early_stopping of a base cannot be given"),
        ({"bases": "cn(top=3)"}, "bases: cn has no options"),
        ({"folds": 1}, "folds: a whole number from 2"),
        ({"folds": 500}, "folds: 500 folds need at least 500 links"),
        ({"boosting": 2.0}, "boosting"),
        ({"device": "tpu"}, "device"),
    ],
)
def test_what_cannot_be_fitted_is_refused(split: vgae.LinkSplit, parameters: dict[str, Any], words: str) -> None:
    assert words in message_of(lambda: vgae.Stack(**CHEAP | parameters).fit(split.train))


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (vgae.Graph.from_edges([(0, 1)]), "links every pair of nodes"),
        (vgae.Graph.from_edges(list(combinations(range(5), 2))), "links every pair of nodes"),
        (vgae.Graph.from_edges([(0, 1)], num_nodes=4), "folds need at least 2 links"),
    ],
    ids=["one pair", "complete", "one link"],
)
def test_graphs_from_which_nothing_can_be_learned(graph: vgae.Graph, words: str) -> None:
    assert words in message_of(lambda: vgae.Stack(**CHEAP).fit(graph))


def test_features_that_are_needed_and_not_there() -> None:
    graph = planted(feature_dim=0)
    assert "can do nothing without features" in message_of(lambda: vgae.Stack(bases="cosines").fit(graph))


def test_validation_links_of_the_graph_are_refused(split: vgae.LinkSplit) -> None:
    graph = planted()
    assert "links of the graph to train on" in message_of(lambda: vgae.Stack(**CHEAP).fit(graph, validation=split.val))


def test_nothing_can_be_asked_before_fitting() -> None:
    with pytest.raises(NotFittedError):
        vgae.Stack().recommend()


# -------------------------------------------------------------------------------------------------- recommendations


@pytest.mark.parametrize(
    ("bases", "boosting"), [(CHEAP["bases"], 0.0), ("neighbours,degrees", 0.5), ("cn", 0.0)]
)  # of cn nearly all logits are equal
def test_recommended_are_the_best_of_all_pairs(split: vgae.LinkSplit, bases: str, boosting: float) -> None:
    model = vgae.Stack(**CHEAP | {"bases": bases, "boosting": boosting}).fit(split.train, validation=split.val)
    candidates = new_pairs(model)
    assert as_tuples(model.recommend(25).pairs) == best_of(model, candidates, 25)
    assert len(model.recommend(10_000)) == len(candidates)
    found = model.recommend(4, nodes=[7, 2, 30])
    expected: list[tuple[int, int]] = []
    for node in [7, 2, 30]:
        own = [(node, first + second - node) for first, second in candidates if node in (first, second)]
        expected += best_of(model, own, 4)
    assert as_tuples(found.pairs) == expected
    np.testing.assert_array_equal(found.logits, model.logits(found.pairs))
    assert set(found.known) == {"no"}


@pytest.mark.parametrize("bases", [CHEAP["bases"], "neighbours,degrees"])
def test_a_first_stage_finds_as_many_as_are_asked_for(
    model: vgae.Stack, split: vgae.LinkSplit, bases: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scorer, "FIRST_STAGE", 5)
    monkeypatch.setattr(shortlist, "SHARING", 10)
    monkeypatch.setattr(shortlist, "PER_NODE", 3)
    model = vgae.Stack(**CHEAP | {"bases": bases}).fit(split.train, validation=split.val)
    listed = model.listed(model.candidates())
    assert 5 <= len(listed.pairs) < 30
    assert as_tuples(model.recommend(3).pairs) == best_of(model, as_tuples(listed.pairs), 3)
    for k in (30, 200, 10_000):
        found = model.recommend(k)
        assert len(set(as_tuples(found.pairs))) == len(found) == min(k, len(new_pairs(model)))
        assert set(as_tuples(found.pairs)) <= set(new_pairs(model))
        assert (np.diff(found.logits) <= 0).all()
    assert len(model.recommend(6, nodes=[0, 1])) == 12


def test_recall_of_the_first_stage(split: vgae.LinkSplit, monkeypatch: pytest.MonkeyPatch) -> None:
    model = vgae.Stack(**CHEAP).fit_split(split)
    assert model.first_stage_recall(split.test) == 1
    monkeypatch.setattr(scorer, "FIRST_STAGE", 5)
    monkeypatch.setattr(shortlist, "SHARING", 40)
    fresh = vgae.Stack(**CHEAP).fit_split(split)
    listed = as_tuples(fresh.listed(fresh.candidates(split.test.links)).pairs)
    links = as_tuples(np.sort(split.test.links, axis=1))
    share = fresh.first_stage_recall(split.test)
    assert share == pytest.approx(np.mean([link in listed for link in links]))
    assert 0 < share < 1
    assert "no links in it" in message_of(lambda: fresh.first_stage_recall(vgae.HeldOut.none()))


def test_known_links_are_said_to_be_known(model: vgae.Stack, split: vgae.LinkSplit) -> None:
    pairs = np.concatenate([split.train.edges[:2], split.val.links[:2], [[3, 3]]])
    assert model.predict_links(pairs).known.tolist() == ["train", "train", "held_out", "held_out", "self"]


def test_nodes_by_their_ids() -> None:
    names = [(f"n{i}", f"n{j}") for i, j in planted(feature_dim=0).edges.tolist()]
    model = vgae.Stack(**CHEAP).fit(vgae.Graph.from_edges(names))
    found = model.recommend(2, nodes=["n3"])
    assert found.to_frame()["source"].tolist() == ["n3", "n3"]
    assert model.logits([("n3", "n4")]).shape == (1,)
    assert model.explain("n3", "n4").pair.nodes == ("n3", "n4")


# ------------------------------------------------------------------------------------------------------------ scores


def test_scores(split: vgae.LinkSplit) -> None:
    model = vgae.Stack(**CHEAP).fit_split(split, "planted")
    assert model.run_.facts.dataset == "planted"
    metrics = model.metrics(split.test)
    assert model.run_.metrics["test"]["auc"] == metrics["auc"] == model.score(split.test)
    pairs, labels = split.test.pairs, split.test.labels
    assert model.score(pairs, labels) == pytest.approx(metrics["auc"])
    found = model.evaluate(split.test)
    assert found["auc"] == metrics["auc"]
    assert found["first_stage_recall"] == 1
    assert {"precision@10", "recall@10"} <= set(found)
    best = as_tuples(model.candidates(split.test.links).known)
    ranked = [pair for pair in combinations(range(40), 2) if pair not in best]
    top = best_of(model, ranked, 10)
    links = set(as_tuples(np.sort(split.test.links, axis=1)))
    assert found["precision@10"] == pytest.approx(np.mean([pair in links for pair in top]))
    assert 0 < model.evaluate(split.test, protocol="heart")["mrr"] <= 1
    with pytest.warns(UserWarning, match="links of the model's own graph"):
        model.metrics(vgae.HeldOut(split.train.edges[:5], split.test.non_links[:5]))


def test_a_stack_is_a_scorer_with_a_first_stage(model: vgae.Stack, split: vgae.LinkSplit) -> None:
    assert isinstance(model, ListScorer)
    assert isinstance(fitted_of(model.to_run()), ListScorer)
    assert "rows" in message_of(model.rows)
    assert vgae.verdict(model, split).sentences


def test_samples_of_links() -> None:
    samples, labels = vgae.link_samples(planted(), seed=0)
    folds = list(vgae.LinkKFold(2).split(samples, labels))
    scores = cross_val_score(vgae.Stack(**CHEAP), samples, labels, cv=folds)
    for (train, test), score in zip(folds, scores, strict=True):
        model = vgae.Stack(**CHEAP).fit(samples[train].graph(labels[train] == 1))
        held_out = vgae.HeldOut(*(samples.pairs[test[labels[test] == label]] for label in (1, 0)))
        assert model.metrics(held_out)["auc"] == pytest.approx(score)


# ----------------------------------------------------------------------------------------------------- probabilities


@pytest.fixture(scope="module")
def blocks() -> vgae.LinkSplit:
    graph = vgae.stochastic_block_model(200, 4, degree_within=12, degree_between=2, seed=0)
    return vgae.split_links(graph, val=0.1, test=0.2, seed=0)


@pytest.mark.parametrize(("folds", "off"), [(5, 0.5), (20, 0.25)])
def test_without_validation_links_odds_are_those_of_all_links(blocks: vgae.LinkSplit, folds: int, off: float) -> None:
    """Logits are log odds of one fold's links; the more folds, the more a fold's graph is like the whole."""
    blind = replace(blocks, val=vgae.HeldOut.none())
    model = vgae.Stack(bases="neighbours,paths,degrees", folds=folds, boosting=0.0).fit_split(blind)
    train, whole = blocks.train.num_links, blind.num_graph_links
    assert model.calibration().shift == pytest.approx(-np.log(folds * whole / train))
    assert not model.calibration().is_fitted
    raw, found = model.reliability(blocks.test)
    assert found.expected.sum() / found.found.sum() == pytest.approx(1, abs=off)
    assert raw.expected.sum() / raw.found.sum() < 1.5 / folds
    every = np.array(list(combinations(range(200), 2)))
    assert model.predict_proba(every).sum() == pytest.approx(whole, rel=off)
    assert model.density() == pytest.approx(whole / len(every))


def test_probabilities_are_calibrated_by_validation_links(blocks: vgae.LinkSplit) -> None:
    model = vgae.Stack(bases="neighbours,paths,degrees", folds=3, boosting=0.0).fit_split(blocks)
    assert model.calibration().is_fitted
    assert model.calibration().num_links == len(blocks.val.links)
    raw, found = model.reliability(blocks.test)
    assert found.expected.sum() / found.found.sum() == pytest.approx(1, abs=0.2)
    assert found.error < raw.error / 2
    fit = vgae.Stack(bases="neighbours,paths,degrees", folds=3, boosting=0.0).fit(blocks.train, validation=blocks.val)
    np.testing.assert_allclose(fit.predict_proba(blocks.test.pairs), model.predict_proba(blocks.test.pairs))
    assert fit.to_run(blocks).calibration == model.to_run().calibration


# --------------------------------------------------------------------------------------------------------- new nodes


def larger(graph: vgae.Graph) -> vgae.Graph:
    """The graph with two nodes more, of which one is linked to the first."""
    features: Any = None
    if graph.features is not None:
        features = sp.vstack([graph.features, np.ones((2, graph.num_features), dtype=np.float32)], format="csr")
    edges = [*graph.edges.tolist(), [0, graph.num_nodes]]
    return vgae.Graph.from_edges(edges, num_nodes=graph.num_nodes + 2, features=features)


def test_new_nodes(split: vgae.LinkSplit) -> None:
    model = vgae.Stack(**CHEAP).fit(split.train, validation=split.val)
    moved = model.on(larger(split.train), known=[(0, 41)])
    assert moved.graph_.num_nodes == 42
    found = moved.recommend(3, nodes=[40, 41])
    assert len(found) == 6
    assert (41, 0) not in as_tuples(found.pairs)
    assert moved.calibration() == model.calibration()
    known = moved.predict_links([(0, 40), (0, 41), tuple(split.val.links[0])]).known
    assert known.tolist() == ["train", "held_out", "held_out"]
    assert "another graph than it was fitted on" in message_of(moved.to_run)
    assert model.graph_.num_nodes == 40
    same = model.on(split.train)
    np.testing.assert_allclose(same.logits(split.test.pairs), model.logits(split.test.pairs), atol=1e-4)


def test_new_nodes_where_a_base_does_not_allow_them() -> None:
    graph = planted(feature_dim=0)
    model = vgae.Stack(**CHEAP).fit(graph)
    assert "fitted without features, so its auto-encoders" in message_of(lambda: model.on(larger(graph)))
    formulas = vgae.Stack(**CHEAP | {"bases": "neighbours,degrees"}).fit(graph).on(larger(graph))
    assert len(formulas.recommend(2, nodes=[40])) == 2
    featured = vgae.Stack(**CHEAP).fit(planted())
    assert "12 columns, but this graph has 0" in message_of(lambda: featured.on(graph))
    wide = vgae.stochastic_block_model(150, 3, seed=0)
    spectral = vgae.Stack(**CHEAP | {"bases": "sc,degrees"}).fit(wide)
    assert "The base sc knows the nodes that it was fitted on" in message_of(lambda: spectral.on(larger(wide)))


# --------------------------------------------------------------------------------------------------------- evidence


@pytest.mark.parametrize("boosting", [0.0, 0.5])
def test_what_is_explained_adds_up(split: vgae.LinkSplit, boosting: float) -> None:
    model = vgae.Stack(**CHEAP | {"boosting": boosting}).fit(split.train, validation=split.val)
    (a, b), *_ = as_tuples(split.test.links)
    found = model.explain(a, b)
    assert found.mean is not None
    assert found.logit == model.logits([(a, b)])[0]
    assert found.logit == pytest.approx(found.mean + sum(part.adds for part in found.bases), abs=1e-4)
    parts = {part.base: part.evidence for part in found.bases}
    assert set(parts) == {"gae(iterations=5;latent_dim=4)", "neighbours", "degrees"}
    assert parts["neighbours"]["cn"] == found.pair.num_neighbours
    assert found.pair.degrees == tuple(np.diff(split.train.adjacency.indptr)[[a, b]])
    assert "two different nodes" in message_of(lambda: model.explain(3, 3))


def test_a_stack_has_no_embeddings(model: vgae.Stack) -> None:
    for ask in (
        model.transform,
        lambda: model.similar(0),
        lambda: model.clusters(2),
        model.to_frame,
        model.to_arrow,
        model.to_pyg,
    ):
        assert "A stack has no embeddings" in message_of(ask)
    assert "samples: a stack has one score" in message_of(lambda: model.recommend(3, samples=5))
    assert "samples: a stack has one score" in message_of(lambda: model.predict_links([(0, 1)], seed=5))


# ------------------------------------------------------------------------------------------------------- odd graphs


@pytest.mark.parametrize(
    "graph",
    [
        vgae.Graph.from_edges([(0, 1), (1, 2)]),
        vgae.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4)], num_nodes=30),
        vgae.Graph.from_edges([(0, leaf) for leaf in range(1, 9)]),
        vgae.Graph.from_edges([(i, 10 + (3 * i + k) % 8) for i in range(10) for k in range(3)]).with_parts(
            sides=(np.arange(18) >= 10).astype(np.uint8)
        ),
        planted(20).with_parts(weights=np.linspace(0.1, 5, planted(20).num_edges)),
    ],
    ids=["three nodes", "isolated nodes", "star", "bipartite", "weights"],
)
@pytest.mark.parametrize("bases", ["gae(iterations=3;latent_dim=2),neighbours,paths,pagerank,degrees", "degrees"])
def test_odd_graphs(tmp_path: Any, graph: vgae.Graph, bases: str) -> None:
    model = vgae.Stack(**CHEAP | {"bases": bases}).fit(graph)
    candidates = [
        pair for pair in new_pairs(model) if graph.sides is None or graph.sides[pair[0]] != graph.sides[pair[1]]
    ]
    assert as_tuples(model.recommend(8).pairs) == best_of(model, candidates, 8)
    model.save(tmp_path / "run")
    loaded = vgae.load(tmp_path / "run")
    pairs = np.array(list(combinations(range(graph.num_nodes), 2)))
    assert loaded.predict_proba(pairs).tobytes() == model.predict_proba(pairs).tobytes()
    assert np.isfinite(model.logits(pairs)).all()


def test_directed_links_are_taken_without_their_directions(tmp_path: Any) -> None:
    arcs = [(i, (7 * i + k) % 30) for i in range(30) for k in (1, 2, 3) if i != (7 * i + k) % 30]
    split = vgae.split_links(vgae.Graph.from_edges(arcs, directed=True), seed=0)
    with pytest.warns(UserWarning, match="a stack is symmetric: it cannot tell which way a link goes"):
        model = vgae.Stack(**CHEAP).fit_split(split)
    undirected = vgae.Stack(**CHEAP).fit(split.train.without_directions())
    assert model.logits(split.test.pairs).tobytes() == undirected.logits(split.test.pairs).tobytes()
    both = {frozenset(pair) for pair in [*as_tuples(split.train.edges), *as_tuples(split.val.links)]}
    found = model.recommend(20)
    assert not both & {frozenset(pair) for pair in as_tuples(found.pairs)}
    model.save(tmp_path / "run")
    loaded = vgae.load(tmp_path / "run")
    assert loaded.graph_.directed
    assert loaded.recommend(20).pairs.tolist() == found.pairs.tolist()
    assert loaded.run_.metrics == model.run_.metrics
