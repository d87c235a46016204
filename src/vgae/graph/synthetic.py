"""Graphs made up on the spot, for tests, demos and scaling runs."""

from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from vgae.errors import InputError
from vgae.graph.checks import MAX_NODES, MAX_SEED, check_num_nodes
from vgae.graph.convert import as_real
from vgae.graph.graph import Graph
from vgae.graph.pairs import IntArray, Pairs, distinct, from_ranks, num_pairs
from vgae.options import whole_number
from vgae.words import shown

MAX_WORDS = 2**31 - 1


def stochastic_block_model(
    num_nodes: int,
    num_blocks: int,
    *,
    degree_within: float = 8.0,
    degree_between: float = 2.0,
    feature_dim: int = 0,
    seed: int = 0,
) -> Graph:
    """Nodes in equal blocks, labelled by block, that link more often within a block than between blocks.

    A node has `degree_within` expected links into its own block and `degree_between` into all others together; within
    and between, every pair is equally likely. With `feature_dim`, each node gets a sparse bag of up to eight distinct
    words: each is drawn with probability ½ from the block's own share of the vocabulary, else from all of it.

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(60, 3, feature_dim=8, seed=0)
    >>> graph.num_nodes, graph.num_features, sorted(set(graph.labels.tolist()))
    (60, 8, [0, 1, 2])
    """
    num_nodes = check_num_nodes(num_nodes)
    num_blocks = whole_number(num_blocks, "num_blocks", 1, num_nodes)
    feature_dim = whole_number(feature_dim, "feature_dim", 0, MAX_WORDS)
    degree_within = _degree(degree_within, "degree_within")
    degree_between = _degree(degree_between, "degree_between")
    generator = np.random.default_rng(whole_number(seed, "seed", 0, MAX_SEED))
    block = np.arange(num_nodes) * num_blocks // num_nodes
    sizes = np.bincount(block, minlength=num_blocks)
    start = np.concatenate([[0], np.cumsum(sizes)])
    ranks = []
    for size in sizes.tolist():
        pairs_within = num_pairs(size)
        wanted = generator.binomial(pairs_within, min(1.0, degree_within / max(size - 1, 1)))
        ranks.append(generator.choice(pairs_within, size=wanted, replace=False))
    within = [from_ranks(part, size) + offset for part, size, offset in zip(ranks, sizes.tolist(), start, strict=False)]
    pairs_between = num_pairs(num_nodes) - sum(num_pairs(size) for size in sizes.tolist())
    others = num_nodes - num_nodes / num_blocks
    wanted = generator.binomial(pairs_between, min(1.0, degree_between / others)) if others else 0
    between = _pairs_between_blocks(num_nodes, block, wanted, generator)
    return Graph.from_edges(
        np.concatenate([*within, between]),
        num_nodes=num_nodes,
        labels=block,
        features=_block_words(block, num_blocks, feature_dim, generator) if feature_dim else None,
    )


