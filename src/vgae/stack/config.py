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
from vgae.stack.meta import MetaOptions
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


@dataclass(frozen=True)
class Base:
    """One base: an auto-encoder with its configuration, a baseline or a similarity."""

    text: str  # as it is given and stored
    config: Config | None = None  # of an auto-encoder

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
    if name not in base_names():
        raise InputError(f"bases: {shown(name)} is not one of {', '.join(base_names())}.")
    if name not in MODELS:
        if has_options:
            raise InputError(f"bases: {name} has no options; write {name} alone.")
        return Base(name)
    if has_options and not rest.endswith(CLOSE):
        raise InputError(f"bases: {shown(text)} does not end with {CLOSE}.")
    known = {each.name: each for each in options_of(Config)}
    values = dict(MODELS[name])
    for item in filter(None, rest.removesuffix(CLOSE).split(";")):
        key, equals, value = item.partition("=")
        if not equals or key not in known or key in ("seed", "device", "features", "early_stopping", "stop_by"):
            raise InputError(
                f"bases: {shown(item)} in {shown(text)} is not understood; options of an auto-encoder are written as "
                f"{name}(latent_dim=64;mask_links=0.3)."
            )
        values[key] = known[key].parse(value, f"bases, {name}, {key}")
    if values.get("objective") is None:
        values["objective"] = "sampled"  # as good as exact here, and linear in the links
    return Base(text, Config(**values))


def bases_text(given: Any) -> str:
    """Bases as one text, checked; a sequence of texts is joined."""
    if isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(each, str) for each in given):
        given = ",".join(given)
    if not isinstance(given, str):
        raise InputError(f"bases: names are needed, such as {DEFAULT_BASES!r}, got {shown(given)}.")
    parts = split_bases(given)
    if not parts:
        raise InputError(f"bases: there are none; name some of {', '.join(base_names())}.")
    twice = {part for part in parts if parts.count(part) > 1}
    if twice:
        raise InputError(f"bases: {min(twice)} is there twice; name it once.")
    for part in parts:
        parse_base(part)
    return ",".join(parts)


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
    boosting: float = option(0.5, least=0, most=1, help="Share of boosted trees in the log odds; the rest is linear.")
    seed: int = option(0, least=0, most=2**32 - 1, help="Of folds, samples, trainings and trees.")
    device: str = option("auto", identifies=False, help="auto, cpu or cuda.")

    @property
    def meta(self) -> MetaOptions:
        """How the meta-model is fitted."""
        return MetaOptions(
            boosting=self.boosting, balance=0.5, num_trees=300, tree_rate=0.05, leaf_rows=40, column_share=0.5
        )

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
            raise InputError(f"bases: {self.bases} need features, and the graph has none; name others.")
        return tuple(self._trained(base) for base in found)

    def _trained(self, base: Base) -> Base:
        if base.config is None:
            return base
        config = replace(base.config, device=self.device, seed=self.seed, eval_every=base.config.iterations)
        return replace(base, config=config)
