"""The meta-model: log odds of the population, arrays that say what scikit-learn says, and contributions that add up."""

import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression

from helpers import message_of
from vgae.errors import InputError, TrainingError
from vgae.stack import blend, meta
from vgae.stack.blend import Rows, fit_blend
from vgae.stack.logistic import Doubles, Weighted, fit_logistic, newton, sigmoid
from vgae.stack.meta import MetaModel, fit_meta, size_limit, stiffer
from vgae.stack.options import MetaOptions
from vgae.stack.trees import Trees

FEW = MetaOptions(num_trees=15, num_leaves=8, num_boosted=2, column_share=0.7, second_look=12)
Table = npt.NDArray[np.float32]


def rows(num: int, seed: int = 0, columns: int = 4) -> tuple[Table, Doubles, Doubles]:
    """Evidence with heavy tails and gaps, labels that depend on it, and uneven weights."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(num, columns)).astype(np.float32)
    x[:, 0] = np.exp(2 * x[:, 0])
    log_odds = np.log(x[:, 0]) + np.where(x[:, 1] > 0, 1, -1) * x[:, 2]
    y = (generator.random(num) < sigmoid(log_odds.astype(np.float64))).astype(np.float64)
    x[:, 3] = np.where(generator.random(num) < 0.3 + 0.4 * y, np.nan, np.round(x[:, 3]))
    return x, y, np.where(y == 1, 1, generator.uniform(1, 50, num))


@pytest.fixture(scope="module")
def fitted() -> MetaModel:
    model = fit_meta(*rows(3000), FEW)
    assert len(model.second) == 1
    return model


@pytest.fixture(scope="module")
def fitted_by_0_1(fitted: MetaModel) -> MetaModel:
    """With two models of the second look, as version 0.1 had."""
    (second,) = fitted.second
    other = fit_blend(Rows(*rows(2000, seed=9)), FEW, 0, tree_balance=0.0)
    return replace(fitted, second=(second, other))


# ------------------------------------------------------------------------------------------------- probabilities


def population(num: int, seed: int) -> tuple[Table, Doubles, Doubles]:
    """Pairs with known probabilities of a link, which are rare; rarer still, evidence that is as good as certain."""
    generator = np.random.default_rng(seed)
    x = np.stack([generator.pareto(1.5, num), generator.normal(size=num)], axis=1)
    p = sigmoid(-9 + 2.2 * np.log1p(x[:, 0]) + np.where(x[:, 1] > 1, 2.0, 0.0) * (x[:, 0] > 1))
    return x.astype(np.float32), (generator.random(num) < p).astype(np.float64), p


def test_probabilities_are_those_of_the_population_and_of_its_rare_part() -> None:
    x, y, _ = population(200_000, 0)
    rare, generator = x[:, 0] > 15, np.random.default_rng(1)
    chosen, weights = [np.flatnonzero(y == 1)], [np.ones(int(y.sum()))]
    for stratum, num in ((rare, 1500), (~rare, 4000)):
        non_links = np.flatnonzero(stratum & (y == 0))
        chosen.append(generator.choice(non_links, num, replace=False))
        weights.append(np.full(num, len(non_links) / num))
    places, w = np.concatenate(chosen), np.concatenate(weights)
    assert w.max() / w.min() > 40
    fresh, _, truth = population(100_000, 2)
    part = fresh[:, 0] > 15

    def ratios(weights: Doubles) -> tuple[float, float]:
        p = sigmoid(fit_meta(x[places], y[places], weights, MetaOptions(num_trees=40)).log_odds(fresh))
        return p.sum() / truth.sum(), p[part].sum() / truth[part].sum()

    assert ratios(w) == pytest.approx((1, 1), abs=0.2)
    everywhere, among_rare = ratios(np.ones_like(w))
    assert everywhere > 3
    assert among_rare > 1.3


@pytest.mark.parametrize("balance", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("boosting", [0.0, 0.5, 1.0])
def test_however_they_are_balanced_in_fitting_log_odds_are_the_same(balance: float, boosting: float) -> None:
    # One column of three values: the log odds are those of the three cells, whatever the weights in fitting.
    cells, weights = np.repeat([0, 1, 2], [400, 300, 300]), np.ones(1000)
    y = np.zeros(1000)
    y[[*range(10), *range(400, 440), *range(700, 900)]] = 1
    weights[y == 0] = np.array([1000.0, 100.0, 10.0])[cells[y == 0]]
    x = cells[:, None].astype(np.float32)
    options = MetaOptions(
        balance=balance, boosting=boosting, leaf_ridge=0.01, ridge=0.01, tree_rate=0.2, num_trees=100, leaf_rows=1
    )
    odds = [weights[(cells == c) & (y == 1)].sum() / weights[(cells == c) & (y == 0)].sum() for c in range(3)]
    found = fit_meta(x, y, weights, options).log_odds([[0], [1], [2]])
    assert found == pytest.approx(np.log(odds), abs=0.05 if boosting == 1 else 0.6)  # which are not linear


def test_a_weight_is_as_many_rows() -> None:
    x, y, _ = rows(300)
    design, number = np.nan_to_num(x).astype(np.float64), np.random.default_rng(0).integers(1, 4, len(x))
    repeated = newton(np.repeat(design, number, axis=0), np.repeat(y, number), np.ones(number.sum()), 1.0)
    assert newton(design, y, number.astype(np.float64), 1.0) == pytest.approx(repeated, abs=1e-6)


def test_links_are_found_that_one_column_alone_does_not_show() -> None:
    x, y, w = rows(3000)
    fresh, labels, _ = rows(3000, seed=1)
    for boosting, least in ((0.0, 0.75), (1.0, 0.8)):
        found = fit_meta(x, y, w, MetaOptions(boosting=boosting, num_trees=50)).log_odds(fresh)
        order = np.argsort(np.argsort(found))
        auc = (order[labels == 1].mean() - (labels.sum() - 1) / 2) / (labels == 0).sum()
        assert auc > least


# ------------------------------------------------------------------------------------------------- logistic


@pytest.mark.parametrize("ridge", [0.1, 10.0])
def test_the_minimum_is_that_of_scikit_learn(ridge: float) -> None:
    x, y, w = rows(500)
    design = np.nan_to_num(np.log1p(np.abs(x))).astype(np.float64)
    expected = LogisticRegression(C=1 / ridge, tol=1e-10, max_iter=10_000).fit(design, y, sample_weight=w)
    found = newton(design, y, w, ridge)
    assert found[0] == pytest.approx(expected.intercept_[0], abs=1e-3)
    assert found[1:] == pytest.approx(expected.coef_[0], abs=1e-3)


def test_heavy_tails_are_tamed_and_plain_columns_left_as_they_are() -> None:
    generator = np.random.default_rng(0)
    s = generator.normal(size=2000) * 2
    x = np.stack([np.exp(3 * s), s, np.zeros(2000)], axis=1).astype(np.float32)
    y = (generator.random(2000) < sigmoid(s)).astype(np.float64)
    model = fit_logistic(x, Weighted(y, np.ones(2000), np.ones(2000)), 1.0)
    assert model.forms.logarithmic.tolist()[:2] == [1, 0]
    assert model.slope[2] == 0


@pytest.mark.parametrize("bend", [-1.0, 0.0, 2.0])
def test_a_part_bends_where_the_truth_does_and_is_a_line_beyond(bend: float) -> None:
    generator = np.random.default_rng(1)
    s = generator.uniform(-2, 2, size=40_000)
    truth = 0.5 * s + bend * np.maximum(s, 0) - 1
    y = (generator.random(len(s)) < sigmoid(truth)).astype(np.float64)
    x, ones = s.astype(np.float32)[:, None], np.ones(len(s))
    model = fit_logistic(x, Weighted(y, ones, ones), 1e-3, num_knots=7)  # the middle one is at about 0
    grid = np.linspace(-1.8, 1.8, 19, dtype=np.float32)[:, None]
    expected = 0.5 * grid[:, 0] + bend * np.maximum(grid[:, 0], 0) - 1
    assert model.sums(grid) == pytest.approx(expected, abs=0.2)
    far = model.sums(np.array([[10.0], [11.0], [12.0]], dtype=np.float32))
    assert far[2] - far[1] == pytest.approx(far[1] - far[0], rel=1e-6)  # a line: no knot is out there
    assert model.contributions(x).sum(axis=1) + model.base == pytest.approx(model.sums(x), abs=1e-9)


def test_labels_that_a_column_separates_have_finite_log_odds() -> None:
    x = np.linspace(-1, 1, 100, dtype=np.float32)[:, None]
    model = fit_meta(x, x[:, 0] > 0, np.ones(100), FEW)
    assert np.isfinite(model.log_odds(np.array([[-1e30], [0], [1e30], [np.inf], [-np.inf], [np.nan]]))).all()


# ------------------------------------------------------------------------------------------------- trees


def test_trees_say_what_scikit_learn_says() -> None:
    x, y, w = rows(2000)
    w[y == 0] *= w[y == 1].sum() / w[y == 0].sum()
    options = MetaOptions(boosting=1.0, num_trees=40, tree_rate=0.1, num_leaves=16, leaf_rows=5, column_share=1.0)
    model = fit_meta(x, y, w, options)
    bins = np.stack([blend._bins(x[:, c], blend._edges(x[:, c], y)) for c in range(4)], axis=1)
    own = HistGradientBoostingClassifier(
        learning_rate=0.1, max_iter=40, max_leaf_nodes=16, min_samples_leaf=5, l2_regularization=1.0, random_state=0
    ).fit(bins, y, sample_weight=w)
    difference = model.first.trees.sums(x) - own.decision_function(bins)
    assert np.ptp(difference) < 1e-12
    assert np.abs(difference[0] + own._baseline_prediction.item()) < 1e-12


def test_bins_are_where_links_are_however_rare_they_are() -> None:
    values = np.concatenate([np.linspace(0, 1, 100_000), np.linspace(1, 2, 500)]).astype(np.float32)
    edges = blend._edges(values, (values > 1).astype(np.float64))
    assert len(edges) < blend.MOST_BINS
    assert (edges > 1).sum() > 80
    assert (edges < 1).sum() > 80


@given(st.lists(st.sampled_from([np.nan, -np.inf, -1.5, 0.0, 1e-30, 2.0, 3e38]), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_edges_part_the_values_that_there_are(values: list[float]) -> None:
    x = meta._as_evidence(np.array(values, dtype=np.float32)[:, None])[:, 0]
    edges = blend._edges(x, np.zeros(len(x)))
    present = x[~np.isnan(x)]
    assert len(np.unique(blend._bins(present, edges))) == len(np.unique(present))


def test_numpy_and_numba_give_the_same_bits(fitted: MetaModel) -> None:
    x, _, _ = rows(5000, seed=3)
    by = {name: fitted.first.trees.sums(x, implementation=name) for name in ("numpy", "numba")}
    assert np.array_equal(by["numpy"], by["numba"])


def test_the_same_bits_whatever_else_is_asked(fitted: MetaModel) -> None:
    x, _, _ = rows(300, seed=4)
    together = fitted.log_odds(x)
    for size in (1, 7, 64):
        apart = np.concatenate([fitted.log_odds(x[start : start + size]) for start in range(0, 300, size)])
        assert np.array_equal(together, apart)
    assert np.array_equal(fitted.log_odds(x[::-1])[::-1], together)
    assert np.array_equal(fitted.log_odds(np.asfortranarray(x)), together)
    assert fitted.log_odds(x[:0]).shape == (0,)


def test_the_same_seed_gives_the_same_model_and_another_another() -> None:
    one, same, other = (fit_meta(*rows(600), FEW, seed=seed).log_odds(rows(50, 5)[0]) for seed in (0, 0, 1))
    assert np.array_equal(one, same)
    assert not np.array_equal(one, other)


def test_trees_of_an_unknown_kind_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd(HistGradientBoostingClassifier):  # type: ignore[misc]
        def fit(self, *arguments: Any, **options: Any) -> Any:
            super().fit(*arguments, **options)
            del self._predictors
            return self

    monkeypatch.setattr("sklearn.ensemble.HistGradientBoostingClassifier", Odd)
    with pytest.raises(TrainingError, match=r"scikit-learn .* are not as this version of vgae knows them"):
        fit_meta(*rows(100), FEW)


# ------------------------------------------------------------------------------------------------- the second look


@pytest.mark.parametrize("multiple", [12.0, 15.0, 20.0])
def test_pairs_above_the_threshold_get_the_log_odds_of_a_model_of_their_own(multiple: float) -> None:
    x, y, w = rows(3000)
    options = MetaOptions(num_trees=15, num_leaves=8, second_look=multiple)
    model = fit_meta(x, y, w, options, seed=3)
    first = fit_blend(Rows(x, y, w), options, 3, tree_balance=1.0).log_odds(x)
    above = first >= model.threshold
    assert w[above].sum() == pytest.approx(multiple * w[y == 1].sum(), abs=w.max())
    straight = replace(options, leaf_rows=300, num_knots=0, boosting=0.75, num_boosted=4)
    second = fit_blend(Rows(x, y, w)[above], straight, 3, tree_balance=0.0).log_odds(x[above])
    found = model.log_odds(x)
    assert np.array_equal(found[above], second)
    assert np.array_equal(found[~above], first[~above])
    assert np.array_equal(model.is_seen_again(x), above)
    assert sigmoid(found[above]) @ w[above] == pytest.approx((w * y)[above].sum(), rel=0.02)  # links there


def test_where_all_pairs_are_links_chance_does_not_order_them() -> None:
    def pairs(num: int, seed: int) -> tuple[Table, Doubles, Doubles]:
        """The higher the first column, the surer a link, from a place on as good as sure; half of them are known."""
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(num, 6))
        is_link = generator.random(num) < sigmoid(4 * (x[:, 0] - 1.5))
        return x.astype(np.float32), is_link.astype(np.float64), (is_link & (generator.random(num) < 0.5)).astype(float)

    lost, lost_by_bends = 0.0, 0.0
    for seed in range(4):
        x, _, known = pairs(20_000, 2 * seed)
        fresh, links, _ = pairs(100_000, 2 * seed + 1)
        model = fit_meta(x, known, np.ones(len(known)), MetaOptions(num_trees=60))
        again = Rows(x, known, np.ones(len(known)))[model.is_seen_again(x)]
        bent = fit_blend(again, replace(stiffer(MetaOptions()), num_knots=6), 0, tree_balance=0.0)

        def found(scores: Table | Doubles, links: Doubles = links) -> float:
            return float(links[np.argsort(-scores, kind="stable")[:2000]].sum())

        best = found(fresh[:, 0])
        lost += best - found(model.log_odds(fresh))
        lost_by_bends += best - found(replace(model, second=(bent,)).log_odds(fresh))
    assert lost < 0.75 * lost_by_bends


@pytest.mark.parametrize(("boosting", "expected"), [(0.0, 0.0), (0.2, 3 / 7), (0.5, 0.75), (0.9, 27 / 28), (1.0, 1.0)])
def test_trees_have_three_times_their_weight_in_a_second_look(boosting: float, expected: float) -> None:
    assert stiffer(MetaOptions(boosting=boosting)).boosting == pytest.approx(expected, abs=1e-12)


def test_what_a_second_look_says_owes_half_as_much_to_its_seed_as_one_growth_of_trees() -> None:
    four = stiffer(MetaOptions(num_trees=60))
    assert stiffer(MetaOptions(num_boosted=7)).num_boosted == 7  # more are asked for
    fresh, _, _ = rows(2000, seed=5)

    def apart(num_boosted: int) -> float:
        """How far models of two seeds are from each other."""
        options = replace(four, num_boosted=num_boosted)
        one, other = (fit_blend(Rows(*rows(6000)), options, seed, tree_balance=0.0) for seed in (0, 50))
        return float(np.std(one.log_odds(fresh) - other.log_odds(fresh)))

    assert apart(four.num_boosted) / apart(1) == pytest.approx(1 / 2, abs=0.1)


def test_where_little_is_to_be_learned_from_there_is_no_second_look() -> None:
    x, y, w = rows(3000)
    few = MetaOptions(num_trees=5, second_look=12)
    assert len(fit_meta(x, y, w, few).second) == 1
    assert fit_meta(x, y, w, MetaOptions(num_trees=5, second_look=0)).second == ()
    assert fit_meta(x[:500], y[:500], w[:500], few).second == ()
    separable = (x[:, 0] > 1).astype(np.float64)  # all links above all non-links
    assert fit_meta(x, separable, np.ones(3000), MetaOptions(num_trees=5, second_look=0.9)).second == ()


def test_a_second_look_finds_what_equal_weights_hide_at_the_top() -> None:
    def pairs(num: int, seed: int) -> tuple[Table, Doubles]:
        """Links are rare; where the first column is high, the second tells a half of them from nine in ten."""
        generator = np.random.default_rng(seed)
        x = generator.normal(size=(num, 2))
        log_odds = np.where(x[:, 0] > 2.2, np.where(np.sin(9 * x[:, 1]) > 0, 2.2, -0.2), -5.5 + x[:, 0])
        return x.astype(np.float32), (generator.random(num) < sigmoid(log_odds)).astype(np.float64)

    x, y = pairs(60_000, 0)
    fresh, links = pairs(60_000, 1)
    options = MetaOptions(num_trees=200, boosting=1.0)
    model = fit_meta(x, y, np.ones(len(y)), options)
    assert model.second

    def precision(scores: Doubles) -> float:
        return float(links[np.argsort(-scores, kind="stable")[:300]].mean())

    assert precision(model.log_odds(fresh)) > precision(model.first.log_odds(fresh)) + 0.02


# ------------------------------------------------------------------------------------------------- explanations


@pytest.mark.parametrize("boosting", [0.0, 0.3, 1.0])
def test_contributions_add_up_to_the_log_odds(boosting: float) -> None:
    x, y, w = rows(3000)
    model = fit_meta(x, y, w, MetaOptions(boosting=boosting, num_trees=15, second_look=12))
    added = model.contributions(x)
    assert added.shape == x.shape
    assert added.sum(axis=1) + model.base(x) == pytest.approx(model.log_odds(x), abs=1e-9)
    mean = np.average(model.first.log_odds(x), weights=w)  # of the population
    assert model.first.base == pytest.approx(mean, abs=1e-9)
    assert np.average(model.first.contributions(x), axis=0, weights=w).sum() == pytest.approx(0, abs=1e-9)
    again = model.is_seen_again(x)
    assert 0 < again.sum() < len(x)
    means = model.base(x)[again]
    assert np.ptp(means) == 0
    assert means[0] == pytest.approx(np.average(model.log_odds(x)[again], weights=w[again]), abs=1e-9)


def test_a_column_that_says_nothing_adds_nothing() -> None:
    x, y, w = rows(800)
    x[:, 1] = 7
    assert np.abs(fit_meta(x, y, w, FEW).contributions(x)[:, 1]).max() < 1e-9


# ------------------------------------------------------------------------------------------------- stored


@pytest.mark.parametrize("which", ["fitted", "fitted_by_0_1"])
def test_a_stored_model_says_the_same_to_the_bit(which: str, request: pytest.FixtureRequest) -> None:
    x, _, _ = rows(200, seed=6)
    model: MetaModel = request.getfixturevalue(which)
    stored = save(model.tensors())
    again = MetaModel.from_tensors(load(stored), 4)
    assert np.array_equal(again.log_odds(x), model.log_odds(x))
    assert np.array_equal(again.contributions(x), model.contributions(x))
    assert np.array_equal(again.base(x), model.base(x))
    assert sum(array.nbytes for array in model.tensors().values()) <= size_limit(FEW, 4)


def test_of_two_models_of_a_second_look_the_mean_counts(fitted_by_0_1: MetaModel) -> None:
    x, _, _ = rows(200, seed=6)
    again = fitted_by_0_1.is_seen_again(x)
    one, other = (each.log_odds(x[again]) for each in fitted_by_0_1.second)
    assert fitted_by_0_1.log_odds(x)[again] == pytest.approx((one + other) / 2, abs=1e-12)
    assert np.abs(one - other).max() > 0.1
    added = fitted_by_0_1.contributions(x).sum(axis=1) + fitted_by_0_1.base(x)
    assert added == pytest.approx(fitted_by_0_1.log_odds(x), abs=1e-9)


def test_one_without_columns_or_trees_is_stored_too() -> None:
    x, y, w = rows(100)
    for evidence, options in ((x[:, :0], FEW), (x, MetaOptions(boosting=0.0)), (np.full_like(x, np.nan), FEW)):
        model = fit_meta(evidence, y, w, options)
        again = MetaModel.from_tensors(load(save(model.tensors())), evidence.shape[1])
        assert np.array_equal(again.log_odds(evidence), model.log_odds(evidence))
    assert model.log_odds(evidence) == pytest.approx(np.log(w[y == 1].sum() / w[y == 0].sum()), abs=1e-6)


Change = Callable[[dict[str, Any]], None]


def put(name: str, place: int, value: float) -> Change:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name][place] = value

    return change


def swap(name: str, array: Any) -> Change:
    def change(tensors: dict[str, Any]) -> None:
        tensors[name] = array(tensors[name]) if callable(array) else array

    return change


def without(prefix: str) -> Change:
    def change(tensors: dict[str, Any]) -> None:
        for name in [name for name in tensors if name.startswith(prefix)]:
            del tensors[name]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda tensors: tensors.pop("mix"), "mix: missing"),
        (lambda tensors: tensors.pop("threshold"), "threshold: one finite number"),
        (lambda tensors: tensors.pop("second.mix"), "mix: missing"),
        (put("threshold", 0, np.nan), "threshold: one finite number"),
        (swap("threshold", np.zeros(2)), "threshold: one finite number"),
        (put("second.trees.left", 0, 0), "trees.left"),
        (put("second.logistic.slope", 0, np.inf), "logistic.slope"),
        (put("hidden.trees.left", 0, 0), "trees.left"),
        (lambda tensors: tensors.pop("hidden.mix"), "mix: missing"),
        (without("second."), r"second.mix: missing"),
        (swap("hidden.other", np.zeros(3)), "other: missing or not known"),
        (swap("second.other", np.zeros(3)), "other: missing or not known"),
        (swap("other", np.zeros(3)), "other: missing or not known"),
        (put("mix", 0, 2.0), "mix"),
        (put("mix", 1, 0.0), "mix"),
        (put("mix", 2, np.nan), "mix"),
        (swap("mix", np.ones(3, dtype=np.float32)), "mix"),
        (put("trees.left", 0, 0), "trees.left"),
        (put("trees.left", 1, 1), "trees.left"),  # a loop
        (put("trees.left", 0, 1000), "trees.left"),  # in another tree
        (put("trees.left", 0, -3), "trees.left"),
        (put("trees.right", 0, 1), "trees.left"),  # two parents
        (put("trees.feature", 0, 4), "trees.feature"),
        (put("trees.feature", 0, -1), "trees.feature"),
        (put("trees.threshold", 0, np.inf), "trees.threshold"),
        (put("trees.value", 0, np.nan), "trees.value"),
        (put("trees.missing_left", 0, 2), "trees.missing_left"),
        (put("trees.starts", 0, 1), "trees.starts"),
        (put("trees.starts", 1, 0), "trees.starts"),
        (put("trees.starts", -1, 2**40), "trees"),
        (swap("trees.starts", np.empty(0, dtype=np.int64)), "trees.starts"),
        (swap("trees.starts", lambda old: old.astype(np.int32)), "trees.starts"),
        (swap("trees.value", lambda old: old[:-1]), "trees.value"),
        (swap("trees.value", lambda old: old.astype(np.float32)), "trees.value"),
        (swap("logistic.slope", np.zeros(5)), "logistic.slope"),
        (swap("logistic.slope", np.zeros((4, 1))), "logistic.slope"),
        (put("logistic.slope", 0, np.inf), "logistic.slope"),
        (put("logistic.unit", 0, 0.0), "logistic.unit"),
        (put("logistic.scale", 0, -1.0), "logistic.scale"),
        (put("logistic.logarithmic", 0, 3), "logistic.logarithmic"),
    ],
)
def test_what_was_changed_is_refused_in_a_sentence(fitted_by_0_1: MetaModel, change: Change, words: str) -> None:
    tensors = {name: array.copy() for name, array in fitted_by_0_1.tensors().items()}
    change(tensors)
    message = message_of(lambda: MetaModel.from_tensors(tensors, 4))
    assert words in message
    assert message.endswith(".")


@pytest.fixture(scope="module")
def small() -> Trees:
    return fit_meta(*rows(80), MetaOptions(num_trees=3, num_leaves=4, leaf_rows=5)).first.trees


@given(data=st.data())
@settings(max_examples=100, deadline=None)
def test_any_change_is_refused_or_still_has_an_end(small: Trees, data: st.DataObject) -> None:
    x, _, _ = rows(20)
    tensors = {name: array.copy() for name, array in small.tensors().items()}
    for _ in range(data.draw(st.integers(1, 3))):
        name = data.draw(st.sampled_from(sorted(tensors)))
        place = data.draw(st.integers(0, len(tensors[name]) - 1))
        tensors[name][place] = data.draw(st.integers(0, 7))
    try:
        changed = Trees.from_tensors(tensors, 4)
    except InputError:
        return
    sums = changed.sums(x, implementation="numpy")
    assert np.isfinite(sums).all()
    assert np.array_equal(sums, changed.sums(x, implementation="numba"))


def test_asking_a_stored_model_loads_no_scikit_learn() -> None:
    code = "import sys; import vgae.stack.meta; assert not any(m.startswith('sklearn') for m in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


# ------------------------------------------------------------------------------------------------- input


def test_what_cannot_be_is_said_in_a_sentence(fitted: MetaModel) -> None:
    x, y, w = rows(50)
    assert "evidence: 4 columns are needed, got 3" in message_of(lambda: fitted.log_odds(x[:, :3]))
    assert "evidence: a table" in message_of(lambda: fitted.log_odds(x[0]))
    assert "one is needed for each of 50 rows" in message_of(lambda: fit_meta(x, y[:-1], w))
    assert "labels: each must be 0 or 1" in message_of(lambda: fit_meta(x, y + 1, w))
    assert "weights: each must be a finite number above 0" in message_of(lambda: fit_meta(x, y, w - w.max()))
    assert "only links: the graph is complete" in message_of(lambda: fit_meta(x, np.ones(50), w))
    assert "only non-links" in message_of(lambda: fit_meta(x, np.zeros(50), w))
    assert "boosting" in message_of(lambda: MetaOptions(boosting=1.5))
