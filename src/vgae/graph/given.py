"""Splits that somebody gives: links of their own for training, validation and test, non-links of their own, or times.

Given sets of links, the training graph is what is left of the graph without them; a set that is not in the graph at all
leaves it as it is: the graph is then the training graph already. A set may also be a fraction of the links that are
left. Non-links that are not given are drawn as `split_links` draws them, as many as links.

    refused   a link for training in a held-out set; a link in both held-out sets; a set that is partly in the graph and
              partly not; a non-link that is a link, or in both held-out sets; a training link unknown to the graph
    dropped   pairs of a node with itself, and pairs that are repeated, in either direction; the notes say how many

Links of a directed graph are ordered pairs, source and target: there the two directions of a pair are two pairs.

By time, a link counts from the first time that it was seen, so that no later repetition can give it away.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.checks import MAX_SEED, frozen
from vgae.graph.graph import Graph
from vgae.graph.negatives import sample_non_links
from vgae.graph.pairs import IntArray, Pairs, check_pairs, contains, distinct
from vgae.graph.split import TEST_FRACTION, VAL_FRACTION, HeldOut, LeakError, LinkSplit, check_fraction, floor_of
from vgae.options import whole_number
from vgae.words import count

Generator = np.random.Generator
SETS = {"train": "training", "val": "validation", "test": "test"}
NO_RANKS: IntArray = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class NamedPairs:
    """Pairs of node indices, and what errors call them: a file, or the parameter they were given as."""

    name: str
    pairs: Pairs


@dataclass(frozen=True, eq=False)
class NegativesOfLinks:
    """Links (M×2), and for each of them nodes that stand in for its second end (M×K); -1 where there are fewer."""

    name: str
    links: Pairs
    others: IntArray


@dataclass(frozen=True, eq=False)
class GivenSplit:
    """What somebody gives of a split: sets of links, or fractions of what is left, and perhaps non-links."""

    train: NamedPairs | None = None
    val: NamedPairs | float = 0.0
    test: NamedPairs | float = 0.0
    non_links: Mapping[str, NamedPairs] = field(default_factory=dict)  # by the names val and test


@dataclass(frozen=True, eq=False)
class MadeSplit:
    """A split, and what was assumed or dropped in making it."""

    split: LinkSplit
    notes: tuple[str, ...] = ()


def named_pairs(graph: Graph, pairs: Any, name: str) -> NamedPairs:
    """Pairs of node indices, or of ids where they are not whole numbers, checked to be nodes of the graph."""
    array = np.asarray(pairs)
    if not (array.size and array.dtype.kind in "OSU" and array.ndim == 2 and array.shape[1] == 2):
        return NamedPairs(name, check_pairs(pairs, graph.num_nodes, name))
    places = [[graph.place_of(node) for node in row] for row in array.tolist()]
    indices = np.array([[-1 if place is None else place for place in row] for row in places], dtype=np.int64)
    require_known(graph, name, indices, array)
    return NamedPairs(name, indices)


def require_known(graph: Graph, name: str, indices: Pairs, given: Any) -> None:
    """Refuse rows that name nodes which the graph does not have; their indices are -1."""
    unknown = np.argwhere(indices < 0)
    if len(unknown):
        rows, (row, end) = len(set(unknown[:, 0].tolist())), unknown[0]
        raise InputError(
            f"{name}: {rows:,} of its {count(len(indices), 'row')} {'names' if rows == 1 else 'name'} a node that is "
            f"not among the {count(graph.num_nodes, 'node')} of the graph, such as {given[row][end]!r}; give a graph "
            "with all nodes (a table of nodes adds those without links), or leave the rows out."
        )


def split_given(graph: Graph, given: GivenSplit, *, seed: int = 0) -> MadeSplit:
    """The split that is made of what was given; leaks are refused."""
    generator = np.random.default_rng(whole_number(seed, "seed", 0, MAX_SEED))
    tidy = _Tidy(graph)
    own = _own_ranks(graph)
    sets = {name: tidy.ranks(pairs) for name, pairs in _named(given).items()}
    _refuse_overlaps(tidy, given, sets)
    if given.train is None:
        train = own
        for name in ("val", "test"):
            train = _taken_out(tidy, train, own, sets.get(name), getattr(given, name))
    else:
        train = _only(tidy, own, sets, given.train)
    for name in ("test", "val"):
        fraction = getattr(given, name)
        if isinstance(fraction, Real):
            number = _share(float(fraction), len(train), name)
            order = generator.permutation(len(train))
            sets[name], train = train[order[:number]], np.sort(train[order[number:]])
    if not len(train):
        raise InputError("No links are left to train on; hold out fewer of them.")
    split = _with_non_links(tidy, graph, train, sets, given.non_links, generator, seed)
    return MadeSplit(split, tuple(tidy.notes))


def split_by_time(
    graph: Graph,
    times: npt.ArrayLike,
    *,
    links: Any = None,
    val: float = VAL_FRACTION,
    test: float = TEST_FRACTION,
    seed: int = 0,
) -> LinkSplit:
    """Hold out the newest links for test and the next newest for validation, with as many non-links.

    `times` has a number or a NumPy date for each link of `graph.links` or, with `links`, for each of these rows, which
    may repeat a link: it counts at its first time. Of links of the same time, chance decides by the seed.

    >>> import vgae
    >>> graph = vgae.Graph.from_edges([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)])
    >>> split = vgae.split_by_time(graph, times=[1, 2, 3, 4, 5], val=0.2, test=0.2)
    >>> split.test.links.tolist()
    [[3, 4]]
    """
    graph = Graph.of(graph)
    if links is not None:
        times = first_times(graph, named_pairs(graph, links, "links").pairs, np.asarray(times))
    return split_timed(graph, times, GivenSplit(val=val, test=test), seed=seed).split


def split_timed(graph: Graph, times: npt.ArrayLike, given: GivenSplit, *, seed: int = 0) -> MadeSplit:
    """The same with non-links that somebody gives, and with notes; `val` and `test` are fractions."""
    generator = np.random.default_rng(whole_number(seed, "seed", 0, MAX_SEED))
    when = _comparable(np.asarray(times), graph.num_links)
    fractions = [check_fraction(each, name) for name, each in (("val", given.val), ("test", given.test))]
    if sum(fractions) >= 1:
        raise InputError(f"val + test: {fractions[0]} + {fractions[1]} leaves no links to train on.")
    num_links = graph.num_links
    num_val, num_test = (_share(each, num_links, name) for name, each in zip(("val", "test"), fractions, strict=True))
    order = np.lexsort((generator.permutation(num_links), when))  # by time, and by chance where times are equal
    ranks = _own_ranks(graph)[order]
    num_train = num_links - num_val - num_test
    sets = {"val": ranks[num_train : num_train + num_val], "test": ranks[num_train + num_val :]}
    tidy = _Tidy(graph)
    for border in sorted({num_train, num_train + num_val} & set(range(1, num_links))):
        tied = int(np.count_nonzero(when == when[order[border]]))
        if when[order[border - 1]] == when[order[border]]:
            tidy.notes.append(f"{count(tied, 'link')} of the same time lie across a border and are divided by the seed")
    split = _with_non_links(tidy, graph, np.sort(ranks[:num_train]), sets, given.non_links, generator, seed)
    return MadeSplit(split, tuple(tidy.notes))


def first_times(graph: Graph, rows: Pairs, times: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """For each link of the graph the earliest time of the rows that name it; in either direction where it has none."""
    if times.shape != (len(rows),):
        raise InputError(f"times: one is needed for each of the {len(rows)} rows, got the shape {times.shape}.")
    proper = rows[:, 0] != rows[:, 1]
    ranks, own = graph.all_pairs.ranks(rows[proper]), _own_ranks(graph)
    order = np.lexsort((times[proper], ranks))
    ranks, ordered = ranks[order], times[proper][order]
    first = np.searchsorted(ranks, own)
    if not contains(distinct(ranks), own).all():
        raise InputError("times: there are links of the graph without a row, and so without a time.")
    found: npt.NDArray[Any] = ordered[first]
    return found


# -------------------------------------------------------------------------------------------------------------- inside


class _Tidy:
    """Pairs as ranks without self-pairs and repetitions, with notes on what was dropped."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.notes = graph, list[str]()

    def ranks(self, given: NamedPairs) -> IntArray:
        """The ranks of pairs in their order, each of them once."""
        pairs = check_pairs(given.pairs, self.graph.num_nodes, given.name)
        proper = pairs[pairs[:, 0] != pairs[:, 1]]
        ranks = self.graph.all_pairs.ranks(proper)
        sides = self.graph.sides
        inside = np.zeros(len(proper), dtype=bool) if sides is None else sides[proper[:, 0]] == sides[proper[:, 1]]
        if inside.any():
            raise InputError(
                f"{given.name}: {int(inside.sum()):,} of its {count(len(pairs), 'pair')} {_is(ranks[inside])} within "
                f"one side of the bipartite graph, {self.example(ranks[inside])}; leave {_them(ranks[inside])} out."
            )
        _, first = np.unique(ranks, return_index=True)
        dropped = [
            (len(pairs) - len(proper), "pair of a node with itself", "pairs of a node with itself"),
            (len(ranks) - len(first), "repeated pair", "repeated pairs"),
        ]
        words = " and ".join(count(number, one, many) for number, one, many in dropped if number)
        if words:
            self.notes.append(f"{given.name}: {words} dropped")
        kept: IntArray = ranks[np.sort(first)]
        return kept

    def example(self, ranks: IntArray) -> str:
        """The first of some pairs, by its ids."""
        one, other = self.graph.ids_of(self.graph.all_pairs.pairs(ranks[:1])[0]).tolist()
        return f"such as {one!r} {'to' if self.graph.directed else 'and'} {other!r}"


