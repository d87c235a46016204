"""Non-links beside the validation pairs, so many that average precision among them is about the top of the list."""

from __future__ import annotations

import numpy as np

from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links, sample_non_links
from vgae.graph.pairs import Pairs, canonical, from_ranks, to_ranks
from vgae.graph.split import HeldOut

PER_LINK, ALWAYS, LEAST_PER_LINK = 100, 40_000, 10


def more_non_links(graph: Graph, validation: HeldOut, seed: int) -> Pairs:
    """Pairs that are links neither of the training graph nor in validation, drawn by the seed.

    A hundred for each validation link, but no more than 40,000 or ten for each link.
    """
    edges = np.concatenate([graph.edges, canonical(validation.links)])
    known = from_ranks(np.unique(to_ranks(edges, graph.num_nodes)), graph.num_nodes)
    plain = graph.with_parts(features=None, weights=None, directions=None).with_edges(known)
    num_links = len(validation.links)
    num = min(PER_LINK * num_links, max(ALWAYS, LEAST_PER_LINK * num_links), count_non_links(plain))
    return sample_non_links(plain, num, np.random.default_rng(np.random.SeedSequence([seed, 2])))
