"""Splitting a graph's links into training, validation and test.

Of E links, ⌊test·E⌋ are held out for testing and ⌊val·E⌋ for validation; the training graph keeps the rest and all
nodes. Each held-out set carries as many non-links, drawn uniformly from the pairs that are links nowhere in the
graph; no pair is in two sets. Everything follows from the seed, and the hash names the result.

The links of a directed graph are its arcs: held-out pairs are then ordered (source, target), and where a link goes one
way, the other way may be among the non-links. `vgae.graph.directed_tasks` has two more ways to hold out arcs.
"""

from __future__ import annotations

import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph import hooks
from vgae.graph.checks import MAX_SEED, frozen
from vgae.graph.graph import Graph
from vgae.graph.negatives import sample_non_links
from vgae.graph.numbering import AllPairs
from vgae.graph.pairs import AnyArray, IntArray, Pairs, bytes_of, check_pairs, contains, distinct
from vgae.options import one_of, whole_number
from vgae.words import count, shown

PARTS = ("train", "val_links", "val_non_links", "test_links", "test_non_links")
EDGE_VALUES = ("weights", "directions")
DIRECTION_TASKS = ("any", "reversed", "mutual")
STORED_VALUES = (*EDGE_VALUES, "sides")
VAL_FRACTION, TEST_FRACTION = 0.05, 0.10  # the paper's