def _own_ranks(graph: Graph) -> IntArray:
    """The ranks of the graph's links, sorted as the links are."""
    return graph.all_pairs.ranks(graph.links)


def _named(given: GivenSplit) -> dict[str, NamedPairs]:
    """The sets of links that are given as links."""
    sets = {name: getattr(given, name) for name in SETS}
    return {name: pairs for name, pairs in sets.items() if isinstance(pairs, NamedPairs)}


def _shared(first: IntArray, second: IntArray) -> IntArray:
    """What of the second is in the first."""
    return second[contains(np.sort(first), second)]


def _refuse_overlaps(tidy: _Tidy, given: GivenSplit, sets: Mapping[str, IntArray]) -> None:
    """No link may be in two sets; in either direction where it has none."""
    names, either = _named(given), "" if tidy.graph.directed else ", in one direction or the other"
    for first, second in (("train", "val"), ("train", "test"), ("val", "test")):
        if first not in sets or second not in sets:
            continue
        both = _shared(sets[first], sets[second])
        if len(both):
            raise LeakError(
                f"{names[second].name}: {len(both):,} of its {count(len(sets[second]), f'{SETS[second]} link')} "
                f"{_is(both)} also in {names[first].name} ({SETS[first]} links){either}, "
                f"{tidy.example(both)}; leave {_them(both)} out of one of the two."
            )


