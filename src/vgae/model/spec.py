"""Parts of a model by name: encoders, posteriors, priors and decoders, each with its options.

A part is one frozen dataclass that is its options and builds what computes with them:

    @register("decoder", "stretched")
    @dataclass(frozen=True)
    class Stretched(DecoderSpec):
        scale: float = option(1.0, above=0, help="What inner products are multiplied by.")

        def factors(self, z: Tensor) -> Factors:
            return Factors(self.scale * z, z)

It can then be given as `Stretched(scale=2.0)`, as "stretched" or as "stretched:scale=2", to the estimators and to the
command; it is stored as the last of these. docs/parts.md says what each family has to offer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from vgae.errors import InputError
from vgae.options import Options, option, options_of
from vgae.spelling import as_known

FAMILIES = ("encoder", "posterior", "prior", "decoder")
_REGISTERED: dict[str, dict[str, type[Spec]]] = {family: {} for family in FAMILIES}


class Spec(Options):
    """What every part is: its options, and the name that it was registered by."""

    family: ClassVar[str]
    name: ClassVar[str]

    def __str__(self) -> str:
        values = [f"{each.name}={getattr(self, each.name)}" for each in options_of(type(self))]
        return f"{self.name}:{','.join(values)}" if values else self.name


SomeSpec = TypeVar("SomeSpec", bound=Spec)


def register(family: str, name: str) -> Callable[[type[SomeSpec]], type[SomeSpec]]:
    """Make a part known by its name; a name is taken once, or again by a class that replaces one of its own name.

    A part that comes with this package is never replaced: whoever asks for it by its name gets it.
    """

    def decorate(spec: type[SomeSpec]) -> type[SomeSpec]:
        taken = registered(family).get(name)
        if taken is not None and (taken.__qualname__ != spec.__qualname__ or is_own(taken) != is_own(spec)):
            raise ValueError(f"{family}: the name {name!r} is taken by {taken.__qualname__}")
        spec.family, spec.name = family, name
        _REGISTERED[family][name] = spec
        return spec

    return decorate


def registered(family: str) -> dict[str, type[Spec]]:
    """The parts of a family, by name."""
    return dict(_REGISTERED[family])


def is_own(spec: type[Spec]) -> bool:
    """Whether a part comes with this package."""
    return spec.__module__.partition(".")[0] == __name__.partition(".")[0]


def find(family: str, given: Any) -> Spec:
    """The part that is meant: a part itself, its name, or "name:option=value,option=value"."""
    known = _REGISTERED[family]
    if isinstance(given, Spec) and given.family == family:
        return given
    if not isinstance(given, str):
        raise InputError(f"{family}: the name of one is needed, such as {next(iter(known))!r}, got {given!r}.")
    name, _, text = given.partition(":")
    name = as_known(name, known)
    if name not in known:
        raise InputError(f"{family}: {name!r} is not one of {', '.join(known)}; import the module that registers it.")
    spec = known[name]
    options = {each.name: each for each in options_of(spec)}
    values = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        key = as_known(key, options)
        if key not in options or not equals:
            known_options = f"has the options {', '.join(options)}, given as {name}:option=value"
            has = known_options if options else "has no options"
            raise InputError(f"{family}: {item!r} is not understood; {name} {has}.")
        values[key] = options[key].parse(value, f"{family} {name}, {key}")
    return spec(**values)


def part(family: str, help: str) -> Any:  # noqa: A002 - what it is called everywhere
    """A field that holds a part of a family."""
    return option(None, help=help, convert=lambda given: find(family, given), more_help=lambda: _listed(family))


def _listed(family: str) -> str:
    """All parts of a family with the names of their options, for the help of the command."""
    parts = []
    for name, spec in _REGISTERED[family].items():
        options = [each.name for each in options_of(spec)]
        parts.append(f"{name} ({', '.join(options)})" if options else name)
    return f"One of: {', '.join(parts)}; vgae parts {family} explains them."
