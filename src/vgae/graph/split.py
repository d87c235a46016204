"""Splitting a graph's links into training, validation and test.

Of E links, ⌊test·E⌋ are held out for testing and ⌊val·E⌋ for validation; the training graph keeps the rest and all
nodes. Each held-out set carries as many non-links, drawn uniformly from the pairs that are links nowhere in the
graph; no pair is in two sets. Everything follows from the seed, and the hash names the result.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.checks import check_num_nodes, frozen
from vgae.graph.files import COUNT, DIRECTIONS, OF_NODES, WEIGHTS, write_npz
from vgae.graph.graph import Graph
from vgae.graph.ids import pack_ids, unpack_ids
from vgae.graph.negatives import sample_non_links
from vgae.graph.npz import Expected, read_npz
from vgae.graph.pairs import (
    AnyArray,
    IntArray,
    Pairs,
    as_pairs,
    canonical,
    check_pairs,
    contains,
    distinct,
    num_pairs,
    shown,
    to_ranks,
    whole_number,
)
from vgae.graph.storage import as_path

FORMAT = 1
PARTS = ("train", "val_links", "val_non_links", "test_links", "test_non_links")
EDGE_VALUES = ("weights", "directions")
VAL_FRACTION, TEST_FRACTION = 0.05, 0.10  # the paper's
MAX_SEED = 2**64 - 1
ARRAYS = {
    **{name: replace(COUNT, required=True) for name in ("format", "num_nodes", "seed")},
    "content_hash": Expected("U", (0,), "a SHA-256", required=True),
    **{name: Expected("iu", (2,), "rows of two node indices", required=True) for name in PARTS},
    "num_graph_links": COUNT,
    "weights": WEIGHTS,
    "directions": DIRECTIONS,
    "node_ids": OF_NODES,
    "labels": OF_NODES,
}


class LeakError(InputError):
    """A split in which the training graph or one held-out set gives away another."""


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Pairs kept for evaluation: links of the graph, and as many non-links.

    `num_graph_links` is the number of links of the whole graph that they were held out of, where that is known.
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
        return f"HeldOut({len(self.links):,} links, {len(self.non_links):,} non-links)"


@dataclass(frozen=True, eq=False)
class LinkSplit:
    """A training graph, and the pairs held out for validation and test."""

    train: Graph
    val: HeldOut
    test: HeldOut
    seed: int

    @property
    def num_graph_links(self) -> int:
        """Links of the whole graph: those of the three parts, or more where the held-out pairs know of more."""
        parts = self.train.num_edges + len(self.val.links) + len(self.test.links)
        return max(parts, self.val.num_graph_links or 0, self.test.num_graph_links or 0)

    def _parts(self) -> dict[str, Pairs]:
        held_out = (self.val.links, self.val.non_links, self.test.links, self.test.non_links)
        return dict(zip(PARTS, (self.train.edges, *held_out), strict=True))

    def _edge_values(self) -> dict[str, AnyArray]:
        """What the training graph knows of its edges beside their ends."""
        found = {name: getattr(self.train, name) for name in EDGE_VALUES}
        return {name: values for name, values in found.items() if values is not None}

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of all pairs, and of weights and directions if any: equal for equal splits on every machine."""
        return _hash(self.train.num_nodes, self._parts(), self._edge_values())

    def audit(self) -> None:
        """Raise `LeakError` on the first leak found; return quietly if the split is clean.

        Checked: self-pairs; a pair twice in one set, in either direction; a held-out link in the training graph; a pair
        in two sets; a negative that is a link anywhere in the graph.
        """
        num_nodes = self.train.num_nodes
        ranks: dict[str, IntArray] = {}
        for name, given in self._parts().items():
            pairs = canonical(check_pairs(given, num_nodes, name))
            loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
            if len(loops):
                raise LeakError(f"{name}: row {loops[0]} pairs the node {pairs[loops[0], 0]} with itself.")
            ranks[name] = distinct(to_ranks(pairs, num_nodes))
            if len(ranks[name]) < len(pairs):
                raise LeakError(f"{name}: {len(pairs) - len(ranks[name])} rows repeat a pair of the same set.")
        names = list(ranks)
        for position, first in enumerate(names):
            for second in names[position + 1 :]:
                shared = int(contains(ranks[first], ranks[second]).sum())
                if shared:
                    raise LeakError(f"{shared} of the pairs in {second} are also in {first}.")

    def save(self, path: str | Path) -> None:
        """Write the split, its seed and hash and the nodes' ids and labels into one npz file, in one step."""
        content: dict[str, Any] = dict(self._parts(), num_nodes=self.train.num_nodes, seed=self.seed)
        content |= self._edge_values() | {"num_graph_links": self.num_graph_links}
        for name, values in (("node_ids", self.train.node_ids), ("labels", self.train.labels)):
            if values is not None:
                content[name] = pack_ids(values)
        write_npz(as_path(path), format=FORMAT, content_hash=self.content_hash, **content)

    @classmethod
    def load(cls, path: str | Path, graph: Graph | None = None, *, content: bytes | None = None) -> LinkSplit:
        """Read a split; its hash must match.

        Given the graph that was split, the training graph gets that graph's features and labels, and the two must fit.
        `content` is what the file holds, if it has been read already.
        """
        parts = read_npz(path, ARRAYS, content=content)
        try:
            return _from_parts(parts, graph)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        except MemoryError:
            raise InputError(f"{path}: the split is too large for the memory that is free.") from None
        except (RecursionError, TypeError, ValueError) as error:
            raise InputError(f"{path}: not a split saved by vgae ({error}).") from None

    def is_trained_by(self, graph: Graph) -> bool:
        """Whether a graph has exactly the nodes and links of the training graph."""
        return self.train.num_nodes == graph.num_nodes and np.array_equal(self.train.edges, graph.edges)

    def is_of(self, graph: Graph) -> bool:
        """Whether the links of the three parts together are exactly those of a graph."""
        links = canonical(np.concatenate([self.train.edges, self.val.links, self.test.links]))
        if self.train.num_nodes != graph.num_nodes or len(links) != graph.num_edges:
            return False
        return np.array_equal(distinct(to_ranks(links, graph.num_nodes)), to_ranks(graph.edges, graph.num_nodes))


