"""Stacks as estimators in the manner of scikit-learn; their parameters are the fields of `StackConfig`."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from vgae.errors import InputError
from vgae.estimators.base import AutoEncoderEstimator, checkpoint_folder
from vgae.estimators.baseline import Baseline
from vgae.estimators.classifier import score_of
from vgae.estimators.parameters import OptionsEstimator
from vgae.estimators.stacked import FittedOn, StackPredictor
from vgae.evaluation.held_out import check_held_out, require_unseen
from vgae.graph.graph import Graph
from vgae.graph.samples import LinkSamples, check_labels
from vgae.graph.split import HeldOut, LinkSplit
from vgae.io.plain import as_path
from vgae.runs.fold_store import FolderFolds, StackFingerprint
from vgae.runs.folder import new_run_folder
from vgae.runs.make_stack import require_room_for
from vgae.runs.stack_progress import StackBar
from vgae.runs.stack_run import StackRun
from vgae.stack.config import SET_BY_STACK, StackConfig
from vgae.stack.fit import fit_stack
from vgae.train.config import Config


class Stack(StackPredictor, OptionsEstimator, options=StackConfig):
    """Auto-encoders, baselines and similarities together: a meta-model learns how far to trust each of them.

    `bases` may be a text, as the command takes it, or a list of names and of estimators that are not fitted:
    ["neighbours", "degrees", VGAE(latent_dim=64)].

    >>> import vgae
    >>> graph = vgae.stochastic_block_model(120, 4, seed=0)
    >>> split = vgae.split_links(graph, seed=0)
    >>> model = vgae.Stack(bases="neighbours,degrees", folds=2, boosting=0.0, seed=0)
    >>> model = model.fit(split.train, validation=split.val)
    >>> sorted(model.metrics(split.test))
    ['ap', 'auc']
    >>> len(model.recommend(k=5).pairs)
    5
    """

    def _config(self) -> StackConfig:
        values = self._option_values()
        if isinstance(self.bases, list | tuple):
            values["bases"] = [base_text(each) for each in self.bases]
        return StackConfig(**values)

    # ---------------------------------------------------------------------------------------------------------- fitting

    def fit(
        self,
        graph: Any,
        y: npt.ArrayLike | None = None,
        *,
        validation: HeldOut | None = None,
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Fit on a graph: a `Graph`, or whatever one of its constructors takes; `y` is that of `LinkSamples`.

        `validation` pairs calibrate probabilities; nothing else is learned from them. `checkpoint` names a folder to
        save each fold in: if it holds folds of the same fitting, these are not fitted again, and the result is the same
        to the bit; those of any other fitting are refused.
        """
        if isinstance(graph, LinkSamples):
            graph = graph.graph(check_labels(y, len(graph)))
        graph = Graph.of(graph)
        if validation is not None:
            validation = check_held_out(validation, graph.num_nodes, "validation")
            require_unseen(validation, graph)
        split = LinkSplit(graph, validation or HeldOut.none(), HeldOut.none(), seed=0)
        return self._fit(split, checkpoint=checkpoint)

    def fit_split(self, split: LinkSplit, dataset: str | None = None, recipe: Any = None) -> Self:
        """Fit on a split's training graph, and know its held-out links; `dataset` is the name of the graph."""
        return self._fit(split, dataset, recipe)

    def _fit(self, split: LinkSplit, dataset: str | None = None, recipe: Any = None, checkpoint: Any = None) -> Self:
        config = self._config()
        if split.train.directed:
            warnings.warn(
                "The links are directed, but a stack is symmetric: it cannot tell which way a link goes.",
                UserWarning,
                stacklevel=3,
            )
        folder = checkpoint_folder(checkpoint, None)
        require_room_for(config, split.train)
        started = time.perf_counter()
        with ExitStack() as entered:
            bar = store = None
            if self.progress:
                bases = config.bases_for(config.view(split.train))
                bar = entered.enter_context(StackBar([base.text for base in bases], config.folds))
            if folder is not None:
                fingerprint = StackFingerprint.of(split.train, config)
                store = entered.enter_context(FolderFolds(folder, fingerprint, callback=bar))
            stack = fit_stack(split.train, config, store, bar)
        seconds = time.perf_counter() - started + (0.0 if store is None else store.seconds_before)
        run = StackRun.of(stack, split, seconds=seconds, dataset=dataset, recipe=recipe)
        self.fitted_ = FittedOn.of(run)
        self.checkpoint_ = None if folder is None else folder.resolve()
        return self

    def _fitted(self) -> FittedOn:
        check_is_fitted(self)
        return self.fitted_

    def score(self, held_out: Any, y: npt.ArrayLike | None = None) -> float:
        """AUC as a fraction of 1, on held-out pairs, or on pairs of nodes (M×2) with labels `y`."""
        return score_of(self, held_out, y)

    # ----------------------------------------------------------------------------------------------------------- saving

    def save(self, folder: str | Path, *, split: LinkSplit | None = None, overwrite: bool = False) -> None:
        """Save the fitted stack as a run folder, with the split it belongs to if that is given."""
        run, checkpoint = self.to_run(split), getattr(self, "checkpoint_", None)
        with new_run_folder(as_path(folder, "folder"), overwrite=overwrite, checkpoint=checkpoint) as writer:
            writer.write(run)

    def to_run(self, split: LinkSplit | None = None) -> StackRun:
        """Everything that a run folder holds, scores on the split's held-out pairs included."""
        fitted = self._fitted()
        if not fitted.on_own_graph:
            raise InputError("This stack is on another graph than it was fitted on; save the one that was fitted.")
        run = fitted.run if split is None else fitted.run.scored_on(split)
        return run.calibrated()

    @classmethod
    def from_run(cls, run: StackRun) -> Self:
        """The fitted estimator of a run. A device that is not there, such as another machine's GPU, becomes auto."""
        estimator = cls(**cls._parameters_of(run.config))
        estimator.fitted_ = FittedOn.of(run)
        return estimator


def base_text(given: Any) -> Any:
    """A base as the command writes it, out of its name or of an estimator; anything else as it is."""
    if isinstance(given, Baseline):
        return given.method
    if not isinstance(given, AutoEncoderEstimator):
        return given
    name, parameters = given.model_name, given.get_params(deep=False)
    del parameters["progress"]
    config = Config(model=name, **parameters)
    default = Config(model=name).to_json()
    changed = {key: text for key, text in config.to_json().items() if text != default[key]}
    changed.pop("device", None)
    odd = sorted(set(changed) & set(SET_BY_STACK))
    if odd:
        raise InputError(f"bases: {odd[0]} of a base cannot be given; all bases have that of the stack, or none.")
    if not changed:
        return name
    return f"{name}({';'.join(f'{key}={str(value).lower()}' for key, value in changed.items())})"
