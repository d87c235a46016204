"""GAE and VGAE in scikit-learn's hands: folds, searches, scorers and pipelines, without a leak."""

# ruff: noqa: N803, N806 - X is what scikit-learn calls it

import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.cluster import KMeans
from sklearn.experimental import enable_halving_search_cv  # noqa: F401 - makes HalvingGridSearchCV known
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import adjusted_rand_score, average_precision_score, roc_auc_score
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from torch import Tensor

import vgae
from helpers import message_of
from vgae.model.decoders import DecoderSpec
from vgae.model.spec import register
from vgae.ops import Factors
from vgae.options import option

DOCS = Path(__file__).parents[2] / "docs" / "scikit-learn.md"
SMALL = {"iterations": 8, "hidden_dim": 8, "latent_dim": 4, "device": "cpu"}
BOTH = [vgae.GAE, vgae.VGAE]

Model = type[vgae.GAE]
Samples = tuple[vgae.LinkSamples, Any]


@register("decoder", "scaled_in_a_search")
@dataclass(frozen=True)
class Scaled(DecoderSpec):
    """logit_ij = scale·z_i·z_j."""

    scale: float = option(1.0, above=0, help="What inner products are multiplied by.")

    def factors(self, z: Tensor) -> Factors:
        return Factors(self.scale * z, z)


@pytest.fixture(scope="module")
def graph() -> vgae.Graph:
    return vgae.stochastic_block_model(80, 4, feature_dim=12, seed=9)


@pytest.fixture(scope="module")
def samples(graph: vgae.Graph) -> Samples:
    return vgae.link_samples(graph, seed=0)


def as_set(pairs: Any) -> set[tuple[int, int]]:
    return {(min(pair), max(pair)) for pair in np.asarray(pairs).tolist()}


# -------------------------------------------------------------------------------------------------------------- fitting


@pytest.mark.parametrize("estimator", BOTH)
def test_fitting_samples_is_fitting_their_graph(estimator: Model, graph: vgae.Graph, samples: Samples) -> None:
    X, y = samples
    mixed = np.random.default_rng(3).permutation(len(X))
    expected = estimator(**SMALL).fit(graph)
    found = estimator(**SMALL).fit(X[mixed], y[mixed])
    np.testing.assert_array_equal(found.transform(), expected.transform())
    np.testing.assert_array_equal(found.predict_proba(X), expected.predict_proba(np.asarray(X)))
    np.testing.assert_array_equal(found.decision_function(X), expected.logits(X.pairs))
    np.testing.assert_array_equal(found.predict(X), expected.logits(X.pairs) > 0)


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "missing": (lambda _: None, "y: a label is needed for each of the 20 pairs, 1 for a link and 0 for a non-link."),
    "short": (lambda y: y[:-1], "y: one label is needed for each of the 20 pairs, got the shape (19,)."),
    "table": (lambda y: y[:, None], "y: one label is needed for each of the 20 pairs, got the shape (20, 1)."),
    "value": (lambda y: y + 1, "has the label 2; a label is 1 for a link and 0 for a non-link."),
    "text": (lambda y: y.astype(str), "; a label is 1 for a link and 0 for a non-link."),
    "nan": (lambda y: np.where(y, y, np.nan), "has the label nan; a label is 1 for a link and 0 for a non-link."),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("call", ["fit", "score", "split"])
def test_wrong_labels_get_one_sentence(samples: Samples, name: str, call: str) -> None:
    X, y = (part[:20] for part in samples)
    change, sentence = WRONG[name]
    model = vgae.GAE(**SMALL)
    calls: dict[str, Callable[[Any], object]] = {
        "fit": lambda labels: model.fit(X, labels),
        "score": lambda labels: model.fit(*samples).score(X, labels),
        "split": lambda labels: list(vgae.LinkKFold(2).split(X, labels)),
    }
    message = message_of(lambda: calls[call](change(y)))
    assert message.startswith("y: ")
    assert message.endswith(sentence)


def test_samples_are_not_taken_for_a_graph(samples: Samples) -> None:
    X, y = samples
    model = vgae.GAE(**SMALL).fit(X, y)
    for name, call in (
        ("transform", lambda: model.transform(X)),
        ("fit_transform", lambda: model.fit_transform(X, y)),
        ("on", lambda: model.on(X)),
    ):
        assert message_of(call).startswith(f"{name}: a graph is needed, and these are samples of links")


