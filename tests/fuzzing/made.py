"""Graphs that are known before they are written: nodes with ids of many kinds, links, weights, features, labels.

A `MadeGraph` says what has to come back, in plain Python; nothing of the library that reads takes part in making it.
Ids are compared as text, the spaces around them left out, as docs/files.md has it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
import scipy.sparse as sp

from fuzzing.case import WrongResultError, differing
from vgae.graph.graph import Graph

Link = frozenset[str]
SHARP = ",;|\t\"'#%&<>=+-@:/\\()[]{}._ "
WORLD = "aZé߀ÅÅאבגعربเ日本語😀👩‍👩‍👧🇩🇪\u200b\u202e\u2066ǅı"
CONTROLS = "\x01\x07\x08\x1b\x1f\x7f\x85\u2028\u2029\ufeff"
WORDS = (
    "anna", "Bob", "NA", "null", "None", "true", "source", "target", "id", "1e5", "0x1F", "1,5", "1.5", "-0", "+1",
    "#1", "2020-01-01", "=1+1", ":smile:", "[red]", "\x1b[31mred", "%s", "# c", "sep=;", "json:1", "nan", "inf",
)  # fmt: skip


@dataclass(frozen=True)
class Style:
    """How ids are made; `plain` ones need no quotation marks in any table."""

    make: Callable[[Random], str]
    plain: bool = False


def _of(letters: str, most: int = 6) -> Callable[[Random], str]:
    return lambda random: "".join(random.choice(letters) for _ in range(random.randint(1, most)))


STYLES: dict[str, Style] = {
    "small numbers": Style(lambda random: str(random.randint(0, 60)), plain=True),
    "numbers": Style(lambda random: str(random.randint(-(2**63), 2**63 - 1)), plain=True),
    "large numbers": Style(lambda random: str(random.randint(2**63 - 20, 2**63 + 20)), plain=True),
    "leading zeros": Style(lambda random: f"{random.randint(0, 999):05d}", plain=True),
    "numbers and words": Style(lambda random: random.choice((str(random.randint(0, 50)), f"n{random.randint(0, 50)}"))),
    "letters": Style(_of("abcdefghijklmnopqrstuvwxyz"), plain=True),
    "names": Style(lambda random: f"user_{random.randint(0, 500)}", plain=True),
    "sharp": Style(_of("abc019" + SHARP)),
    "world": Style(_of(WORLD)),
    "controls": Style(_of("ab" + CONTROLS)),
    "lines": Style(_of("ab,\n\r\"'")),
    "words": Style(lambda random: random.choice(WORDS) + random.choice(("", "", "x", "1"))),
    "long": Style(lambda random: random.choice("abc") * random.choice((10, 1000, 70_000)) + str(random.randint(0, 99))),
}


def stripped(text: str) -> str:
    """Without the spaces around it; of the many kinds of spaces, those that are used around ids here."""
    return text.strip(" \t")


def some_ids(random: Random, style: str, most: int) -> list[str]:
    """Distinct ids that do not begin or end in any kind of blank."""
    found = {name for name in (STYLES[style].make(random).strip() for _ in range(most)) if _is_id(name)}
    return sorted(found)


def _is_id(name: str) -> bool:
    return bool(name) and not any(end.isspace() or end in CONTROLS for end in (name[0], name[-1]))


@dataclass(frozen=True)
class Column:
    """A column of a node table: its values as they are written, and the features they have to become."""

    name: str
    written: list[str]
    features: list[list[float]]


@dataclass(frozen=True)
class MadeGraph:
    """Rows of links as they are written, and what has to come of them."""

    ids: list[str]
    rows: list[tuple[str, str]]
    weights: list[float] | None = None
    directed: bool = False

    def links(self, leave_out: int = 0, more: Iterable[tuple[str, str]] = ()) -> set[Link]:
        """The links between different nodes; the first rows may be left out, and others be there."""
        rows = [*more, *self.rows[leave_out:]]
        return {frozenset(ends) for ends in rows if ends[0] != ends[1]}

    def weight_of(self) -> dict[Link, float]:
        """The weights: those of rows that are one link add up, unless every link is written both ways alike."""
        if self.weights is None:
            return {}
        sums: dict[tuple[str, str], float] = {}
        for row, weight in zip(self.rows, self.weights, strict=True):
            if row[0] != row[1]:
                sums[row] = sums.get(row, 0.0) + weight
        twice = not self.directed and all(sums.get(row[::-1]) == weight for row, weight in sums.items())
        links = {frozenset(row): (row, row[::-1]) for row in sums}
        if twice:
            return {link: sums[there] for link, (there, _) in links.items()}
        return {link: sum(sums.get(row, 0.0) for row in rows) for link, rows in links.items()}


def make_graph(random: Random, style: str | None = None, *, weighted: bool | None = None) -> MadeGraph:
    """A graph of at most some dozens of nodes, each link once, in both directions, or here and there again."""
    style = style or random.choice(list(STYLES))
    ids = some_ids(random, style, random.choice((3, 8, 20, 40)))
    while len(ids) < 2:
        ids = sorted({*ids, *some_ids(random, "letters", 4)})
    pairs = {tuple(sorted(random.sample(ids, 2))) for _ in range(random.choice((1, 3, 10, 40)))}
    rows = [(one, two) if random.random() < 0.5 else (two, one) for one, two in sorted(pairs)]
    random.shuffle(rows)
    weighted = random.random() < 0.4 if weighted is None else weighted
    weights = [_weight(random) for _ in rows] if weighted else None
    how = random.choice(("once", "once", "mirrored", "again", "loops"))
    if how == "mirrored":
        rows, weights = rows + [row[::-1] for row in rows], weights and weights * 2
    elif how == "again":
        more = random.choices(range(len(rows)), k=3)
        rows, weights = rows + [rows[place] for place in more], weights and weights + [weights[place] for place in more]
    elif how == "loops":
        rows, weights = [*rows, (ids[0], ids[0])], weights and [*weights, 1.0]
    return MadeGraph(ids, rows, weights, directed=random.random() < 0.2)


def _weight(random: Random) -> float:
    return random.choice((1.0, 2.5, 0.25, 1e-3, 3e5, random.randint(1, 9) / 8))


def make_columns(random: Random, num_rows: int) -> list[Column]:
    """Columns of numbers, of true and false, and categorical, with the features that docs/files.md makes of them."""
    makers = (_numbers, _numbers, _booleans, _categories)
    return [random.choice(makers)(f"f{place}", random, num_rows) for place in range(random.randint(1, 4))]


def _numbers(name: str, random: Random, num_rows: int) -> Column:
    values = [random.choice((0.0, 1.0, -2.5, 1e-7, 12345.678, float(random.randint(-50, 50)))) for _ in range(num_rows)]
    return Column(name, [repr(value) for value in values], [[float(np.float32(value))] for value in values])


def _booleans(name: str, random: Random, num_rows: int) -> Column:
    values = [random.random() < 0.5 for _ in range(num_rows)]
    return Column(name, [str(value) for value in values], [[float(value)] for value in values])


def _categories(name: str, random: Random, num_rows: int) -> Column:
    choices = ["red", *random.sample(["green", "NA", "blue, light", "x;y", "été", 'a "b"', "😀"], random.randint(0, 4))]
    values = [choices[0], *(random.choice(choices) for _ in range(num_rows - 1))]  # NA alone would be no category
    known = sorted(set(values))
    return Column(name, values, [[float(value == one) for one in known] for value in values])


# ----------------------------------------------------------------------------------------------------------- comparison


def links_of(graph: Graph) -> set[Link]:
    """The links that were read, between ids as text."""
    names = [str(name) for name in graph.ids_of(np.arange(graph.num_nodes)).tolist()]
    return {frozenset((names[one], names[two])) for one, two in graph.edges.tolist()}


def require_same_weights(made: MadeGraph, graph: Graph) -> None:
    """The weights are those that were written, in 32 bits."""
    assert graph.weights is not None
    names = [str(name) for name in graph.ids_of(np.arange(graph.num_nodes)).tolist()]
    found = {
        frozenset((names[one], names[two])): weight
        for (one, two), weight in zip(graph.edges.tolist(), graph.weights.tolist(), strict=True)
    }
    expected = made.weight_of()
    wrong = {link for link in expected if not np.isclose(found.get(link, -1.0), expected[link], rtol=1e-6, atol=0.0)}
    if wrong or set(found) != set(expected):
        raise differing("weights", {link: expected[link] for link in expected}, found)


def require_same_values(words: str, expected: Mapping[str, Any], graph: Graph, values: Any) -> None:
    """What belongs to the nodes, by id."""
    names = [str(name) for name in graph.ids_of(np.arange(graph.num_nodes)).tolist()]
    found = {name: value for name, value in zip(names, values, strict=True) if name in expected}
    if found != dict(expected):
        raise differing(words, expected, found)


def dense_features(graph: Graph) -> list[list[float]]:
    """The features as rows of numbers."""
    if graph.features is None:
        raise WrongResultError("the features are not there")
    matrix: Any = graph.features
    rows: list[list[float]] = (matrix.toarray() if sp.issparse(matrix) else matrix).tolist()
    return rows


def require_sound(graph: Graph) -> None:
    """A graph that can be printed, hashed and made again of its own parts, whatever it was read from."""
    again = Graph(
        graph.num_nodes,
        graph.edges,
        graph.features,
        graph.labels,
        graph.node_ids,
        weights=graph.weights,
        directions=graph.directions,
    )
    if again.content_hash != graph.content_hash or not repr(graph).startswith("Graph("):
        raise WrongResultError("a graph that is not what its own parts make")
