"""What `vgae explain` prints: what the bases of a stack add; common neighbours, paths and shared features by name."""

from __future__ import annotations

import math

from vgae.baselines.explain import PairEvidence
from vgae.estimators.explanation import BasePart, Explanation
from vgae.report.console import print_table
from vgae.report.verdict import evidence_title
from vgae.screen import print_line
from vgae.words import count

KNOWN = {
    "train": "This link is in the training graph, so the model has seen it and its probability says little.",
    "held_out": "This link is known, but was held out: the model has not seen it.",
}


def print_explanation(found: Explanation) -> None:
    """The probability, what each base adds to the log odds, and what speaks for a link by name."""
    probability = "undefined" if math.isnan(found.probability) else f"{found.probability:.3g}"
    print_line(f"Probability of a link: {probability} (logit {found.logit:.3f}).")
    if found.known in KNOWN:
        print_line(KNOWN[found.known])
    if found.mean is not None:
        _bases(found, found.mean)
    print_line("")
    print_pair_evidence(found.pair)


def _bases(found: Explanation, mean: float) -> None:
    print_line("")
    print_line("The logit is the mean of many pairs (for one of the best, of the best) and what each base adds:")
    rows = [["mean", f"{mean:+.3f}", ""]]
    rows += [[each.base, f"{each.adds:+.3f}", _evidence(each)] for each in found.bases]
    rows.append(["logit", f"{found.logit:+.3f}", ""])
    print_table(["base", "adds", "evidence"], rows, numbers=["adds"])


def _evidence(part: BasePart) -> str:
    if list(part.evidence) == [part.base]:  # an auto-encoder or a baseline, which has one score
        return f"score {part.evidence[part.base]:.3g}"
    return ", ".join(f"{evidence_title(column)} {value:.3g}" for column, value in part.evidence.items())


def print_pair_evidence(found: PairEvidence) -> None:
    """Degrees, common neighbours, paths of length three and shared features, the strongest first."""
    one, other = (str(node) for node in found.nodes)
    known = "linked in the training graph" if found.linked else "not linked in the training graph"
    links = f"{one} has {count(found.degrees[0], 'link')}, {other} has {count(found.degrees[1], 'link')}"
    print_line(f"{one} and {other} are {known}; {links}.")
    _neighbours(found)
    _paths(found, one, other)
    _features(found)


def _neighbours(found: PairEvidence) -> None:
    print_line("")
    if not found.neighbours:
        print_line("They have no common neighbour.")
        return
    print_line(_heading(found.num_neighbours, len(found.neighbours), "common neighbour"))
    titles = ["node", "links", "Adamic-Adar", "resource allocation"]
    rows = [[str(each.node), f"{each.degree:,}", f"{each.aa:.3g}", f"{each.ra:.3g}"] for each in found.neighbours]
    print_table(titles, rows, numbers=titles[1:])


def _paths(found: PairEvidence, one: str, other: str) -> None:
    print_line("")
    if not found.paths:
        print_line("No path of length three connects them.")
        return
    print_line(_heading(found.num_paths, len(found.paths), "path of length three", "paths of length three"))
    rows = [[" – ".join([one, *map(str, each.nodes), other]), f"{each.l3:.3g}"] for each in found.paths]
    print_table(["path", "weight"], rows, numbers=["weight"])


def _features(found: PairEvidence) -> None:
    if found.num_features is None or found.cosine is None:
        return
    print_line("")
    if not found.features:
        print_line("They share no feature.")
        return
    heading = _heading(found.num_features, len(found.features), "shared feature")
    print_line(f"{heading[:-1]} (cosine {found.cosine:.3f}):")
    rows = [[each.name, *(f"{value:g}" for value in each.values), f"{each.cosine:.3f}"] for each in found.features]
    titles = ["feature", "first", "second", "adds to the cosine"]
    print_table(titles, rows, numbers=titles[1:])


def _heading(number: int, listed: int, noun: str, plural: str | None = None) -> str:
    """How many there are, and that not all are listed."""
    strongest = f", the {f'{listed} ' if listed > 1 else ''}strongest" if listed < number else ""
    return f"{count(number, noun, plural)}{strongest}:"
