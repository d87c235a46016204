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
from vgae.estimators.clusters import Clusters, clusters_of_mixture
from vgae.estimators.embeddings import EmbeddingPredictor
from vgae.estimators.fitted import Fitted
from vgae.estimators.links import FloatArray, Links, Scored
from vgae.graph.graph import Graph
from vgae.graph.lookup import find_pairs
from vgae.model.autoencoder import AutoEncoder
from vgae.model.draws import moments_of_draws
from vgae.ops import LogitRows
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
        return self._fitted().embeddings

    @property
    def likeness(self) -> str:
        """What `similar` goes by: cosine, or nearness, 1 / (1 + distance), as the decoder does."""
        return self.model_.decoder.likeness

    @torch.no_grad()
    def _alike(self) -> LogitRows:
        return self.model_.decoder.likeness_of(self._embeddings())

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
    def active_dimensions_(self) -> int:
        """In how many dimensions the embeddings say something about the nodes; 0 if the model has collapsed."""
        return self.run_.activity.active

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
        if graph is not None:
            fitted = replace(fitted, latent=fitted.encode(Graph.of(graph), self._device()))
        mean: FloatArray = fitted.embeddings.numpy()
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

    def clusters(self, k: int | None = None, *, seed: int = 0) -> Clusters:
        """The nodes in the clusters of a mixture prior, with p(k | z); with `k`, in so many by k-means, of any model.

        `seed` is that of k-means. On another graph (`on`), new nodes are in the clusters that were learned.
        """
        if k is not None:
            return super().clusters(k, seed=seed)
        prior = self.config_.composition.prior
        return clusters_of_mixture(self.graph_, self._embeddings(), self.model_.prior, prior.name)

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