def _taken_out(tidy: _Tidy, train: IntArray, own: IntArray, held_out: IntArray | None, given: Any) -> IntArray:
    """The training links without a held-out set, which is in the graph wholly or not at all."""
    if held_out is None or not len(held_out):
        return train
    inside = contains(own, held_out)
    if not inside.any():
        tidy.notes.append(f"{given.name}: its links are not in the graph, all of whose other links are for training")
        return train
    if not inside.all():
        num, leaked = int(inside.sum()), held_out[inside]
        raise LeakError(
            f"{given.name}: {num:,} of its {count(len(held_out), 'link')} {_is(leaked)} in the graph, "
            f"{tidy.example(leaked)}, and {len(held_out) - num:,} {_is(held_out[~inside])} not, "
            f"{tidy.example(held_out[~inside])}; give the whole graph, from which they are taken out, or a graph "
            "without any of them, for training only."
        )
    tidy.notes.append(f"{given.name}: {count(len(held_out), 'link')} taken out of the graph")
    return train[~contains(np.sort(held_out), train)]


def _only(tidy: _Tidy, own: IntArray, sets: Mapping[str, IntArray], given: NamedPairs) -> IntArray:
    """The training links that are given, all of them links of the graph."""
    train = np.sort(sets["train"])
    unknown = train[~contains(own, train)]
    if len(unknown):
        raise InputError(
            f"{given.name}: {len(unknown):,} of its {count(len(train), 'link')} {_is(unknown)} not in the graph, "
            f"{tidy.example(unknown)}; give a graph that has them, or give these links as the graph."
        )
    used = np.sort(np.concatenate([sets[name] for name in SETS if name in sets]))
    unused = int(np.count_nonzero(~contains(used, own)))
    if unused:
        tidy.notes.append(f"{count(unused, 'link')} of the graph {'is' if unused == 1 else 'are'} in none of the sets")
    return train