def split_links(graph: Graph, *, val: float = VAL_FRACTION, test: float = TEST_FRACTION, seed: int = 0) -> LinkSplit:
    """Hold out fractions of the links, with as many non-links, for validation and test."""
    graph = Graph.of(graph)
    val, test = _fraction(val, "val"), _fraction(test, "test")
    if val + test >= 1:
        raise InputError(f"val + test: {val} + {test} leaves no links to train on; their sum must be below 1.")
    seed = whole_number(seed, "seed", 0, MAX_SEED)
    num_val, num_test = (_floor(fraction * graph.num_edges) for fraction in (val, test))
    for name, fraction, num in (("val", val, num_val), ("test", test, num_test)):
        if fraction > 0 and num == 0:
            raise InputError(
                f"{name}: {fraction} of the graph's {graph.num_edges} links is less than one link; "
                f"raise {name}, or set it to 0 to do without."
            )
    generator = np.random.default_rng(seed)
    order = generator.permutation(graph.num_edges)
    chosen_test, chosen_val, kept = np.split(order, [num_test, num_test + num_val])
    negatives = sample_non_links(graph, num_test + num_val, generator)
    return LinkSplit(
        train=graph.with_edges(frozen(graph.edges[np.sort(kept)])),
        val=HeldOut(graph.edges[chosen_val], negatives[num_test:], graph.num_edges),
        test=HeldOut(graph.edges[chosen_test], negatives[:num_test], graph.num_edges),
        seed=seed,
    )


def _fraction(value: Any, name: str) -> float:
    number = not isinstance(value, bool) and isinstance(value, Real)
    if not (number and 0 <= value < 1):
        raise InputError(f"{name}: a fraction from 0 to below 1 is needed, got {shown(value)}.")
    return float(value)


def _floor(value: float) -> int:
    """Rounded down, but 0.29·100 is 29 although it comes out as 28.999999999999996."""
    return int(value + 1e-9)


def _from_parts(parts: dict[str, AnyArray], graph: Graph | None) -> LinkSplit:
    """The split of a file's arrays, if they are whole and, where a graph is given, belong to it."""
    if int(parts["format"]) != FORMAT:
        raise InputError("saved by a version of vgae whose splits this version does not read.")
    num_nodes, content_hash = check_num_nodes(int(parts["num_nodes"])), str(parts["content_hash"])
    pairs = {name: as_pairs(parts[name], name) for name in PARTS}
    edge_values: dict[str, Any] = {name: parts[name] for name in EDGE_VALUES if name in parts}
    if _hash(num_nodes, pairs, edge_values) != content_hash:
        raise InputError("the contents do not match their hash; the file is damaged or was edited.")
    if graph is None:
        ids, labels = (unpack_ids(parts[name]) if name in parts else None for name in ("node_ids", "labels"))
        train = Graph(num_nodes, frozen(pairs["train"]), labels=labels, node_ids=ids, **edge_values)
    elif graph.num_nodes == num_nodes:
        train = graph.with_edges(frozen(pairs["train"]))
    else:
        raise InputError(f"this split was made from another graph, of {num_nodes} nodes.")
    num_graph_links = int(parts["num_graph_links"]) if "num_graph_links" in parts else None
    if not 0 <= (num_graph_links or 0) <= num_pairs(num_nodes):
        raise InputError(f"{num_graph_links} links are not a number of links among {num_nodes} nodes.")
    held_out = {name: check_pairs(pairs[name], num_nodes, name) for name in PARTS[1:]}
    split = LinkSplit(
        train=train,
        val=HeldOut(held_out["val_links"], held_out["val_non_links"], num_graph_links),
        test=HeldOut(held_out["test_links"], held_out["test_non_links"], num_graph_links),
        seed=int(parts["seed"]),
    )
    if graph is not None and not (split.is_of(graph) and split.content_hash == content_hash):
        raise InputError("this split was made from another graph.")
    return split


def _hash(num_nodes: int, parts: dict[str, Pairs], edge_values: dict[str, AnyArray]) -> str:
    digest = hashlib.sha256(str(num_nodes).encode())
    for name, pairs in parts.items():
        digest.update(f"{name},{len(pairs)}".encode())
        digest.update(pairs.astype("<i8", casting="same_kind").tobytes())
    for name, values in edge_values.items():
        digest.update(f"{name},{len(values)}".encode())
        digest.update(values.astype("<f4", casting="same_kind").tobytes())
    return digest.hexdigest()