@pytest.mark.parametrize("early_stopping", [None, 4])
def test_no_test_link_is_seen_in_training(samples: Samples, early_stopping: int | None) -> None:
    X, y = samples
    model = vgae.VGAE(**SMALL, early_stopping=early_stopping, eval_every=2)
    folds = vgae.LinkKFold(3)
    fitted = cross_validate(model, X, y, cv=folds, return_estimator=True)["estimator"]
    for (train, test), each in zip(folds.split(X, y), fitted, strict=True):
        links, held_back = as_set(each.graph_.edges), each.run_.split.val
        assert links | as_set(held_back.links) == as_set(X.pairs[train][y[train] == 1])
        assert not links & as_set(held_back.links)
        assert not (links | as_set(held_back.pairs)) & as_set(X.pairs[test])
        assert len(held_back.links) == (0 if early_stopping is None else int(0.05 * y[train].sum()))


def test_what_test_rows_hold_changes_no_bit_of_a_model(samples: Samples) -> None:
    X, y = samples
    train, test = next(vgae.LinkKFold(3).split(X, y))
    other = y.copy()
    other[test] = 1 - other[test]
    models = [vgae.VGAE(**SMALL, early_stopping=4).fit(X[train], labels[train]) for labels in (y, other)]
    np.testing.assert_array_equal(models[0].transform(), models[1].transform())


def test_early_stopping_holds_back_rows_by_the_seed(samples: Samples) -> None:
    X, y = samples
    fits = [vgae.GAE(**SMALL, early_stopping=4, seed=seed).fit(X, y) for seed in (0, 0, 1)]
    held_back = [fit.run_.split.val for fit in fits]
    assert as_set(held_back[0].pairs) == as_set(held_back[1].pairs) != as_set(held_back[2].pairs)
    assert len(held_back[0].links) == len(held_back[0].non_links) == int(0.05 * y.sum())
    assert held_back[0].num_graph_links == y.sum()
    assert as_set(fits[0].excluded_pairs_) == as_set(held_back[0].links)
    assert fits[0].history_[-1].val_auc is not None
    only_links = X[y == 1]
    message = message_of(lambda: vgae.GAE(**SMALL, early_stopping=4).fit(only_links, np.ones(len(only_links))))
    assert message == (
        "early_stopping: no pairs can be held back to stop by (test: at least 2 non-links are needed to take a share "
        "of them, got 0); give validation, or set it to None."
    )


def test_validation_of_ones_own_goes_to_every_fit(graph: vgae.Graph) -> None:
    split = vgae.split_links(graph, seed=0)
    X, y = vgae.link_samples(split.train)
    search = GridSearchCV(vgae.GAE(**SMALL, early_stopping=4), {"latent_dim": [2, 4]}, cv=vgae.LinkKFold(2))
    best = search.fit(X, y, validation=split.val).best_estimator_
    np.testing.assert_array_equal(best.run_.split.val.links, split.val.links)
    assert best.graph_.content_hash == split.train.content_hash


# -------------------------------------------------------------------------------------------------- scores and searches


def test_scores_are_those_of_a_loop_by_hand(graph: vgae.Graph, samples: Samples) -> None:
    X, y = samples
    folds = vgae.LinkKFold(3, seed=4)
    expected: dict[str, list[float]] = {"auc": [], "ap": []}
    for train, test in folds.split(X, y):
        links = as_set(X.pairs[train][y[train] == 1])
        model = vgae.VGAE(**SMALL).fit(graph.with_edges(np.array(sorted(links))))
        logits = model.logits(X.pairs[test])
        expected["auc"].append(roc_auc_score(y[test], logits))
        expected["ap"].append(average_precision_score(y[test], logits))
    model = vgae.VGAE(**SMALL)
    np.testing.assert_allclose(cross_val_score(model, X, y, cv=folds), expected["auc"], rtol=1e-12)
    named = cross_validate(model, X, y, cv=folds, scoring=["roc_auc", "average_precision"])
    np.testing.assert_allclose(named["test_roc_auc"], expected["auc"], rtol=1e-12)
    np.testing.assert_allclose(named["test_average_precision"], expected["ap"], rtol=1e-12)
    ap = cross_val_score(model, X, y, cv=folds, scoring=lambda each, X, y: each.metrics(X.held_out(y))["ap"])
    np.testing.assert_allclose(ap, expected["ap"], rtol=1e-12)
    many = cross_validate(model, X, y, cv=folds, scoring=lambda each, X, y: vgae.evaluate(each, X.held_out(y)))
    np.testing.assert_allclose(many["test_auc"], expected["auc"], rtol=1e-12)
    assert "test_mrr" in many