def _with_non_links(
    tidy: _Tidy,
    graph: Graph,
    train: IntArray,
    sets: Mapping[str, IntArray],
    given: Mapping[str, NamedPairs],
    generator: Generator,
    seed: int,
) -> LinkSplit:
    """The split of sets of links, with the non-links that are given and as many as links where none are."""
    links = {name: sets.get(name, NO_RANKS) for name in ("val", "test")}
    pairs_of = graph.all_pairs.pairs
    everything = distinct(np.concatenate([_own_ranks(graph), *links.values()]))
    non_links: dict[str, IntArray] = {}
    for name, pairs in given.items():
        non_links[name] = tidy.ranks(pairs)
        if not len(links[name]):
            raise InputError(f"{pairs.name}: there are no {SETS[name]} links for these non-links; hold some out.")
        if not len(non_links[name]):
            raise InputError(f"{pairs.name}: there are no pairs of different nodes in it.")
        wrong = _shared(everything, non_links[name])
        if len(wrong):
            raise LeakError(
                f"{pairs.name}: {len(wrong):,} of its {count(len(non_links[name]), 'non-link')} {_is(wrong)} "
                f"{'a link' if len(wrong) == 1 else 'links'} of the graph, {tidy.example(wrong)}; leave "
                f"{_them(wrong)} out."
            )
    if len(non_links) == 2:
        both = _shared(non_links["val"], non_links["test"])
        if len(both):
            raise LeakError(
                f"{given['test'].name}: {len(both):,} of its {count(len(non_links['test']), 'non-link')} {_is(both)} "
                f"also in {given['val'].name}, {tidy.example(both)}; leave {_them(both)} out of one of the two."
            )
    missing = {name: len(ranks) for name, ranks in links.items() if name not in non_links}
    taken = distinct(np.concatenate([everything, *non_links.values()]))
    drawn = sample_non_links(graph, sum(missing.values()), generator, pairs_of(taken))
    for name in ("test", "val"):  # in the order of split_links
        if name in missing:
            non_links[name], drawn = graph.all_pairs.ranks(drawn[: missing[name]]), drawn[missing[name] :]
    held_out = {
        name: HeldOut(frozen(pairs_of(links[name])), frozen(pairs_of(non_links[name])), len(everything))
        for name in ("val", "test")
    }
    split = LinkSplit(graph.with_links(frozen(pairs_of(train))), held_out["val"], held_out["test"], seed)
    split.audit()
    return split


def _share(fraction: float, total: int, name: str) -> int:
    """So many links; an error where a fraction of them is none."""
    number = floor_of(check_fraction(fraction, name) * total)
    if fraction > 0 and number == 0:
        raise InputError(
            f"{name}: {fraction} of {count(total, 'link')} is less than one link; increase {name}, or set it to 0."
        )
    return number


def _comparable(times: npt.NDArray[Any], num_edges: int) -> npt.NDArray[Any]:
    if times.shape != (num_edges,):
        raise InputError(f"times: one is needed for each of the {num_edges} links, got the shape {times.shape}.")
    if times.dtype.kind not in "iufM":
        raise InputError(f"times: numbers or NumPy dates are needed, got {times.dtype}.")
    missing = np.isnan(times) if times.dtype.kind == "f" else np.isnat(times) if times.dtype.kind == "M" else None
    if missing is not None and missing.any():
        raise InputError(f"times: {count(int(missing.sum()), 'link')} {_is(missing[missing])} without a time.")
    return times


def _is(found: npt.NDArray[Any]) -> str:
    return "is" if len(found) == 1 else "are"


def _them(found: npt.NDArray[Any]) -> str:
    return "it" if len(found) == 1 else "them"
