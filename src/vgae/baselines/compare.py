"""A model beside what costs next to nothing: the cheap heuristics on the same split, and chance.

The heuristics are fitted on the training graph and scored on the same pairs. AUC and AP have standard errors by the
bootstrap, and so has the difference to the heuristic that is best. Precision at K is over all candidate pairs, equal
scores in random order. On a large graph the work is limited, and `notes` says to what.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

import numpy as np

from vgae.baselines.counts import count_scores, work
from vgae.baselines.features import FeatureScorer
from vgae.baselines.heuristics import (
    DegreeScorer,
    Neighbourhoods,
    NeighbourScorer,
    adamic_adar,
    common_neighbours,
    preferential_attachment,
    resource_allocation,
)
from vgae.baselines.pagerank import Walks
from vgae.baselines.paths import Paths
from vgae.errors import InputError
from vgae.evaluation.all_pairs import MOST_RANKED, Candidates, ListScorer, Ranker, recall_of, sweep, top_metrics
from vgae.evaluation.bootstrap import ERRORS, Difference, bootstrap
from vgae.evaluation.evaluate import RowScorer, Scorer
from vgae.evaluation.metrics import Scores, auc_and_ap
from vgae.evaluation.spread import Spread
from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links
from vgae.graph.pairs import Pairs, distinct
from vgae.graph.split import HeldOut, LinkSplit
from vgae.ops import Factors
from vgae.words import count

TOP = (10, 100, 1000)
READ = 100  # of the best pairs, somebody may read so many
FEW = 10  # links or non-links
NUM_DRAWN = 20_000  # pairs that the spread of logits is seen by
MOST_PAIRS = 50_000  # links, and as many non-links, that scores are of
MOST_LOOKUPS = 20_000_000  # neighbours to look up for these pairs
MOST_NODES = 30_000  # of a graph whose pairs are all scored by the model
MOST_NODES_PAIR_BY_PAIR = 3_000  # the same for a decoder without factors
MOST_WORK = 50_000_000  # additions for all pairs that share a neighbour
MOST_PASSES = 100_000_000_000  # additions in passes over all links, for the walks and paths of these pairs
MOST_FEATURES = 50_000_000  # numbers in the rows of features of these pairs

HEURISTICS: dict[str, Callable[[Graph], NeighbourScorer | DegreeScorer]] = {
    "cn": common_neighbours,
    "aa": adamic_adar,
    "ra": resource_allocation,
    "pa": preferential_attachment,
}
COSINE = "cosine"

Metrics = dict[str, float]


@dataclass(frozen=True, eq=False)
class Comparison:
    """How well a model, the heuristics and chance do on the same pairs; all scores are fractions of 1."""

    pairs: str  # test or validation; empty where nothing was held out
    num_links: int
    num_non_links: int
    model: Metrics
    heuristics: dict[str, Metrics]
    random: Metrics
    errors: Metrics  # standard errors of the model's AUC and AP
    differences: dict[str, tuple[str, Difference]]  # by metric: the best heuristic, and the model's score less its own
    spread: Spread
    num_graph_links: int
    is_complete: bool  # every pair of nodes is a link
    num_without_links: int  # of the held-out links, those with an end that has no link in the training graph
    variants: dict[str, Metrics] = field(default_factory=dict)
    variant_differences: dict[str, Difference] = field(default_factory=dict)  # in AUC, the variant's less the model's
    bases: dict[str, Metrics] = field(default_factory=dict)  # of what the model is made of, AUC and AP of each alone
    best_base: tuple[str, Difference] | None = None  # the best of them by AUC, and the model's AUC less its own
    notes: tuple[str, ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The metrics that there are."""
        return tuple(self.random)

    @property
    def at_the_top(self) -> tuple[int, ...]:
        """The K that there is a precision at, the one first that says most about a list which somebody reads."""
        found = [int(column.partition("@")[2]) for column in self.columns if column.startswith("precision")]
        return tuple(sorted(found, key=lambda k: (k != READ, -k)))

    @property
    def collapsed(self) -> bool:
        """Whether the model tells hardly any pairs apart, and the few that it does are not the right ones."""
        ranks = bool(self.pairs) and self.model["auc"] - 0.5 > ERRORS * self.errors["auc"]
        return self.spread.is_none and not ranks

    @property
    def has_few_pairs(self) -> bool:
        """Whether there are too few pairs for any score to say much."""
        return min(self.num_links, self.num_non_links) < FEW

    def is_clear(self, difference: Difference) -> bool:
        """Whether a difference is more than luck: not on a few pairs, where draws repeat themselves."""
        return difference.is_clear and not self.has_few_pairs

    @property
    def beaten_by(self) -> str | None:
        """The heuristic that is clearly better than the model by AUC."""
        if "auc" not in self.differences:
            return None
        name, difference = self.differences["auc"]
        return name if difference.value < 0 and self.is_clear(difference) else None

    def best(self, metric: str) -> str | None:
        """The heuristic with the highest score."""
        scored = {name: scores[metric] for name, scores in self.heuristics.items() if metric in scores}
        return max(scored, key=scored.__getitem__) if scored else None


