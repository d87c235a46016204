"""What a stack is made of: its bases by name, how they are cross-fitted, and how the meta-model learns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from vgae.baselines import BASELINES
from vgae.baselines.similarities import SIMILARITIES
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.options import Options, option, options_of
from vgae.spelling import as_known
from vgae.stack.options import MetaOptions
from vgae.train.config import Config
from vgae.train.named import NAMED, preset_values
from vgae.train.presets import PRESETS, STACK_MODELS
from vgae.words import shown

DEFAULT_BASES = ",".join((*STACK_MODELS, *SIMILARITIES))
MODELS: dict[str, dict[str, Any]] = STACK_MODELS | {
    name: preset_values(name, num_validation_links=0) for name in NAMED if name != "paper"
}
MODELS |= {name: {"model": name} for name in PRESETS}
OPEN, CLOSE = "(", ")"
SET_BY_STACK = ("seed", "device", "features", "early_stopping", "stop_by", "eval_every")  # of every auto-encoder


@dataclass(frozen=True)
class Base:
    """One base: an auto-encoder with its configuration, a baseline or a similarity."""

    text: str  # as it is stored: its name, with options if it was given any
    config: Config | None = None  # of an auto-encoder
    seed: int = 0  # of a baseline that is fitted

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of evidence that it gives."""
        return SIMILARITIES[self.text].columns if self.text in SIMILARITIES else (self.text,)

    @property
    def needs_features(self) -> bool:
        """Whether it can do nothing without features."""
        return (self.text in SIMILARITIES and SIMILARITIES[self.text].needs_features) or self.text == "cosine"


def base_names() -> tuple[str, ...]:
    """All bases that can be named."""
    return (*MODELS, *SIMILARITIES, *(name for name in BASELINES if name not in SIMILARITIES))


def parse_base(text: str) -> Base:
    """A base out of its name, or an auto-encoder with options: "vgae(latent_dim=64;encoder=linear:hops=3)"."""
    name, has_options, rest = text.partition(OPEN)
    name, rest = as_known(name.strip(), base_names()), rest.strip()
    if name not in base_names():
        raise InputError(f"bases: {shown(name)} is not one of {', '.join(base_names())}.")
    if has_options and not rest.endswith(CLOSE):
        raise InputError(f"bases: {shown(text)} does not end with {CLOSE}.")
    given = _given_options(name, rest.removesuffix(CLOSE), text)
    if name not in MODELS:
        if given:
            raise InputError(f"bases: {name} has no options; write {name} alone.")
        return Base(name)
    known = {each.name: each for each in options_of(Config)}
    values: dict[str, Any] = {"objective": "sampled"}  # unless another is given: as good as exact, and faster
    try:
        values |= MODELS[name] | {key: known[key].parse(value, key) for key, value in given.items()}
        config = Config(**values)
    except InputError as error:
        raise InputError(f"bases, {shown(text)}: {error}") from None
    options = ";".join(f"{key}={value}" for key, value in given.items())
    return Base(f"{name}{OPEN}{options}{CLOSE}" if options else name, config)


def _given_options(name: str, inside: str, text: str) -> dict[str, str]:
    """The options between the parentheses, as texts."""
    known, given = {each.name for each in options_of(Config)}, dict[str, str]()
    for item in filter(None, map(str.strip, inside.split(";"))):
        key, equals, value = (each.strip() for each in item.partition("="))
        if name in MODELS and (not equals or key not in known):
            raise InputError(
                f"bases: {shown(item)} in {shown(text)} is not an option; those of an auto-encoder are written as "
                f"{name}(latent_dim=64;mask_links=0.3)."
            )
        if key in SET_BY_STACK:
            raise InputError(f"bases: {key} in {shown(text)} is set by the stack for all its bases; leave it out.")
        if key in given:
            raise InputError(f"bases: {key} is there twice in {shown(text)}; give it once.")
        given[key] = value
    return given


def bases_text(given: Any) -> str:
    """Bases as one text, checked; a sequence of texts is joined."""
    if isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(each, str) for each in given):
        given = ",".join(given)
    if not isinstance(given, str):
        raise InputError(f"bases: names are needed, such as {DEFAULT_BASES!r}, got {shown(given)}.")
    bases = [parse_base(part) for part in split_bases(given)]
    if not bases:
        raise InputError(f"bases: there are none; name some of {', '.join(base_names())}.")
    owners: dict[str, Base] = {}
    for base in bases:
        same = next((other for other in owners.values() if base.config and other.config == base.config), None)
        for column in base.columns:
            other = owners.setdefault(column, base)
            same = other if other is not base else same
        if same is not None and same.text == base.text:
            raise InputError(f"bases: {shown(base.text)} is there twice; name it once.")
        if same is not None:
            raise InputError(f"bases: {shown(same.text)} and {shown(base.text)} give the same evidence; name one.")
    return ",".join(base.text for base in bases)


def split_bases(text: str) -> list[str]:
    """The texts between commas, but not those within parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == OPEN) - (letter == CLOSE)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]


@dataclass(frozen=True)
class StackConfig(Options):
    """One stack; all that is needed to fit it again."""

    bases: str = option(
        DEFAULT_BASES,
        convert=bases_text,
        help="What the evidence comes from, separated by commas: auto-encoders, baselines and similarities, or "
        "gae(latent_dim=64;mask_links=0.3) for an auto-encoder with options of its own.",
        more_help=lambda: f"Known: {', '.join(base_names())}.",
    )
    features: bool = option(True, flag="--no-features", help="Whether to use features.")
    folds: int = option(
        5, least=2, most=1000, help="Parts of the training links; each is described by bases that did not see it."
    )
    base_seeds: int = option(2, least=1, most=100, help="Trainings of each auto-encoder, whose logits are averaged.")
    boosting: float = option(
        0.5, least=0, most=1, help="Share of boosted trees in the log odds; the rest is a regression."
    )
    seed: int = option(0, least=0, most=2**32 - 1, help="Of folds, samples, trainings and trees.")
    device: str = option("auto", identifies=False, help="auto, cpu or cuda.")

    @property
    def meta(self) -> MetaOptions:
        """How the meta-model is fitted."""
        return MetaOptions(boosting=self.boosting)

    def view(self, graph: Graph) -> Graph:
        """What the stack sees of a graph: links without directions, and features unless it does without."""
        seen = graph.without_directions() if graph.directed else graph
        return seen if self.features or seen.features is None else seen.without_features()

    def bases_for(self, graph: Graph) -> tuple[Base, ...]:
        """The bases that can say something about a graph: those of features only where it has any."""
        found = tuple(
            base
            for base in map(parse_base, split_bases(self.bases))
            if graph.features is not None or not base.needs_features
        )
        if not found:
            raise InputError(f"bases: {shown(self.bases)} can do nothing without features; name others.")
        return tuple(self._configured(base) for base in found)

    def _configured(self, base: Base) -> Base:
        """The base with what the stack sets for all of them."""
        if base.config is None:
            return replace(base, seed=self.seed)
        config = replace(base.config, device=self.device, seed=self.seed, eval_every=base.config.iterations)
        return replace(base, config=config, seed=self.seed)
