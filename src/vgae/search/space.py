"""What a search tries: parts, their options, widths and training options, each within what it says of itself.

Every option with a search range is a dimension, and so is every family of parts, of which only those are proposed that
go together. Options that play no part in a model are not drawn for it: those of other parts, the KL's where embeddings
are points, the hidden layer's width where there is none. What a user fixes is left as it is, and what a user names
(`narrowed`) is searched there and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.model.decoders import DecoderSpec
from vgae.model.encoders import EncoderSpec
from vgae.model.posteriors import PLANE, PosteriorSpec
from vgae.model.priors import go_together
from vgae.model.spec import FAMILIES, Spec, registered
from vgae.options import Option, options_of
from vgae.search.domain import Choices, Domain, Trial, given_domain, names_in, own_domain
from vgae.train.config import Config
from vgae.train.presets import ENOUGH_TO_STOP, PRESETS

NOT_SEARCHED = ("model", "seed", "device", "precision", *FAMILIES)  # families are searched by the names of their parts
OF_KL = ("beta", "warm_up", "free_bits")
OF_FEATURES = ("unit_rows",)
OF_DIRECTIONS = ("directed",)  # encoders that are for directed graphs
TO_STOP = {"iterations": 500, "early_stopping": 50}  # of each trial, where there is enough to stop by
NEAR = 8  # how far from the number of dimensions that was drawn one may lie that a part can do with
SEPARATOR = "__"  # as in the estimators' decoder__scale


@dataclass(frozen=True)
class Dimension:
    """One thing that a search varies; `narrowed` says that a user named its values."""

    name: str
    domain: Domain
    narrowed: bool = False

    def draw(self, trial: Trial) -> Any:
        """A value, of the trial's choice."""
        return self.domain.draw(trial, self.name)


@dataclass(frozen=True)
class Family:
    """The parts of one family that may be proposed, by name, with the dimensions of their options."""

    name: str
    parts: dict[str, dict[str, Dimension]]
    fixed: Spec | None = None  # given by the user, with all of its options
    narrowed: bool = False

    def dimension(self, among: tuple[str, ...], suffix: str = "") -> Dimension:
        """Which of these parts."""
        return Dimension(f"{self.name}{suffix}", Choices(among), self.narrowed)

    def draw(self, trial: Trial, among: tuple[str, ...] | None = None, suffix: str = "") -> Any:
        """A part with its options; where only one is possible, that one."""
        if self.fixed is not None:
            return self.fixed
        among = tuple(self.parts) if among is None else among
        name = among[0] if len(among) == 1 else self.dimension(among, suffix).draw(trial)
        options = {option: dimension.draw(trial) for option, dimension in self.parts[name].items()}
        return registered(self.name)[name](**options)

    @property
    def specs(self) -> dict[str, Spec]:
        """Each part, at the defaults of its options or as it was given."""
        if self.fixed is not None:
            return {self.fixed.name: self.fixed}
        return {name: registered(self.name)[name]() for name in self.parts}