@runtime_checkable
class MadeOfEvidence(Scorer, Protocol):
    """A scorer that is made of others, and says what each of them says."""

    def evidence_by_column(self, pairs: Pairs) -> Mapping[str, Scores]:
        """A score of each of them for each pair."""


def compare(scorer: Ranker, split: LinkSplit, variants: Mapping[str, Ranker] | None = None) -> Comparison:
    """Compare a model with the heuristics on a split's test pairs or, where it has none, its validation pairs.

    `variants` are other models of the same split, by name, that stand beside it; of a model that is made of others,
    these do too.
    """
    graph = split.train
    kind, held_out = ("test", split.test) if split.test else ("validation", split.val)
    spread = _spread(scorer, graph.num_nodes)
    is_complete = count_non_links(split.links_graph) == len(split.val.links) + len(split.test.links)
    if not (len(held_out.links) and len(held_out.non_links)):
        return Comparison("", 0, 0, {}, {}, {}, {}, {}, spread, split.num_graph_links, is_complete, 0)
    top = _Top.of_split(split.as_scored(symmetric=scorer.symmetric), kind)
    neighbourhoods = Neighbourhoods(graph.adjacency)
    used, notes = _limited(held_out, neighbourhoods)
    scores = _heuristic_scores(graph, used, neighbourhoods)
    heuristics = {name: auc_and_ap(*each) for name, each in scores.items()}
    model = _split_scores(scorer, used)
    others = {name: _split_scores(each, used) for name, each in (variants or {}).items()}
    bases = _evidence_scores(scorer, used)
    precision, top_notes = top.of(scorer)
    for name, make in HEURISTICS.items() if precision else ():
        more, of_heuristic = top.of(make(graph))
        heuristics[name] |= more
        top_notes += tuple(line for line in of_heuristic if line not in top_notes)
    found = Comparison(
        pairs=kind,
        num_links=len(used.links),
        num_non_links=len(used.non_links),
        model=auc_and_ap(*model) | precision,
        heuristics=heuristics,
        random={"auc": 0.5, "ap": len(used.links) / len(used)} | (top.of_chance() if precision else {}),
        errors={},
        differences={},
        spread=spread,
        num_graph_links=split.num_graph_links,
        is_complete=is_complete,
        num_without_links=int((neighbourhoods.degrees[used.links] == 0).any(axis=1).sum()),
        variants={name: auc_and_ap(*others[name]) | top.of(each)[0] for name, each in (variants or {}).items()},
        bases={name: auc_and_ap(*each) for name, each in bases.items()},
        notes=(*notes, *top_notes),
    )
    return _with_best_base(_with_errors(found, model, scores, others), model, bases)


@dataclass(frozen=True, eq=False)
class BaselineScores:
    """The scores of several baselines on the same pairs, as fractions of 1."""

    pairs: str
    scores: dict[str, Metrics]
    random: Metrics
    notes: tuple[str, ...]