class LeakError(InputError):
    """A split in which the training graph or one held-out set gives away another.

    >>> import vgae
    >>> graph = vgae.Graph.from_edges([(0, 1), (1, 2), (2, 3)])
    >>> held_out = vgae.HeldOut(links=graph.edges[:1], non_links=graph.edges[:0])
    >>> split = vgae.LinkSplit(graph, vgae.HeldOut.none(), held_out, seed=0)
    >>> try:
    ...     split.audit()
    ... except vgae.LeakError:
    ...     print("a test link is a training link")
    a test link is a training link
    """


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Pairs held out for evaluation: links of the graph, and as many non-links; of a directed graph source and target.

    `num_graph_links` is the number of links of the whole graph that they were held out of, where that is known.

    >>> import vgae
    >>> split = vgae.split_links(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    >>> isinstance(split.test, vgae.HeldOut)
    True
    >>> len(split.test.links) == len(split.test.non_links)
    True
    """

    links: Pairs
    non_links: Pairs
    num_graph_links: int | None = None

    @classmethod
    def none(cls) -> HeldOut:
        """No pairs at all."""
        return cls(np.empty((0, 2), dtype=np.int64), np.empty((0, 2), dtype=np.int64))

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs, links first."""
        return np.concatenate([self.links, self.non_links])

    @cached_property
    def labels(self) -> npt.NDArray[np.bool_]:
        """For each of `pairs`, whether it is a link."""
        return np.arange(len(self.links) + len(self.non_links)) < len(self.links)

    def __len__(self) -> int:
        return len(self.links) + len(self.non_links)

    def __repr__(self) -> str:
        return f"HeldOut({count(len(self.links), 'link')}, {count(len(self.non_links), 'non-link')})"


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A training graph, and the pairs held out for validation and test.

    `ordered` says that held-out pairs are ordered, source and target, as those of a directed graph are. Splits that
    were saved before links were held out by direction have canonical pairs, also of a directed graph.

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> split = vgae.LinkSplit.from_links(graph, val=0.1, test=graph.edges[:20])
    >>> split.audit()
    >>> split.save("split.npz")
    >>> vgae.LinkSplit.load("split.npz").content_hash == split.content_hash
    True
    """

    train: Graph
    val: HeldOut
    test: HeldOut
    seed: int
    ordered: bool | None = None  # as the training graph is directed

    def __post_init__(self) -> None:
        if self.ordered is None:
            object.__setattr__(self, "ordered", self.train.directed)

    @property
    def links_graph(self) -> Graph:
        """The training graph whose links are of the same kind as the held-out ones: with directions, or without."""
        return self.train if self.ordered else self.train.without_directions()

    def as_scored(self, *, symmetric: bool) -> LinkSplit:
        """The split as a scorer can know it: without directions, if both directions of a pair have one score."""
        return self if self.ordered and not symmetric else self.without_directions()

    def without_directions(self) -> LinkSplit:
        """What the split is to a model that cannot tell directions: canonical pairs, each of them once.

        A held-out arc whose other way is known is no new link then, and neither is a non-link whose other way is one.
        """
        if not self.ordered:
            return self if not self.train.directed else replace(self, train=self.links_graph)
        train, numbering = self.train.without_directions(), AllPairs(self.train.num_nodes)
        seen, held_out = numbering.ranks(train.edges), dict[str, tuple[IntArray, IntArray]]()
        links = distinct(np.concatenate([seen, *(numbering.ranks(each.links) for each in (self.val, self.test))]))
        for name, given in (("test", self.test), ("val", self.val)):
            found = []
            for pairs, known in ((given.links, seen), (given.non_links, np.concatenate([links, seen]))):
                ranks = numbering.ranks(pairs)
                first = np.sort(np.unique(ranks, return_index=True)[1])
                found.append(ranks[first][~contains(np.sort(known), ranks[first])])
                seen = np.concatenate([seen, found[-1]])
            held_out[name] = (found[0], found[1])
        parts = self.train.num_arcs + len(self.val.links) + len(self.test.links)
        total = len(links) + self.num_graph_links - parts  # of links that nobody has named, each counts
        made = {
            name: HeldOut(numbering.pairs(ranks[0]), numbering.pairs(ranks[1]), total)
            for name, ranks in held_out.items()
        }
        return LinkSplit(train, made["val"], made["test"], self.seed)

    @property
    def num_graph_links(self) -> int:
        """Links of the whole graph: those of the three parts, or more where the held-out pairs know of more."""
        parts = self.links_graph.num_links + len(self.val.links) + len(self.test.links)
        return max(parts, self.val.num_graph_links or 0, self.test.num_graph_links or 0)

    def parts(self) -> dict[str, Pairs]:
        """All pairs, by the names in `PARTS`."""
        held_out = (self.val.links, self.val.non_links, self.test.links, self.test.non_links)
        return dict(zip(PARTS, (self.train.edges, *held_out), strict=True))

    def edge_values(self) -> dict[str, AnyArray]:
        """What the training graph knows of its edges beside their ends, and the sides of its nodes."""
        found = {name: getattr(self.train, name) for name in STORED_VALUES}
        return {name: values for name, values in found.items() if values is not None}

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all pairs, and of weights, directions and sides if any: equal for equal splits everywhere."""
        return hash_of(self.train.num_nodes, self.parts(), self.edge_values(), ordered=bool(self.ordered))

    def audit(self) -> None:
        """Raise `LeakError` on the first leak found; return quietly if the split is clean.

        Checked: self-pairs; a pair twice in one set; a held-out link in the training graph; a pair in two sets; a
        negative that is a link anywhere in the graph. Unless the split is ordered, both ways of a pair are the same.
        """
        graph = self.links_graph
        ranks: dict[str, IntArray] = {}
        for name, given in (self.parts() | {"train": graph.links}).items():
            pairs = check_pairs(given, graph.num_nodes, name)
            loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
            if len(loops):
                raise LeakError(f"{name}: row {loops[0]} pairs the node {pairs[loops[0], 0]} with itself.")
            ranks[name] = distinct(graph.all_pairs.ranks(pairs))
            if len(ranks[name]) < len(pairs):
                repeated = len(pairs) - len(ranks[name])
                verb = "repeats" if repeated == 1 else "repeat"
                raise LeakError(f"{name}: {count(repeated, 'row')} {verb} a pair of the same set.")
        names = list(ranks)
        for position, first in enumerate(names):
            for second in names[position + 1 :]:
                shared = int(contains(ranks[first], ranks[second]).sum())
                if shared:
                    verb = "is" if shared == 1 else "are"
                    raise LeakError(f"{shared} of the pairs in {second} {verb} also in {first}.")

    @classmethod
    def from_links(
        cls,
        graph: Any,
        *,
        train: Any = None,
        val: Any = 0.0,
        test: Any = 0.0,
        non_links: dict[str, Any] | None = None,
        seed: int = 0,
    ) -> LinkSplit:
        """A split of your own: `val` and `test` are links (rows of two node indices, or of two ids that are text).

        They are taken out of the graph, or are not in it at all; `train` names the links to train on in place of all
        others. A number in place of links is the fraction of those left to be drawn by the seed. `non_links` has rows
        under the names "val" and "test"; without them as many as links are drawn. A leak is a `LeakError`; what was
        dropped as a repetition or as a pair of a node with itself is a UserWarning.
        """
        given = import_module("vgae.graph.given")  # which builds on this module
        graph = Graph.of(graph)
        sets = {
            name: pairs if isinstance(pairs, Real) else given.named_pairs(graph, pairs, name)
            for name, pairs in (("train", train), ("val", val), ("test", test))
            if pairs is not None
        }
        unknown = set(non_links or {}) - {"val", "test"}
        if unknown:
            raise InputError(f"non_links: they belong to val or to test, not to {shown(min(unknown, key=str))}.")
        others = {
            name: given.named_pairs(graph, pairs, f"non_links, {name}") for name, pairs in (non_links or {}).items()
        }
        made = given.split_given(graph, given.GivenSplit(**sets, non_links=others), seed=seed)
        for note in made.notes:
            if note.endswith("dropped"):
                warnings.warn(note, UserWarning, stacklevel=2)
        split: LinkSplit = made.split
        return split

    def save(self, path: str | Path) -> None:
        """Write the split, its seed and hash and the nodes' ids and labels into one npz file, in one step."""
        hooks.call("write_split", path, self)

    @classmethod
    def load(cls, path: str | Path, graph: Graph | None = None) -> LinkSplit:
        """Read a split; its hash must match.

        Given the graph that was split, the training graph gets that graph's features and labels, and the two must fit.
        """
        split: LinkSplit = hooks.call("read_split", path, graph)
        return split

    def is_trained_by(self, graph: Graph) -> bool:
        """Whether a graph has exactly the nodes and links of the training graph."""
        same = self.train.num_nodes == graph.num_nodes and np.array_equal(self.train.edges, graph.edges)
        return same and (not self.ordered or np.array_equal(self.train.arcs, graph.arcs))

    def is_of(self, graph: Graph) -> bool:
        """Whether the links of the three parts together are exactly those of a graph."""
        if self.ordered and not graph.directed:
            return False
        graph, own = graph if self.ordered else graph.without_directions(), self.links_graph
        links = np.concatenate([own.links, self.val.links, self.test.links])
        if own.num_nodes != graph.num_nodes or len(links) != graph.num_links:
            return False
        return np.array_equal(distinct(graph.all_pairs.ranks(links)), np.sort(graph.all_pairs.ranks(graph.links)))


def split_links(
    graph: Graph,
    *,
    val: float = VAL_FRACTION,
    test: float = TEST_FRACTION,
    seed: int = 0,
    direction_task: str = "any",
) -> LinkSplit:
    """Hold out fractions of the links, with as many non-links, for validation and test.

    `direction_task` is for directed graphs: "any" has any pairs that are no links as non-links; "reversed" holds out
    links that go one way, against their other way; "mutual" hides one way of all links that go both ways, against the
    other way of links that go one way (`vgae.graph.directed_tasks`).

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> split = vgae.split_links(graph, val=0.05, test=0.10, seed=0)
    >>> split.train.num_edges + len(split.val.links) + len(split.test.links) == graph.num_edges
    True
    """
    graph = Graph.of(graph)
    val, test = check_fraction(val, "val"), check_fraction(test, "test")
    if val + test >= 1:
        raise InputError(f"val + test: {val} + {test} leaves no links to train on; their sum must be below 1.")
    seed = whole_number(seed, "seed", 0, MAX_SEED)
    if one_of(direction_task, "direction_task", DIRECTION_TASKS) != "any":
        tasks = import_module("vgae.graph.directed_tasks")  # which builds on this module
        made: LinkSplit = tasks.split_by_task(graph, direction_task, val=val, test=test, seed=seed)
        return made
    num_val, num_test = numbers_held_out(graph.num_links, val, test)
    generator = np.random.default_rng(seed)
    order = generator.permutation(graph.num_links)
    chosen_test, chosen_val, kept = np.split(order, [num_test, num_test + num_val])
    negatives = sample_non_links(graph, num_test + num_val, generator)
    return LinkSplit(
        train=graph.with_links(frozen(graph.links[np.sort(kept)])),
        val=HeldOut(graph.links[chosen_val], negatives[num_test:], graph.num_links),
        test=HeldOut(graph.links[chosen_test], negatives[:num_test], graph.num_links),
        seed=seed,
    )


def numbers_held_out(num_links: int, val: float, test: float) -> tuple[int, int]:
    """How many of so many links are for validation and test; an error where a fraction of them is none."""
    num_val, num_test = (floor_of(fraction * num_links) for fraction in (val, test))
    for name, fraction, num in (("val", val, num_val), ("test", test, num_test)):
        if fraction > 0 and num == 0:
            raise InputError(
                f"{name}: {fraction} of the graph's {count(num_links, 'link')} is less than one link; "
                f"increase {name}, or set it to 0."
            )
    return num_val, num_test


def check_fraction(value: Any, name: str) -> float:
    """A fraction from 0 to below 1."""
    number = not isinstance(value, bool) and isinstance(value, Real)
    if not (number and 0 <= value < 1):
        raise InputError(f"{name}: a fraction from 0 to below 1 is needed, got {shown(value)}.")
    return float(value)


def floor_of(value: float) -> int:
    """Rounded down, but 0.29·100 is 29 although it comes out as 28.999999999999996."""
    return int(value + 1e-9)


def hash_of(num_nodes: int, parts: dict[str, Pairs], edge_values: dict[str, AnyArray], *, ordered: bool = False) -> str:
    """SHA-256 of the parts of a split."""
    digest = hashlib.sha256(str(num_nodes).encode() + (b"ordered" if ordered else b""))
    for name, pairs in parts.items():
        digest.update(f"{name},{len(pairs)}".encode())
        digest.update(bytes_of(pairs.astype("<i8", casting="same_kind", copy=False), "<i8"))
    for name, values in edge_values.items():
        digest.update(f"{name},{len(values)}".encode())
        digest.update(bytes_of(values.astype("<f4", casting="same_kind", copy=False), "<f4"))
    return digest.hexdigest()
