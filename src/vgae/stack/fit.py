"""Cross-fitting: what the meta-model learns from is described by bases that did not see it.

The training links are divided into folds. For each of them the bases are fitted on the graph without its links, and
describe these links and sampled non-links (`vgae.stack.strata`): no evidence about a pair comes from a base, or from a
graph, that knows its label. The meta-model learns from all folds together. Then the bases are fitted once more, on
the whole training graph, for the pairs that will be asked about.

A fold stands for the world as it will be asked about: there too, the links in question are not in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.evaluation.all_pairs import Candidates
from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links
from vgae.stack.bases import FloatArray, fit_bases
from vgae.stack.config import Base, StackConfig
from vgae.stack.meta import fit_meta
from vgae.stack.scorer import FittedStack
from vgae.stack.shortlist import favourites
from vgae.stack.strata import SampleSizes, fold_links, sample_strata

FAVOURITES = 400  # of each base that ranks all pairs
FEWEST_OTHERS, MOST_OTHERS = 10_000, 30_000
FEWEST_TWO_HOP, MOST_TWO_HOP = 5_000, 20_000


@dataclass(frozen=True, eq=False)
class FoldEvidence:
    """What one fold teaches: evidence (M×C), whether each pair is a link, and how many pairs it stands for."""

    evidence: FloatArray
    labels: npt.NDArray[np.uint8]
    weights: npt.NDArray[np.float64]


class FoldStore(Protocol):
    """Where folds that are done are kept, so that a fitting which was interrupted continues."""

    def load(self, fold: int) -> FoldEvidence | None:
        """The fold, if it is there."""

    def save(self, fold: int, found: FoldEvidence) -> None:
        """Keep it."""


class Progress:
    """Hears what is being fitted; this one ignores it."""

    def on_base(self, fold: int, name: str) -> None:
        """A base is about to be fitted; the fold after the last is the whole graph."""

    def on_fold(self, fold: int, *, restored: bool) -> None:
        """A fold is done, or was there already."""

    def on_meta(self) -> None:
        """The meta-model is about to be fitted."""


def fit_stack(
    graph: Graph, config: StackConfig, store: FoldStore | None = None, progress: Progress | None = None
) -> FittedStack:
    """Fit a stack on a training graph."""
    known, progress = config.view(graph), progress or Progress()
    bases = config.bases_for(known)
    if count_non_links(known) == 0:
        raise InputError("The graph links every pair of nodes: there are no non-links for a stack to learn from.")
    folds = fold_links(known, config.folds, config.seed)
    found: list[FoldEvidence] = []
    for fold in range(config.folds):
        kept = store.load(fold) if store is not None else None
        if kept is None:
            seen = known.with_links(known.edges[folds != fold])
            kept = _describe_fold(known, seen, fold, bases, config, progress)
            if store is not None:
                store.save(fold, kept)
            progress.on_fold(fold, restored=False)
        else:
            progress.on_fold(fold, restored=True)
        found.append(kept)
    fitted = fit_bases(known, bases, config.base_seeds, lambda name: progress.on_base(config.folds, name))
    progress.on_meta()
    evidence, labels, weights = (
        np.concatenate([getattr(each, name) for each in found]) for name in ("evidence", "labels", "weights")
    )
    meta = fit_meta(evidence, labels, weights, config.meta, seed=config.seed)
    return FittedStack(config, fitted, meta)


def _describe_fold(
    known: Graph, seen: Graph, fold: int, bases: tuple[Base, ...], config: StackConfig, progress: Progress
) -> FoldEvidence:
    fitted = fit_bases(seen, bases, config.base_seeds, lambda name: progress.on_base(fold, name))
    links = _links_without(known, seen)
    best = favourites(fitted, Candidates.of(known), FAVOURITES)
    seed = int(np.random.SeedSequence([config.seed, fold]).generate_state(1)[0])
    sample = sample_strata(known, seen, best, _sizes(len(links)), seed=seed)
    pairs = np.concatenate([links, sample.pairs])
    return FoldEvidence(
        evidence=fitted.describe(pairs),
        labels=np.repeat(np.array([1, 0], dtype=np.uint8), [len(links), len(sample.pairs)]),
        weights=np.concatenate([np.ones(len(links)), sample.weights]),
    )


def _links_without(known: Graph, seen: Graph) -> npt.NDArray[np.int64]:
    ranks = np.setdiff1d(known.all_pairs.ranks(known.edges), seen.all_pairs.ranks(seen.edges))
    return known.all_pairs.pairs(ranks)


def _sizes(num_links: int) -> SampleSizes:
    sizes = SampleSizes()
    return replace(
        sizes,
        two_hop=int(np.clip(num_links + FEWEST_TWO_HOP, FEWEST_TWO_HOP, MOST_TWO_HOP)),
        others=int(np.clip(2 * num_links + FEWEST_OTHERS, FEWEST_OTHERS, MOST_OTHERS)),
    )
