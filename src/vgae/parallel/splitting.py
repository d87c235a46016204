"""A split of a graph in parts: the one that a single process would draw (`vgae.graph.split.split_links`).

The first process draws, which takes eight bytes for each link of the graph for a moment; whoever has a held-out link
takes it out of its part. The u-th non-link has rank u + (number of links before it), and every process counts
those of a range of links. Edges lie in such ranges already; the arcs of a directed graph, which are its links, are
sent to the process that has their range (`InOrder`). Validation pairs are in every process, test pairs in the first
alone.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.checks import MAX_SEED
from vgae.graph.negatives import require_non_links
from vgae.graph.pairs import AnyArray, IntArray, Pairs, contains
from vgae.graph.split import HeldOut, LinkSplit, check_fraction, numbers_held_out
from vgae.options import whole_number
from vgae.parallel.mail import Mail, counts_of, ranges_of, streamed, tensor_of
from vgae.parallel.part import GraphPart

if TYPE_CHECKING:
    from vgae.parallel.group import Group


@dataclass(frozen=True, eq=False)
class PartSplit(LinkSplit):
    """A split whose training graph is in parts."""

    hash: str = ""

    @property
    def content_hash(self) -> str:
        """That of the whole split."""
        return self.hash

    def gathered(self) -> LinkSplit | None:
        """All of it in the first process; None in others."""
        if not isinstance(self.train, GraphPart):
            raise TypeError("This split is not in parts.")
        train = self.train.gathered()
        return None if train is None else LinkSplit(train, self.val, self.test, self.seed)


def split_in_parts(graph: GraphPart, *, val: float, test: float, seed: int) -> PartSplit:
    """Hold out fractions of the links, with as many non-links, for validation and test."""
    group = graph.whole.group
    val, test = check_fraction(val, "val"), check_fraction(test, "test")
    if val + test >= 1:
        raise InputError(f"val + test: {val} + {test} leaves no links to train on; their sum must be below 1.")
    seed = whole_number(seed, "seed", 0, MAX_SEED)
    num_val, num_test = numbers_held_out(graph.num_links, val, test)
    number = num_val + num_test
    available = require_non_links(graph, number, graph.num_links)
    chosen, positions = np.empty(0, dtype=np.int64), np.empty(number, dtype=np.int64)
    if group.is_first:
        generator = np.random.default_rng(seed)
        chosen = generator.permutation(graph.num_links)[:number].copy()
        positions = generator.choice(available, size=number, replace=False)

    ordered = InOrder.of(graph)
    counts = counts_of(group, len(ordered.links))
    ends = np.cumsum(counts)
    mail = Mail(group, np.searchsorted(ends, chosen, side="right"))
    here = mail.send(chosen) - (int(ends[group.rank]) - counts[group.rank])
    links = mail.answer(ordered.links[here])
    non_links = non_links_at(graph, from_first(group, positions), np.empty(0, dtype=np.int64), ordered)
    kept = np.ones(len(ordered.links), dtype=np.uint8)
    kept[here] = 0
    train = _with_some(graph, ordered.of_own(kept).astype(bool))

    of_val = from_first(group, links[num_test:] if group.is_first else np.empty((num_val, 2), dtype=np.int64))
    tested = slice(num_test if group.is_first else 0)
    held_out = HeldOut(of_val, non_links[num_test:], graph.num_links)
    of_test = HeldOut(links[tested], non_links[tested], graph.num_links)
    return PartSplit(train, held_out, of_test, seed, hash=group.share(_hash(train, held_out, of_test)))


@dataclass(frozen=True, eq=False)
class InOrder:
    """The links of a graph in parts in their order: each process has a range of them, after those of lower ranks."""

    links: Pairs
    mail: Mail | None = None  # by which arcs have come here; edges are where they belong
    order: IntArray | None = None  # of what has come

    @classmethod
    def of(cls, graph: GraphPart) -> InOrder:
        """Asked for by all processes."""
        if not graph.directed:
            return cls(graph.edges)
        codes = graph.arcs[:, 0] * graph.num_nodes + graph.arcs[:, 1]
        mail = Mail(graph.whole.group, ranges_of(graph.whole.group, codes))
        arrived = mail.send(codes)
        order = np.argsort(arrived)
        return cls(np.stack(np.divmod(arrived[order], graph.num_nodes), axis=1), mail, order)

    def of_own(self, values: AnyArray) -> AnyArray:
        """A value for each of these links as one for each link that the graph has here."""
        if self.mail is None or self.order is None:
            return values
        arrived = np.empty_like(values)
        arrived[self.order] = values
        return self.mail.answer(arrived)


def _with_some(graph: GraphPart, kept: npt.NDArray[np.bool_]) -> GraphPart:
    """The same nodes with some of the links that each process has."""
    if graph.directions is None:
        weights = None if graph.weights is None else graph.weights[kept]
        return graph.with_own(graph.edges[kept], weights, None)
    left = graph.edges_of(graph.arcs[kept])
    return graph.with_own(left.edges, left.weights(graph.weights), left.directions)


def unlinked(graph: GraphPart, ranks: IntArray) -> IntArray:
    """Those of the ranks of pairs, which all processes give, that are no links of the graph."""
    group = graph.whole.group
    here = contains(graph.all_pairs.ranks(graph.links), ranks).astype(np.int64)
    found: IntArray = ranks[group.sum(tensor_of(group, here)).cpu().numpy() == 0]
    return found


def non_links_at(graph: GraphPart, positions: IntArray, more: IntArray, ordered: InOrder | None = None) -> Pairs:
    """The pairs at these positions among those that are neither links nor have one of the ranks `more`, in order.

    All processes ask for the same, and each gets all of them; the ranks are sorted, and none is that of a link.
    """
    group, numbering = graph.whole.group, graph.all_pairs
    if not len(positions):
        return np.empty((0, 2), dtype=np.int64)
    own = numbering.ranks((ordered or InOrder.of(graph)).links)
    firsts = np.array(counts_of(group, int(own[0]) if len(own) else -1))
    having = np.flatnonzero(firsts >= 0)
    owners = having[np.maximum(np.searchsorted(firsts[having], more, side="right") - 1, 0)]
    own = np.sort(np.concatenate([own, more[owners == group.rank]]))
    before = sum(counts_of(group, len(own))[: group.rank])
    passed = np.searchsorted(own - (before + np.arange(len(own))), positions, side="right")
    total = group.sum(tensor_of(group, passed)).cpu().numpy()
    return numbering.pairs(positions + total)


def from_first(group: Group, rows: AnyArray) -> AnyArray:
    """What the first process has, in all of them; others give rows of the same shape."""
    if not len(rows):
        return rows
    given = rows if group.is_first else np.zeros_like(rows)
    found: AnyArray = group.sum(tensor_of(group, given)).cpu().numpy()
    return found


def _hash(train: GraphPart, val: HeldOut, test: HeldOut) -> str:
    """What `LinkSplit.content_hash` is of the whole split, in the first process."""
    group, number = train.whole.group, train.num_edges
    digest = hashlib.sha256(str(train.num_nodes).encode() + (b"ordered" if train.directed else b""))
    digest.update(f"train,{number}".encode())
    for piece in streamed(group, train.edges):
        digest.update(piece.astype("<i8").tobytes())
    names = ("val_links", "val_non_links", "test_links", "test_non_links")
    for name, pairs in zip(names, (val.links, val.non_links, test.links, test.non_links), strict=True):
        digest.update(f"{name},{len(pairs)}".encode())
        digest.update(pairs.astype("<i8").tobytes())
    for name, values in (("weights", train.weights), ("directions", train.directions)):
        if values is not None:
            digest.update(f"{name},{number}".encode())
            for piece in streamed(group, values):
                digest.update(piece.astype("<f4").tobytes())
    return digest.hexdigest()
