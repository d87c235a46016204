"""Standard errors by the bootstrap, against closed forms; and whether a scorer tells pairs apart."""

import numpy as np
import pytest

from vgae.evaluation.bootstrap import Difference, _Ranking, bootstrap
from vgae.evaluation.metrics import area_under_roc, average_precision
from vgae.evaluation.spread import Spread


@pytest.fixture
def scores() -> tuple[np.ndarray, np.ndarray]:
    """Links that score higher on average, with many ties."""
    generator = np.random.default_rng(0)
    return generator.normal(1, 1, 300).round(1), generator.normal(0, 1, 200).round(1)


def test_pairs_that_count_once_give_the_plain_scores(scores: tuple[np.ndarray, np.ndarray]) -> None:
    auc, ap = _Ranking(*scores).auc_and_ap(np.ones((1, 500), dtype=np.int64))
    assert auc[0] == pytest.approx(area_under_roc(*scores), rel=1e-12)
    assert ap[0] == pytest.approx(average_precision(*scores), rel=1e-12)


def test_pairs_that_count_so_often_are_as_if_they_were_there_so_often(scores: tuple[np.ndarray, np.ndarray]) -> None:
    weights = np.random.default_rng(1).integers(0, 4, 500)
    auc, ap = _Ranking(*scores).auc_and_ap(weights[None])
    repeated = np.repeat(scores[0], weights[:300]), np.repeat(scores[1], weights[300:])
    assert auc[0] == pytest.approx(area_under_roc(*repeated), rel=1e-12)
    assert ap[0] == pytest.approx(average_precision(*repeated), rel=1e-12)


def test_standard_error_of_auc_is_delongs(scores: tuple[np.ndarray, np.ndarray]) -> None:
    links, non_links = scores
    above = (links[:, None] > non_links).astype(float) + 0.5 * (links[:, None] == non_links)
    of_links, of_non_links = above.mean(axis=1), above.mean(axis=0)
    closed_form = np.sqrt(of_links.var(ddof=1) / len(links) + of_non_links.var(ddof=1) / len(non_links))
    (drawn,) = bootstrap([scores], num_draws=2000)
    assert drawn["auc"].std() == pytest.approx(closed_form, rel=0.08)  # 2,000 draws are good for 1.6%
    assert drawn["auc"].mean() == pytest.approx(area_under_roc(*scores), abs=0.003)


def test_scorers_are_drawn_together(scores: tuple[np.ndarray, np.ndarray]) -> None:
    same, again, other = bootstrap([scores, scores, scores[::-1]])
    np.testing.assert_array_equal(same["ap"], again["ap"])
    shifted = (scores[0] + np.random.default_rng(2).normal(0, 0.1, 300), scores[1])
    first, second = bootstrap([scores, shifted])
    assert (first["auc"] - second["auc"]).std() < first["auc"].std() / 3  # what is hard for one is hard for the other
    assert same.keys() == other.keys() == {"auc", "ap"}


def test_a_difference_is_clear_if_its_interval_leaves_out_0() -> None:
    assert Difference(0.05, 0.02).is_clear
    assert Difference(-0.05, 0.02).is_clear
    assert not Difference(0.05, 0.03).is_clear
    assert not Difference(0.0, 0.0).is_clear


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("offset", [0.0, 1.0, -100.0])
def test_spread_does_not_depend_on_the_scale(scale: float, offset: float) -> None:
    logits = np.random.default_rng(0).normal(offset, 1, 1000) * scale
    assert not Spread.of(logits).is_none
    assert Spread.of(np.full(1000, offset * scale)).is_none
    few = np.where(np.arange(1000) < 20, logits, offset * scale)  # all nodes but a few are in one place
    assert Spread.of(few).is_none


def test_spread_that_float32_rounds_off_is_none() -> None:
    noise = np.random.default_rng(0).normal(0, 1e-6, 1000)
    assert Spread.of(100 * (1 + noise)).is_none
    assert not Spread.of(100 * (1 + 1e3 * noise)).is_none