def score_baselines(scorers: Mapping[str, RowScorer], split: LinkSplit) -> BaselineScores:
    """AUC, AP and precision at K of each on a split's test pairs or, where it has none, its validation pairs."""
    kind, held_out = ("test", split.test) if split.test else ("validation", split.val)
    if not (len(held_out.links) and len(held_out.non_links)):
        raise InputError("Nothing is held out to score baselines by; hold out links with --test above 0.")
    top = _Top.of_split(split.as_scored(symmetric=all(scorer.symmetric for scorer in scorers.values())), kind)
    scores, notes = {}, dict[str, None]()
    for name, scorer in scorers.items():
        if isinstance(scorer, Paths | Walks) and scorer.work(held_out.pairs) > MOST_PASSES:
            notes[f"{name} is left out: it takes too long here; vgae baseline {name} computes it."] = None
            continue
        precision, more = top.of(scorer)
        scores[name] = auc_and_ap(*_split_scores(scorer, held_out)) | precision
        notes |= dict.fromkeys(more)
    chance = {"auc": 0.5, "ap": len(held_out.links) / len(held_out)} | top.of_chance()
    return BaselineScores(kind, scores, chance, tuple(notes))


def _spread(scorer: Ranker, num_nodes: int) -> Spread:
    """The spread of the logits of random pairs."""
    drawn = np.random.default_rng(0).integers(0, num_nodes, (NUM_DRAWN, 2))
    apart = drawn[drawn[:, 0] != drawn[:, 1]]
    return Spread.of(scorer.logits(apart)) if len(apart) else Spread(0.0, 0.0, 0.0)


# -------------------------------------------------------------------------------------------------------------- scores


def _split_scores(scorer: Ranker, held_out: HeldOut) -> tuple[Scores, Scores]:
    return _by_label(scorer.logits(held_out.pairs), held_out)


def _by_label(logits: Scores, held_out: HeldOut) -> tuple[Scores, Scores]:
    return logits[held_out.labels], logits[~held_out.labels]


def _evidence_scores(scorer: Ranker, held_out: HeldOut) -> dict[str, tuple[Scores, Scores]]:
    """The scores of links and of non-links by whatever a model is made of."""
    if not isinstance(scorer, MadeOfEvidence):
        return {}
    return {name: _by_label(each, held_out) for name, each in scorer.evidence_by_column(held_out.pairs).items()}


def _heuristic_scores(
    graph: Graph, held_out: HeldOut, neighbourhoods: Neighbourhoods
) -> dict[str, tuple[Scores, Scores]]:
    """The scores of links and of non-links by every heuristic; common neighbours are looked up once for all."""
    scorers = {name: make(graph) for name, make in HEURISTICS.items()}
    of_neighbours = {name: each for name, each in scorers.items() if isinstance(each, NeighbourScorer)}
    sums = neighbourhoods.sums(held_out.pairs, [each.weights for each in of_neighbours.values()])
    logits = dict(zip(of_neighbours, sums, strict=True))
    logits |= {name: each.logits(held_out.pairs) for name, each in scorers.items() if isinstance(each, DegreeScorer)}
    if graph.features is not None:
        cosine = FeatureScorer.of(graph)
        if cosine.num_numbers(held_out.pairs) <= MOST_FEATURES:
            logits[COSINE] = cosine.logits(held_out.pairs)
    return {name: _by_label(each, held_out) for name, each in logits.items()}


def _limited(held_out: HeldOut, neighbourhoods: Neighbourhoods) -> tuple[HeldOut, tuple[str, ...]]:
    """The held-out pairs, or of very many a random part."""
    parts = []
    lookups = float(neighbourhoods.num_lookups(held_out.pairs).sum())
    share = min(1.0, MOST_LOOKUPS / max(lookups, 1.0))
    generator = np.random.default_rng(0)
    for pairs in (held_out.links, held_out.non_links):
        most = max(1, int(min(share * len(pairs), MOST_PAIRS)))
        parts.append(pairs if most >= len(pairs) else pairs[np.sort(generator.permutation(len(pairs))[:most])])
    limited = HeldOut(parts[0], parts[1], held_out.num_graph_links)
    if len(limited) == len(held_out):
        return held_out, ()
    return limited, (
        f"Scores are on a random {count(len(limited.links), 'link')} of {len(held_out.links):,} and "
        f"{count(len(limited.non_links), 'non-link')} of {len(held_out.non_links):,}.",
    )


# ------------------------------------------------------------------------------------------------------ top of the list


