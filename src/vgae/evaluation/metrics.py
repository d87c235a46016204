"""Link-prediction metrics on the logits of held-out links and non-links.

AUC     probability that a random link scores above a random non-link (ties count ½)
AP      average precision: Σ (recall_k - recall_{k-1})·precision_k down the ranking
MRR     mean over links of 1/rank, the rank taken among all non-links of the set (ties at their middle)
Hits@K  share of links that score above the K-th best non-link of the set; not defined for fewer than K non-links

Where every link has non-links of its own, it is ranked among these:

MRR     mean over links of 1/rank, ties at their middle
Hits@K  share of links of rank K or better, ties at their middle; not reported where a link has fewer than K non-links
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError

Scores = npt.NDArray[np.floating]


def auc_and_ap(links: Scores, non_links: Scores) -> dict[str, float]:
    """The paper's two metrics, as fractions of 1."""
    if len(links) == 0 and len(non_links) == 0:
        raise InputError("There are no held-out pairs to score: hold out links with val and test above 0.")
    if len(links) == 0 or len(non_links) == 0:
        raise InputError(
            f"Links and non-links are needed to score, and there are {len(links)} links and {len(non_links)} non-links."
        )
    if not (np.isfinite(links).all() and np.isfinite(non_links).all()):
        raise InputError("Scores are needed that are finite numbers, and some of these are infinite or undefined.")
    return {"auc": area_under_roc(links, non_links), "ap": average_precision(links, non_links)}


def area_under_roc(links: Scores, non_links: Scores) -> float:
    """AUC by counting: of all pairs of a link and a non-link, those in which the link scores above, ties as half."""
    ordered = np.sort(non_links)
    below, not_above = (int(np.searchsorted(ordered, links, side=side).sum()) for side in ("left", "right"))
    return (below + not_above) / (2 * len(links) * len(non_links))


def average_precision(links: Scores, non_links: Scores) -> float:
    """AP over the different scores, from the highest down; those that are equal are taken at once."""
    scores = np.concatenate([links, non_links])
    order = np.argsort(-scores, kind="stable")
    is_last = np.append(np.diff(scores[order]) != 0, True)
    found = np.cumsum(order < len(links))[is_last]
    taken = np.flatnonzero(is_last) + 1
    gained = np.diff(found / len(links), prepend=0.0)
    return float(np.sum((gained * (found / taken))[::-1]))


def mean_reciprocal_rank(links: Scores, non_links: Scores) -> float:
    """Mean of 1/rank over the links, each ranked among all non-links."""
    ordered = np.sort(non_links)
    not_above = np.searchsorted(ordered, links, side="right")
    below = np.searchsorted(ordered, links, side="left")
    ranks = 1 + len(ordered) - (not_above + below) / 2
    return float(np.mean(1 / ranks))


def hits_at(k: int, links: Scores, non_links: Scores) -> float:
    """Share of links that score strictly above the k-th best non-link, of which there have to be k."""
    if len(non_links) < k:
        raise InputError(f"Hits@{k} needs at least {k} non-links, and there are {len(non_links)}.")
    threshold = np.partition(non_links, -k)[-k]
    return float(np.mean(links > threshold))


def link_metrics(links: Scores, non_links: Scores, *, hits: Sequence[int] = (10, 50, 100)) -> dict[str, float]:
    """All metrics by name, as fractions of 1; Hits@K for every K that there are enough non-links for."""
    metrics = auc_and_ap(links, non_links)
    metrics["mrr"] = mean_reciprocal_rank(links, non_links)
    return metrics | hits_metrics(links, non_links, hits)


def hits_metrics(links: Scores, non_links: Scores, hits: Sequence[int]) -> dict[str, float]:
    """Hits@K by name, for every K that there are enough non-links for."""
    return {f"hits@{k}": hits_at(k, links, non_links) for k in hits if k <= len(non_links)}


def metrics_of_ranks(ranks: Scores, num_ranked: int, *, hits: Sequence[int]) -> dict[str, float]:
    """MRR and Hits@K of links that each have a rank among non-links of their own, at least `num_ranked` of them."""
    metrics = {"mrr": float(np.mean(1 / ranks))}
    return metrics | {f"hits@{k}": float(np.mean(ranks <= k)) for k in hits if k <= num_ranked}
