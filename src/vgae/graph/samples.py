"""Pairs of nodes as samples, links and non-links, in the form that scikit-learn's tools take apart and put together.

A row of `LinkSamples` is a pair of nodes, and its label says whether it is a link. Rows carry their own weights and
directions and the features of all nodes, and nothing about the links in other rows: a model that is fitted to some of
the rows cannot see what the others hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.graph.checks import MAX_SEED, FloatArray, frozen
from vgae.graph.cleaning import Cleaning
from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links, sample_non_links
from vgae.graph.pairs import AnyArray, IntArray, Pairs, as_pairs, canonical, contains, distinct
from vgae.graph.split import EDGE_VALUES, HeldOut
from vgae.options import whole_number
from vgae.words import shown

NODE_PARTS = ("num_nodes", "features", "labels", "node_ids", "sides")
LABELS_ARE = "1 for a link and 0 for a non-link"

Labels = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class LinkSamples:
    """Pairs of nodes (M×2) with the nodes they are of; `link_samples` makes them of a graph, with their labels.

    Rows are taken as from an array: `X[indices]`, `X[mask]` and `X[:100]` are samples again, `np.asarray(X)` is the
    pairs. Which of them are links is for the labels to say, as scikit-learn has it.

    >>> import vgae
    >>> X, y = vgae.link_samples(vgae.Graph.from_edges([(0, 1), (1, 2), (2, 3)]), seed=0)
    >>> X
    LinkSamples(6 pairs of 4 nodes)
    >>> isinstance(X[:2], vgae.LinkSamples)
    True
    >>> X[y == 1].shape
    (3, 2)
    """

    pairs: Pairs  # canonical
    nodes: Mapping[str, Any]  # the parts of a graph that are about its nodes, by their names
    edge_values: Mapping[str, FloatArray] = field(default_factory=dict)  # weights and directions, NaN for non-links

    @property
    def shape(self) -> tuple[int, int]:
        """M and 2."""
        return len(self.pairs), 2

    @property
    def num_nodes(self) -> int:
        """N, the number of nodes, also of those that no row names."""
        return int(self.nodes["num_nodes"])

    @property
    def features(self) -> Any:
        """The nodes' features (N×D), or None."""
        return self.nodes["features"]

    def with_features(self, features: Any) -> LinkSamples:
        """The same pairs between nodes with other features (N×D), or with none."""
        return replace(self, nodes={**self.nodes, "features": features})

    def graph(self, y: npt.ArrayLike | None) -> Graph:
        """The graph of all nodes whose links are the rows with the label 1, with their weights and directions."""
        labels = check_labels(y, len(self))
        if not labels.any():
            raise InputError(f"y: none of the {len(self)} pairs is a link (1), so there is nothing to train on.")
        refuse_contradictions(self.pairs, labels)
        rows = np.flatnonzero(labels)
        rows = rows[np.unique(codes_of(self.pairs[rows]), return_index=True)[1]]  # sorted, and a link once
        values: dict[str, Any] = {name: of_rows[rows] for name, of_rows in self.edge_values.items()}
        for name, of_links in values.items():
            unknown = np.isnan(of_links)
            if unknown.any():
                i, j = self.pairs[rows[int(unknown.argmax())]].tolist()
                raise InputError(
                    f"y: the pair ({i}, {j}) has the label 1, but is no link of the graph that the samples are of; "
                    f"so its {name} are not known."
                )
        if "directions" in values:
            values["directions"] = values["directions"].astype(np.int8)
        return Graph(edges=self.pairs[rows], cleaning=Cleaning(rows_given=len(rows)), **self.nodes, **values)

    def held_out(self, y: npt.ArrayLike | None) -> HeldOut:
        """The rows as held-out pairs, as `metrics` and `vgae.evaluate` take them."""
        return held_out_of(self.pairs, y)

    def __len__(self) -> int:
        return len(self.pairs)

    def __iter__(self) -> Iterator[IntArray]:
        return iter(self.pairs)

    def __getitem__(self, key: Any) -> Any:
        rows, columns = key if isinstance(key, tuple) and len(key) == 2 else (key, ...)
        if columns is not ... or (np.ndim(rows) == 0 and not isinstance(rows, slice)):
            return self.pairs[key]
        pairs = self.pairs[rows]
        return replace(self, pairs=pairs, edge_values={name: of[rows] for name, of in self.edge_values.items()})

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        array = self.pairs if dtype is None else self.pairs.astype(dtype, copy=False)
        return array.copy() if copy else array

    def __repr__(self) -> str:
        return f"LinkSamples({len(self):,} pairs of {self.num_nodes:,} nodes)"


