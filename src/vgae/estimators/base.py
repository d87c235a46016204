"""GAE and VGAE as estimators in the manner of scikit-learn: fit, save and load.

Their parameters are the fields of `Config`, and nothing about them is written here.
"""

from __future__ import annotations

import warnings
from contextlib import ExitStack, suppress
from dataclasses import fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy.typing as npt
import torch
from sklearn.utils.validation import check_is_fitted

from vgae.errors import InputError
from vgae.estimators.baseline import Baseline
from vgae.estimators.classifier import PairClassifier, require_graph, training_of
from vgae.estimators.fitted import Fitted
from vgae.estimators.links import FloatArray
from vgae.estimators.parameters import OptionsEstimator
from vgae.graph.graph import Graph
from vgae.graph.split import HeldOut, LinkSplit
from vgae.io.plain import as_path
from vgae.model.spec import FAMILIES, find
from vgae.runs.baseline_run import BaselineRun
from vgae.runs.files import read_any_run
from vgae.runs.fingerprint import Fingerprint
from vgae.runs.folder import new_run_folder
from vgae.runs.group_checkpoint import checkpointer_for
from vgae.runs.make_together import require_same_training
from vgae.runs.run import Run
from vgae.train.callbacks import Callbacks, Warnings, callbacks_of
from vgae.train.config import Config, choose_device, own_part
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.named import preset_values
from vgae.train.plan import fitted, require_room
from vgae.train.progress import ProgressBar
from vgae.train.tuned import can_try_features, try_features, tuned

if TYPE_CHECKING:
    from vgae.parallel.group import Group

_NESTED = tuple(f"{family}__" for family in FAMILIES)


class AutoEncoderEstimator(PairClassifier, OptionsEstimator, options=Config, without=("model",)):
    """What GAE and VGAE have in common, which is everything but the name of the model."""

    _model: ClassVar[str]

    # ------------------------------------------------------------------------------------------------------- parameters

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; `deep`, the options of its parts too, such as decoder__scale."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for family in FAMILIES:
                with suppress(InputError):  # a part that is none has no options; fit says what is wrong with it
                    spec = self._part(family)
                    parameters |= {f"{family}__{field.name}": getattr(spec, field.name) for field in fields(spec)}
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters, or with decoder__scale=2.0 and the like options of its parts."""
        nested = {name: value for name, value in parameters.items() if name.startswith(_NESTED)}
        super().set_params(**{name: value for name, value in parameters.items() if name not in nested})
        for name, value in nested.items():
            family, _, option = name.partition("__")
            spec = self._part(family)
            if option not in {field.name for field in fields(spec)}:
                raise ValueError(f"{family} {spec.name} has no option {option!r}.")
            setattr(self, family, replace(spec, **{option: value}))
        return self

    def _part(self, family: str) -> Any:
        """The part of a family that is given or, if none is, the model's own."""
        given = getattr(self, family)
        if given is not None:
            return find(family, given)
        return own_part(self._model, family, self._part("posterior") if family == "prior" else None)

    @property
    def model_name(self) -> str:
        """What the command calls it: gae or vgae."""
        return self._model

    def _config(self) -> Config:
        return Config(model=self._model, **self._option_values())

    @classmethod
    def preset(cls, name: str, **parameters: Any) -> Self:
        """An estimator, not fitted yet, with the parameters of a preset: "paper", or "accurate".

        Parameters that are given stay as they are. "accurate" stops early: give `validation` pairs to `fit`, or
        early_stopping=None for a fixed number of iterations.
        """
        values = {each: value for each, value in preset_values(name).items() if each in cls._defaults}
        return cls(**(values | parameters))

    @classmethod
    def for_graph(cls, graph: Any, *, validation: HeldOut | None = None, **parameters: Any) -> Self:
        """An estimator, not fitted yet, with defaults that were tuned on real graphs in place of the paper's.

        Parameters that are given stay as they are. With 50 `validation` links or more it stops early by them, and two
        short trainings find out whether features help, unless `features` is given. Give the same graph and validation
        pairs to `fit`, and features with rows of unit length, `graph.normalized("rows")`. docs/defaults.md says more.
        """
        graph = Graph.of(graph)
        config = tuned(cls(**parameters)._config(), parameters, 0 if validation is None else len(validation.links))
        if "features" not in parameters and validation is not None and can_try_features(graph, validation):
            config = replace(config, features=try_features(graph, validation, config).features_help)
        values = {name: getattr(config, name) for name in cls._defaults}
        return cls(**values, progress=parameters.get("progress", False))

    # ---------------------------------------------------------------------------------------------------------- fitting

    def fit(
        self,
        graph: Any,
        y: npt.ArrayLike | None = None,
        *,
        validation: HeldOut | None = None,
        checkpoint: str | Path | None = None,
        checkpoint_every: float | None = None,
        callbacks: Any = None,
        group: Group | None = None,
    ) -> Self:
        """Train on a graph: a `Graph`, or whatever one of its constructors takes (edges, SciPy, NetworkX, PyG, frames).

        `validation` pairs are scored every few iterations; early stopping needs them. `y` is ignored, as scikit-learn's
        protocol has it for unsupervised estimators, unless the graph is given as `LinkSamples`: then the rows with the
        label 1 are its links, and early stopping without `validation` holds back 5 % of the rows for it.

        `checkpoint` names a folder to save the state of the training in, now and then or `checkpoint_every` so many
        seconds (0: after every iteration). If it holds the state of the same training, that is continued, to the same
        bits as without an interruption; a state of any other training is refused. Ctrl-C saves the state first. The
        folder stays after training; `save` into the run folder that it lies in removes it.

        `callbacks` follow the training: one or several, each a `vgae.callbacks.Callback`, such as `TensorBoard`, or a
        function that is called with each logged iteration.

        `group` has every process of a group train its part of the nodes (`vgae.parallel.joined`, docs/scale.md). All of
        them call this with the same parameters and the same graph; the model is then fitted in the first of them.
        """
        config, others = self._config(), callbacks_of(callbacks)
        graph, validation = training_of(graph, y, config, validation)
        job = Job.of(graph, config, validation)
        if group is None:
            job = fitted(job, checkpoints=checkpoint is not None)
        if job.cannot_tell:
            warnings.warn(f"{job.cannot_tell[0].upper()}{job.cannot_tell[1:]}.", UserWarning, stacklevel=2)
        folder = checkpoint_folder(checkpoint, checkpoint_every)
        leads = group is None or group.is_first
        if group is None:
            require_room(job, checkpoints=folder is not None)
        else:
            require_same_training(group, job)
        with ExitStack() as entered:
            shown = self.progress and leads
            own = entered.enter_context(ProgressBar(job.config.iterations)) if shown else Warnings()
            callback = Callbacks(own, *(others if leads else ()))
            checkpointer = None
            if folder is not None:
                made = checkpointer_for(group, folder, Fingerprint.of(job), every=checkpoint_every, callback=callback)
                checkpointer = entered.enter_context(made)
            trained = train(job, callback, checkpointer, group=group)
        if leads:
            self.fitted_ = Fitted.of(Run.of(trained), None if folder is None else folder.resolve())
        return self

    def fit_transform(self, graph: Any, y: Any = None, *, validation: HeldOut | None = None) -> FloatArray:
        """Train on a graph and return its embeddings."""
        require_graph(graph, "fit_transform")
        return self.fit(graph, y, validation=validation).transform()

    def _fitted(self) -> Fitted:
        check_is_fitted(self)
        return self.fitted_

    def _device(self) -> torch.device:
        return choose_device(self.device)

    # ----------------------------------------------------------------------------------------------------------- saving

    def save(self, folder: str | Path, *, split: LinkSplit | None = None, overwrite: bool = False) -> None:
        """Save the trained model as a run folder, with the split it belongs to if that is given."""
        run, checkpoint = self.to_run(split), self._fitted().checkpoint
        with new_run_folder(as_path(folder, "folder"), overwrite=overwrite, checkpoint=checkpoint) as writer:
            writer.write(run)

    def to_run(self, split: LinkSplit | None = None) -> Run:
        """Everything that a run folder holds, scores on the split's held-out pairs included."""
        fitted = self._fitted()
        if not fitted.on_own_graph:
            raise InputError("This model is on another graph than it was trained on; save the one that was trained.")
        return fitted.run if split is None else fitted.run.scored_on(split)

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """The fitted estimator of a run. A device that is not there, such as another machine's GPU, becomes auto."""
        estimator = cls(**cls._parameters_of(run.config))
        estimator.fitted_ = Fitted.of(run)
        return estimator