def test_score_takes_held_out_pairs_or_pairs_with_labels(graph: vgae.Graph) -> None:
    split = vgae.split_links(graph, seed=0)
    model = vgae.GAE(**SMALL).fit(split.train)
    expected = model.metrics(split.test)["auc"]
    assert model.score(split.test) == expected
    assert model.score(split.test.pairs, split.test.labels) == expected
    assert "held-out pairs are needed" in message_of(lambda: model.score(split.test.pairs))


def test_scores_of_probabilities_do_not_work(samples: Samples) -> None:
    """As the page says: scikit-learn wants two columns."""
    with pytest.raises(IndexError):
        cross_val_score(vgae.GAE(**SMALL), *samples, cv=2, scoring="neg_log_loss", error_score="raise")


def test_plain_numbers_of_folds_are_stratified(samples: Samples) -> None:
    X, y = samples
    found = cross_validate(vgae.GAE(**SMALL), X, y, cv=3, return_indices=True, return_train_score=True)
    for test in found["indices"]["test"]:
        assert abs(y[test].mean() - 0.5) < 0.01
    assert (found["train_score"] > found["test_score"]).all()


def test_grid_search_chooses_the_best_and_fits_the_whole_graph(graph: vgae.Graph, samples: Samples) -> None:
    X, y = samples
    folds = vgae.LinkKFold(3)
    values = [{"latent_dim": 2, "iterations": 2}, {"latent_dim": 8, "iterations": 20}]
    scores = [cross_val_score(vgae.VGAE(**(SMALL | each)), X, y, cv=folds).mean() for each in values]
    search = GridSearchCV(vgae.VGAE(**SMALL), [{k: [v] for k, v in each.items()} for each in values], cv=folds)
    search.fit(X, y)
    np.testing.assert_array_equal(search.cv_results_["mean_test_score"], scores)
    assert search.best_params_ == values[int(np.argmax(scores))]
    best = search.best_estimator_
    assert best.graph_.content_hash == graph.content_hash
    expected = vgae.VGAE(**(SMALL | search.best_params_)).fit(graph)
    np.testing.assert_array_equal(best.transform(), expected.transform())
    assert not as_set(best.recommend(k=50).pairs) & as_set(graph.edges)
    assert search.score(X, y) == best.score(X, y)
    np.testing.assert_array_equal(search.decision_function(X), best.logits(X))
    np.testing.assert_array_equal(search.classes_, [0, 1])


def test_options_of_parts_are_searched(samples: Samples) -> None:
    model = vgae.VGAE(**SMALL, decoder="scaled_in_a_search")
    grid = {"decoder__scale": [0.1, 3.0], "latent_dim": [4]}
    search = GridSearchCV(model, grid, cv=vgae.LinkKFold(2)).fit(*samples)
    for scale, score in zip((0.1, 3.0), search.cv_results_["mean_test_score"], strict=True):
        alone = vgae.VGAE(**SMALL, decoder=Scaled(scale=scale))
        assert cross_val_score(alone, *samples, cv=vgae.LinkKFold(2)).mean() == score
    assert search.best_estimator_.decoder == Scaled(scale=search.best_params_["decoder__scale"])
    assert model.decoder == "scaled_in_a_search"


def test_other_searches(graph: vgae.Graph, samples: Samples) -> None:
    folds, values = vgae.LinkKFold(2), {"latent_dim": [2, 4, 8], "learning_rate": [0.01, 0.1]}
    random = RandomizedSearchCV(vgae.GAE(**SMALL), values, n_iter=2, cv=folds, random_state=0).fit(*samples)
    assert len(random.cv_results_["params"]) == 2
    assert random.best_estimator_.graph_.content_hash == graph.content_hash
    halving = HalvingGridSearchCV(
        vgae.GAE(**SMALL), {"latent_dim": [2, 4, 8]}, resource="iterations", max_resources=9, cv=folds
    ).fit(*samples)
    assert halving.n_resources_ == [3, 9]
    assert halving.best_estimator_.iterations == 9