def rmat(
    num_nodes: int,
    num_edges: int,
    *,
    probabilities: tuple[float, float, float, float] = (0.57, 0.19, 0.19, 0.05),
    seed: int = 0,
) -> Graph:
    """A graph with a heavy-tailed degree distribution: R-MAT, with exactly `num_edges` distinct edges.

    Each endpoint pair is found by descending into a quadrant of the adjacency matrix, chosen with the given
    probabilities, until a single cell is left. Nodes are renumbered at random, so that an index says nothing.

    >>> import vgae
    >>> vgae.rmat(64, 200, seed=0)
    Graph(64 nodes, 200 edges)
    """
    num_nodes, num_edges = check_num_nodes(num_nodes), whole_number(num_edges, "num_edges", 1, num_pairs(MAX_NODES))
    if num_edges > num_pairs(num_nodes) // 2:
        raise InputError(
            f"num_edges: {num_edges:,} distinct edges among {num_nodes:,} nodes are out of reach for R-MAT; "
            f"ask for at most {num_pairs(num_nodes) // 2:,}."
        )
    shares = as_real(probabilities, "probabilities: four positive numbers that add up to 1 are needed.")
    if shares.shape != (4,) or not (shares > 0).all() or abs(shares.sum() - 1) > 1e-6:
        raise InputError(
            f"probabilities: four positive numbers that add up to 1 are needed, got {shown(probabilities)}."
        )
    generator = np.random.default_rng(whole_number(seed, "seed", 0, MAX_SEED))
    links = np.empty(0, dtype=np.int64)
    while len(links) < num_edges:  # duplicates, self-loops and cells beyond num_nodes are made up for
        missing = num_edges - len(links)
        source, target = _descend(num_nodes, missing + missing // 4 + 64, probabilities, generator)
        keep = (source < num_nodes) & (target < num_nodes) & (source != target)
        source, target = source[keep], target[keep]
        codes = np.minimum(source, target) * num_nodes + np.maximum(source, target)
        links = distinct(np.concatenate([links, codes]))
    links = links[np.sort(generator.choice(len(links), size=num_edges, replace=False))]
    name = generator.permutation(num_nodes)
    return Graph.from_edges(name[np.stack(np.divmod(links, num_nodes), axis=1)], num_nodes=num_nodes)


def _degree(value: Any, name: str) -> float:
    real = isinstance(value, Real)
    if not (real and 0 <= value < MAX_NODES):
        raise InputError(f"{name}: a number of at least 0, and below {MAX_NODES:,}, is needed, got {shown(value)}.")
    return float(value)


def _descend(
    num_nodes: int, num: int, probabilities: tuple[float, float, float, float], generator: np.random.Generator
) -> tuple[IntArray, IntArray]:
    """Row and column of `num` cells of the smallest power-of-two matrix that holds the nodes."""
    bounds = np.cumsum(probabilities, dtype=np.float32)
    cells = np.zeros((2, num), dtype=np.int64)
    for start in range(0, num, 100_000):  # chunks that stay in the cache through all levels
        source, target = cells[:, start : start + 100_000]
        for _ in range(max(1, (num_nodes - 1).bit_length())):
            draw = generator.random(len(source), dtype=np.float32)
            down = draw >= bounds[1]
            right = ((draw >= bounds[0]) & ~down) | (draw >= bounds[2])
            source += source + down
            target += target + right
    return cells[0], cells[1]


def _pairs_between_blocks(num_nodes: int, block: IntArray, wanted: int, generator: np.random.Generator) -> Pairs:
    """Distinct pairs, `wanted` of them, of nodes of different blocks, uniformly."""
    links = np.empty(0, dtype=np.int64)
    while len(links) < wanted:
        ends = generator.integers(num_nodes, size=(2 * (wanted - len(links)) + 64, 2))
        ends = np.sort(ends[block[ends[:, 0]] != block[ends[:, 1]]], axis=1)
        links = distinct(np.concatenate([links, ends[:, 0] * num_nodes + ends[:, 1]]))
    links = generator.choice(links, size=wanted, replace=False)
    return np.stack(np.divmod(links, num_nodes), axis=1)


def _block_words(block: IntArray, num_blocks: int, feature_dim: int, generator: np.random.Generator) -> sp.csr_array:
    """Eight words per node, each with probability ½ from the block's share of the vocabulary, else from all of it."""
    if feature_dim < num_blocks:
        raise InputError(
            f"feature_dim: {feature_dim} words are too few for {num_blocks} blocks; give at least one word per block."
        )
    share = feature_dim // num_blocks
    words = generator.integers(feature_dim, size=(len(block), 8))
    own = generator.integers(share, size=words.shape) + (block * share)[:, None]
    words = np.where(generator.random(words.shape) < 0.5, own, words)
    nodes = np.repeat(np.arange(len(block)), words.shape[1])
    ones = np.ones(words.size, dtype=np.float32)
    matrix = sp.coo_array((ones, (nodes, words.ravel())), shape=(len(block), feature_dim)).tocsr()
    matrix.data[:] = 1.0
    return matrix