@dataclass(frozen=True, eq=False)
class _Top:
    """The links to be found among all pairs but the known ones."""

    graph: Graph
    candidates: Candidates
    links: Pairs

    @classmethod
    def of_split(cls, split: LinkSplit, kind: str) -> _Top:
        """Test links among all pairs but those of the training graph and of validation, or validation links."""
        graph, numbering = split.train, split.train.all_pairs
        known = graph.links if kind == "validation" else np.concatenate([graph.links, split.val.links])
        candidates = Candidates.of(graph, numbering.pairs(distinct(numbering.ranks(known))))
        links = (split.val if kind == "validation" else split.test).links
        return cls(graph, candidates, numbering.pairs(numbering.ranks(links)))

    @property
    def wanted(self) -> tuple[int, ...]:
        """The K for which all K best pairs could be links."""
        return tuple(k for k in TOP if k <= len(self.links)) or (len(self.links),)

    def of(self, scorer: Ranker) -> tuple[Metrics, tuple[str, ...]]:
        """Precision at each K over all candidates; nothing but a note if that takes too long."""
        if isinstance(scorer, NeighbourScorer | DegreeScorer):
            return self._of_heuristic(scorer)
        is_fast = isinstance(scorer, ListScorer) or isinstance(scorer.rows(), Factors)
        most = MOST_NODES if is_fast else MOST_NODES_PAIR_BY_PAIR
        if self.graph.num_nodes > most:
            how = "vgae evaluate" if self.graph.num_candidate_pairs <= MOST_RANKED else "model.evaluate in Python"
            return {}, (f"Precision at K is left out for more than {most:,} nodes; {how} computes it.",)
        found = sweep(scorer, self.candidates, self.links, max(self.wanted))
        metrics = top_metrics(found.best, found.marked, self.wanted)
        precision = {name: value for name, value in metrics.items() if name.startswith("precision")}
        return precision | (recall_of(found) if isinstance(scorer, ListScorer) else {}), ()

    def _of_heuristic(self, scorer: NeighbourScorer | DegreeScorer) -> tuple[Metrics, tuple[str, ...]]:
        if isinstance(scorer, NeighbourScorer) and work(scorer) > MOST_WORK:
            return {}, ("Precision at K of cn, aa and ra is left out: too many pairs share a neighbour.",)
        counts, links = count_scores(scorer, self.candidates, max(self.wanted)), scorer.logits(self.links)
        found = {k: counts.precision(k, links) for k in self.wanted}
        return {f"precision@{k}": value for k, value in found.items() if value is not None}, ()

    def of_chance(self) -> Metrics:
        """The share of the candidates that are links."""
        share = len(self.links) / (self.graph.num_candidate_pairs - len(self.candidates.known))
        return {f"precision@{k}": share for k in self.wanted}


# --------------------------------------------------------------------------------------------------------------- errors


def _with_errors(
    found: Comparison,
    model: tuple[Scores, Scores],
    heuristics: dict[str, tuple[Scores, Scores]],
    variants: dict[str, tuple[Scores, Scores]],
) -> Comparison:
    """The same with standard errors, and with the differences to what is best and to the variants."""
    best = {metric: found.best(metric) or "" for metric in ("auc", "ap")}
    names = list(dict.fromkeys(best.values()))
    draws = bootstrap([model, *(heuristics[name] for name in names), *variants.values()])
    of_model, of_others = draws[0], dict(zip(names, draws[1:], strict=False))
    of_variants = dict(zip(variants, draws[1 + len(names) :], strict=True))
    differences = {
        metric: (
            name,
            Difference(
                found.model[metric] - found.heuristics[name][metric],
                float((of_model[metric] - of_others[name][metric]).std()),
            ),
        )
        for metric, name in best.items()
    }
    auc = {name: auc_and_ap(*scores)["auc"] for name, scores in variants.items()}
    return replace(
        found,
        errors={metric: float(of_model[metric].std()) for metric in ("auc", "ap")},
        differences=differences,
        variant_differences={
            name: Difference(auc[name] - found.model["auc"], float((each["auc"] - of_model["auc"]).std()))
            for name, each in of_variants.items()
        },
    )


def _with_best_base(
    found: Comparison, model: tuple[Scores, Scores], bases: dict[str, tuple[Scores, Scores]]
) -> Comparison:
    """The same with the difference to the best of what the model is made of."""
    if not bases:
        return found
    best = max(bases, key=lambda name: found.bases[name]["auc"])
    of_model, of_best = bootstrap([model, bases[best]])
    difference = found.model["auc"] - found.bases[best]["auc"]
    return replace(found, best_base=(best, Difference(difference, float((of_model["auc"] - of_best["auc"]).std()))))
