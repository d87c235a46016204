"""Whatever can be asked of a fitted model: embeddings, probabilities, new links, scores; also on another graph."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.estimators.embeddings import EmbeddingPredictor
from vgae.estimators.fitted import Fitted
from vgae.estimators.links import FloatArray, Links, Scored
from vgae.evaluation.all_pairs import Candidates, census, rank_all_pairs
from vgae.evaluation.calibration import Calibration
from vgae.evaluation.evaluate import score_held_out
from vgae.evaluation.held_out import check_held_out
from vgae.evaluation.metrics import link_metrics
from vgae.evaluation.reliability import Reliability, joined, reliability
from vgae.graph.graph import Graph
from vgae.graph.lookup import find_pairs
from vgae.graph.pairs import Pairs, canonical, contains, distinct, num_pairs, to_ranks
from vgae.graph.split import HeldOut
from vgae.model.autoencoder import AutoEncoder
from vgae.model.draws import moments_of_draws
from vgae.options import whole_number
from vgae.runs.run import Run
from vgae.train.config import Config, choose_device
from vgae.train.state import LogEntry

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe


class Predictor(EmbeddingPredictor):
    """What is asked of a model that has been fitted. Whatever fitting leaves is one record, `fitted_`."""

    fitted_: Fitted

    def _fitted(self) -> Fitted:
        """What fitting has left; an estimator refuses where there was none."""
        return self.fitted_

    def _scored(self) -> Scored:
        return self._fitted().scored

    def _embeddings(self) -> Tensor:
        return self._fitted().latent["mean"]

    def _device(self) -> torch.device:
        """Where other graphs are encoded: on the device of the training if it is there, else on any."""
        try:
            return choose_device(self.config_.device)
        except InputError:
            return choose_device("auto")

    # ------------------------------------------------------------------------------------------------ fitted attributes

    @property
    def run_(self) -> Run:
        """All that is saved of the model."""
        return self._fitted().run

    @property
    def config_(self) -> Config:
        """The configuration that it was trained with."""
        return self.run_.config

    @property
    def model_(self) -> AutoEncoder:
        """The trained auto-encoder."""
        return self.run_.model

    @property
    def latent_(self) -> dict[str, Tensor]:
        """The parameters of the posterior over that graph, by name: mean, and log_std of a VGAE."""
        return self._fitted().latent

    @property
    def n_features_in_(self) -> int:
        """Columns of features that the model was trained on; 0 without features."""
        return self.run_.facts.num_features

    @property
    def history_(self) -> list[LogEntry]:
        """The logged iterations."""
        return self.run_.history

    @property
    def objective_(self) -> str:
        """The objective that was used, exact or sampled."""
        return self.run_.facts.objective

    @property
    def objective_reason_(self) -> str:
        """Why that objective was used."""
        return self.run_.facts.objective_reason

    @property
    def seconds_(self) -> float:
        """The time that training took."""
        return self.run_.facts.seconds

    @property
    def best_iteration_(self) -> int:
        """The iteration whose weights the model has."""
        return self.run_.facts.best_iteration

    @property
    def recipe_(self) -> FeatureRecipe | None:
        """How a table of nodes became the features, of a run that was loaded."""
        return self.run_.recipe

    # ------------------------------------------------------------------------------------------------------- embeddings

    def transform(self, graph: Any = None) -> FloatArray:
        """Embeddings (N×latent_dim): the posterior mean over the training graph, or over another graph.

        Another graph needs the same feature columns: a model without features knows its own graph and no other nodes.
        """
        fitted = self._fitted()
        latent = fitted.latent if graph is None else fitted.encode(Graph.of(graph), self._device())
        mean: FloatArray = latent["mean"].numpy()
        return mean.copy()

    def on(self, graph: Any, *, known: npt.ArrayLike | None = None) -> Self:
        """The trained model on another graph with the same features, or on its own graph with more nodes and links.

        Nodes are embedded by the trained encoder, and whatever can be asked of a model can be asked about them:
        probabilities are calibrated as they were, and `recommend` leaves out the graph's links and the `known` pairs.
        Where the graph is the model's own with more beside it, as `read_more` makes it, its first nodes being the
        model's and the model's links among its links, the links that the model's own graph held out are known too.
        """
        moved = copy.copy(self)
        moved.fitted_ = self._fitted().on(Graph.of(graph), self._device(), known)
        return moved

    def predict_links(
        self, pairs: npt.ArrayLike, *, samples: int | None = None, seed: int | None = None, ids: bool = False
    ) -> Links:
        """Logit and probability of a link between each pair of nodes (M×2), and what is known of it.

        With `samples`, embeddings are drawn so many times from the posterior of a VGAE: probabilities are then means
        over the draws, and their standard deviation says how sure the model is of its embeddings. Same pairs and same
        seed (by default the estimator's), same bits.
        """
        self._check_draws(samples, seed)
        found = find_pairs(self.graph_, pairs, ids=ids)
        return self._drawn(self._links(found, self.logits(found)), samples, seed)

    def density(self) -> float:
        """The share of pairs that are links, in the whole graph as far as it is known.

        A saved run knows its split, and validation pairs made by `split_links` know how many links the graph has. Else
        it is the links for training and validation that count, and on another graph that graph's links.
        """
        fitted = self._fitted()
        return fitted.run.density if fitted.on_own_graph else fitted.graph.num_edges / num_pairs(fitted.graph.num_nodes)

    def reliability(self, held_out: HeldOut) -> tuple[Reliability, Reliability]:
        """How far σ(logit), and how far calibrated probabilities, can be trusted: over all pairs that are not known.

        On the validation pairs that the calibration was fitted to, each half is judged by a fit to the other.
        """
        links = check_held_out(held_out, self.graph_.num_nodes, "held_out").links
        if not len(links):
            raise InputError("held_out: there are no links in it to judge probabilities by.")
        candidates, logits = census(self, self.candidates(links)), self.logits(links)
        num_links = max(round(self.density() * num_pairs(self.graph_.num_nodes)), len(links))
        raw, run = reliability(Calibration(shift=0.0), candidates, logits, num_links), self.run_
        if self._fitted().on_own_graph and np.array_equal(links, run.split.val.links):
            halves = [
                reliability(Calibration.fit(run.evidence(other, candidates)), candidates, self.logits(half), num_links)
                for half, other in ((links[::2], links[1::2]), (links[1::2], links[::2]))
                if len(half)
            ]
            return raw, joined(*halves) if len(halves) == 2 else halves[0]
        return raw, reliability(self.calibration(), candidates, logits, num_links)

    def candidates(self, links: Pairs | None = None) -> Candidates:
        """All pairs that are not known; these links are taken as not known."""
        known = np.concatenate([self.graph_.edges, self.excluded_pairs_])
        if links is not None and len(links):
            size = self.graph_.num_nodes
            asked = distinct(to_ranks(canonical(links[links[:, 0] != links[:, 1]]), size))
            known = known[~contains(asked, to_ranks(canonical(known), size))]
        return Candidates(self.graph_.num_nodes, known)

    def evaluate(self, held_out: HeldOut) -> dict[str, float]:
        """All metrics by name, as fractions of 1.

        AUC, AP, MRR and Hits@K on the held-out pairs, as the paper has it; precision@K, recall@K, node_mrr and
        node_hits@K of the held-out links among all pairs that are not known (`vgae.evaluation.all_pairs`).
        """
        held_out = check_held_out(held_out, self.graph_.num_nodes, "held_out")
        sampled = link_metrics(*score_held_out(self, held_out))
        return sampled | rank_all_pairs(self, held_out.links, self.candidates(held_out.links))

    def recommend(
        self,
        k: int = 10,
        nodes: npt.ArrayLike | None = None,
        *,
        samples: int | None = None,
        seed: int | None = None,
        ids: bool = False,
    ) -> Links:
        """The best new links, best first: `k` of the whole graph, or `k` for each of these nodes.

        Links of the training graph, of its validation set, and all held-out links of a saved run are known and left
        out. In a bipartite graph, links go across. Exact, by blocks of rows; of equal logits the smaller indices come
        first. `samples` and `seed` are those of `predict_links`; which links are best, and their order, is a matter of
        the posterior mean all the same. `logits` says how nodes are named.
        """
        self._check_draws(samples, seed)
        return self._drawn(self._links(*self._best(k, nodes, ids)), samples, seed)

    def _check_draws(self, samples: int | None, seed: int | None) -> None:
        if seed is not None:
            whole_number(seed, "seed", 0)
        if samples is None:
            return
        if not isinstance(samples, int | np.integer) or isinstance(samples, bool) or samples < 2:
            raise InputError(f"samples: at least 2 draws are needed to tell a spread, a whole number, got {samples!r}.")
        if self.model_.posterior.deterministic:
            raise InputError(
                f"samples: a {self.config_.model.upper()} has one point for each node and no spread to draw from; "
                "train a VGAE to know how sure a link is."
            )

    def _drawn(self, links: Links, samples: int | None, seed: int | None) -> Links:
        """Links with probabilities at the posterior mean or, with `samples`, over draws of the nodes they name."""
        if samples is None:
            return links
        nodes, places = np.unique(links.pairs, return_inverse=True)
        stream = np.random.SeedSequence([self.config_.seed if seed is None else seed, 2])  # 0 and 1 are training's
        found = moments_of_draws(
            self.model_.posterior.build({name: values[nodes] for name, values in self.latent_.items()}),
            self.model_.decoder,
            torch.from_numpy(places.reshape(-1, 2)),
            self.calibration().probabilities,
            num_draws=samples,
            generator=torch.Generator().manual_seed(int(stream.generate_state(1)[0])),
        )
        return replace(links, probabilities=found.mean.astype(np.float32), std=found.std.astype(np.float32))


class FittedModel(Predictor):
    """The model of a run, to be asked; `vgae.load` gives it as an estimator, which can be fitted again too."""

    def __init__(self, run: Run) -> None:
        self.fitted_ = Fitted.of(run)
