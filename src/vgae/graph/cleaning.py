"""From rows of two endpoints to a simple undirected graph, with an account of what had to be merged or dropped."""

from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.checks import frozen, usable_weights
from vgae.graph.pairs import Pairs, distinct
from vgae.words import count, shown


@dataclass(frozen=True)
class Cleaning:
    """What was given and what had to be merged or dropped to make a simple undirected graph of it."""

    rows_given: int = 0
    self_loops_dropped: int = 0
    duplicates_merged: int = 0
    reversed_merged: int = 0
    reversed_kept: int = 0  # links of a directed graph that go in both directions

    def __str__(self) -> str:
        merged = [(self.duplicates_merged, "duplicate"), (self.reversed_merged, "reversed link")]
        done = [
            (" and ".join(count(number, noun) for number, noun in merged if number), "merged"),
            (count(self.self_loops_dropped, "self-loop") if self.self_loops_dropped else "", "dropped"),
            (count(self.reversed_kept, "link") if self.reversed_kept else "", "in both directions"),
        ]
        words = ", ".join(f"{what} {how}" for what, how in done if what)
        return f"{count(self.rows_given, 'row')} read: {words or 'nothing merged or dropped'}"


def simplify(
    pairs: Pairs,
    num_nodes: int,
    weights: npt.NDArray[np.float64] | None,
    directed: bool,
    everywhere: Callable[[bool], bool] = bool,
) -> dict[str, Any]:
    """Canonical, sorted, distinct edges out of any rows, with their weights and directions, and what it took.

    Where others have the rest of the rows, `everywhere` tells whether something that is so here is so for all of them.
    """
    proper = pairs[:, 0] != pairs[:, 1]
    codes = pairs[proper, 0] * num_nodes + pairs[proper, 1]
    arcs = distinct(codes)  # ordered pairs
    source, target = np.divmod(arcs, num_nodes)
    ends = np.minimum(source, target) * num_nodes + np.maximum(source, target)
    links = distinct(ends)
    num_reversed = len(arcs) - len(links)
    simple: dict[str, Any] = {
        "edges": frozen(np.stack(np.divmod(links, num_nodes), axis=1)),
        "cleaning": Cleaning(
            rows_given=len(pairs),
            self_loops_dropped=len(pairs) - len(codes),
            duplicates_merged=len(codes) - len(arcs),
            reversed_merged=0 if directed else num_reversed,
            reversed_kept=num_reversed if directed else 0,
        ),
    }
    if weights is None and not directed:
        return simple
    place, forward = np.searchsorted(links, ends), source < target
    if directed:
        ways = [np.bincount(place[way], minlength=len(links)) for way in (forward, ~forward)]
        simple["directions"] = frozen((ways[0] - ways[1]).astype(np.int8))
    if weights is not None:
        of_arc = np.bincount(np.searchsorted(arcs, codes), weights[proper], minlength=len(arcs))
        there, back = (np.bincount(place[way], of_arc[way], minlength=len(links)) for way in (forward, ~forward))
        twice = not directed and everywhere(np.array_equal(there, back))
        simple["weights"] = there if twice else there + back
        too_large = ~usable_weights(simple["weights"])
        if too_large.any():
            i, j = simple["edges"][int(too_large.argmax())].tolist()
            raise InputError(f"weights: those of the links between the nodes {i} and {j} add up to too large a number.")
    return simple


def check_cleaning(cleaning: Any) -> Cleaning:
    """A cleaning, whose counts are counts."""
    counts = astuple(cleaning) if isinstance(cleaning, Cleaning) else ("none",)
    if not all(isinstance(count, int) and count >= 0 for count in counts):
        raise InputError(f"cleaning: a Cleaning, whose counts are at least 0, is needed, got {shown(cleaning)}.")
    return cast(Cleaning, cleaning)
