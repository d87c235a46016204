"""GAE and VGAE as estimators in the manner of scikit-learn: fit, save and load."""

from __future__ import annotations

import math
from contextlib import ExitStack
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from vgae.errors import InputError
from vgae.estimators.predict import NO_PAIRS, FloatArray, Predictor
from vgae.evaluation.evaluate import evaluate_split
from vgae.evaluation.held_out import check_held_out, require_unseen
from vgae.graph.graph import Graph
from vgae.graph.split import HeldOut, LinkSplit
from vgae.io.plain import as_path
from vgae.io.recipe import FeatureRecipe
from vgae.runs.checkpoint import Checkpoints, Owner
from vgae.runs.folder import Workplace, new_run_folder
from vgae.runs.run import Facts, Run, read_run
from vgae.train.config import Config, choose_device
from vgae.train.loop import Watcher, train
from vgae.train.plan import require_room
from vgae.train.progress import ProgressBar

DEFAULTS = Config()


class _GraphAutoEncoder(Predictor, BaseEstimator):  # type: ignore[misc]  # scikit-learn ships no types
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
        checkpoint: str | Path | Workplace | None = None,
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
            validation = check_held_out(validation, graph.num_nodes, "validation")
            require_unseen(validation, graph)
        if config.early_stopping is not None and not validation:
            raise InputError("early_stopping: there is nothing to stop by; hold out validation pairs (val above 0).")
        _check_checkpoint(checkpoint, checkpoint_every)
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
                    checkpoint.checkpoints(owner, every=checkpoint_every, watcher=watcher)
                    if isinstance(checkpoint, Workplace)
                    else Checkpoints(Path(checkpoint), owner, every=checkpoint_every, watcher=watcher)
                )
            trained = train(graph, config, validation, watcher, keeper)
        self.config_ = config
        self.checkpoint_ = Path(checkpoint).resolve() if isinstance(checkpoint, str | Path) else None
        self.run_ = None
        self.recipe_: FeatureRecipe | None = None  # how a node table became the features, of a run that was loaded
        self.graph_ = graph
        self.known_ = NO_PAIRS
        self.calibration_ = None
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

    def save(self, folder: str | Path, *, split: LinkSplit | None = None, overwrite: bool = False) -> None:
        """Keep the trained model as a run folder, with the split it belongs to if that is given."""
        check_is_fitted(self)
        with new_run_folder(as_path(folder, "folder"), overwrite=overwrite, checkpoint=self.checkpoint_) as place:
            place.write(self.to_run(split))

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
        split = replace(split, train=split.train.with_parts(features=self.graph_.features))
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
        estimator.known_ = NO_PAIRS
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
        if not isinstance(parameters.pop("progress"), bool | np.bool_):
            raise InputError(f"progress: True or False is needed, got {self.progress!r}.")
        return Config(model=self._model, **parameters)


def _check_checkpoint(checkpoint: Any, every: Any) -> None:
    """The folder for checkpoints and the pause between them must be such."""
    if every is not None:
        number = isinstance(every, int | float | np.integer | np.floating) and not isinstance(every, bool)
        if not number or not 0 <= every < math.inf:
            raise InputError(f"checkpoint_every: a number of seconds from 0 is needed, got {every!r}.")
        if checkpoint is None:
            raise InputError("checkpoint_every: there is no folder to write to; name one (checkpoint).")
    if checkpoint is None or isinstance(checkpoint, Workplace):
        return
    if not isinstance(checkpoint, str | Path) or not str(checkpoint) or "\0" in str(checkpoint):
        raise InputError(f"checkpoint: the name of a folder is needed, got {checkpoint!r}.")


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
    run = read_run(as_path(folder, "folder"))
    return ESTIMATORS[run.config.model].from_run(run)
