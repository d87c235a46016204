"""Which defaults a training has: the paper's, another preset's, or those tuned on real graphs (docs/defaults.md)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vgae.cli.loading import loading
from vgae.cli.options import AwareOptions, GivenNames, TableOptions
from vgae.errors import InputError
from vgae.graph.features import Normalization
from vgae.io.catalog import DATASETS
from vgae.options import option
from vgae.runs.config_file import with_config_file
from vgae.runs.folder import SavedTraining, is_refused, saved_training
from vgae.runs.make import Destination
from vgae.screen import note
from vgae.train.config import Config
from vgae.train.named import NAMED, TO_STOP, preset_values, with_preset
from vgae.train.presets import ACCURATE, ENOUGH_TO_STOP, TRIAL_ITERATIONS, TUNED_NORMALIZATION
from vgae.train.tuned import Trial, can_try_features, try_features, tuned
from vgae.words import count

if TYPE_CHECKING:
    from vgae.cli.opening import OpenedGraph
    from vgae.cli.verdict import Asked
    from vgae.graph.split import LinkSplit
    from vgae.parallel.group import Group

AUTO, PAPER, OWN = "auto", "paper", "tuned"
FILE = "config"  # in place of a preset: a file
_WORDED = ("model", *TO_STOP)  # what an announcement has words of its own for


def _text(values: Mapping[str, Any]) -> str:
    """The values of a preset, for the help."""
    return ", ".join(f"{name} {value}" for name, value in values.items() if name != "model")


@dataclass(frozen=True)
class PresetOptions(AwareOptions):
    """Where the values of options come from that are not given."""

    preset: str = option(
        AUTO,
        choices=(AUTO, *NAMED, OWN),
        help="Defaults of options that are not given: paper, those listed here; accurate, the parts with the best "
        f"scores on citation graphs ({_text(ACCURATE)}); tuned, those found on graphs of many kinds. "
        "auto is paper for a dataset by name and tuned for a file.",
    )
    keep_features: bool = option(False, help="With tuned defaults: use features without trying whether they help.")
    config: Path | None = option(
        None,
        convert=Path,
        help="Take options that are not given from this file, such as best.json of vgae tune, in place of a preset.",
    )

    def apply_file(self, config: Config) -> Config:
        """A configuration with the values of the file, if there is one, where an option was not given."""
        if self.config is None:
            return config
        if self.preset != AUTO or self.keep_features:
            other = "preset" if self.preset != AUTO else "keep_features"
            raise InputError(
                f"config and {other}: give one of the two; the values of a file take the place of a preset."
            )
        return with_config_file(config, self.config, self.given[Config])

    def name_for(self, graph: str) -> str:
        """The preset for a dataset or a file."""
        if self.config is not None:
            return FILE
        if self.preset != AUTO:
            return self.preset
        return PAPER if graph.lower() in DATASETS else OWN

    @property
    def suffix(self) -> str:
        """What the default name of a run folder ends in, for a preset that was asked for by its name, or a file."""
        if self.config is not None:
            return f"-{self.config.stem}"
        return f"-{self.preset}" if self.preset in NAMED and self.preset != PAPER else ""


@dataclass(frozen=True, eq=False)
class Settled:
    """A training with all its values, and how they were chosen."""

    asked: Asked
    preset: str
    trial: Trial | None = None

    def to_json(self) -> dict[str, Any]:
        """The preset, and the scores by which features were used or left out."""
        return {"preset": self.preset, "trial": None if self.trial is None else vars(self.trial)}


def settle(
    asked: Asked, options: PresetOptions, to: Destination, *, quiet: bool = False, group: Group | None = None
) -> Settled:
    """Fill in what was not given.

    A training that is resumed in a folder uses features or not as it did before, without trying again; one that was
    started with the paper's defaults, as all were in earlier versions, is continued with them. In a group of processes,
    it is the first one that looks into the folder.
    """
    preset, given = options.name_for(asked.graph), options.given
    if preset == FILE:
        return Settled(replace(asked, remarks=(f"options of {options.config}, where none were given",)), preset)
    before, refused = _found_in(to, group)
    if options.preset == AUTO and before is not None and _is_training(before, asked):
        preset = PAPER
    if preset == PAPER:
        return Settled(asked, preset)
    links = len(asked.split.val.links)
    if preset in NAMED:
        config = with_preset(asked.config, preset, given[Config], links)
        remark = preset_announcement(preset, config, given[Config], links)
        return Settled(replace(asked, config=config, remarks=(remark,)), preset)
    asked = _scaled(asked, given[TableOptions])
    config = tuned(asked.config, given[Config], links)
    remarks = [announcement(asked.graph, config, given, links, asked.tables.normalize)]
    trial = None
    if not options.keep_features and config.features and can_try_features(asked.split.train, asked.split.val):
        if before is not None:
            config = replace(config, features=before.config.features)
        elif not refused:
            if not quiet:
                note(f"trying {TRIAL_ITERATIONS} iterations with features and without; --keep-features skips this")
            trial = try_features(asked.split.train, asked.split.val, config, group)
            config = replace(config, features=trial.features_help)
            remarks.append(_verdict_of(trial))
    return Settled(replace(asked, config=config, remarks=tuple(remarks)), preset, trial)


def _found_in(to: Destination, group: Group | None) -> tuple[SavedTraining | None, bool]:
    """The training that is to be continued in a folder, if there is one, and whether the folder would be refused."""
    if group is None or group.is_first:
        before = saved_training(to.folder) if to.resume and not to.overwrite else None
        refused = is_refused(to.folder, overwrite=to.overwrite, resume=to.resume)
        if group is None:
            return before, refused
        found = group.share([before and before.to_json(), refused])
    else:
        found = group.share(None)
    return found[0] and SavedTraining.from_json(found[0]), found[1]


def plan_config(graph: str, config: Config, options: PresetOptions, num_links: int, *, quiet: bool = False) -> Config:
    """The configuration of a training that is not made, which would use features if there are any.

    `num_links` is how many links would be held out for validation.
    """
    preset = options.name_for(graph)
    if preset in (PAPER, FILE):
        return config
    if preset in NAMED:
        config = with_preset(config, preset, options.given[Config], num_links)
        if not quiet:
            note(preset_announcement(preset, config, options.given[Config], num_links))
        return config
    config = tuned(config, options.given[Config], num_links)
    if not quiet:
        note(announcement(graph, config, options.given, num_links, None))
    return config


def _is_training(saved: SavedTraining, asked: Asked) -> bool:
    """Whether a saved training is the one that is asked for, with the paper's defaults."""
    graph = asked.config.view(asked.split.train)
    return not any(saved.config.differences(asked.config)) and saved.graph_hash == graph.content_hash


