"""Non-links beside the validation pairs, so many that average precision among them is about the top of the list."""

from __future__ import annotations

import numpy as np

from vgae.graph.graph import Graph
from vgae.graph.negatives import draw_positions, sample_non_links
from vgae.graph.pairs import Pairs, distinct
from vgae.graph.split import HeldOut
from vgae.parallel.part import GraphPart
from vgae.parallel.splitting import non_links_at, unlinked

PER_LINK, ALWAYS, LEAST_PER_LINK = 100, 40_000, 10


def more_non_links(graph: Graph, validation: HeldOut, seed: int) -> Pairs:
    """Pairs that are links neither of the training graph nor in validation, drawn by the seed.

    A hundred for each validation link, but no more than 40,000 or ten for each link.
    """
    numbering, num_links = graph.all_pairs, len(validation.links)
    more = distinct(numbering.ranks(validation.links))
    generator = np.random.default_rng(np.random.SeedSequence([seed, 2]))
    most = min(PER_LINK * num_links, max(ALWAYS, LEAST_PER_LINK * num_links))
    if isinstance(graph, GraphPart):
        more = unlinked(graph, more)  # the other way of an arc may be one, where directions do not count
        num_known = graph.num_links + len(more)
        num = min(most, graph.num_candidate_pairs - num_known)
        return non_links_at(graph, draw_positions(graph, num, generator, num_known), more)
    known = distinct(np.concatenate([numbering.ranks(graph.links), more]))
    num = min(most, graph.num_candidate_pairs - len(known))
    return sample_non_links(graph, num, generator, numbering.pairs(known))
