"""Protocols: what held-out links are compared with. Scores by different protocols cannot be compared with each other.

paper   as many random non-links as links: AUC and AP, as in Kipf & Welling (2016), with MRR and Hits@K in this sample
heart   for each link 500 hard non-links of its own: MRR and Hits@K (`heart.py`)
ogb     non-links that all links share, or some for each link, out of files: Hits@K or MRR (`ogb.py`)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from vgae.errors import InputError
from vgae.evaluation.evaluate import Scorer, evaluate_split
from vgae.evaluation.heart import NUM_NEGATIVES, evaluate_heart, heuristics_of
from vgae.evaluation.ogb import Negatives, evaluate_ogb
from vgae.graph.split import LinkSplit
from vgae.options import one_of
from vgae.words import count

PROTOCOLS = ("paper", "heart", "ogb")


@dataclass(frozen=True)
class ProtocolScores:
    """Metrics of the held-out sets, the protocol they were made by, and what the links of a set were compared with."""

    protocol: str
    metrics: dict[str, dict[str, float]]
    compared: dict[str, str]


def evaluate_protocol(
    scorer: Scorer,
    split: LinkSplit,
    protocol: str = "paper",
    *,
    negatives: Mapping[str, Negatives] | None = None,
    seed: int = 0,
) -> ProtocolScores:
    """Score the validation and test links of a split, as far as there are any, by a protocol.

    `negatives` are non-links for `ogb`, under the names val and test; `seed` is for what `heart` leaves to chance.
    """
    protocol = one_of(protocol, "protocol", PROTOCOLS)
    if negatives and protocol != "ogb":
        raise InputError(f"negatives: the protocol {protocol} has its own; they are for ogb.")
    if protocol == "ogb":
        scores = evaluate_ogb(scorer, split, negatives)
        return ProtocolScores(protocol, scores.metrics, scores.compared)
    if protocol == "heart":
        chosen = " and ".join(heuristics_of(split.train)).replace(" and ", ", ", 1 if split.train.num_features else 0)
        words = f"up to {NUM_NEGATIVES} hard non-links of each link, by {chosen}"
        metrics = evaluate_heart(scorer, split, seed=seed)
        return ProtocolScores(protocol, metrics, dict.fromkeys(metrics, words))
    metrics = evaluate_split(scorer, split)
    sets = {"validation": split.val, "test": split.test}
    return ProtocolScores(
        protocol, metrics, {name: count(len(sets[name].non_links), "random non-link") for name in metrics}
    )