@dataclass(frozen=True)
class Space:
    """All that a search may propose: families of parts, dimensions of other options, and options with one value."""

    families: dict[str, Family]
    dimensions: dict[str, Dimension]
    fixed: dict[str, Any] = field(default_factory=dict)

    def propose(self, trial: Trial) -> Config:
        """A configuration of the trial's choice; an InputError where parts of somebody's own refuse each other."""
        values = dict(self.fixed)
        encoder = self.families["encoder"].draw(trial)
        posterior = self.families["posterior"].draw(trial, self._posteriors())
        prior = self.families["prior"].draw(trial, self._priors(posterior), _suffix(posterior))
        decoder = self.families["decoder"].draw(trial)
        for name, dimension in self.dimensions.items():
            if _matters(name, encoder, posterior):
                values[name] = dimension.draw(trial)
        values |= {"encoder": encoder, "posterior": posterior, "prior": prior, "decoder": decoder}
        values["model"] = _model_of(posterior)
        return self._fitting(values)

    def locate(self, config: Config) -> tuple[dict[str, Any], bool]:
        """Where a configuration is: its value in each dimension that has it, and whether it is what the user asked for.

        A value that a dimension has not, such as a preset's, is a reason against it only where a user named the values.
        """
        found: dict[str, Any] = {}
        wanted = True
        for dimension, value in self._values(config):
            if value in dimension.domain:
                found[dimension.name] = value
            elif dimension.narrowed:
                wanted = False
        return found, wanted

    def all_dimensions(self) -> dict[str, Dimension]:
        """Every dimension that a trial may have, by name."""
        found: list[Dimension] = []
        for family in self.families.values():
            if family.fixed is not None:
                continue
            if family.name == "prior":
                found += [self._prior_dimension(each) for each in self.families["posterior"].specs.values()]
            else:
                found.append(
                    family.dimension(self._posteriors() if family.name == "posterior" else tuple(family.parts))
                )
            found += [each for options in family.parts.values() for each in options.values()]
        found += self.dimensions.values()
        return {
            each.name: each for each in found if not (isinstance(each.domain, Choices) and len(each.domain.values) < 2)
        }

    def to_json(self) -> dict[str, Any]:
        """The space in words, by which a search that is resumed is known to be the same."""
        own = {each.name for each in options_of(Config) if each.rule.identifies}
        fixed = {name: value for name, value in self.fixed.items() if name in own}
        fixed |= {name: str(each.fixed) for name, each in self.families.items() if each.fixed is not None}
        return {
            "fixed": fixed,
            "parts": {name: list(each.parts) for name, each in self.families.items() if each.fixed is None},
            "searched": {name: str(each.domain) for name, each in self.all_dimensions().items()},
        }

    # ----------------------------------------------------------------------------------------------------------- inside

    def _values(self, config: Config) -> Iterator[tuple[Dimension, Any]]:
        """Every dimension that plays a part in a configuration, with the value there."""
        specs = {name: config.value_of(name) for name in FAMILIES}
        for name, family in self.families.items():
            if family.fixed is not None:
                continue
            if name == "prior":
                yield self._prior_dimension(specs["posterior"]), specs[name].name
            else:
                yield (
                    family.dimension(self._posteriors() if name == "posterior" else tuple(family.parts)),
                    specs[name].name,
                )
            for option, dimension in family.parts.get(specs[name].name, {}).items():
                yield dimension, getattr(specs[name], option)
        for name, dimension in self.dimensions.items():
            if _matters(name, specs["encoder"], specs["posterior"]):
                yield dimension, config.value_of(name)

    def _posteriors(self) -> tuple[str, ...]:
        """Those that a prior goes with."""
        return tuple(name for name, each in self.families["posterior"].specs.items() if self._priors(each))

    def _priors(self, posterior: Any) -> tuple[str, ...]:
        """Those that go with a posterior; a point needs none, and has the paper's whatever was asked for."""
        specs = self.families["prior"].specs
        return tuple(name for name, each in specs.items() if go_together(posterior, each))  # type: ignore[arg-type]

    def _prior_dimension(self, posterior: Any) -> Dimension:
        return self.families["prior"].dimension(self._priors(posterior), _suffix(posterior))

    def _fitting(self, values: dict[str, Any]) -> Config:
        """The configuration, with the next number of dimensions that its parts can do with, such as an even one."""
        drawn = values.get("latent_dim", Config().latent_dim)
        steps = sorted(range(-NEAR, NEAR + 1), key=abs) if "latent_dim" in self.dimensions else [0]
        refusal: InputError | None = None
        for latent_dim in (drawn + step for step in steps):
            if "latent_dim" in self.dimensions and latent_dim not in self.dimensions["latent_dim"].domain:
                continue
            try:
                return Config(**values | {"latent_dim": latent_dim})
            except InputError as error:
                refusal = refusal or error
        raise refusal or InputError("search: there is no number of dimensions that these parts can do with.")


@dataclass(frozen=True)
class Wishes:
    """What a user wants of a search: options with one value (given), others with a range or a choice (narrowed)."""

    given: Mapping[str, Any] = field(default_factory=dict)
    narrowed: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        fixed = {*self.given, *(["posterior"] if "model" in self.given else [])}  # which is the model
        both = [name for name in self.narrowed if name.partition(SEPARATOR)[0] in fixed]
        if both:
            raise InputError(f"search: {both[0]} has one value already; give the value, or what to search.")


def space_for(graph: Graph, num_validation_links: int, wishes: Wishes, *, by_top: bool = False) -> Space:
    """The space of a graph: all that is registered and makes sense there, but for what the user wants otherwise.

    Trainings stop early by the validation links, if there are enough and neither that nor a number of iterations is
    asked for; else the number of iterations is searched too.
    """
    given, narrowed = dict(wishes.given), dict(wishes.narrowed)
    config = Config(**given)  # which checks the values
    stopping = num_validation_links >= ENOUGH_TO_STOP and not {"iterations", "early_stopping"} & (
        set(given) | set(narrowed)
    )
    if stopping:
        given |= TO_STOP
        given.setdefault("stop_by", "top" if by_top else "scores")
    seen = config.view(graph)
    skipped = OF_FEATURES if seen.features is None else ()
    families = {name: _family(name, config, given, narrowed, seen, skipped) for name in FAMILIES}
    dimensions = {}
    for option in options_of(Config):
        if option.name in narrowed:
            asked = given_domain(_searchable(option), narrowed.pop(option.name), option.name)
            dimensions[option.name] = Dimension(option.name, asked, narrowed=True)
        elif (
            option.name not in given and option.name not in NOT_SEARCHED and (domain := own_domain(option)) is not None
        ):
            dimensions[option.name] = Dimension(option.name, domain)
    if narrowed:
        raise InputError(
            f"search: {next(iter(narrowed))} is not an option of a model or of the parts that are searched."
        )
    fixed = {name: value for name, value in given.items() if name not in FAMILIES and name != "model"}
    space = Space(families, dimensions, fixed)
    _require_some(space)
    return space


