"""The methods that `vgae accuracy` compares, by name, and how each is fitted.

A star marks methods that leave features out. What is registered as a baseline is here by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from vgae.baselines import BASELINES
from vgae.errors import InputError
from vgae.evaluation.evaluate import Scorer
from vgae.experiments.measures import Composed, Recommender
from vgae.graph.split import LinkSplit
from vgae.io.json_files import hash_json
from vgae.options import as_arguments
from vgae.stack.config import StackConfig, parse_base, split_bases
from vgae.stack.contenders import REST, TOP_OF_COLUMN
from vgae.stack.meta import FEWEST, stiffer
from vgae.stack.shortlist import FIRST_STAGE, SHARING
from vgae.train.config import Config
from vgae.train.job import Job
from vgae.train.loop import train
from vgae.train.named import NAMED, preset_values

MODELS: dict[str, dict[str, Any]] = {"gae": {"model": "gae"}, "vgae": {}, "accurate": NAMED["accurate"]}
STACK = "stack"
STACKS = "vgae.estimators.stack"  # the module that has the estimator
OF_FEATURES = ("cosine",)  # baselines that compare features


@dataclass(frozen=True)
class Method:
    """A model, a baseline or the stack, by its name."""

    name: str
    kind: str  # model, stack or baseline
    uses_features: bool

    @property
    def plain(self) -> str:
        """Its name without the star."""
        return self.name.rstrip("*")

    @property
    def settings(self) -> str:
        """What it is run with, so that results of a method that has changed are not taken for its own."""
        if self.kind == "model":
            return " ".join(as_arguments(Config(**MODELS[self.plain], features=self.uses_features)))
        return _stack_settings() if self.kind == STACK else ""

    @property
    def missing(self) -> str | None:
        """What has to be installed for it, if anything has."""
        if self.name == "dw" and find_spec("gensim") is None:
            return "it needs gensim; install it with pip install 'vgae[baselines]'"
        return None


def all_methods() -> dict[str, Method]:
    """All methods by name: models, presets and the stack, with features and without, then what costs less."""
    found = [
        Method(name + star, STACK if name == STACK else "model", not star)
        for name in (*MODELS, STACK)
        for star in ("", "*")
    ]
    found += [Method(name, "baseline", name in OF_FEATURES) for name in BASELINES]
    return {method.name: method for method in found}


def chosen_methods(names: Sequence[str] | None) -> tuple[list[Method], list[str]]:
    """The methods of these names, or all that can be run here; and why others cannot, in sentences."""
    known = all_methods()
    for name in names or ():
        if name not in known:
            raise InputError(f"method: {name!r} is not one of {', '.join(known)}.")
    wanted = [known[name] for name in dict.fromkeys(names or known)]
    reasons = {method.name: method.missing for method in wanted if method.missing}
    if names and reasons:
        name, why = next(iter(reasons.items()))
        raise InputError(f"method {name}: {why}.")
    return [each for each in wanted if not each.missing], [
        f"{name} is left out: {why}" for name, why in reasons.items()
    ]


@dataclass(frozen=True)
class Fitted:
    """A fitted method; where it finds its best pairs by itself, or is composed of others, what does and is."""

    scorer: Scorer
    recommender: Recommender | None = None
    composed: Composed | None = None


def fit(method: Method, split: LinkSplit, seed: int, device: str) -> Fitted:
    """Fit a method on the training graph of a split, with the validation pairs to stop or choose by."""
    if method.kind == "model":
        return Fitted(_fit_model(method, split, seed, device))
    if method.kind == STACK:
        graph = split.train if method.uses_features else split.train.without_features()
        stack: Any = _new_stack()
        stack.set_params(seed=seed, device=device)
        stack.fit(graph, validation=split.val)
        return Fitted(stack, stack, stack)
    return Fitted(BASELINES[method.name](split.train, seed))


def _fit_model(method: Method, split: LinkSplit, seed: int, device: str) -> Scorer:
    values = MODELS[method.plain]
    if method.plain in NAMED:
        values = preset_values(method.plain, len(split.val.links))
    config = Config(**values, features=method.uses_features, seed=seed, device=device)
    job = Job.of(split.train, config, split.val)
    if job.outline.decoder.factorised:  # which auto comes to as well, after it has measured the machine
        job = replace(job, config=replace(config, objective="exact"))
    return train(job)


def _new_stack() -> Any:
    return import_module(STACKS).Stack()


def _stack_settings() -> str:
    """Its parameters, and a hash of what they stand for: the options of its auto-encoders and of its meta-model."""
    config = StackConfig()
    models = [
        as_arguments(base.config) for base in map(parse_base, split_bases(config.bases)) if base.config is not None
    ]
    rows, second = [TOP_OF_COLUMN, REST, FIRST_STAGE, SHARING], [FEWEST, vars(stiffer(config.meta))]
    details = hash_json({"models": models, "meta": vars(config.meta), "rows": rows, "second": second})
    shown = {name: getattr(config, name) for name in ("bases", "base_seeds", "folds", "boosting")}
    return " ".join(f"{name}={value}" for name, value in (shown | {"details": details[:12]}).items())
