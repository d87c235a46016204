"""Links between two kinds of nodes, such as users and items, in the two columns of a table.

Where an id occurs in both columns it is two nodes, and all ids get the name of their column in front: user:1 and item:1
(left: and right: where columns have no names). Where no id does, ids stay as they are. A table that looks like one of
two kinds and is not read as such is given a hint.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from vgae.errors import InputError
from vgae.graph.pairs import AnyArray, IntArray, Pairs
from vgae.io.columns import holds_whole_numbers, with_prefix
from vgae.io.links import Ends
from vgae.io.nodes import NodeTable
from vgae.io.sniff import ends_by_name

HINT = "to keep two kinds of nodes apart, use --bipartite (bipartite=True)"
PEOPLE = (
    "user customer person people member viewer reader buyer client patient student author actor reviewer employee "
    "donor visitor session"
)
THINGS = (
    "item product movie film book song track artist paper article page course business restaurant tag game company "
    "event venue project video group team disease asin isbn"
)
KINDS = (frozenset(PEOPLE.split()), frozenset(THINGS.split()))
LEAST_ROWS, LEAST_IDS = 20, 3  # below which nothing is said about ids that are all in one column
RATIO, LEAST_NUMBERS = 1.2, 10  # of the largest numbers in the two columns, and of those in each, for two numberings
UNSEEN = 255


@dataclass(frozen=True, eq=False)
class Sides:
    """The two columns as nodes of two kinds: their ids, and what they begin with, if they had to be told apart."""

    columns: tuple[pa.ChunkedArray, ...]
    prefixes: tuple[str, str] | None
    note: str

    def of_table(self, nodes: NodeTable) -> NodeTable:
        """A node table whose column of ids is called as one of the two columns has the ids of that kind."""
        for prefix in self.prefixes or ():
            if nodes.id_name is not None and f"{nodes.id_name}:" == prefix:
                ids = with_prefix(nodes.ids, prefix)
                return replace(nodes, ids=ids, notes=(*nodes.notes, f"its ids are those of {prefix}…"))
        return nodes

    def of_nodes(self, codes: Sequence[IntArray], ids: AnyArray) -> npt.NDArray[np.uint8]:
        """The side of each node: its column, or, where it is in none, what its id begins with."""
        sides = np.full(len(ids), UNSEEN, dtype=np.uint8)
        sides[codes[0]], sides[codes[1]] = 0, 1
        for node in np.flatnonzero(sides == UNSEEN).tolist():
            name = str(ids[node])
            side = next((side for side, prefix in enumerate(self.prefixes or ()) if name.startswith(prefix)), None)
            if side is None:
                raise InputError(f"bipartite: the node {name!r} has no links, so its kind is not known; leave it out.")
            sides[node] = side
        return sides


def two_sides(ends: Ends) -> Sides:
    """The ends of links as nodes of two kinds."""
    columns = tuple(column.cast(pa.large_string()) for column in ends.columns)
    shared = int(pc.sum(pc.is_in(pc.unique(columns[0]), value_set=pc.unique(columns[1]))).as_py() or 0)
    if not shared:
        return Sides(ends.columns, None, "two kinds of nodes, one in each column")
    named = not any(re.fullmatch(r"column \d+", name) for name in ends.names)
    first, second = ends.names if named else ("left", "right")
    prefixes = (f"{first}:", f"{second}:")
    renamed = tuple(with_prefix(column, prefix) for column, prefix in zip(columns, prefixes, strict=True))
    example = columns[0][0].as_py()
    return Sides(renamed, prefixes, f"two kinds of nodes, called {first}:{example}, {second}:{example} and so on")


def prefixes_of(ids: Sequence[Any], sides: npt.NDArray[np.uint8]) -> tuple[str, str] | None:
    """What the ids of each side begin with, if they were told apart in that way."""
    found = []
    for side in (0, 1):
        names = [str(name) for name, its in zip(ids, sides.tolist(), strict=True) if its == side]
        start = names[0].partition(":")[0] + ":" if names and ":" in names[0] else None
        if start is None or not all(name.startswith(start) for name in names):
            return None
        found.append(start)
    return (found[0], found[1]) if found[0] != found[1] else None


def sides_with_more(
    sides: npt.NDArray[np.uint8], ids: Sequence[Any], starts: tuple[str, str] | None, links: Pairs
) -> npt.NDArray[np.uint8]:
    """The sides of all nodes where those from the last one of `sides` on are new, and so are the `links`."""
    found = np.concatenate([sides, np.full(len(ids) - len(sides), UNSEEN, dtype=np.uint8)])
    for side in (0, 1):
        ends = links[:, side]
        found[ends[found[ends] == UNSEEN]] = side
    for node in range(len(sides), len(ids)):
        name = str(ids[node])
        side = next((side for side, start in enumerate(starts or ()) if name.startswith(start)), int(found[node]))
        if side == UNSEEN:
            raise InputError(f"The node {name!r} has no links, so its kind in this bipartite graph is not known.")
        found[node] = side
    return found


# ---------------------------------------------------------------------------------------------------------------- hint


def hint_of_two_kinds(ends: Ends, num_rows: int) -> str | None:
    """A note where two columns look like two kinds of nodes; None where they do not, or where it is not clear."""
    first, second = ends.columns
    distinct = [pc.unique(column.cast(pa.large_string())) for column in ends.columns]
    shared = int(pc.sum(pc.is_in(distinct[0], value_set=distinct[1])).as_py() or 0)
    if not shared:
        enough = num_rows >= LEAST_ROWS and min(len(each) for each in distinct) >= LEAST_IDS
        return f"no id is in both columns; {HINT}" if enough else None
    names = " and ".join(ends.names)
    if _two_kinds(ends.names):
        return f"the columns {names} look like two kinds of nodes, and an id in both is taken for one node; {HINT}"
    if ends_by_name(ends.names) is None and holds_whole_numbers(first) and holds_whole_numbers(second):
        numbers = [column.cast(pa.int64()).to_numpy() for column in ends.columns]
        if _numbered_apart(numbers):
            return f"the columns {names} look like two numberings, and a number in both is taken for one node; {HINT}"
    return None


def _two_kinds(names: Sequence[str]) -> bool:
    """Whether one column is called as people are, and the other as what they have, or the other way round."""
    words = [set(re.findall("[a-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).casefold())) for name in names]
    singular = [
        each | {word.removesuffix("s") for word in each} | {word.removesuffix("id") for word in each} for each in words
    ]
    there = bool(singular[0] & KINDS[0]) and bool(singular[1] & KINDS[1])
    back = bool(singular[0] & KINDS[1]) and bool(singular[1] & KINDS[0])
    return there or back


def _numbered_apart(numbers: Sequence[IntArray]) -> bool:
    """Whether each column has all numbers from its first on, to different ends, and rows go up as well as down."""
    for column in numbers:
        least, most = int(column.min()), int(column.max())
        if least not in (0, 1) or len(np.unique(column)) != most - least + 1:
            return False
    low, high = sorted(int(column.max()) for column in numbers)
    both_ways = bool((numbers[0] < numbers[1]).any() and (numbers[0] > numbers[1]).any())
    return both_ways and high >= RATIO * low and low >= LEAST_NUMBERS
