"""Metrics against brute force and against values worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

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
    expected = 1.0 if k > len(non_links) else float(np.mean(links > sorted(non_links.tolist(), reverse=True)[k - 1]))
    assert hits_at(k, links, non_links) == expected


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
