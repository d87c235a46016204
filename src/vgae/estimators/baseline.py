"""Baselines, asked in the same way as models: new links, probabilities, scores, and embeddings where they have any."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.baselines import BASELINES
from vgae.baselines.best_pairs import best_pairs
from vgae.baselines.counts import count_all
from vgae.baselines.embedding import EmbeddingScorer
from vgae.baselines.heuristics import NeighbourScorer
from vgae.errors import InputError
from vgae.estimators.embeddings import EmbeddingPredictor
from vgae.estimators.links import FloatArray, Links, Scored, refuse_draws
from vgae.estimators.predict import FittedModel
from vgae.evaluation.all_pairs import Candidates, Ranker
from vgae.evaluation.calibration import Calibration
from vgae.evaluation.evaluate import evaluate_split
from vgae.evaluation.held_out import check_held_out, require_unseen
from vgae.graph.checks import MAX_SEED
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs, distinct
from vgae.graph.split import HeldOut, LinkSplit
from vgae.io.plain import as_path
from vgae.options import one_of, whole_number
from vgae.runs.baseline_run import BaselineConfig, BaselineFacts, BaselineRun
from vgae.runs.folder import new_run_folder
from vgae.runs.run import Run

if TYPE_CHECKING:
    from vgae.estimators.stacked import FittedStackRun
    from vgae.runs.stack_run import StackRun


class Baseline(EmbeddingPredictor):
    """A baseline by its name: cn, aa, ra, pa (heuristics on neighbourhoods), l3 (paths of length three),
    ppr (personalised PageRank), cosine (of features), sc (spectral) or dw (DeepWalk).

    Scores are no probabilities; validation pairs make them ones, and without any probabilities are NaN.

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> split = vgae.split_links(graph, seed=0)
    >>> model = vgae.Baseline("ra").fit(split.train, validation=split.val)
    >>> sorted(model.metrics(split.test))
    ['ap', 'auc']
    """

    run_: BaselineRun

    def __init__(self, method: str = "ra", *, seed: int = 0) -> None:
        self.method, self.seed = method, seed

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as scikit-learn asks for them."""
        del deep
        return {"method": self.method, "seed": self.seed}

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters."""
        for name, value in parameters.items():
            if name not in self.get_params():
                raise ValueError(f"Baseline has no parameter {name!r}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        return f"Baseline({self.method!r}, seed={self.seed})"

    def fit(self, graph: Any, y: Any = None, *, validation: HeldOut | None = None) -> Self:
        """Take a graph, or whatever one can be made of, as the training graph; `y` is ignored."""
        del y
        graph = Graph.of(graph)
        if validation is not None:
            validation = check_held_out(validation, graph.num_nodes, "validation")
            require_unseen(validation, graph)
        split = LinkSplit(graph, validation or HeldOut.none(), HeldOut.none(), seed=0)
        return self._fit(split, dataset=None)

    def fit_split(self, split: LinkSplit, *, dataset: str | None = None) -> Self:
        """Fit on a split's training graph, and know its held-out links; `dataset` is the name of the graph."""
        return self._fit(split, dataset)

    def _fit(self, split: LinkSplit, dataset: str | None) -> Self:
        method = one_of(self.method, "method", tuple(BASELINES))
        seed = whole_number(self.seed, "seed", 0, MAX_SEED)
        started = time.perf_counter()
        scorer = BASELINES[method](split.train, seed)
        embedding = scorer.embedding if isinstance(scorer, EmbeddingScorer) else None
        run = BaselineRun(
            config=BaselineConfig(method, seed, 0 if embedding is None else embedding.shape[1]),
            embedding=embedding,
            split=split,
            metrics=evaluate_split(scorer, split),
            facts=BaselineFacts(
                dataset=dataset,
                num_features=split.train.num_features,
                graph_hash=split.train.content_hash,
                seconds=time.perf_counter() - started,
            ),
        )
        return self._take(run, scorer)

    def _take(self, run: BaselineRun, scorer: Ranker) -> Self:
        held_out = np.concatenate([run.split.val.links, run.split.test.links])
        self.run_ = run
        self.scored_ = Scored(
            scorer,
            run.split.train,
            held_out,
            calibrate=lambda: run.calibration if run.calibration.is_fitted else self._calibration(),
            num_graph_links=run.split.as_scored(symmetric=scorer.symmetric).num_graph_links,
            by_direction=bool(run.split.ordered),
            validation=run.split.val.links,
        )
        return self

    def _calibration(self) -> Calibration:
        """How scores become probabilities: by the validation links, or not at all."""
        scored = self._scored()
        if not len(scored.validation):
            return Calibration()
        links, seen = scored.new_links(scored.validation), Candidates.of(scored.links_graph)
        return Calibration.fit(scored.evidence(links, count_all(scored.scorer, seen)))

    @classmethod
    def from_run(cls, run: BaselineRun) -> Self:
        """The fitted baseline of a run."""
        method = run.config.method
        if method not in BASELINES:
            raise InputError(f"The run is of the baseline {method!r}, which this version of vgae does not know.")
        if run.embedding is None:
            scorer = BASELINES[method](run.split.train, run.config.seed)
        else:
            scorer = EmbeddingScorer(run.embedding)
        return cls(method, seed=run.config.seed)._take(run, scorer)

    def save(self, folder: str | Path, *, split: LinkSplit | None = None, overwrite: bool = False) -> None:
        """Save the baseline as a run folder, with the split it belongs to if that is given."""
        run = self.to_run(split)
        with new_run_folder(as_path(folder, "folder"), overwrite=overwrite) as writer:
            writer.write(run)

    def to_run(self, split: LinkSplit | None = None) -> BaselineRun:
        """Everything that a run folder holds, scores on the split's held-out pairs included."""
        scorer, run = self._scored().scorer, self.run_
        if split is None:
            return replace(run, calibration=self.calibration())
        if not split.is_trained_by(run.split.train):
            raise InputError("split: the baseline was not fitted on the training graph of this split.")
        split = replace(split, train=run.split.train)
        scored = replace(run, split=split, metrics=evaluate_split(scorer, split), calibration=Calibration())
        return type(self)(self.method, seed=self.seed)._take(scored, scorer).to_run()

    # ----------------------------------------------------------------------------------------------------------- asking

    def _scored(self) -> Scored:
        if not hasattr(self, "scored_"):
            raise InputError("This baseline has not been fitted; call fit with a graph first.")
        return self.scored_

    def _embeddings(self) -> Tensor:
        scorer = self._scored().scorer
        if not isinstance(scorer, EmbeddingScorer):
            raise InputError(f"The baseline {self.method} has no embeddings; sc and dw have.")
        return torch.from_numpy(scorer.embedding)

    def predict_links(
        self, pairs: npt.ArrayLike, *, ids: bool = False, samples: int | None = None, seed: int | None = None
    ) -> Links:
        """Score and probability of a link between each pair of nodes (M×2), and what is known of it."""
        refuse_draws("a baseline", samples, seed)
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
        """The best new links, as of any model; heuristics that count neighbours look only where there are shared ones.

        Of equal scores, and counts are often equal, the smaller indices come first.
        """
        refuse_draws("a baseline", samples, seed)
        return super().recommend(k, nodes, ids=ids)

    def _best(self, k: int, nodes: npt.ArrayLike | None, ids: bool) -> tuple[Pairs, FloatArray]:
        scored = self._scored()
        across = scored.graph.sides is not None  # where no two candidates share a neighbour
        if nodes is not None or across or not isinstance(scored.scorer, NeighbourScorer):
            return super()._best(k, nodes, ids)
        known = np.concatenate([scored.links_graph.links, scored.excluded_pairs])
        ranks = distinct(scored.links_graph.all_pairs.ranks(known))
        pairs = best_pairs(scored.scorer.rows(), whole_number(k, "k", 1), ranks)
        return pairs, scored.scorer.logits(pairs)


def fitted_of(run: Run | BaselineRun | StackRun) -> FittedModel | Baseline | FittedStackRun:
    """The model of any run, to be asked."""
    if isinstance(run, Run):
        return FittedModel(run)
    if isinstance(run, BaselineRun):
        return Baseline.from_run(run)
    fitted: FittedStackRun = import_module("vgae.estimators.stacked").FittedStackRun(run)
    return fitted
