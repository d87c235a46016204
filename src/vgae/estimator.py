"""GAE and VGAE as scikit-learn estimators: fit, transform, predict_proba, recommend, score, save."""

from __future__ import annotations

import copy
import math
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from vgae.errors import InputError
from vgae.evaluation.calibration import Calibration
from vgae.evaluation.evaluate import evaluate_split, score_held_out
from vgae.evaluation.metrics import auc_and_ap
from vgae.graph.embeddings import arrow_table, data_frame
from vgae.graph.graph import Graph
from vgae.graph.nodes import FeatureRecipe
from vgae.graph.pairs import Pairs, check_nodes, check_pairs, num_pairs
from vgae.graph.split import HeldOut, LinkSplit
from vgae.model.draws import moments_of_draws
from vgae.model.inputs import EncoderInputs
from vgae.objective.terms import Weighting
from vgae.ops import known_pairs, top_of_all, top_of_each_row
from vgae.train.checkpoint import Checkpoints, Owner
from vgae.train.config import Config, choose_device
from vgae.train.decide import require_room
from vgae.train.folder import new_run_folder
from vgae.train.progress import ProgressBar
from vgae.train.run import CHECKPOINT, CONFIG, Facts, Run, read_run, write_run
from vgae.train.trainer import Watcher, train

FloatArray = npt.NDArray[np.float32]
DEFAULTS = Config()


@dataclass(frozen=True, eq=False)
class Links:
    """Pairs of node indices (M×2), their logits at the posterior mean, and the probabilities of a link.

    Where draws from the posterior were asked for, probabilities are means over them and `std` is their spread.
    """

    pairs: Pairs
    logits: FloatArray
    probabilities: FloatArray
    std: FloatArray | None = None


