"""Metrics against brute force, scikit-learn, and values worked out by hand."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, roc_auc_score

from vgae.errors import InputError
from vgae.evaluation.evaluate import evaluate
from vgae.evaluation.metrics import auc_and_ap, hits_at, link_metrics, mean_reciprocal_rank
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut

# Few distinct scores, so that ties are common.
scores = st.lists(st.integers(-3, 3), min_size=1, max_size=25).map(lambda values: np.array(values, dtype=np.float32))


@given(links=scores, non_links=scores)
def test_auc_is_the_share_of_pairs_ranked_right(links: NDArray[np.float32], non_links: NDArray[np.float32]) -> None:
    won = links[:, None] > non_links[None, :]
    tied = links[:, None] == non_links[None, :]
    assert auc_and_ap(links, non_links)["auc"] == pytest.approx(float(np.mean(won + tied / 2)))


@given(links=scores, non_links=scores)
def test_ap_is_precision_averaged_over_the_recall_steps(
    links: NDArray[np.float32], non_links: NDArray[np.float32]
) -> None:
    total, recall = 0.0, 0.0
    for threshold in sorted({*links.tolist(), *non_links.tolist()}, reverse=True):
        hits, misses = float((links >= threshold).sum()), float((non_links >= threshold).sum())
        total += (hits / len(links) - recall) * hits / (hits + misses)
        recall = hits / len(links)
    assert auc_and_ap(links, non_links)["ap"] == pytest.approx(total)


@given(links=scores, non_links=scores)
def test_reciprocal_rank_counts_non_links_above_and_half_the_ties(
    links: NDArray[np.float32], non_links: NDArray[np.float32]
) -> None:
    ranks = [1 + (non_links > link).sum() + (non_links == link).sum() / 2 for link in links]
    assert mean_reciprocal_rank(links, non_links) == pytest.approx(float(np.mean([1 / rank for rank in ranks])))


@given(links=scores, non_links=scores, k=st.integers(1, 30))
def test_hits_are_links_above_the_kth_non_link(
    links: NDArray[np.float32], non_links: NDArray[np.float32], k: int
) -> None:
    found = link_metrics(links, non_links, hits=(k,))
    if k > len(non_links):  # every link would be a hit, which says nothing
        assert f"hits@{k}" not in found
        with pytest.raises(InputError, match=f"Hits@{k} needs at least {k} non-links"):
            hits_at(k, links, non_links)
    else:
        expected = float(np.mean(links > sorted(non_links.tolist(), reverse=True)[k - 1]))
        assert hits_at(k, links, non_links) == found[f"hits@{k}"] == expected


SIZES = (1, 2, 3, 7, 50, 263, 1000, 4001)
SCORES: dict[str, Callable[[np.random.Generator, int], NDArray[np.floating]]] = {
    "all different": lambda generator, size: generator.normal(size=size).astype(np.float32),
    "double precision": lambda generator, size: generator.normal(size=size),
    "many ties": lambda generator, size: generator.integers(-3, 4, size=size).astype(np.float32),
    "some ties": lambda generator, size: np.round(generator.normal(size=size), 2).astype(np.float32),
    "all the same": lambda _, size: np.full(size, 0.5, dtype=np.float32),
    "zeros of both signs": lambda generator, size: generator.choice([0.0, -0.0, 1.0], size=size),
    "next to each other": lambda generator, size: np.nextafter(np.float32(1), generator.choice([0, 1, 2], size=size)),
    "far apart": lambda generator, size: generator.choice([-1e30, -1e-40, 1e-40, 1e30], size=size).astype(np.float32),
}


@pytest.mark.parametrize("kind", SCORES)
def test_auc_and_ap_are_scikit_learns(kind: str) -> None:
    """AP to the bit; AUC is counted, where scikit-learn adds up areas and rounds."""
    generator = np.random.default_rng(0)
    for num_links in SIZES:
        for num_non_links in SIZES:
            links, non_links = (SCORES[kind](generator, size) for size in (num_links, num_non_links))
            found = auc_and_ap(links, non_links)
            labels, scores = np.repeat([1, 0], [num_links, num_non_links]), np.concatenate([links, non_links])
            assert found["auc"] == pytest.approx(roc_auc_score(labels, scores), rel=0, abs=1e-15)
            assert found["ap"] == average_precision_score(labels, scores)


@pytest.mark.parametrize("undefined", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("where", ["links", "non_links"])
def test_scores_that_are_no_numbers_are_refused(undefined: float, where: str) -> None:
    scores = {"links": np.array([1.0, 2.0]), "non_links": np.array([0.0, 1.0])}
    scores[where][1] = undefined
    with pytest.raises(InputError, match="finite numbers"):
        auc_and_ap(**scores)


def test_figures_worked_out_by_hand() -> None:
    found = link_metrics(np.array([3.0, 1.0]), np.array([2.0, 0.0]), hits=(1, 2))
    assert found == pytest.approx({"auc": 0.75, "ap": 5 / 6, "mrr": 0.75, "hits@1": 0.5, "hits@2": 1.0})


def test_nothing_held_out_is_said() -> None:
    with pytest.raises(InputError, match="no held-out pairs"):
        auc_and_ap(np.array([]), np.array([]))


def test_evaluate_takes_any_scorer() -> None:
    class Sum:
        def logits(self, pairs: Pairs) -> NDArray[np.float32]:
            return np.asarray(pairs.sum(axis=1), dtype=np.float32)

    held_out = HeldOut(links=np.array([[5, 6], [0, 1]]), non_links=np.array([[2, 3], [0, 2]]))
    found = evaluate(Sum(), held_out)  # links 11 and 1, non-links 5 and 2
    assert found["auc"] == pytest.approx(0.5)
    assert found["mrr"] == pytest.approx((1 + 1 / 3) / 2)
