"""Two ways to hold out links that ask for their direction and nothing else, after Salha et al. (2019).

    reversed   links that go one way are held out; the non-links are the same pairs the other way round
    mutual     of every link that goes both ways, one way is hidden; the non-links are the other way of links that go
               one way and stay in the training graph

A score that is the same for both ways of a pair cannot tell links from non-links by `reversed`: its AUC is 50 by
construction. The third task of that paper, any pair as a non-link, is what `split_links` does without being asked.

G. Salha, S. Limnios, R. Hennequin, V.-A. Tran, M. Vazirgiannis: Gravity-Inspired Graph Autoencoders for Directed Link
Prediction. CIKM 2019.
"""

from __future__ import annotations

import numpy as np

from vgae.errors import InputError
from vgae.graph.checks import BOTH, frozen
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut, LinkSplit, floor_of, numbers_held_out
from vgae.words import count


def split_by_task(graph: Graph, task: str, *, val: float, test: float, seed: int) -> LinkSplit:
    """The split for the task `reversed` or `mutual`; fractions of `reversed` are those of the links that go one way.

    By `mutual`, the hidden ways are divided between validation and test as `val` is to `test`.
    """
    if graph.directions is None:
        raise InputError(
            f"direction_task: {task} asks for the directions of links, but those of this graph have none; read it as a "
            "directed graph (directed), or leave direction_task out."
        )
    edges, ways = graph.edges, graph.directions
    one_way = np.where((ways > 0)[:, None], edges, edges[:, ::-1])[ways != BOTH]
    generator = np.random.default_rng(seed)
    if task == "reversed":
        if not len(one_way):
            raise InputError("direction_task: every link goes both ways, so that none can be held out as reversed.")
        num_val, num_test = numbers_held_out(len(one_way), val, test)
        held_out = one_way[generator.permutation(len(one_way))[: num_val + num_test]]
        non_links = held_out[:, ::-1]
    else:
        held_out, non_links, num_test = _mutual(edges[ways == BOTH], one_way, val, test, generator)
    kept = graph.arcs[~np.isin(graph.all_pairs.ranks(graph.arcs), graph.all_pairs.ranks(held_out))]
    if not len(kept):
        raise InputError("No links are left to train on; hold out fewer of them.")
    num, train = graph.num_links, graph.with_arcs(kept)
    val_pairs, test_pairs = (
        HeldOut(frozen(held_out[part].copy()), frozen(non_links[part].copy()), num)
        for part in (slice(num_test, None), slice(num_test))
    )
    return LinkSplit(train, val_pairs, test_pairs, seed)


def _mutual(
    edges: Pairs, one_way: Pairs, val: float, test: float, generator: np.random.Generator
) -> tuple[Pairs, Pairs, int]:
    """One way of each of these edges, in random order, as many reversed links, and how many of them are for testing."""
    total = val + test
    num_test = floor_of(len(edges) * test / total) if total else 0
    if not len(edges) or not total or (test > 0 and not num_test) or (val > 0 and num_test == len(edges)):
        raise InputError(
            f"direction_task: mutual hides one way of the links that go both ways and divides them between validation "
            f"and test, but there {'is' if len(edges) == 1 else 'are'} {count(len(edges), 'such link')} for "
            f"val {val} and test {test}."
        )
    if len(one_way) < len(edges):
        raise InputError(
            f"direction_task: {count(len(edges), 'link')} {'goes' if len(edges) == 1 else 'go'} both ways, but only "
            f"{len(one_way):,} {'goes' if len(one_way) == 1 else 'go'} one way; as many are needed as non-links."
        )
    turned = generator.random(len(edges)) < 0.5
    hidden = np.where(turned[:, None], edges[:, ::-1], edges)[generator.permutation(len(edges))]
    return hidden, one_way[generator.choice(len(one_way), size=len(edges), replace=False)][:, ::-1], num_test
