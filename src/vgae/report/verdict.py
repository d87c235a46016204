"""A verdict on a model: the table of a comparison, and what it means in plain sentences.

A difference counts if its 95% interval, by the bootstrap, leaves out 0. Precision at K has the error of a count of K.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from vgae.baselines.compare import COSINE, Comparison, compare
from vgae.baselines.similarities import SIMILARITIES
from vgae.errors import InputError
from vgae.evaluation.all_pairs import FIRST_STAGE_RECALL, Ranker
from vgae.evaluation.bootstrap import ERRORS
from vgae.graph.split import LinkSplit
from vgae.report.collapse import collapse_sentence
from vgae.report.evaluation import recall_words
from vgae.runs.run import Run
from vgae.words import count

NAMES = {
    "cn": "common neighbours",
    "aa": "Adamic-Adar",
    "ra": "resource allocation",
    "pa": "preferential attachment",
    COSINE: "feature cosine",
}
EVIDENCE = {
    column: title for kind in SIMILARITIES.values() for column, title in zip(kind.columns, kind.titles, strict=True)
}
SMALL = 100  # links of a graph
LARGE_ERROR = 0.03  # of AUC: a test set that small hardly tells models apart
MOST_WITHOUT = 0.5  # of the held-out links may have an end without training links before a sentence is due


@dataclass(frozen=True)
class Hints:
    """What to run next, in Python; the command has lines for the shell."""

    baseline: Callable[[str], str] = lambda name: f"vgae.Baseline({name!r}).fit(split.train, validation=split.val)"
    compare: str | None = "vgae.verdict(model, split, variants={'without features': another model})"
    variants: dict[str, str] = field(default_factory=dict)  # what makes a variant, by its name
    more_test_links: str = "split_links(graph, test=0.2)"
    collapse: str | None = None  # what to say if the embeddings have collapsed
    uses_features: bool = False
    has_features: bool = False


@dataclass(frozen=True, eq=False)
class Verdict:
    """How a model does beside the cheap heuristics and chance, and what that means."""

    name: str
    comparison: Comparison
    sentences: tuple[str, ...]
    collapsed: bool = False  # the logits or the embeddings

    @property
    def notes(self) -> tuple[str, ...]:
        """What was limited, and why."""
        return self.comparison.notes

    @property
    def table(self) -> dict[str, dict[str, float]]:
        """Scores as fractions of 1 by row: the model, its variants, the heuristics that are best at something, chance.

        A score that was too costly is left out.
        """
        found = self.comparison
        if not found.pairs:
            return {}
        metrics = ["auc", *(f"precision@{k}" for k in found.at_the_top[:1])]
        best = dict.fromkeys(found.best(metric) or "" for metric in metrics)
        heuristics = {NAMES[name]: found.heuristics[name] for name in best}
        bases = {} if found.best_base is None else {base_title(found.best_base[0]): found.bases[found.best_base[0]]}
        return {self.name: found.model} | found.variants | bases | heuristics | {"random": found.random}

    def rows(self) -> tuple[list[str], list[list[str]]]:
        """The table for the screen, in percent: titles and rows."""
        columns = self.comparison.columns
        titles = ["protocol paper", *(column.upper().replace("PRECISION", "P") for column in columns)]
        rows = [[name, *(percent(scores.get(column)) for column in columns)] for name, scores in self.table.items()]
        return titles, rows

    def to_json(self) -> dict[str, Any]:
        """All of it, with every heuristic, as plain data."""
        found = self.comparison
        differences = {
            metric: {"heuristic": name, **asdict(each), "is_clear": each.is_clear}
            for metric, (name, each) in found.differences.items()
        }
        return {
            "pairs": found.pairs or None,
            "num_links": found.num_links,
            "num_non_links": found.num_non_links,
            "model": found.model,
            "standard_errors": found.errors,
            "variants": found.variants,
            "bases": found.bases,
            "heuristics": found.heuristics,
            "random": found.random,
            "differences": differences,
            "collapsed": self.collapsed,
            "sentences": list(self.sentences),
            "notes": list(found.notes),
        }

    def __str__(self) -> str:
        titles, rows = self.rows()
        width = max((len(row[0]) for row in rows), default=0)
        lines = [row[0].ljust(width) + "".join(cell.rjust(8) for cell in row[1:]) for row in [titles, *rows] if rows]
        return "\n".join([*lines, *self.sentences, *self.notes])


def verdict(model: Ranker, split: LinkSplit, *, variants: dict[str, Any] | None = None) -> Verdict:
    """Compare a fitted model with cheap heuristics on its split: `.table` has the scores, `.sentences` what they mean.

    The model is one of this library's or anything with `logits`, `rows` and `symmetric`, fitted on `split.train`;
    `variants` are other models of the same split, by name, to stand beside it.

    >>> import vgae
    >>> split = vgae.split_links(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    >>> model = vgae.GAE(iterations=50, seed=0).fit(split.train)
    >>> found = vgae.verdict(model, split)
    >>> "GAE" in found.table and "random" in found.table
    True
    >>> len(found.sentences) > 0
    True
    """
    if not isinstance(split, LinkSplit):
        raise InputError(f"split: a LinkSplit is needed, such as split_links gives, not {type(split).__name__}.")
    uses = getattr(model, "n_features_in_", 0) > 0
    run = getattr(model, "run_", None)
    collapse = collapse_sentence(run) if isinstance(run, Run) else None
    hints = Hints(collapse=collapse, uses_features=uses, has_features=split.train.features is not None)
    return judge(type(model).__name__, model, split, variants or {}, hints)


def judge(name: str, model: Ranker, split: LinkSplit, variants: Mapping[str, Ranker], hints: Hints) -> Verdict:
    """The verdict on a model of that name."""
    found = compare(model, split, variants)
    collapsed = found.collapsed or hints.collapse is not None
    return Verdict(name, found, tuple(sentences(found, hints)), collapsed)


# ------------------------------------------------------------------------------------------------------------ sentences


def sentences(found: Comparison, hints: Hints) -> Iterator[str]:
    """What a user needs to know, the most important first."""
    if found.is_complete:
        yield "Every pair of nodes is a link already, so there is no new link to recommend."
    elif found.collapsed:
        yield from _collapsed(found, hints)
    elif hints.collapse is not None:
        yield hints.collapse
    if not found.pairs:
        yield "Nothing was held out to judge the model by; hold out links with --test 0.1 (in Python, test=0.1)."
        return
    yield from _size(found, hints)
    if found.num_without_links > MOST_WITHOUT * found.num_links:
        known = "all that is known of such a node is its features" if hints.uses_features else "nothing is known of it"
        yield (
            f"Of the {count(found.num_links, f'{found.pairs} link')}, {found.num_without_links:,} "
            f"{'has' if found.num_without_links == 1 else 'have'} an end without any link in the training graph, "
            f"so that {known}."
        )
    if not found.collapsed:
        yield from _beside_the_best(found, hints)
        yield from _beside_the_bases(found)
        yield from _top(found, hints)
    if FIRST_STAGE_RECALL in found.model:
        yield recall_words(found.model[FIRST_STAGE_RECALL], f"the {found.pairs}")
    yield from _features(found, hints)


def _collapsed(found: Comparison, hints: Hints) -> Iterator[str]:
    remedy = "lower --learning-rate, try --model vgae or another --seed"
    if hints.uses_features:
        remedy = f"bring the features to scale (--normalize rows), leave them out (--no-features), or {remedy}"
    yield (
        f"The model has collapsed: its logits are the same for nearly all pairs (about {found.spread.middle:.3g}), so "
        f"that what it recommends is arbitrary. To get a model, {remedy}."
    )


def _size(found: Comparison, hints: Hints) -> Iterator[str]:
    if found.has_few_pairs:
        small = f"a graph of {count(found.num_graph_links, 'link')} is too small to judge a model by"
        more = small if found.num_graph_links < SMALL else f"hold out more: {hints.more_test_links}"
        yield f"With {count(found.num_links, f'{found.pairs} link')} no score says much about the model; {more}."
    elif found.errors["auc"] > LARGE_ERROR:
        yield (
            f"The {count(found.num_links, f'{found.pairs} link')} are few: the AUC has a standard error of "
            f"{percent(found.errors['auc'])} points; to hold out more: {hints.more_test_links}."
        )


def _beside_the_best(found: Comparison, hints: Hints) -> Iterator[str]:
    name, difference = found.differences["auc"]
    scores = f"{percent(found.model['auc'])} against {percent(found.heuristics[name]['auc'])}"
    by = f"{percent(abs(difference.value))} points, standard error {percent(difference.error)}"
    if not found.is_clear(difference):
        yield f"The model and {NAMES[name]} cannot be told apart by AUC on these pairs ({scores}: {by})."
    elif difference.value > 0:
        yield f"The model ranks better than every heuristic: AUC {scores} of {NAMES[name]} ({by})."
    else:
        yield f"The model is beaten by {NAMES[name]}: AUC {scores} ({by}).{_instead(name, hints)}"
    chance = abs(found.model["auc"] - 0.5)
    if chance <= ERRORS * found.errors["auc"]:
        yield f"The model is no better than chance: its AUC is {percent(found.model['auc'])}."
    elif found.model["auc"] < 0.5:
        yield f"The model ranks links below non-links: its AUC is {percent(found.model['auc'])}, where chance has 50.0."


def _beside_the_bases(found: Comparison) -> Iterator[str]:
    if found.best_base is None:
        return
    name, difference = found.best_base
    score = f"{evidence_title(name)} alone, the best of its bases, has an AUC of {percent(found.bases[name]['auc'])}"
    by = f"{percent(abs(difference.value))} points, standard error {percent(difference.error)}"
    if not found.is_clear(difference):
        yield f"The model and its best base cannot be told apart by AUC on these pairs: {score} ({by})."
    else:
        yield f"The model is {'better' if difference.value > 0 else 'worse'} than its best base: {score} ({by})."


def _top(found: Comparison, hints: Hints) -> Iterator[str]:
    for k in found.at_the_top:
        metric = f"precision@{k}"
        best = found.best(metric)
        if best is None or metric not in found.model:
            continue
        own, others = k * found.model[metric], k * found.heuristics[best][metric]
        error = math.sqrt(own * (1 - own / k) + others * (1 - others / k))
        if abs(own - others) > ERRORS * error:
            yield _about_top(found, hints, best, k, (own, others))
            return


def _about_top(found: Comparison, hints: Hints, best: str, k: int, links: tuple[float, float]) -> str:
    own, others = links
    listed = f"of the {count(k, 'best new pair')} {{}} are {found.pairs} links with the model, {{}} with {NAMES[best]}"
    words = listed.format(f"{own:.0f}", f"{others:.0f}")
    if own > others:
        return f"At the top of the list the model is better than every heuristic: {words}."
    instead = "" if best == found.beaten_by else _instead(best, hints)  # which is said already
    return f"At the top of the list the model is beaten by {NAMES[best]}: {words}.{instead}"


def _features(found: Comparison, hints: Hints) -> Iterator[str]:
    if found.variants:
        yield from _variants(found, hints)
        return
    if hints.uses_features and hints.compare is not None and (found.collapsed or found.beaten_by is not None):
        yield f"Features may be the cause. To see the same model without them and with scaled ones: {hints.compare}"
    elif hints.has_features and not hints.uses_features and found.beaten_by == COSINE:
        yield "The features alone tell more than this model without them; train with them."


def _variants(found: Comparison, hints: Hints) -> Iterator[str]:
    better = {name: each for name, each in found.variant_differences.items() if found.is_clear(each) and each.value > 0}
    if not better:
        yield f"The comparison: {' and '.join(found.variants)} do no better than the model as it is."
        return
    name = max(better, key=lambda each: better[each].value)
    difference = better[name]
    to_train = f" To train that: {hints.variants[name]}" if name in hints.variants else ""
    yield (
        f"The model {name} has an AUC of {percent(found.variants[name]['auc'])}, {percent(difference.value)} points "
        f"more (standard error {percent(difference.error)}): the features as they are hurt.{to_train}"
    )


def _instead(name: str, hints: Hints) -> str:
    """What to run to have the heuristic in place of the model; the cosine of features is none that can be run."""
    return "" if name == COSINE else f" To use it instead: {hints.baseline(name)}"


def evidence_title(column: str) -> str:
    """What a column of evidence is, in words; of an auto-encoder, its name."""
    return EVIDENCE.get(column, column)


def base_title(column: str) -> str:
    """The name of a row for the best base."""
    return f"best base: {evidence_title(column)}"


def percent(value: float | None) -> str:
    """A fraction in percent, or a dash."""
    return "–" if value is None else f"{100 * value:.1f}"
