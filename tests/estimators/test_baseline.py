"""Baselines asked in the same way as models: fit, recommend, probabilities, save and load."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import vgae
from helpers import message_of
from vgae.baselines import BASELINES, resource_allocation
from vgae.errors import InputError
from vgae.evaluation.all_pairs import Candidates, rank_all_pairs
from vgae.graph.pairs import canonical
from vgae.ops import Excluded, top_of_all


@pytest.fixture(scope="module")
def split() -> vgae.LinkSplit:
    graph = vgae.stochastic_block_model(300, 12, degree_within=9, degree_between=1, feature_dim=60, seed=2)
    return vgae.split_links(graph, seed=0)


@pytest.mark.parametrize("method", BASELINES)
def test_every_baseline_is_saved_and_loaded(method: str, split: vgae.LinkSplit, tmp_path: Path) -> None:
    fitted = vgae.Baseline(method, seed=3).fit(split.train, validation=split.val)
    fitted.save(tmp_path / "run", split=split)
    loaded = vgae.load(tmp_path / "run")
    assert repr(loaded) == repr(fitted)
    pairs = split.test.pairs
    np.testing.assert_array_equal(loaded.logits(pairs), fitted.logits(pairs))
    np.testing.assert_array_equal(loaded.predict_proba(pairs), fitted.predict_proba(pairs))
    assert json.loads((tmp_path / "run/metrics.json").read_text())["test"] == vgae.evaluate(fitted, split.test)
    config = json.loads((tmp_path / "run/config.json").read_text())
    assert (config["baseline"]["method"], config["baseline"]["seed"]) == (method, 3)
    has_embedding = method in ("sc", "dw")
    assert config["baseline"]["dim"] == (128 if has_embedding else 0)
    if has_embedding:
        np.testing.assert_array_equal(loaded.transform(), fitted.transform())
        assert len(loaded.similar(0, k=3)) == 3
    else:
        assert message_of(loaded.transform) == f"The baseline {method} has no embeddings; sc and dw have."
        assert "no embeddings" in message_of(lambda: loaded.similar(0))


@pytest.mark.parametrize("method", BASELINES)
def test_recommended_links_are_the_best_of_all_rows(method: str, split: vgae.LinkSplit) -> None:
    fitted = vgae.Baseline(method).fit(split.train, validation=split.val)
    found = fitted.recommend(k=50)
    rows = fitted.rows()
    known = np.concatenate([split.train.edges, split.val.links])
    expected = top_of_all(rows, top=50, symmetric=True, excluded=Excluded.of(known, split.train.num_nodes, rows.device))
    np.testing.assert_array_equal(found.pairs, expected.pairs.numpy())
    np.testing.assert_allclose(found.logits, expected.logits.numpy(), rtol=1e-5)
    assert (found.known == "no").all()
    of_some = fitted.recommend(k=2, nodes=[5, 7])
    assert of_some.pairs[:, 0].tolist() == [5, 5, 7, 7]


def test_probabilities_need_validation_links(split: vgae.LinkSplit) -> None:
    without = vgae.Baseline("ra").fit(split.train)
    assert np.isnan(without.predict_proba(split.test.pairs)).all()
    assert np.isnan(without.recommend(k=3).probabilities).all()
    calibrated = vgae.Baseline("ra").fit(split.train, validation=split.val)
    probabilities = calibrated.predict_proba(split.test.pairs)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    order = np.argsort(calibrated.logits(split.test.pairs), kind="stable")
    assert (np.diff(probabilities[order]) >= 0).all()
    _, reliability = calibrated.reliability(split.test)
    assert reliability.error < 0.1
    assert reliability.expected.sum() == pytest.approx(reliability.found.sum(), rel=0.35)  # by 75 validation links


def test_scores_and_ranking_are_those_of_the_heuristic(split: vgae.LinkSplit) -> None:
    fitted = vgae.Baseline("ra").fit(split.train, validation=split.val)
    scorer = resource_allocation(split.train)
    found = fitted.evaluate(split.test)
    known = np.concatenate([split.train.edges, canonical(split.val.links)])
    expected = rank_all_pairs(scorer, split.test.links, Candidates(split.train.num_nodes, known))
    assert {name: found[name] for name in expected} == expected
    assert fitted.metrics(split.test)["auc"] == vgae.evaluate(scorer, split.test)["auc"]


def test_parameters_are_scikit_learns(split: vgae.LinkSplit) -> None:
    fitted = vgae.Baseline("cn", seed=4).fit(split.train)
    copy = clone(fitted)
    assert copy.get_params() == {"method": "cn", "seed": 4}
    assert not hasattr(copy, "scored_")
    assert copy.set_params(method="pa").fit(split.train).method == "pa"
    with pytest.raises(ValueError, match="no parameter 'depth'"):
        copy.set_params(depth=3)


def test_what_cannot_be_is_refused_in_a_sentence(split: vgae.LinkSplit, tmp_path: Path) -> None:
    assert "has not been fitted" in message_of(lambda: vgae.Baseline("ra").recommend())
    assert "is not one of sc, dw, cn" in message_of(lambda: vgae.Baseline("magic").fit(split.train))
    fitted = vgae.Baseline("ra").fit(split.train)
    assert "no posterior to draw from" in message_of(lambda: fitted.recommend(samples=5))
    assert "no posterior to draw from" in message_of(lambda: fitted.predict_links([(0, 1)], seed=5))
    other = vgae.split_links(vgae.stochastic_block_model(200, 2, seed=0))
    assert "not fitted on the training graph" in message_of(lambda: fitted.save(tmp_path / "run", split=other))
    assert "learn what it is judged by" in message_of(lambda: vgae.Baseline().fit(split.train, validation=_seen(split)))
    fitted.save(tmp_path / "run")
    with pytest.raises(InputError, match="already used"):
        fitted.save(tmp_path / "run")


def _seen(split: vgae.LinkSplit) -> vgae.HeldOut:
    return vgae.HeldOut(split.train.edges[:10], split.val.non_links)