def link_samples(graph: Any, *, seed: int = 0) -> tuple[LinkSamples, IntArray]:
    """All links of a graph and as many non-links, in random order: pairs X and labels y, 1 for a link, 0 for none.

    Of a graph with more links than non-links, all non-links are taken.

    >>> import vgae
    >>> X, y = vgae.link_samples(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    >>> model = vgae.GAE(iterations=20, seed=0).fit(X, y)
    >>> model.predict_proba(X).shape == y.shape
    True
    """
    graph = Graph.of(graph)
    generator = np.random.default_rng(whole_number(seed, "seed", 0, MAX_SEED))
    pairs_of = graph.without_directions()  # a row is a pair of nodes; the direction of a link is a value of it
    num_links, available = graph.num_edges, count_non_links(pairs_of)
    if available == 0:
        raise InputError("Every pair of nodes is a link of this graph, so there are no non-links to compare them with.")
    non_links = sample_non_links(pairs_of, min(num_links, available), generator)
    order = generator.permutation(num_links + len(non_links))
    values = {}
    for name in EDGE_VALUES:
        of_links = getattr(graph, name)
        if of_links is not None:
            of_rows = np.concatenate([of_links.astype(np.float32), np.full(len(non_links), np.nan, np.float32)])
            values[name] = frozen(of_rows[order])
    pairs = frozen(np.concatenate([graph.edges, non_links])[order])
    samples = LinkSamples(pairs, {name: getattr(graph, name) for name in NODE_PARTS}, values)
    return samples, (order < num_links).astype(np.int64)


def held_out_of(pairs: npt.ArrayLike, y: npt.ArrayLike | None) -> HeldOut:
    """Pairs of node indices and their labels as held-out pairs."""
    checked = as_pairs(pairs, "pairs")
    labels = check_labels(y, len(checked))
    return HeldOut(checked[labels], checked[~labels])


def check_labels(y: npt.ArrayLike | None, num_pairs: int) -> Labels:
    """Which pairs are links; else an error that says what labels have to be."""
    if y is None:
        raise InputError(f"y: a label is needed for each of the {num_pairs} pairs, {LABELS_ARE}.")
    try:
        array = np.asarray(y)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"y: a label is needed for each pair, {LABELS_ARE}, got {shown(y)}.") from None
    if array.shape != (num_pairs,):
        raise InputError(f"y: one label is needed for each of the {num_pairs} pairs, got the shape {array.shape}.")
    labels: Labels = array == 1
    wrong = ~(labels | (array == 0)) if array.dtype.kind in "biufO" else np.ones(num_pairs, dtype=bool)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(f"y: row {row} has the label {shown(array.tolist()[row])}; a label is {LABELS_ARE}.")
    return labels


def refuse_contradictions(pairs: Pairs, labels: Labels) -> None:
    """Refuse pairs that are given as links and as non-links, in whichever direction."""
    codes = codes_of(pairs)
    both = contains(distinct(codes[~labels]), codes) & labels
    if both.any():
        i, j = pairs[int(both.argmax())].tolist()
        raise InputError(f"y: the pair ({i}, {j}) is given as a link (1) and as a non-link (0).")


def codes_of(pairs: Pairs) -> IntArray:
    """A number for each pair, the same for both of its directions, in the order of canonical pairs."""
    ends = canonical(pairs)
    codes: IntArray = ends[:, 0] * (ends.max(initial=0) + 1) + ends[:, 1]
    return codes
