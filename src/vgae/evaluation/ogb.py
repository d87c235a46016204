"""The evaluators of the Open Graph Benchmark (Hu et al., 2020): non-links that all links share, or some for each link.

shared     Hits@K: the share of links that score above the K-th best non-link (ogbl-ddi, ogbl-collab, ogbl-ppa)
per link   MRR, and Hits@K: each link is ranked among its own non-links, ties at their middle (ogbl-citation2)

Non-links are those that are given or, where none are, those of the split, shared. What is given is audited like a split
of one's own: no non-link may be a link of the graph, and links with non-links of their own are held-out links.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vgae.errors import InputError
from vgae.evaluation.evaluate import Scorer
from vgae.evaluation.metrics import Scores, hits_metrics, metrics_of_ranks
from vgae.graph.given import NamedPairs, NegativesOfLinks
from vgae.graph.pairs import IntArray, Pairs, contains, distinct
from vgae.graph.split import HeldOut, LeakError, LinkSplit
from vgae.words import count

SHARED_HITS = (10, 20, 50, 100)
HITS_PER_LINK = (1, 3, 10, 50, 100)
CHUNK = 1_000_000  # pairs that are scored at a time

Negatives = NamedPairs | NegativesOfLinks


@dataclass(frozen=True)
class OgbScores:
    """The metrics of the held-out sets by their names, and for each of them what its links were compared with."""

    metrics: dict[str, dict[str, float]]
    compared: dict[str, str]


def evaluate_ogb(
    scorer: Scorer,
    split: LinkSplit,
    negatives: Mapping[str, Negatives] | None = None,
    *,
    sets: Sequence[str] = ("validation", "test"),
) -> OgbScores:
    """Hits@K or MRR of the held-out links of a split; `negatives` are those given, under the names val and test."""
    audit, found, compared = _Audit(split), {}, {}
    given = dict(negatives or {})
    for key, name, held_out in (("val", "validation", split.val), ("test", "test", split.test)):
        own = given.pop(key, None)
        if not len(held_out.links) or name not in sets:
            if own is not None:
                raise InputError(f"{own.name}: there are no {name} links to compare with these non-links.")
            continue
        if isinstance(own, NegativesOfLinks):
            found[name], words = _per_link(scorer, audit, own, held_out, name)
        else:
            pairs = held_out.non_links if own is None else audit.shared(own)
            found[name] = _shared(scorer, held_out.links, pairs)
            words = f"{count(len(pairs), 'non-link')} that all links share"
        compared[name] = words if own is None else f"{words} ({own.name})"
    if given:
        raise InputError(f"negatives: they belong to val or to test, not to {min(given)!r}.")
    if not found:
        raise InputError("There are no held-out links to score: hold out links with val and test above 0.")
    return OgbScores(found, compared)


class _Audit:
    """What is a link of the graph as far as the split knows, and so is no negative."""

    def __init__(self, split: LinkSplit) -> None:
        self.graph = split.links_graph
        self.links = np.sort(self.ranks(np.concatenate([self.graph.links, split.val.links, split.test.links])))

    def ranks(self, pairs: Pairs) -> IntArray:
        return self.graph.all_pairs.ranks(pairs)

    def example(self, pair: Pairs) -> str:
        one, other = self.graph.ids_of(pair).tolist()
        return f"such as {one!r} and {other!r}"

    def shared(self, given: NamedPairs) -> Pairs:
        """The different pairs of different nodes, none of them a link."""
        proper = given.pairs[given.pairs[:, 0] != given.pairs[:, 1]]
        _, first = np.unique(self.ranks(proper), return_index=True)
        pairs: Pairs = proper[np.sort(first)]
        if not len(pairs):
            raise InputError(f"{given.name}: there are no pairs of different nodes in it.")
        self.refuse_links(given.name, pairs)
        return pairs

    def refuse_links(self, name: str, pairs: Pairs) -> None:
        wrong = contains(self.links, self.ranks(pairs))
        if wrong.any():
            number = int(wrong.sum())
            verb, them = ("is a link", "it") if number == 1 else ("are links", "them")
            raise LeakError(
                f"{name}: {number:,} of its {count(len(pairs), 'non-link')} {verb} of the graph, "
                f"{self.example(pairs[int(wrong.argmax())])}; leave {them} out."
            )


def _shared(scorer: Scorer, links: Pairs, non_links: Pairs) -> dict[str, float]:
    return hits_metrics(_finite(scorer.logits(links)), _finite(scorer.logits(non_links)), SHARED_HITS)


def _per_link(
    scorer: Scorer, audit: _Audit, given: NegativesOfLinks, held_out: HeldOut, name: str
) -> tuple[dict[str, float], str]:
    """The metrics of links that have non-links of their own, and in words what those are."""
    foreign = ~contains(distinct(audit.ranks(held_out.links)), audit.ranks(given.links))
    if foreign.any():
        number = int(foreign.sum())
        verb, them = ("is", "it") if number == 1 else ("are", "them")
        raise LeakError(
            f"{given.name}: {number:,} of its {count(len(given.links), 'link')} {verb} not among the "
            f"{count(len(held_out.links), f'{name} link')} of the split, "
            f"{audit.example(given.links[int(foreign.argmax())])}; leave {them} out."
        )
    usable = (given.others >= 0) & (given.others != given.links[:, :1])
    if not usable.any(axis=1).all():
        without = int(np.count_nonzero(~usable.any(axis=1)))
        raise InputError(f"{given.name}: {count(without, 'link')} {'has' if without == 1 else 'have'} no non-links.")
    ranks, width = np.empty(len(given.links)), given.others.shape[1]
    for start in range(0, len(ranks), max(1, CHUNK // width)):
        part = slice(start, start + max(1, CHUNK // width))
        mask = usable[part]
        pairs = np.stack([np.repeat(given.links[part, 0], mask.sum(axis=1)), given.others[part][mask]], axis=1)
        audit.refuse_links(given.name, pairs)
        own = _finite(scorer.logits(given.links[part]))
        row = np.repeat(np.arange(len(own)), mask.sum(axis=1))
        logits = _finite(scorer.logits(pairs))
        wins = (logits > own[row]) + (logits == own[row]) / 2
        ranks[part] = 1 + np.bincount(row, wins, minlength=len(own))
    sizes = usable.sum(axis=1)
    least, most = int(sizes.min()), int(sizes.max())
    words = f"{least:,}" if least == most else f"{least:,} to {most:,}"
    metrics = metrics_of_ranks(ranks, least, hits=HITS_PER_LINK)
    return metrics, f"{words} non-links for each of {count(len(ranks), 'link')}"


def _finite(logits: Scores) -> Scores:
    if not np.isfinite(logits).all():
        raise InputError("Scores are needed that are finite numbers, and some of these are infinite or undefined.")
    return logits
