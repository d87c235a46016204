"""Protocols: what held-out links are compared with. Scores by different protocols cannot be compared with each other.

paper   as many random non-links as links: AUC and AP, as in Kipf & Welling (2016), with MRR and Hits@K in this sample
heart   for each link 500 hard non-links of its own: MRR and Hits@K (`heart.py`)
ogb     non-links that all links share, or some for each link, out of files: Hits@K or MRR (`ogb.py`)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vgae.errors import InputError
from vgae.evaluation.evaluate import Scorer, evaluate_split
from vgae.evaluation.heart import NUM_NEGATIVES, SETS, evaluate_heart, heuristics_of
from vgae.evaluation.ogb import Negatives, evaluate_ogb
from vgae.graph.given import NamedPairs, NegativesOfLinks, named_pairs
from vgae.graph.graph import Graph
from vgae.graph.pairs import check_pairs
from vgae.graph.split import LinkSplit
from vgae.options import one_of
from vgae.words import count, shown

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
    negatives: Mapping[str, Any] | None = None,
    sets: Sequence[str] = SETS,
    seed: int = 0,
) -> ProtocolScores:
    """Score the validation and test links of a split, as far as there are any, by a protocol.

    `negatives` are non-links for `ogb`, under the names val and test: a file, rows of two nodes (M×2) that all links
    share, or a tuple of links (M×2) and nodes that stand in for their second ends (M×K). `sets` are those to score,
    validation and test; `seed` is for what `heart` leaves to chance.

    >>> import vgae
    >>> split = vgae.split_links(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    >>> model = vgae.GAE(iterations=20, seed=0).fit(split.train)
    >>> found = vgae.evaluate_protocol(model, split, "heart")
    >>> sorted(found.metrics)
    ['test', 'validation']
    >>> found.protocol
    'heart'
    """
    protocol = one_of(protocol, "protocol", PROTOCOLS)
    if negatives and protocol != "ogb":
        raise InputError(f"negatives: the protocol {protocol} has its own; they are for ogb.")
    if protocol == "ogb":
        given = {name: _negatives(split.train, name, each) for name, each in (negatives or {}).items()}
        scores = evaluate_ogb(scorer, split, given, sets=sets)
        return ProtocolScores(protocol, scores.metrics, scores.compared)
    if protocol == "heart":
        *others, last = heuristics_of(split.train)
        words = f"up to {NUM_NEGATIVES} hard non-links of each link, by {', '.join(others)} and {last}"
        metrics = evaluate_heart(scorer, split, sets=sets, seed=seed)
        return ProtocolScores(protocol, metrics, dict.fromkeys(metrics, words))
    metrics = {name: scores for name, scores in evaluate_split(scorer, split).items() if name in sets}
    held_out = {"validation": split.val, "test": split.test}
    return ProtocolScores(
        protocol, metrics, {name: count(len(held_out[name].non_links), "non-link") for name in metrics}
    )


def _negatives(graph: Graph, name: str, given: Any) -> Negatives:
    """What somebody gives as non-links, as pairs of node indices."""
    what = f"negatives, {name}"
    if isinstance(given, NamedPairs | NegativesOfLinks):
        return given
    if isinstance(given, str | Path):
        found: Negatives = import_module("vgae.io.pair_files").read_negatives(given, graph)  # which loads pyarrow
        return found
    if not isinstance(given, tuple):
        return named_pairs(graph, given, what)
    if len(given) != 2:
        raise InputError(f"{what}: a tuple of links and other nodes is needed, got {shown(given)}.")
    links, others = named_pairs(graph, given[0], what).pairs, np.asarray(given[1])
    if others.ndim != 2 or len(others) != len(links) or others.size == 0:
        raise InputError(f"{what}: a row of nodes is needed for each of the {len(links)} links, got {others.shape}.")
    flat = np.stack([others.ravel(), others.ravel()], axis=1)
    return NegativesOfLinks(what, links, check_pairs(flat, graph.num_nodes, what)[:, 0].reshape(others.shape))
