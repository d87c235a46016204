"""Non-links beside the validation pairs, so many that average precision among them is about the top of the list."""

from __future__ import annotations

import numpy as np

from vgae.graph.graph import Graph
from vgae.graph.negatives import sample_non_links
from vgae.graph.pairs import Pairs, distinct
from vgae.graph.split import HeldOut

PER_LINK, ALWAYS, LEAST_PER_LINK = 100, 40_000, 10


def more_non_links(graph: Graph, validation: HeldOut, seed: int) -> Pairs:
    """Pairs that are links neither of the training graph nor in validation, drawn by the seed.

    A hundred for each validation link, but no more than 40,000 or ten for each link.
    """
    numbering = graph.all_pairs
    known = distinct(np.concatenate([numbering.ranks(graph.links), numbering.ranks(validation.links)]))
    num_links = len(validation.links)
    available = graph.num_candidate_pairs - len(known)
    num = min(PER_LINK * num_links, max(ALWAYS, LEAST_PER_LINK * num_links), available)
    generator = np.random.default_rng(np.random.SeedSequence([seed, 2]))
    return sample_non_links(graph, num, generator, numbering.pairs(known))
