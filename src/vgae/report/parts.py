"""The parts of a model, described: what each is, its options, and what goes together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import torch

from vgae.experiments.notes import NOTES, PartNote
from vgae.model.decoders import DecoderSpec
from vgae.model.encoders import EncoderSpec
from vgae.model.posteriors import SPHERE, PosteriorSpec
from vgae.model.priors import PriorSpec, go_together
from vgae.model.spec import FAMILIES, Spec, is_own, registered
from vgae.options import Option, options_of
from vgae.train.presets import PRESETS

EVEN = 16  # dimensions that every decoder can be built with


@dataclass(frozen=True)
class PartInfo:
    """A part as a person reads about it."""

    spec: type[Spec]
    summary: str
    options: tuple[Option, ...]
    goes_with: str
    note: PartNote | None

    @property
    def name(self) -> str:
        """What it is given by."""
        return self.spec.name

    @property
    def equation(self) -> str:
        """The equation, or what its class says of itself."""
        return self.note.equation if self.note else self.summary.rstrip(".")

    def to_json(self) -> dict[str, Any]:
        """The same for JSON."""
        options = {
            each.name: {
                "default": each.default,
                "allowed": each.allowed,
                "help": each.rule.help,
                "search": each.rule.search,
            }
            for each in self.options
        }
        note = {} if self.note is None else {name: getattr(self.note, name) for name in ("source", "use", "cost")}
        return {
            "equation": self.equation,
            "summary": self.summary,
            "options": options,
            "goes_with": self.goes_with,
            **note,
        }


def describe_parts(family: str) -> list[PartInfo]:
    """All parts of a family, the paper's first."""
    paper = {parts[family] for parts in PRESETS.values()}
    return [
        describe_part(spec) for _, spec in sorted(registered(family).items(), key=lambda item: item[0] not in paper)
    ]


def describe_part(spec: type[Spec]) -> PartInfo:
    """One part."""
    summary = " ".join((spec.__doc__ or "").split("\n\n")[0].split())
    note = NOTES.get((spec.family, spec.name)) if is_own(spec) else None
    return PartInfo(spec, summary, options_of(spec), _goes_with(spec), note)


def own_parts(model: str) -> dict[str, str]:
    """The parts of a model by its name, by family."""
    return {family: PRESETS[model][family] for family in FAMILIES}


def _goes_with(spec: type[Spec]) -> str:
    """What a part can be combined with, in a sentence."""
    if issubclass(spec, EncoderSpec):
        return "Goes with any posterior, prior and decoder."
    if issubclass(spec, PosteriorSpec):
        if spec.deterministic:
            return "Goes with any encoder and decoder; a point is held against no prior, and has no draws."
        priors = [name for name, each in registered("prior").items() if go_together(spec, cast(type[PriorSpec], each))]
        where = "lies on the unit sphere, and goes" if spec.space == SPHERE else "goes"
        return f"It {where} with any encoder and decoder and with the prior {' or '.join(priors)}."
    if issubclass(spec, PriorSpec):
        posteriors = cast(dict[str, type[PosteriorSpec]], registered("posterior"))
        names = [name for name, each in posteriors.items() if not each.deterministic and go_together(each, spec)]
        return f"Goes with the posterior {' or '.join(names)}."
    decoder = cast(type[DecoderSpec], spec)().build(EVEN, torch.Generator())
    objective = "the exact and the sampled objective" if decoder.factorised else "the sampled objective alone"
    directed = "" if decoder.symmetric else "; it tells i → j from j → i, for directed graphs"
    return f"Goes with any encoder and posterior, and trains with {objective}{directed}."
