"""scikit-learn's own checks of estimators: those that apply pass, the others are listed with the reason."""

# ruff: noqa: N806 - X is what scikit-learn calls it

import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.utils import get_tags
from sklearn.utils.estimator_checks import parametrize_with_checks

import vgae
from vgae.errors import InputError

DOCS = Path(__file__).parents[2] / "docs" / "scikit-learn.md"
SMALL = {"iterations": 8, "hidden_dim": 8, "latent_dim": 4, "device": "cpu"}

MATRIX = "fits a matrix, which is refused"
WORDS = "fits a matrix, which is refused in words about links, not in scikit-learn's own"
TARGET = "fits a matrix, which is refused, and is about any y; only samples of links have a y, of 0 and 1"
COLUMNS = "fits a matrix, which is refused, to count its columns; n_features_in_ counts those of the nodes' features"

NOT_APPLICABLE = {
    "check_classifier_data_not_an_array": MATRIX,
    "check_classifier_not_supporting_multiclass": TARGET,
    "check_classifiers_classes": TARGET,
    "check_classifiers_one_label": TARGET,
    "check_classifiers_regression_target": TARGET,
    "check_classifiers_train": MATRIX,
    "check_complex_data": WORDS,
    "check_decision_proba_consistency": MATRIX,
    "check_dict_unchanged": MATRIX,
    "check_dont_overwrite_parameters": MATRIX,
    "check_dtype_object": MATRIX,
    "check_estimator_sparse_tag": MATRIX,
    "check_estimators_dtypes": MATRIX,
    "check_estimators_empty_data_messages": WORDS,
    "check_estimators_fit_returns_self": MATRIX,
    "check_estimators_nan_inf": WORDS,
    "check_estimators_overwrite_params": MATRIX,
    "check_estimators_pickle": MATRIX,
    "check_f_contiguous_array_estimator": MATRIX,
    "check_fit2d_1feature": WORDS,
    "check_fit2d_1sample": WORDS,
    "check_fit2d_predict1d": MATRIX,
    "check_fit_check_is_fitted": MATRIX,
    "check_fit_idempotent": MATRIX,
    "check_fit_score_takes_y": MATRIX,
    "check_methods_sample_order_invariance": MATRIX,
    "check_methods_subset_invariance": MATRIX,
    "check_n_features_in": COLUMNS,
    "check_n_features_in_after_fitting": COLUMNS,
    "check_pipeline_consistency": MATRIX,
    "check_positive_only_tag_during_fit": WORDS,
    "check_readonly_memmap_input": MATRIX,
    "check_supervised_y_2d": TARGET,
    "check_transformer_data_not_an_array": MATRIX,
    "check_transformer_general": MATRIX,
}


@parametrize_with_checks([vgae.GAE(**SMALL), vgae.VGAE(**SMALL)])  # type: ignore[untyped-decorator]
def test_scikit_learns_checks(estimator: Any, check: Any) -> None:
    """Those that are listed have to fail, and because what they fit is refused; pytest's xfail would not say why."""
    if check.func.__name__ not in NOT_APPLICABLE:
        check(estimator)
        return
    with pytest.raises((InputError, AssertionError)) as failure:
        check(estimator)
    assert "InputError" in [type(each).__name__ for each in causes_of(failure.value)]


def causes_of(error: BaseException | None) -> list[BaseException]:
    return [] if error is None else [error, *causes_of(error.__cause__ or error.__context__)]


def test_tags_say_what_the_estimators_are() -> None:
    tags = get_tags(vgae.VGAE())
    assert tags.estimator_type == "classifier"
    assert tags.classifier_tags is not None
    assert not tags.classifier_tags.multi_class
    assert tags.transformer_tags is not None
    assert tags.transformer_tags.preserves_dtype == []
    assert tags.requires_fit
    assert not tags.non_deterministic
    assert not tags.target_tags.required
    assert tags.input_tags.two_d_array
    assert tags.input_tags.sparse


@pytest.mark.parametrize("estimator", [vgae.GAE, vgae.VGAE])
@pytest.mark.parametrize("as_samples", [False, True])
def test_what_the_other_checks_are_about_holds_on_a_graph(estimator: type[vgae.GAE], as_samples: bool) -> None:
    graph = vgae.stochastic_block_model(80, 4, feature_dim=12, seed=9)
    X, y = vgae.link_samples(graph)
    data: Any = (X, y) if as_samples else (graph,)
    model = estimator(**SMALL)
    parameters = model.get_params()
    assert model.fit(*data) is model
    assert model.get_params() == parameters
    assert {name for name in vars(model) if name not in parameters} == {"fitted_"}
    before = dict(vars(model))
    logits, embeddings = model.decision_function(X), model.transform()
    model.predict(X), model.predict_proba(X), model.score(X, y)
    assert vars(model) == before
    np.testing.assert_array_equal(model.fit(*data).transform(), embeddings)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(model.decision_function(X[order]), logits[order])
    np.testing.assert_array_equal(
        np.concatenate([model.decision_function(X[:7]), model.decision_function(X[7:])]), logits
    )
    assert logits.shape == y.shape
    assert (np.diff(model.predict_proba(X)[logits.argsort()]) >= 0).all()
    twin = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own
    np.testing.assert_array_equal(twin.decision_function(X), logits)
    assert model.n_features_in_ == graph.num_features


def test_the_page_lists_the_checks_that_do_not_apply() -> None:
    listed = dict(re.findall(r"^\| `(check_\w+)` \| (.*) \|$", DOCS.read_text(), re.MULTILINE))
    assert listed == NOT_APPLICABLE