class _GraphAutoEncoder(BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
    """What GAE and VGAE have in common, which is everything but the name of the model."""

    _model: str

    def __init__(
        self,
        *,
        features: bool = DEFAULTS.features,
        hidden_dim: int = DEFAULTS.hidden_dim,
        latent_dim: int = DEFAULTS.latent_dim,
        iterations: int = DEFAULTS.iterations,
        learning_rate: float = DEFAULTS.learning_rate,
        objective: str = DEFAULTS.objective,
        weighting: str = DEFAULTS.weighting,
        num_negatives: int | None = DEFAULTS.num_negatives,
        eval_every: int = DEFAULTS.eval_every,
        early_stopping: int | None = DEFAULTS.early_stopping,
        seed: int = DEFAULTS.seed,
        device: str = DEFAULTS.device,
        precision: str = DEFAULTS.precision,
        progress: bool = False,
    ) -> None:
        self.features = features
        self.hidden_dim = hidden_dim
        self.latent_dim = latent_dim
        self.iterations = iterations
        self.learning_rate = learning_rate
        self.objective = objective
        self.weighting = weighting
        self.num_negatives = num_negatives
        self.eval_every = eval_every
        self.early_stopping = early_stopping
        self.seed = seed
        self.device = device
        self.precision = precision
        self.progress = progress

    def fit(
        self,
        graph: Any,
        y: None = None,
        *,
        validation: HeldOut | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float | None = None,
    ) -> Self:
        """Train on a graph: a `Graph`, or whatever one of its constructors takes (edges, SciPy, NetworkX, PyG, frames).

        `validation` pairs are scored every few iterations; early stopping needs them. `y` is ignored, as scikit-learn's
        protocol has it for unsupervised estimators.

        `checkpoint` names a folder to keep the state of the training in, now and then or `checkpoint_every` so many
        seconds (0: after every iteration). If it holds the state of the same training, that is gone on with, to the
        same bits as without an interruption; a state of any other training is refused. Ctrl-C keeps the state first.
        The folder stays after training; `save` into the run folder that it lies in removes it.
        """
        del y
        config = self._config()
        graph = Graph.of(graph)
        if validation is not None:
            check_pairs(_held_out(validation).pairs, graph.num_nodes, "validation")
        if config.early_stopping is not None and not validation:
            raise InputError("early_stopping: there is nothing to stop by; hold out validation pairs (val above 0).")
        require_room(graph, config, checkpoints=checkpoint is not None)
        if not config.features:
            graph = graph.without_features()
        watcher, keeper = Watcher(), None
        with ExitStack() as entered:
            if self.progress:
                watcher = entered.enter_context(ProgressBar(config.iterations))
            if checkpoint is not None:
                owner = Owner.of(graph, config, validation)
                keeper = entered.enter_context(
                    Checkpoints(Path(checkpoint), owner, every=checkpoint_every, watcher=watcher)
                )
            trained = train(graph, config, validation, watcher, keeper)
        self.config_ = config
        self.checkpoint_ = None if checkpoint is None else Path(checkpoint).resolve()
        self.run_: Run | None = None
        self.recipe_: FeatureRecipe | None = None  # how a node table became the features, of a run that was loaded
        self.graph_ = graph
        self.known_ = graph.edges[:0]  # pairs beside the graph's links that are known, on another graph
        self.calibration_: Calibration | None = None  # that of the graph it was trained on, on another
        self.n_features_in_ = graph.num_features
        self.validation_ = validation
        self.model_ = trained.model.cpu()
        self.latent_ = {head: getattr(trained.posterior, head).cpu() for head in trained.posterior.heads}
        self.history_ = trained.history
        self.objective_ = trained.objective
        self.objective_reason_ = trained.objective_reason
        self.seconds_ = trained.seconds
        self.best_iteration_ = trained.best_iteration
        return self

    def fit_transform(self, graph: Any, y: None = None, *, validation: HeldOut | None = None) -> FloatArray:
        """Train on a graph and return its embeddings."""
        return self.fit(graph, y, validation=validation).transform()

    def transform(self, graph: Any = None) -> FloatArray:
        """Embeddings (N×latent_dim): the posterior mean over the training graph, or over another graph.

        Another graph needs the same feature columns: a model without features knows nothing of other nodes.
        """
        check_is_fitted(self)
        if graph is None:
            mean: FloatArray = self.latent_["mean"].numpy()
            return mean.copy()
        return self._encode(Graph.of(graph))["mean"].numpy()

    def on(self, graph: Any, *, known: npt.ArrayLike | None = None) -> Self:
        """The trained model on another graph with the same features, or on its own graph with more nodes and links.

        Nodes are embedded by the trained encoder, and whatever can be asked of a model can be asked about them:
        probabilities are calibrated as they were, and `recommend` leaves out the graph's links and the `known` pairs.
        """
        check_is_fitted(self)
        graph = Graph.of(graph)
        moved = copy.copy(self)
        moved.latent_ = self._encode(graph)
        moved.calibration_ = self.calibration()
        moved.known_ = graph.edges[:0] if known is None else check_pairs(known, graph.num_nodes, "known")
        moved.graph_, moved.run_, moved.validation_ = graph, None, None
        return moved

    def _encode(self, graph: Graph) -> dict[str, Tensor]:
        """The posterior over another graph, head by head."""
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
        with torch.no_grad():
            posterior = self.model_.to(device).encode(EncoderInputs.from_graph(graph, device))
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
        """The share of pairs that are links, those for training and validation counted."""
        num_links: int = self.graph_.num_edges + (len(self.validation_.links) if self.validation_ else 0)
        return num_links / num_pairs(self.graph_.num_nodes)

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
        if k < 1:
            raise InputError(f"k: at least 1 is needed, got {k}.")
        z = self.latent_["mean"]
        factors = self.model_.decoder.factors(z)
        given = (factors.q, factors.k, factors.row_bias, factors.column_bias)
        known = known_pairs(self._known_links(), self.graph_.num_nodes, z.device)
        with torch.no_grad():
            if nodes is None:
                found = top_of_all(*given, top=k, symmetric=self.model_.decoder.symmetric, known=known)
            else:
                rows = check_nodes(nodes, self.graph_.num_nodes)
                found = top_of_each_row(*given, top=k, rows=rows, known=known)
        return self._links(found.pairs.numpy(), found.logits.numpy(), samples, seed)

    def similar(self, node: int, k: int = 10) -> list[tuple[int, float]]:
        """The `k` nodes whose embeddings point most nearly the same way as this one's, with the cosines."""
        check_is_fitted(self)
        (row,) = check_nodes([node], self.graph_.num_nodes)
        if k < 1:
            raise InputError(f"k: at least 1 is needed, got {k}.")
        directions = torch.nn.functional.normalize(self.latent_["mean"], dim=1)
        nobody = known_pairs(self.graph_.edges[:0], self.graph_.num_nodes, directions.device)
        found = top_of_each_row(directions, None, None, None, top=k, rows=[row], known=nobody)
        return list(zip(found.pairs[:, 1].tolist(), found.logits.tolist(), strict=True))

    def _check_draws(self, samples: int | None, seed: int | None) -> None:
        if samples is None:
            return
        if not _is_whole(samples) or samples < 2:
            raise InputError(f"samples: at least 2 draws are needed to tell a spread, a whole number, got {samples!r}.")
        if seed is not None and (not _is_whole(seed) or seed < 0):
            raise InputError(f"seed: a whole number of at least 0 is needed, got {seed!r}.")
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
        held_out = [self.validation_.links] if self.validation_ else [self.known_]
        if self.run_ is not None:
            held_out = [self.run_.split.val.links, self.run_.split.test.links]
        return np.concatenate([self.graph_.edges, *held_out])

    def score(self, held_out: HeldOut, y: None = None) -> dict[str, float]:
        """AUC and AP on held-out pairs, as fractions of 1; `vgae.evaluate` knows more metrics."""
        del y
        return auc_and_ap(*score_held_out(self, _held_out(held_out)))

    def save(self, folder: str | Path, *, split: LinkSplit | None = None, overwrite: bool = False) -> None:
        """Keep the trained model as a run folder, with the split it belongs to if that is given."""
        check_is_fitted(self)
        folder = Path(folder)
        own = self.checkpoint_ == folder.resolve() / CHECKPOINT and not (folder / CONFIG).exists()
        with new_run_folder(folder, overwrite=overwrite, resume=own) as place:
            write_run(place.staging, self.to_run(split))

    def to_run(
        self, split: LinkSplit | None = None, *, dataset: str | None = None, recipe: FeatureRecipe | None = None
    ) -> Run:
        """Everything a run folder keeps, scores on the split's held-out pairs and the features' recipe included."""
        check_is_fitted(self)
        if self.calibration_ is not None:
            raise InputError("This model is on another graph than it was trained on; save the one that was trained.")
        if split is None and self.run_ is not None:
            return self.run_
        if split is not None and not split.is_trained_by(self.graph_):
            raise InputError("split: the model was not fitted on the training graph of this split.")
        if split is None:
            split = LinkSplit(self.graph_, self.validation_ or HeldOut.none(), HeldOut.none(), seed=0)
        split = replace(split, train=replace(split.train, features=self.graph_.features))
        return Run(
            config=self.config_,
            model=self.model_,
            latent=self.latent_,
            split=split,
            history=self.history_,
            metrics=evaluate_split(self, split),
            recipe=recipe if self.n_features_in_ else None,
            facts=Facts(
                dataset=dataset,
                num_features=self.n_features_in_,
                graph_hash=self.graph_.content_hash,
                objective=self.objective_,
                objective_reason=self.objective_reason_,
                best_iteration=self.best_iteration_,
                seconds=self.seconds_,
            ),
        )

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """The fitted estimator that a run was written from; its graph comes back without features.

        A device that is not there, such as the GPU of another machine, becomes auto.
        """
        parameters = asdict(run.config)
        del parameters["model"]
        try:
            choose_device(run.config.device)
        except InputError:
            parameters["device"] = "auto"
        estimator = cls(**parameters)
        estimator.checkpoint_ = None
        estimator.config_ = run.config
        estimator.run_ = run
        estimator.recipe_ = run.recipe
        estimator.graph_ = run.split.train
        estimator.known_ = run.split.train.edges[:0]
        estimator.calibration_ = None
        estimator.validation_ = run.split.val
        estimator.model_ = run.model
        estimator.latent_ = run.latent
        estimator.history_ = run.history
        estimator.n_features_in_ = run.facts.num_features
        estimator.objective_ = run.facts.objective
        estimator.objective_reason_ = run.facts.objective_reason
        estimator.best_iteration_ = run.facts.best_iteration
        estimator.seconds_ = run.facts.seconds
        return estimator

    def _config(self) -> Config:
        parameters = self.get_params()
        del parameters["progress"]
        return Config(model=self._model, **parameters)


def _held_out(pairs: Any) -> HeldOut:
    if not isinstance(pairs, HeldOut):
        raise InputError(f"Held-out pairs are needed, such as split.val or split.test, not {type(pairs).__name__}.")
    return pairs


def _is_whole(value: object) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


class GAE(_GraphAutoEncoder):
    """Graph auto-encoder: a GCN encoder, a point for each node, an inner-product decoder.

    >>> model = GAE(latent_dim=16, seed=0).fit(split.train, validation=split.val)  # doctest: +SKIP
    >>> model.score(split.test)  # doctest: +SKIP
    """

    _model = "gae"


class VGAE(_GraphAutoEncoder):
    """Variational graph auto-encoder: a GCN encoder, a normal distribution for each node, an inner-product decoder.

    >>> model = VGAE(latent_dim=16, seed=0).fit(split.train, validation=split.val)  # doctest: +SKIP
    >>> model.score(split.test)  # doctest: +SKIP
    """

    _model = "vgae"


ESTIMATORS: dict[str, type[GAE] | type[VGAE]] = {"gae": GAE, "vgae": VGAE}


def load(folder: str | Path) -> GAE | VGAE:
    """The fitted estimator kept in a run folder."""
    run = read_run(Path(folder))
    return ESTIMATORS[run.config.model].from_run(run)
