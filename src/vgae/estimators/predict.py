"""Whatever can be asked of a fitted model: embeddings, probabilities, new links, scores; also on another graph."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vgae.errors import InputError
from vgae.evaluation.calibration import (
    EQUAL_WIDTH,
    Calibration,
    Reliability,
    Weights,
    reliability_by_halves,
    reliability_of,
)
from vgae.evaluation.evaluate import score_held_out
from vgae.evaluation.held_out import check_held_out, num_links_among
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.graph import Graph
from vgae.graph.pairs import Pairs, check_nodes, check_pairs, num_pairs
from vgae.graph.split import HeldOut
from vgae.io.embeddings import arrow_table, data_frame
from vgae.machine import working_on
from vgae.model.autoencoder import AutoEncoder
from vgae.model.draws import moments_of_draws
from vgae.model.inputs import EncoderInputs
from vgae.objective.terms import Weighting
from vgae.ops import known_pairs, top_of_all, top_of_each_row
from vgae.options import whole_number
from vgae.runs.run import Run
from vgae.train.config import Config, choose_device

FloatArray = npt.NDArray[np.float32]
NO_PAIRS: Pairs = np.empty((0, 2), dtype=np.int64)


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
    """What is asked of a model that has been fitted; an estimator fills in what fitting leaves."""

    device: str
    config_: Config
    model_: AutoEncoder
    latent_: dict[str, Tensor]  # the posterior's parameters over the graph
    graph_: Graph
    n_features_in_: int
    validation_: HeldOut | None
    run_: Run | None  # that the model was loaded from
    known_: Pairs  # pairs beside the graph's links that are known, on another graph
    calibration_: Calibration | None  # that of the graph it was trained on, on another

    def transform(self, graph: Any = None) -> FloatArray:
        """Embeddings (N×latent_dim): the posterior mean over the training graph, or over another graph.

        Another graph needs the same feature columns: a model without features knows its own graph and no other nodes.
        """
        check_is_fitted(self)
        if graph is None:
            mean: FloatArray = self.latent_["mean"].numpy()
        else:
            mean = self._encode(Graph.of(graph))["mean"].numpy()
        return mean.copy()

    def on(self, graph: Any, *, known: npt.ArrayLike | None = None) -> Self:
        """The trained model on another graph with the same features, or on its own graph with more nodes and links.

        Nodes are embedded by the trained encoder, and whatever can be asked of a model can be asked about them:
        probabilities are calibrated as they were, and `recommend` leaves out the graph's links and the `known` pairs.
        Where the graph is the model's own with more beside it, as `read_more` makes it, its first nodes being the
        model's and the model's links among its links, the links that the model's own graph held out are known too.
        """
        check_is_fitted(self)
        graph = Graph.of(graph)
        moved = copy.copy(self)
        moved.latent_ = self._encode(graph)
        moved.calibration_ = self.calibration()
        given = NO_PAIRS if known is None else check_pairs(known, graph.num_nodes, "known")
        moved.known_ = np.concatenate([given, self._held_out_links()]) if self._is_part_of(graph) else given
        moved.graph_, moved.run_, moved.validation_ = graph, None, None
        return moved

    def _is_part_of(self, graph: Graph) -> bool:
        """Whether a graph begins with the nodes of the model's own graph and has all of its links."""
        own = self.graph_
        if graph.num_nodes < own.num_nodes:
            return False
        first = np.arange(own.num_nodes)
        same_nodes: bool = graph.node_ids is None or graph.ids_of(first).tolist() == own.ids_of(first).tolist()
        return same_nodes and num_links_among(own.edges, graph) == own.num_edges

    def _is_own(self, graph: Graph) -> bool:
        """Whether a graph is the model's own, as far as the model looks at it."""
        if (graph.num_nodes, graph.num_edges) != (self.graph_.num_nodes, self.graph_.num_edges):
            return False
        if self.n_features_in_ == 0 and graph.features is not None:
            graph = graph.without_features()
        return bool(graph.content_hash == self.graph_.content_hash)

    def _encode(self, graph: Graph) -> dict[str, Tensor]:
        """The posterior over a graph, head by head."""
        if self._is_own(graph):
            return self.latent_
        if self.n_features_in_ == 0:
            raise InputError(
                "This model was trained without features, so it knows nothing of other nodes than those it was trained "
                "on; train it with features to embed new ones."
            )
        if graph.num_features != self.n_features_in_:
            raise InputError(
                f"features: the model was trained on {self.n_features_in_} columns, "
                f"but this graph has {graph.num_features}."
            )
        device = choose_device(self.device)
        try:
            with torch.no_grad(), working_on(device):
                posterior = self.model_.to(device).encode(EncoderInputs.from_graph(graph, device))
        finally:
            self.model_.cpu()
        return {head: getattr(posterior, head).cpu().contiguous() for head in posterior.heads}

    def to_frame(self) -> Any:
        """The embeddings as a pandas data frame: columns z1, z2, …, the nodes' ids as index."""
        return data_frame(self._node_ids(), self.transform())

    def to_arrow(self) -> Any:
        """The embeddings as an Arrow table: `id`, z1, z2, …; `polars.from_arrow` takes it as it is."""
        return arrow_table(self._node_ids(), self.transform())

    def to_pyg(self) -> Any:
        """The training graph for PyTorch Geometric: embeddings as `x`, links in both directions, `node_ids`."""
        check_is_fitted(self)
        try:
            data = import_module("torch_geometric.data")
        except ImportError:
            raise InputError("to_pyg needs PyTorch Geometric; install it with pip install 'vgae[pyg]'.") from None
        links = torch.tensor(np.concatenate([self.graph_.edges, self.graph_.edges[:, ::-1]]).T.copy())
        return data.Data(x=torch.from_numpy(self.transform()), edge_index=links, node_ids=self._node_ids())

    def logits(self, pairs: npt.ArrayLike) -> FloatArray:
        """Logits of links between pairs of node indices (M×2), at the posterior mean."""
        check_is_fitted(self)
        return self.model_.score_pairs(self.latent_["mean"], check_pairs(pairs, self.graph_.num_nodes))

    def predict_proba(self, pairs: npt.ArrayLike) -> FloatArray:
        """Probability of a link between each pair of node indices (M×2), calibrated to the graph's density."""
        return self.calibration().probabilities(self.logits(pairs)).astype(np.float32)

    def predict_links(self, pairs: npt.ArrayLike, *, samples: int | None = None, seed: int | None = None) -> Links:
        """Logit and probability of a link between each pair of node indices (M×2).

        With `samples`, embeddings are drawn so many times from the posterior of a VGAE: probabilities are then means
        over the draws, and their standard deviation says how sure the model is of its embeddings. Same pairs and same
        seed (by default the estimator's), same bits.
        """
        check_is_fitted(self)
        self._check_draws(samples, seed)
        checked = check_pairs(pairs, self.graph_.num_nodes)
        return self._links(checked, self.logits(checked), samples, seed)

    def calibration(self) -> Calibration:
        """How logits become probabilities: the loss's weight taken back, and a scale if there were validation pairs."""
        check_is_fitted(self)
        if self.calibration_ is not None:
            return self.calibration_
        shift = math.log(Weighting.named(self.config_.weighting, self.graph_).positive_weight)
        if not self.validation_:
            return Calibration(shift)
        links, non_links = score_held_out(self, self.validation_)
        return Calibration.fit(links, non_links, density=self.density(), shift=shift)

    def density(self) -> float:
        """The share of pairs that are links, in the whole graph as far as it is known.

        A saved run knows its split, and validation pairs made by `split_links` know how many links the graph has. Else
        it is the links for training and validation that count.
        """
        num_links = self.graph_.num_edges
        if self.run_ is not None:
            num_links = self.run_.split.num_graph_links
        elif self.validation_:
            num_links = max(num_links + len(self.validation_.links), self.validation_.num_graph_links or 0)
        return num_links / num_pairs(self.graph_.num_nodes)

    def reliability(
        self, held_out: HeldOut, borders_of: Callable[[Weights], Weights] = lambda _: EQUAL_WIDTH
    ) -> tuple[Reliability, Reliability]:
        """How far σ(logit), and how far calibrated probabilities, can be trusted on held-out pairs.

        On the validation pairs that the calibration was fitted to, each half is judged by a fit to the other.
        """
        check_is_fitted(self)
        held_out = check_held_out(held_out, self.graph_.num_nodes, "held_out")
        links, non_links = score_held_out(self, held_out)
        density, calibration = self.density(), self.calibration()
        raw = reliability_of(Calibration(shift=0.0), links, non_links, density, borders_of)
        if self.validation_ and np.array_equal(held_out.pairs, self.validation_.pairs):
            return raw, reliability_by_halves(links, non_links, density, calibration.shift, borders_of)
        return raw, reliability_of(calibration, links, non_links, density, borders_of)

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
        check_is_fitted(self)
        self._check_draws(samples, seed)
        k = whole_number(k, "k", 1)
        rows = None if nodes is None else self._rows(nodes)
        z = self.latent_["mean"]
        factors = self.model_.decoder.factors(z)
        given = (factors.q, factors.k, factors.row_bias, factors.column_bias)
        known = known_pairs(self._known_links(), self.graph_.num_nodes, z.device)
        with torch.no_grad():
            if rows is None:
                found = top_of_all(*given, top=k, symmetric=self.model_.decoder.symmetric, known=known)
            else:
                found = top_of_each_row(*given, top=k, rows=rows, known=known)
        return self._links(found.pairs.numpy(), found.logits.numpy(), samples, seed)

    def similar(self, node: int, k: int = 10) -> list[tuple[int, float]]:
        """The `k` nodes whose embeddings point most nearly the same way as this one's, with the cosines."""
        check_is_fitted(self)
        row = whole_number(node, "node", 0, self.graph_.num_nodes - 1)
        k = whole_number(k, "k", 1)
        directions = torch.nn.functional.normalize(self.latent_["mean"], dim=1)
        nobody = known_pairs(self.graph_.edges[:0], self.graph_.num_nodes, directions.device)
        found = top_of_each_row(directions, None, None, None, top=k, rows=[row], known=nobody)
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
        if self.model_.posterior.is_point:
            raise InputError(
                f"samples: a {type(self).__name__} has one point for each node, without any spread to draw from; "
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
            self.model_.posterior(**{head: values[nodes] for head, values in self.latent_.items()}),
            self.model_.decoder,
            torch.from_numpy(places.reshape(-1, 2)),
            probabilities,
            num_draws=samples,
            generator=torch.Generator().manual_seed(int(stream.generate_state(1)[0])),
        )
        return Links(pairs, logits, found.mean.astype(np.float32), found.std.astype(np.float32))

    def _node_ids(self) -> list[Any]:
        """The nodes' own ids, or their indices where they have none."""
        check_is_fitted(self)
        ids: list[Any] = self.graph_.ids_of(np.arange(self.graph_.num_nodes)).tolist()
        return ids

    def _known_links(self) -> Pairs:
        return np.concatenate([self.graph_.edges, self._held_out_links()])

    def _held_out_links(self) -> Pairs:
        """Links that are known beside those of the graph that was trained on."""
        if self.run_ is not None:
            return np.concatenate([self.run_.split.val.links, self.run_.split.test.links])
        return np.concatenate([self.known_, self.validation_.links if self.validation_ else NO_PAIRS])

    def score(self, held_out: HeldOut, y: None = None) -> dict[str, float]:
        """AUC and AP on held-out pairs, as fractions of 1; `vgae.evaluate` knows more metrics.

        Links that the model was trained on score too well; that there are some is told by a UserWarning.
        """
        del y
        check_is_fitted(self)
        held_out = check_held_out(held_out, self.graph_.num_nodes, "held_out")
        seen = num_links_among(held_out.links, self.graph_)
        if seen:
            warnings.warn(
                f"{seen:,} of the {len(held_out.links):,} links to score are links of the model's own graph.",
                UserWarning,
                stacklevel=2,
            )
        return auc_and_ap(*score_held_out(self, held_out))