def checkpoint_folder(checkpoint: Any, every: Any) -> Path | None:
    """The folder for checkpoints, if one is named."""
    if checkpoint is None:
        if every is not None:
            raise InputError("checkpoint_every: there is no folder to write to; name one (checkpoint).")
        return None
    if not isinstance(checkpoint, str | Path) or not str(checkpoint) or "\0" in str(checkpoint):
        raise InputError(f"checkpoint: the name of a folder is needed, got {checkpoint!r}.")
    return Path(checkpoint)


class GAE(AutoEncoderEstimator):
    """Graph auto-encoder: a GCN encoder, a point for each node, an inner-product decoder.

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> split = vgae.split_links(graph, seed=0)
    >>> model = vgae.GAE(latent_dim=8, iterations=50, seed=0).fit(split.train, validation=split.val)
    >>> sorted(model.metrics(split.test))
    ['ap', 'auc']
    >>> model.transform().shape
    (60, 8)
    """

    _model = "gae"


class VGAE(AutoEncoderEstimator):
    """Variational graph auto-encoder: a GCN encoder, a normal distribution for each node, an inner-product decoder.

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(60, 3, seed=0)
    >>> split = vgae.split_links(graph, seed=0)
    >>> model = vgae.VGAE(latent_dim=8, iterations=50, seed=0).fit(split.train, validation=split.val)
    >>> sorted(model.metrics(split.test))
    ['ap', 'auc']
    >>> model.recommend(k=3).ids.shape
    (3, 2)
    >>> model.predict_links([(0, 1)], samples=10).std.shape
    (1,)
    """

    _model = "vgae"


ESTIMATORS: dict[str, type[GAE] | type[VGAE]] = {"gae": GAE, "vgae": VGAE}


def load(folder: str | Path) -> Any:
    """The model that is saved in a run folder, fitted: a `GAE`, a `VGAE`, a `Baseline` or a `Stack`.

    >>> import vgae
    >>> vgae.GAE(iterations=5, seed=0).fit([("ann", "bob"), ("bob", "cid")]).save("runs/small")
    >>> model = vgae.load("runs/small")
    >>> model.graph_
    Graph(3 nodes, 2 edges)
    """
    run = read_any_run(as_path(folder, "folder"))
    if isinstance(run, Run):
        return ESTIMATORS[run.config.model].from_run(run)
    if isinstance(run, BaselineRun):
        return Baseline.from_run(run)
    return import_module("vgae.estimators.stack").Stack.from_run(run)  # which builds on this module
