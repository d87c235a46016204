"""Cross-fitting: what the meta-model learns from is described by bases that did not see it.

The training links are divided into folds. For each of them the bases are fitted on the graph without its links, and
describe these links and sampled non-links (`vgae.stack.strata`): no evidence about a pair comes from a base, or from a
graph, that knows its label. The meta-model learns from all folds together. Then the bases are fitted once more, on
the whole training graph, for the pairs that will be asked about.

A fold stands for the world as it will be asked about: there too, the links in question are not in the graph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.evaluation.all_pairs import Candidates
from vgae.graph.graph import Graph
from vgae.graph.negatives import count_non_links
from vgae.graph.pairs import Pairs
from vgae.stack.bases import fit_bases
from vgae.stack.config import Base, StackConfig
from vgae.stack.contenders import FoldEvidence, with_listed
from vgae.stack.meta import fit_meta
from vgae.stack.scorer import FittedStack
from vgae.stack.shortlist import FIRST_STAGE, shortlist
from vgae.stack.strata import SampleSizes, fold_links, sample_strata
from vgae.train.config import choose_device

FEWEST_OTHERS, MOST_OTHERS = 10_000, 30_000
FEWEST_TWO_HOP, MOST_TWO_HOP = 5_000, 20_000


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

    def on_describing(self, fold: int) -> None:
        """The bases of a fold are fitted, and describe its pairs."""

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
    choose_device(config.device)  # before anything is computed
    if count_non_links(known) == 0:
        raise InputError("The graph links every pair of nodes: there are no non-links for a stack to learn from.")
    folds = fold_links(known, config.folds, config.seed)
    found: list[FoldEvidence] = []
    for number in range(config.folds):
        described = store.load(number) if store is not None else None
        restored = described is not None
        if described is None:
            fold = _Fold(number, known, folds == number)
            described = _describe_fold(fold, bases, config, progress)
            if store is not None:
                store.save(number, described)
        elif described.evidence.shape[1] != sum(len(base.columns) for base in bases):
            raise InputError(f"The stored fold {number} is of another stack; start again without it.")
        progress.on_fold(number, restored=restored)
        found.append(described)
    fitted = fit_bases(known, bases, config.base_seeds, lambda name: progress.on_base(config.folds, name))
    progress.on_meta()
    evidence, labels, weights = (
        np.concatenate([getattr(each, name) for each in found]) for name in ("evidence", "labels", "weights")
    )
    meta = fit_meta(evidence, labels, weights, config.meta, seed=config.seed)
    return FittedStack(config, fitted, meta)


@dataclass(frozen=True, eq=False)
class _Fold:
    """Some of the known links, and the graph without them, which is all that its bases see."""

    number: int
    known: Graph
    members: npt.NDArray[np.bool_]  # which of the known links

    @property
    def links(self) -> Pairs:
        """Its links."""
        return self.known.edges[self.members]

    @property
    def seen(self) -> Graph:
        """The graph without them."""
        return self.known.with_links(self.known.edges[~self.members])


def _describe_fold(fold: _Fold, bases: tuple[Base, ...], config: StackConfig, progress: Progress) -> FoldEvidence:
    links, seen = fold.links, fold.seen
    fitted = fit_bases(seen, bases, config.base_seeds, lambda name: progress.on_base(fold.number, name))
    progress.on_describing(fold.number)
    listed = shortlist(fitted, Candidates.of(fold.known), FIRST_STAGE)
    seed = int(np.random.SeedSequence([config.seed, fold.number]).generate_state(1)[0])
    outside = sample_strata(fold.known, seen, listed, _sizes(len(links)), seed=seed)
    found = FoldEvidence(
        evidence=fitted.describe(np.concatenate([links, outside.pairs])),
        labels=np.repeat(np.array([1, 0], dtype=np.uint8), [len(links), len(outside.pairs)]),
        weights=np.concatenate([np.ones(len(links)), outside.weights]),
    )
    return with_listed(found, fitted.describe(listed), np.random.default_rng(seed))


def _sizes(num_links: int) -> SampleSizes:
    return SampleSizes(
        two_hop=min(num_links + FEWEST_TWO_HOP, MOST_TWO_HOP), others=min(2 * num_links + FEWEST_OTHERS, MOST_OTHERS)
    )
