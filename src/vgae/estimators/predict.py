"""Whatever can be asked of a fitted model: embeddings, probabilities, new links, scores; also on another graph."""

from __future__ import annotations

import copy
import warnings
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from vgae.errors import InputError
from vgae.estimators.fitted import Fitted
from vgae.evaluation.all_pairs import Candidates, census, rank_all_pairs
from vgae.evaluation.calibration import Calibration
from vgae.evaluation.evaluate import score_held_out
from vgae.evaluation.held_out import check_held_out, num_links_among
from vgae.evaluation.metrics import auc_and_ap, link_metrics
from vgae.evaluation.reliability import Reliability, joined, reliability
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs, canonical, check_nodes, check_pairs, contains, distinct, num_pairs, to_ranks
from vgae.graph.split import HeldOut
from vgae.io.embeddings import arrow_table, data_frame
from vgae.model.autoencoder import AutoEncoder
from vgae.model.draws import moments_of_draws
from vgae.ops import Excluded, Factors, LogitRows, top_of_all, top_of_each_row
from vgae.options import whole_number
from vgae.runs.run import Run
from vgae.train.config import Config, choose_device
from vgae.train.state import LogEntry

if TYPE_CHECKING:
    from vgae.io.recipe import FeatureRecipe

FloatArray = npt.NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of node indices (M×2), their logits at the posterior mean, and the probabilities of a link.

    Where draws from the posterior were asked for, probabilities are means over them and `std` is their spread.
    """

    pairs: Pairs
    logits: FloatArray
    probabilities: FloatArray
    std: FloatArray | None = None


class Predictor:
    """What is asked of a model that has been fitted. Whatever fitting leaves is one record, `fitted_`."""

    fitted_: Fitted

    def _fitted(self) -> Fitted:
        """What fitting has left; an estimator refuses where there was none."""
        return self.fitted_

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
    def graph_(self) -> Graph:
        """The graph that is asked about: the training graph, or the one given to `on`."""
        return self._fitted().graph

    @property
    def latent_(self) -> dict[str, Tensor]:
        """The parameters of the posterior over that graph, by name: mean, and log_std of a VGAE."""
        return self._fitted().latent

    @property
    def excluded_pairs_(self) -> Pairs:
        """Links that are known beside those of the graph, and never recommended."""
        return self._fitted().excluded_pairs

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

    def to_frame(self) -> Any:
        """The embeddings as a pandas data frame: columns z1, z2, …, the nodes' ids as index."""
        return data_frame(self.graph_.ids, self.transform())

    def to_arrow(self) -> Any:
        """The embeddings as an Arrow table: `id`, z1, z2, …; `polars.from_arrow` takes it as it is."""
        return arrow_table(self.graph_.ids, self.transform())

    def to_pyg(self) -> Any:
        """The training graph for PyTorch Geometric: embeddings as `x`, links in both directions, `node_ids`."""
        try:
            data = import_module("torch_geometric.data")
        except ImportError:
            raise InputError("to_pyg needs PyTorch Geometric; install it with pip install 'vgae[pyg]'.") from None
        links = torch.tensor(np.concatenate([self.graph_.edges, self.graph_.edges[:, ::-1]]).T.copy())
        return data.Data(x=torch.from_numpy(self.transform()), edge_index=links, node_ids=list(self.graph_.ids))

    def logits(self, pairs: npt.ArrayLike) -> FloatArray:
        """Logits of links between pairs of node indices (M×2), at the posterior mean."""
        fitted = self._fitted()
        return self.model_.score_pairs(fitted.latent["mean"], check_pairs(pairs, fitted.graph.num_nodes))

    @property
    def symmetric(self) -> bool:
        """Whether the two directions of a pair have one logit."""
        return self.model_.decoder.symmetric

    def rows(self) -> LogitRows:
        """The logits of all pairs, by rows."""
        return self.model_.rows(self.latent_["mean"])

    def predict_proba(self, pairs: npt.ArrayLike) -> FloatArray:
        """Probability of a link between each pair of node indices (M×2), calibrated to the graph's density."""
        return self.calibration().probabilities(self.logits(pairs)).astype(np.float32)

    def predict_links(self, pairs: npt.ArrayLike, *, samples: int | None = None, seed: int | None = None) -> Links:
        """Logit and probability of a link between each pair of node indices (M×2).

        With `samples`, embeddings are drawn so many times from the posterior of a VGAE: probabilities are then means
        over the draws, and their standard deviation says how sure the model is of its embeddings. Same pairs and same
        seed (by default the estimator's), same bits.
        """
        self._check_draws(samples, seed)
        checked = check_pairs(pairs, self.graph_.num_nodes)
        return self._links(checked, self.logits(checked), samples, seed)

    def calibration(self) -> Calibration:
        """How logits become probabilities: by the validation links or, without any, by the loss's weight taken back."""
        return self.run_.calibration

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
    ) -> Links:
        """The best new links, best first: `k` of the whole graph, or `k` for each of these node indices.

        Links of the training graph, of its validation set, and all held-out links of a saved run are known and left
        out. Exact, by blocks of rows; of equal logits the smaller indices come first. `samples` and `seed` are those of
        `predict_links`; which links are best, and their order, is a matter of the posterior mean all the same.
        """
        self._check_draws(samples, seed)
        k = whole_number(k, "k", 1)
        rows = None if nodes is None else self._rows(nodes)
        source = self.rows()
        known_links = np.concatenate([self.graph_.edges, self.excluded_pairs_])
        excluded = Excluded.of(known_links, self.graph_.num_nodes, source.device)
        with torch.no_grad():
            if rows is None:
                found = top_of_all(source, top=k, symmetric=self.symmetric, excluded=excluded)
            else:
                found = top_of_each_row(source, top=k, rows=rows, excluded=excluded)
        return self._links(found.pairs.numpy(), found.logits.numpy(), samples, seed)

    def similar(self, node: int, k: int = 10) -> list[tuple[int, float]]:
        """The `k` nodes whose embeddings point most nearly the same way as this one's, with the cosines."""
        row = whole_number(node, "node", 0, self.graph_.num_nodes - 1)
        k = whole_number(k, "k", 1)
        directions = torch.nn.functional.normalize(self.latent_["mean"], dim=1)
        nobody = Excluded.of(self.graph_.edges[:0], self.graph_.num_nodes, directions.device)
        found = top_of_each_row(Factors(directions), top=k, rows=[row], excluded=nobody)
        return list(zip(found.pairs[:, 1].tolist(), found.logits.tolist(), strict=True))

    def _rows(self, nodes: npt.ArrayLike) -> list[int]:
        """Different node indices, at least one."""
        try:
            rows = check_nodes(nodes, self.graph_.num_nodes)
        except (TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError("nodes: a list of node indices is needed.") from None
        if not rows:
            raise InputError("nodes: none is given; name at least one, or leave nodes out for the best of all links.")
        if len(set(rows)) < len(rows):
            twice = next(node for place, node in enumerate(rows) if node in rows[:place])
            raise InputError(f"nodes: {twice} is given twice; name each node once.")
        return rows

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

    def _links(self, pairs: Pairs, logits: FloatArray, samples: int | None, seed: int | None) -> Links:
        """Pairs with probabilities at the posterior mean or, with `samples`, over draws of the nodes they name."""
        probabilities = self.calibration().probabilities
        if samples is None:
            return Links(pairs, logits, probabilities(logits).astype(np.float32))
        nodes, places = np.unique(pairs, return_inverse=True)
        stream = np.random.SeedSequence([self.config_.seed if seed is None else seed, 2])  # 0 and 1 are training's
        found = moments_of_draws(
            self.model_.posterior.build({name: values[nodes] for name, values in self.latent_.items()}),
            self.model_.decoder,
            torch.from_numpy(places.reshape(-1, 2)),
            probabilities,
            num_draws=samples,
            generator=torch.Generator().manual_seed(int(stream.generate_state(1)[0])),
        )
        return Links(pairs, logits, found.mean.astype(np.float32), found.std.astype(np.float32))

    def metrics(self, held_out: HeldOut) -> dict[str, float]:
        """AUC and AP on held-out pairs, as fractions of 1; `vgae.evaluate` knows more metrics.

        Links that the model was trained on score too well; a UserWarning says that there are some.
        """
        held_out = check_held_out(held_out, self.graph_.num_nodes, "held_out")
        seen = num_links_among(held_out.links, self.graph_)
        if seen:
            warnings.warn(
                f"{seen:,} of the {len(held_out.links):,} links to score are links of the model's own graph.",
                UserWarning,
                stacklevel=2,
            )
        return auc_and_ap(*score_held_out(self, held_out))


class FittedModel(Predictor):
    """The model of a run, to be asked; `vgae.load` gives it as an estimator, which can be fitted again too."""

    def __init__(self, run: Run) -> None:
        self.fitted_ = Fitted.of(run)