def _family(
    name: str,
    config: Config,
    given: Mapping[str, Any],
    narrowed: dict[str, Any],
    graph: Graph,
    skipped: tuple[str, ...],
) -> Family:
    """What is searched of a family; what was narrowed of it is taken out of the dictionary."""
    if name in given or (name == "posterior" and "model" in given):
        return Family(name, {config.value_of(name).name: {}}, fixed=config.value_of(name))
    known = registered(name)
    asked = names_in(narrowed.pop(name), name, tuple(known)) if name in narrowed else None
    names = asked or tuple(each for each, spec in known.items() if graph.directed or not _about_directions(spec()))
    of_options = {key: narrowed.pop(key) for key in list(narrowed) if key.startswith(name + SEPARATOR)}
    options = {each: {option.name: option for option in options_of(known[each])} for each in names}
    parts: dict[str, dict[str, Dimension]] = {each: {} for each in names}
    for key, values in of_options.items():
        of = key.removeprefix(name + SEPARATOR)
        if not any(of in each for each in options.values()):
            known_options = sorted({option for each in options.values() for option in each})
            raise InputError(
                f"search: {key}: no {name} that is searched has such an option; there is {', '.join(known_options)}."
            )
        for part in names:
            if of in options[part]:
                parts[part][of] = Dimension(key, given_domain(options[part][of], values, key), narrowed=True)
    for part in names:
        for option in options[part].values():
            domain = own_domain(option)
            if option.name not in parts[part] and domain is not None and option.name not in skipped:
                alike = all(domain == own_domain(each[option.name]) for each in options.values() if option.name in each)
                of_part = "" if alike else part + SEPARATOR  # options that mean the same are one dimension
                parts[part][option.name] = Dimension(f"{name}{SEPARATOR}{of_part}{option.name}", domain)
    return Family(name, parts, narrowed=asked is not None)


def _searchable(option: Option) -> Option:
    if option.name in NOT_SEARCHED:
        instead = "; search posterior=delta,normal instead" if option.name == "model" else ""
        raise InputError(f"search: {option.name} cannot be searched{instead}.")
    return option


def _require_some(space: Space) -> None:
    """Refuse a space in which there is nothing, or nothing to choose from."""
    if not space._posteriors():
        priors, posteriors = (" or ".join(space.families[name].specs) for name in ("prior", "posterior"))
        raise InputError(
            f"search: the space is empty, because the prior {priors} does not go with the posterior {posteriors}."
        )
    if not space.all_dimensions():
        raise InputError("search: there is nothing to search, because every option has one value.")


def _about_directions(spec: Spec) -> bool:
    """Whether a part is for directed graphs: what it adds is lost where links have none."""
    if isinstance(spec, DecoderSpec):
        with torch.device("meta"):
            return not spec.build(2, torch.Generator("cpu")).symmetric
    return isinstance(spec, EncoderSpec) and spec.name in OF_DIRECTIONS


def _matters(option: str, encoder: EncoderSpec, posterior: PosteriorSpec) -> bool:
    """Whether an option plays a part in a model of these parts."""
    if option in OF_KL:
        return not posterior.deterministic
    return option != "hidden_dim" or _has_hidden_layer(encoder)


def _has_hidden_layer(encoder: EncoderSpec) -> bool:
    """Whether another width of it makes other weights."""
    with torch.device("meta"):
        built = [encoder.build(3, width, {"mean": 2, "log_std": 2}, torch.Generator("cpu")) for width in (4, 5)]
    narrow, wide = ([weight.shape for weight in each.parameters()] for each in built)
    return narrow != wide


def _suffix(posterior: PosteriorSpec) -> str:
    """What tells apart the dimension of priors by where posteriors lie, for it has other choices there."""
    return "" if posterior.space == PLANE else f"_{posterior.space}"


def _model_of(posterior: PosteriorSpec) -> str:
    """The model that has this posterior by itself, or else the one that is called variational."""
    named = {parts["posterior"]: model for model, parts in PRESETS.items()}
    return named.get(posterior.name, Config().model)