def _scaled(asked: Asked, given: frozenset[str]) -> Asked:
    """Features with rows of unit length, unless it was said how to bring them to scale."""
    if "normalize" in given or asked.opened.graph.features is None or not asked.config.features:
        return asked
    opened, split = scaled(asked.opened, asked.split)
    return replace(asked, opened=opened, split=split, tables=replace(asked.tables, normalize=TUNED_NORMALIZATION))


def scaled(opened: OpenedGraph, split: LinkSplit) -> tuple[OpenedGraph, LinkSplit]:
    """A graph and its split with rows of features of unit length, and with the recipe for that."""
    scale = Normalization.fit(opened.graph.features, TUNED_NORMALIZATION)
    features = scale.apply(opened.graph.features)
    with loading():
        no_columns = import_module("vgae.io.recipe").FeatureRecipe(())
    recipe = replace(opened.recipe or no_columns, normalization=scale)
    graph = opened.graph.with_parts(features=features)
    return replace(opened, graph=graph, recipe=recipe), replace(split, train=split.train.with_parts(features=features))


def preset_announcement(preset: str, config: Config, given: Collection[str], links: int) -> str:
    """What a preset sets, as far as it was not given, and whether there is enough to stop by."""
    values = preset_values(preset, links)
    parts = [f"{name} {config.value_of(name)}" for name in values if name not in given and name not in _WORDED]
    return _announced(f"preset {preset}", [*parts, *_stopping(config, given, links)])


def announcement(graph: str, config: Config, given: GivenNames, links: int, normalize: str | None) -> str:
    """The values that were not given, and why they are not the paper's."""
    parts = [f"{name} {getattr(config, name)}" for name in ("hidden_dim", "latent_dim") if name not in given[Config]]
    parts += _stopping(config, given[Config], links)
    if normalize is not None and "normalize" not in given[TableOptions]:
        parts.append(f"features normalized by {normalize}")
    why = "asked for" if graph.lower() in DATASETS else "for a graph of your own"
    return _announced(f"defaults tuned on real graphs, {why}", parts)


def _announced(what: str, parts: Sequence[str]) -> str:
    return f"{what}: {', '.join(parts) or 'every option is given'}; --preset paper takes the paper's"


def _stopping(config: Config, given: Collection[str], links: int) -> Iterator[str]:
    """How long it trains, and by what it stops."""
    if "iterations" not in given:
        most = "at most " if config.early_stopping is not None else ""
        yield f"{most}{count(config.iterations, 'iteration')}"
    if config.early_stopping is not None and "early_stopping" not in given:
        yield f"early_stopping {config.early_stopping} by {config.stop_by}"
    elif links < ENOUGH_TO_STOP and config.early_stopping is None:
        yield f"no early stopping ({count(links, 'validation link')}, fewer than {ENOUGH_TO_STOP})"


def _verdict_of(trial: Trial) -> str:
    scores = f"{100 * trial.with_features:.1f} with features and {100 * trial.without:.1f} without"
    end = "so features are used" if trial.features_help else "so features are left out (--keep-features uses them)"
    return f"mean of AUC and AP on validation: {scores}, {end}"