def test_other_tools(samples: Samples) -> None:
    X, y = samples
    model, folds = vgae.GAE(**(SMALL | {"iterations": 40, "learning_rate": 0.05})), vgae.LinkKFold(2)
    sizes, _, scores = learning_curve(model, X, y, cv=folds, train_sizes=[0.1, 1.0])
    assert sizes[1] == len(X) // 2
    assert scores[1].mean() > scores[0].mean()
    score, by_chance, _ = permutation_test_score(model, X, y, cv=folds, n_permutations=3, random_state=0)
    assert score > by_chance.max()  # shuffled labels make a random graph of links and non-links
    assert abs(by_chance.mean() - 0.5) < 0.1
    logits = cross_val_predict(model, X, y, cv=folds, method="decision_function")
    for train, test in folds.split(X, y):
        np.testing.assert_array_equal(logits[test], clone(model).fit(X[train], y[train]).logits(X[test]))
    parts = train_test_split(X, y, test_size=0.25, stratify=y, random_state=0)
    assert [type(part) for part in parts] == [vgae.LinkSamples, vgae.LinkSamples, np.ndarray, np.ndarray]
    assert not as_set(parts[0]) & as_set(parts[1])


def test_a_training_score_brings_no_warning(samples: Samples) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        vgae.GAE(**SMALL).fit(*samples).score(*samples)


# ------------------------------------------------------------------------------------------------------------ pipelines


def test_a_pipeline_that_begins_with_a_model_takes_a_graph(graph: vgae.Graph) -> None:
    model = vgae.VGAE(**(SMALL | {"iterations": 60}))
    clusters = make_pipeline(model, KMeans(4, n_init=3, random_state=0))
    found = clusters.fit_predict(graph)
    expected = KMeans(4, n_init=3, random_state=0).fit_predict(clone(model).fit(graph).transform())
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(clusters.fit(graph).predict(graph), expected)
    assert adjusted_rand_score(graph.labels, found) > 0.5
    classes = make_pipeline(model, LogisticRegression()).fit(graph, graph.labels)
    assert classes.score(graph, graph.labels) > 0.8


def test_nodes_are_classified_by_their_embeddings(graph: vgae.Graph) -> None:
    embeddings = vgae.VGAE(**(SMALL | {"iterations": 60})).fit(graph).transform()
    assert cross_val_score(LogisticRegression(), embeddings, graph.labels, cv=4).mean() > 0.8


def first_columns(X: vgae.LinkSamples, num: int = 2) -> vgae.LinkSamples:
    return X.with_features(X.features[:, :num])


def test_a_pipeline_that_ends_with_a_model_takes_samples(graph: vgae.Graph, samples: Samples) -> None:
    X, y = samples
    pipeline = make_pipeline(FunctionTransformer(first_columns), vgae.GAE(**SMALL))
    folds = vgae.LinkKFold(2)
    grid = {"functiontransformer__kw_args": [{"num": 2}, {"num": 10}], "gae__latent_dim": [4]}
    search = GridSearchCV(pipeline, grid, cv=folds, scoring="roc_auc").fit(X, y)
    for num, score in zip((2, 10), search.cv_results_["mean_test_score"], strict=True):
        alone = cross_val_score(vgae.GAE(**SMALL), first_columns(X, num), y, cv=folds)
        np.testing.assert_allclose(score, alone.mean(), rtol=1e-12)
    assert pipeline.fit(X, y)[-1].n_features_in_ == 2
    assert X.features is graph.features
    assert is_classifier(pipeline)


# ----------------------------------------------------------------------------------------------------------------- page


def test_code_of_the_page_runs() -> None:
    text = DOCS.read_text().replace("iterations=100", "iterations=3").replace("max_resources=90", "max_resources=9")
    assert text != DOCS.read_text()
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(block, names)  # noqa: S102 - our own
    assert len(names["embeddings"]) == len(names["clusters"]) == 200
    assert names["search"].best_estimator_.graph_.num_nodes == 200


def test_samples_of_directed_links_are_refused_by_a_decoder_that_tells_directions_apart() -> None:
    """Rows are pairs without a direction; a symmetric decoder does with that."""
    links = vgae.stochastic_block_model(40, 2, seed=1).edges
    X, y = vgae.link_samples(vgae.Graph.from_edges(links, num_nodes=40, directed=True))
    small: dict[str, Any] = {"iterations": 2, "hidden_dim": 4, "latent_dim": 4}
    with pytest.raises(vgae.InputError, match="decoder: source_target tells directions apart, but a row of samples"):
        vgae.VGAE(decoder="source_target", **small).fit(X, y)
    plain, plain_y = vgae.link_samples(vgae.Graph.from_edges(links, num_nodes=40))
    with pytest.warns(UserWarning, match="cannot tell which way a link goes"):
        fitted = vgae.VGAE(**small).fit(X, y)
    np.testing.assert_array_equal(fitted.transform(), vgae.VGAE(**small).fit(plain, plain_y).transform())
