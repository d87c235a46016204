"""Whatever can be asked of a fitted stack. It is too slow for all pairs: a first stage finds those worth describing."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from vgae.errors import InputError
from vgae.estimators.explanation import BasePart, Explanation
from vgae.estimators.fitted import NO_PAIRS, is_part_of
from vgae.estimators.links import FloatArray, LinkPredictor, Links, Scored, refuse_draws
from vgae.evaluation.all_pairs import Candidates, Listed
from vgae.evaluation.held_out import check_held_out
from vgae.evaluation.histogram import Histogram
from vgae.graph.graph import Graph
from vgae.graph.lookup import find_pairs
from vgae.graph.pairs import Pairs
from vgae.graph.split import HeldOut
from vgae.runs.stack_run import StackRun
from vgae.stack.config import StackConfig
from vgae.stack.scorer import FittedStack

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe

ASKED_BY_NODE = 500  # held-out links by which the recall of single nodes' lists is measured


@dataclass(frozen=True, eq=False)
class FittedOn:
    """A run of a stack, and the stack on the graph that it is asked about: its own, or another."""

    run: StackRun
    stack: FittedStack
    scored: Scored

    @classmethod
    def of(cls, run: StackRun) -> FittedOn:
        """A stack on its own graph."""
        split = run.split
        held_out = np.concatenate([split.val.links, split.test.links])
        scored = Scored(
            run.stack,
            split.train,
            held_out,
            calibrate=lambda: run.calibrated().calibration,
            num_graph_links=run.links_split.num_graph_links,
            by_direction=False,
            validation=split.val.links,
        )
        return cls(run, run.stack, scored)

    @property
    def on_own_graph(self) -> bool:
        """Whether the graph is the one that the stack was fitted on."""
        return self.stack is self.run.stack

    def on(self, graph: Graph, known: npt.ArrayLike | None) -> FittedOn:
        """The same stack on another graph."""
        stack = self.stack.on(graph)
        excluded = NO_PAIRS if known is None else find_pairs(graph, known, "known")
        if is_part_of(self.scored.graph, graph):
            excluded = np.concatenate([excluded, self.scored.excluded_pairs])
        calibration = self.scored.calibration
        num_links = graph.as_scored(symmetric=True).num_links
        scored = Scored(stack, graph, excluded, lambda: calibration, num_graph_links=num_links, by_direction=False)
        return FittedOn(self.run, stack, scored)


class StackPredictor(LinkPredictor):
    """What is asked of a stack that has been fitted; a `ListScorer` itself. Fitting leaves one record, `fitted_`."""

    fitted_: FittedOn

    def _fitted(self) -> FittedOn:
        """What fitting has left; an estimator refuses where there was none."""
        return self.fitted_

    def _scored(self) -> Scored:
        return self._fitted().scored

    @property
    def run_(self) -> StackRun:
        """All that is saved of the stack."""
        return self._fitted().run

    @property
    def stack_(self) -> FittedStack:
        """The fitted bases and the meta-model."""
        return self._fitted().stack

    @property
    def config_(self) -> StackConfig:
        """The configuration that it was fitted with."""
        return self.run_.config

    @property
    def n_features_in_(self) -> int:
        """Columns of features that the stack was fitted on; 0 without features."""
        return self.run_.facts.num_features

    @property
    def seconds_(self) -> float:
        """The time that fitting took."""
        return self.run_.facts.seconds

    @property
    def recipe_(self) -> FeatureRecipe | None:
        """How a table of nodes became the features, of a run that was loaded."""
        return self.run_.recipe

    # ------------------------------------------------------------------------------------------------- the first stage

    def listed(self, candidates: Candidates, top: int = 0) -> Listed:
        """The pairs that the first stage has found, and their logits."""
        return self.stack_.listed(candidates, top)

    def listed_for(self, candidates: Candidates, nodes: list[int], top: int) -> Listed:
        """The same for each of some nodes, which come first in their pairs."""
        return self.stack_.listed_for(candidates, nodes, top)

    def histogram(self, candidates: Candidates, listed: Listed) -> Histogram:
        """How often each logit occurs among all candidates: exactly on the list, by a sample outside of it."""
        return self.stack_.histogram(candidates, listed)

    def first_stage_recall(self, held_out: HeldOut, *, by_node: bool = False) -> float:
        """The share of held-out links that the first stage finds among all pairs that are not known.

        `by_node` asks about the lists that `recommend` makes for single nodes, by the first end of some of these links.
        """
        links = check_held_out(held_out, self.graph_.num_nodes, "held_out").links
        links = self._scored().new_links(links)
        if not len(links):
            raise InputError("held_out: there are no links in it to look for.")
        candidates = self.candidates(links)
        if not by_node:
            listed = self.stack_.shortlist(candidates)
        else:
            links = np.random.default_rng(0).permutation(links)[:ASKED_BY_NODE]
            listed = self.stack_.shortlist_of(candidates, np.unique(links[:, 0]).tolist())
        return float(np.isin(candidates.codes(links), candidates.codes(listed)).mean())

    @property
    def on_own_graph(self) -> bool:
        """Whether the graph that is asked about is the one that the stack was fitted on."""
        return self._fitted().on_own_graph

    # ----------------------------------------------------------------------------------------------------------- asking

    def predict_links(
        self, pairs: npt.ArrayLike, *, ids: bool = False, samples: int | None = None, seed: int | None = None
    ) -> Links:
        """Logit and probability of a link between each pair of nodes (M×2), and what is known of it."""
        refuse_draws("a stack", samples, seed)
        return super().predict_links(pairs, ids=ids)

    def recommend(
        self,
        k: int = 10,
        nodes: npt.ArrayLike | None = None,
        *,
        ids: bool = False,
        samples: int | None = None,
        seed: int | None = None,
    ) -> Links:
        """The best new links, best first: `k` of the whole graph, or `k` for each of these nodes.

        They are the best of those that the first stage has found: pairs that share a neighbour, and the favourites of
        each base that can rank all pairs; `first_stage_recall` says how many links that misses. What is known is left
        out. Of equal logits the smaller indices come first. `logits` says how nodes are named.
        """
        refuse_draws("a stack", samples, seed)
        return super().recommend(k, nodes, ids=ids)

    def evidence_by_column(self, pairs: Pairs) -> Mapping[str, FloatArray]:
        """What the bases say about each pair of node indices (M×2), by column."""
        return self.stack_.evidence_by_column(pairs)

    def explain(self, a: Any, b: Any, *, ids: bool = False, top: int = 10) -> Explanation:
        """What speaks for a link between two nodes: base by base, and the strongest neighbours and features by name."""
        found = super().explain(a, b, ids=ids, top=top)
        pair = find_pairs(self.graph_, [(a, b)], ids=ids)
        mean, added, values = self.stack_.contributions(pair)
        bases = (
            BasePart(base.text, added[base.text], {column: values[column] for column in base.columns})
            for base in self.stack_.bases.bases
        )
        return replace(found, mean=mean, bases=tuple(sorted(bases, key=lambda each: -each.adds)))

    def on(self, graph: Any, *, known: npt.ArrayLike | None = None) -> Self:
        """The fitted stack on another graph with the same features, or on its own graph with more nodes and links.

        Every base must allow that: auto-encoders need features, and embeddings (sc, dw) know their own nodes only. What
        is known is as `GAE.on` has it, and probabilities are calibrated as they were.
        """
        moved = copy.copy(self)
        moved.fitted_ = self._fitted().on(Graph.of(graph), known)
        return moved

    # ------------------------------------------------------------------------------------------------- what it has not

    def transform(self, graph: Any = None) -> NoReturn:
        """A stack has no embeddings."""
        del graph
        _refuse_embeddings()

    def similar(self, node: Any = None, k: int = 10, *, ids: bool = False) -> NoReturn:
        """A stack has no embeddings."""
        del node, k, ids
        _refuse_embeddings()

    def clusters(self, k: int | None = None, *, seed: int = 0) -> NoReturn:
        """A stack has no embeddings."""
        del k, seed
        _refuse_embeddings()

    def explore(self, path: Any = None, **options: Any) -> NoReturn:
        """A stack has no embeddings."""
        del path, options
        raise InputError(
            "A stack has no embeddings to make a map of; a GAE, a VGAE and the baselines sc and dw can be explored: "
            "train one of its bases alone (vgae train --model gae)."
        )

    def to_frame(self) -> NoReturn:
        """A stack has no embeddings."""
        _refuse_embeddings()

    to_arrow = to_pyg = to_frame


class FittedStackRun(StackPredictor):
    """The stack of a run, to be asked; `vgae.load` gives it as an estimator, which can be fitted again too."""

    def __init__(self, run: StackRun) -> None:
        self.fitted_ = FittedOn.of(run)


def _refuse_embeddings() -> NoReturn:
    raise InputError(
        "A stack has no embeddings, similar nodes or clusters of its own; train one of its bases alone for them, such "
        "as a GAE (vgae train --model gae)."
    )
