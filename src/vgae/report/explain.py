"""What `vgae explain` prints of a graph: common neighbours, paths and shared features of a pair, by name."""

from __future__ import annotations

from vgae.baselines.explain import PairEvidence
from vgae.report.console import print_table
from vgae.screen import print_line
from vgae.words import count


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
    strongest = f", the {listed} strongest" if listed < number else ""
    return f"{count(number, noun, plural)}{strongest}:"
