"""HeaRT: every held-out link among hard non-links of its own (Li et al., 2023, arXiv 2306.10453).

A link (s, t) is ranked among 500 pairs: 250 that keep s and replace t, and 250 that keep t and replace s. The nodes
that come in are those that three heuristics put nearest to the end that is kept, in the training graph:

    resource allocation     Σ_{n ∈ Γ(i) ∩ Γ(j)} 1 / d_n
    personalised PageRank   of j, from walks that start at i (`pagerank.py`)
    cosine                  of the two nodes' features, where there are features

Each heuristic ranks all candidates. The rank of a score x above 0 is |{y ≥ x}| - |{y = highest}| + 1; scores of 0 are
one rank behind the last of these, and scores below 0 another one. The smallest of its ranks is that of a candidate, and
the best are taken; of equal ranks the one with the higher PageRank, then the higher cosine, then the smaller index.
Candidates with 0 by all heuristics come last, in random order. The two ends are no candidates, nor are nodes that are
known to be linked to the end that is kept: in the training graph and, for test links, among the validation links.

This is the rule of the authors' program, but for two things. There chance decides between equal ranks, and candidates
with 0 by all heuristics are drawn with replacement. In a graph with fewer than 250 candidates, all of them are taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.evaluation.evaluate import Scorer
from vgae.evaluation.metrics import metrics_of_ranks
from vgae.evaluation.pagerank import PageRank
from vgae.graph.features import row_lengths
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, check_pairs
from vgae.graph.split import LinkSplit
from vgae.options import whole_number

FloatArray = npt.NDArray[np.float64]
SETS = ("validation", "test")
NUM_NEGATIVES = 500
HITS = (1, 3, 10, 20, 50, 100)
BLOCK = 4_000_000  # scores of a heuristic that are held at a time
DIGITS = 9  # to which resource allocation and cosines are told apart


def evaluate_heart(
    scorer: Scorer,
    split: LinkSplit,
    *,
    sets: Sequence[str] = SETS,
    num_negatives: int = NUM_NEGATIVES,
    seed: int = 0,
) -> dict[str, dict[str, float]]:
    """MRR and Hits@K of the sets of a split that are asked for, as far as there are any links in them."""
    held_out = {"validation": (split.val.links, split.train.edges[:0]), "test": (split.test.links, split.val.links)}
    found = {}
    for name, (links, known) in held_out.items():
        if len(links) and name in sets:
            ranks, fewest = _ranks_of_links(scorer, _Sampler(split.train, links, known, num_negatives, seed))
            found[name] = metrics_of_ranks(ranks, fewest, hits=HITS)
    if not found:
        raise InputError("There are no held-out links to rank: hold out links with val and test above 0.")
    return found


def heart_negatives(
    graph: Graph,
    links: npt.ArrayLike,
    *,
    known: npt.ArrayLike | None = None,
    num_negatives: int = NUM_NEGATIVES,
    seed: int = 0,
) -> IntArray:
    """For each of M links its hard non-links, M×num_negatives×2 node indices; -1 where there are no more.

    `graph` is the training graph; `known` are further links that are no negatives, such as those for validation.

    >>> import vgae
    >>> split = vgae.split_links(vgae.stochastic_block_model(60, 3, seed=0), seed=0)
    >>> vgae.heart_negatives(split.train, split.test.links[:4], num_negatives=10).shape
    (4, 10, 2)
    """
    graph = Graph.of(graph)
    pairs = check_pairs(links, graph.num_nodes, "links")
    others = graph.edges[:0] if known is None else check_pairs(known, graph.num_nodes, "known")
    sampler = _Sampler(graph, pairs, others, num_negatives, seed)
    found = np.full((len(pairs), 2 * sampler.half, 2), -1, dtype=np.int64)
    for block in sampler.blocks():
        for end, nodes in zip(block.ends, block.nodes, strict=True):
            link, side = divmod(end, 2)
            start = side * sampler.half
            found[link, start : start + len(nodes)] = _pairs(pairs[link, side], nodes, side)
    return found


def heuristics_of(graph: Graph) -> tuple[str, ...]:
    """The heuristics that choose the negatives of a graph."""
    return ("ra", "pagerank") if graph.features is None else ("ra", "pagerank", "cosine")


# -------------------------------------------------------------------------------------------------------------- inside


@dataclass(frozen=True, eq=False)
class _Block:
    """Ends of links, 2k for the first and 2k + 1 for the second node of link k, and the nodes chosen for each end."""

    ends: Sequence[int]
    nodes: Sequence[IntArray]


class _Sampler:
    """The hard non-links of a set of links, a block of kept nodes at a time."""

    def __init__(self, graph: Graph, links: Pairs, known: Pairs, num_negatives: int, seed: int) -> None:
        self.half = whole_number(num_negatives, "num_negatives", 2) // 2
        self.graph, self.links, self.seed = graph, links, whole_number(seed, "seed", 0)
        both = np.concatenate([graph.edges, known])
        both = np.concatenate([both, both[:, ::-1]])
        shape = (graph.num_nodes, graph.num_nodes)
        self.known = sp.coo_array((np.ones(len(both), dtype=bool), (both[:, 0], both[:, 1])), shape=shape).tocsr()
        self.pagerank = PageRank(graph)
        degrees = np.maximum(np.diff(graph.adjacency.indptr), 1)
        self.adjacency = graph.adjacency.astype(np.float64)
        self.shares = sp.csr_array(self.adjacency @ sp.diags_array(1 / degrees))
        self.unit = _unit_rows(graph)
        self.sides = graph.sides  # of a bipartite graph, whose links go across

    def blocks(self) -> Iterator[_Block]:
        """The chosen nodes of all ends, in the order of the walks that they need."""
        kept = self.links.ravel()
        sources = self.pagerank.sources(kept)
        order = np.lexsort((kept, sources))
        distinct = np.unique(sources)
        size = max(1, BLOCK // self.graph.num_nodes)
        for start in range(0, len(distinct), size):
            part = distinct[start : start + size]
            first, last = np.searchsorted(sources[order], [part[0], part[-1] + 1])
            yield self._block(order[first:last], part)

    def _block(self, ends: IntArray, sources: IntArray) -> _Block:
        kept = self.links.ravel()[ends]
        walks = self.pagerank.from_sources(sources)
        nodes, place = np.unique(kept, return_inverse=True)
        shared = np.round((self.shares[nodes] @ self.adjacency).toarray(), DIGITS)
        cosines = None if self.unit is None else np.round(_cosines(self.unit, nodes), DIGITS)
        chosen = []
        for end, node, row in zip(ends.tolist(), kept.tolist(), place.tolist(), strict=True):
            walk = self.pagerank.of(node, walks[np.searchsorted(sources, self.pagerank.neighbour[node])])
            scores = [walk, shared[row]] if cosines is None else [walk, cosines[row], shared[row]]
            chosen.append(self._choose(node, int(self.links[end // 2, 1 - end % 2]), scores))
        return _Block(ends.tolist(), chosen)

    def _choose(self, node: int, other: int, scores: list[FloatArray]) -> IntArray:
        """The best candidates for a node in place of its link to the other one; PageRank is the first of the scores."""
        free = np.ones(self.graph.num_nodes, dtype=bool)
        free[self.known.indices[self.known.indptr[node] : self.known.indptr[node + 1]]] = False
        free[[node, other]] = False
        if self.sides is not None:
            free &= self.sides != self.sides[node]
        candidates = np.flatnonzero(free)
        scores = [values[candidates] for values in scores]
        near = np.any([values != 0 for values in scores], axis=0)
        ranks = np.min([ranks_of(values, self.half) for values in scores], axis=0)
        best = candidates[_best(np.flatnonzero(near), self.half, [-ranks, *scores[:-1]])]
        far = candidates[~near]
        number = min(self.half - len(best), len(far))
        if not number:
            return best
        generator = np.random.default_rng([self.seed, node, other])
        return np.concatenate([best, generator.choice(far, number, replace=False)])


def ranks_of(scores: FloatArray, most: int) -> FloatArray:
    """Ranks by one heuristic, exact for the best `most` scores at least, and infinite further down.

    The smallest rank over several heuristics decides, and the best `most` of one of them all have a rank that is no
    worse than the last exact one: so what is infinite here is never among the best `most` of all.
    """
    ranks = np.full(len(scores), np.inf)
    positive = np.flatnonzero(scores > 0)
    last = 0
    if len(positive):
        top = scores[positive]
        num_highest = int(np.count_nonzero(top == top.max()))
        last = len(top) - num_highest + 1
        if len(top) > most:
            least = np.partition(top, len(top) - most)[len(top) - most]
            positive, top = positive[top >= least], top[top >= least]
        ranks[positive] = len(top) - np.searchsorted(np.sort(top), top) - num_highest + 1
    ranks[scores == 0] = last + 1
    ranks[scores < 0] = last + 2
    return ranks


def _best(places: IntArray, number: int, keys: list[FloatArray]) -> IntArray:
    """So many of the places with the highest first key, of equal ones by the next key, and at last the first places."""
    chosen = []
    for key in keys:
        if len(places) <= number:
            break
        values = key[places]
        least = np.partition(values, len(places) - number)[len(places) - number]
        chosen.append(places[values > least])
        number -= len(chosen[-1])
        places = places[values == least]
    return np.concatenate([*chosen, places[:number]])


def _unit_rows(graph: Graph) -> npt.NDArray[np.float64] | sp.csr_array | None:
    """The features with rows of unit length, in double precision; rows of zeros stay as they are."""
    if graph.features is None:
        return None
    lengths = row_lengths(graph.features)
    shares = 1 / np.where(lengths > 0, lengths, 1)
    if sp.issparse(graph.features):
        return sp.csr_array(sp.diags_array(shares) @ sp.csr_array(graph.features, dtype=np.float64))
    rows: npt.NDArray[np.float64] = np.asarray(graph.features, dtype=np.float64) * shares[:, None]
    return rows


def _cosines(unit: npt.NDArray[np.float64] | sp.csr_array, nodes: IntArray) -> FloatArray:
    rows: Any = unit[nodes]
    found: FloatArray = (unit @ (rows.toarray() if sp.issparse(rows) else rows).T).T
    return found


def _pairs(kept: int, nodes: IntArray, side: int) -> Pairs:
    """The kept node at its side of the link, with other nodes at the other side."""
    same = np.full(len(nodes), kept)
    return np.stack([nodes, same] if side else [same, nodes], axis=1)


def _ranks_of_links(scorer: Scorer, sampler: _Sampler) -> tuple[FloatArray, int]:
    """The rank of each link among its hard non-links, ties at their middle, and the fewest non-links of a link."""
    links = sampler.links
    own = scorer.logits(links)
    above, number = np.zeros(len(links)), np.zeros(len(links), dtype=np.int64)
    for block in sampler.blocks():
        ends = np.array(block.ends, dtype=np.int64)
        pairs = [
            _pairs(links[end // 2, end % 2], nodes, end % 2) for end, nodes in zip(block.ends, block.nodes, strict=True)
        ]
        of_link = np.repeat(ends // 2, [len(nodes) for nodes in block.nodes])
        logits = scorer.logits(np.concatenate(pairs)) if len(of_link) else own[:0]
        if not np.isfinite(logits).all():
            raise InputError("Scores are needed that are finite numbers, and some of these are infinite or undefined.")
        wins = (logits > own[of_link]) + (logits == own[of_link]) / 2
        above += np.bincount(of_link, wins, minlength=len(links))
        number += np.bincount(of_link, minlength=len(links))
    return 1 + above, int(number.min())
