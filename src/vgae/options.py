"""Options: a dataclass field that carries its own check, help and search range, so that each is written once.

    @dataclass(frozen=True)
    class Adam(Options):
        learning_rate: float = option(0.01, above=0, help="Step size.", search=(1e-3, 1e-1))

The check and its sentence, the estimators' parameters, the command's options and their help, config.json and the search
space all come from these fields. Whole numbers, numbers, booleans and texts are checked by the field's type, `X | None`
allows None, and `convert` stands in for the check where a value is of another kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from operator import index
from types import NoneType, UnionType
from typing import Any, Self, get_args, get_type_hints

import numpy as np

from vgae.errors import InputError
from vgae.words import shown

_KEY = "option"


@dataclass(frozen=True)
class Rule:
    """What a value may be, and what it is for."""

    help: str
    least: float | None = None  # of a whole number 0, unless it is given
    most: float | None = None
    above: float | None = None  # like `least`, without the bound itself
    choices: Callable[[], Sequence[str]] | None = None
    convert: Callable[[Any], Any] | None = None
    more_help: Callable[[], str] | None = None  # known only when help is asked for
    search: tuple[Any, ...] | None = None
    flag: str | None = None  # the command's name, where it is not --name
    identifies: bool = True  # whether two trainings that differ in it are different trainings


@dataclass(frozen=True)
class Option:
    """One option of a class: its name, its type, its default, and its rule."""

    name: str
    kind: type
    optional: bool
    default: Any
    rule: Rule

    @property
    def help(self) -> str:
        """What it is for, in a sentence or two."""
        more = self.rule.more_help() if self.rule.more_help else ""
        return f"{self.rule.help} {more}".strip()

    @property
    def allowed(self) -> str:
        """What a value may be, in words."""
        words = self._allowed()
        return f"{words}, or none" if self.optional else words

    def _allowed(self) -> str:
        rule = self.rule
        if rule.choices is not None:
            return " or ".join(rule.choices())
        if self.kind is bool:
            return "true or false"
        if self.kind is int:
            return (
                f"a whole number {_whole_bounds(int(rule.least or 0), None if rule.most is None else int(rule.most))}"
            )
        return f"a number {_bounds(rule.least, rule.above, rule.most)}".rstrip() if self.kind is float else "a text"

    @property
    def flag(self) -> str:
        """What it is called on the command line; two names with a / where it can be switched on and off."""
        name = self.name.replace("_", "-")
        if self.rule.flag is not None:
            return self.rule.flag
        if self.kind is bool and self.optional:
            return f"--{name}/--no-{name}"
        return f"--no-{name}" if self.kind is bool and self.default else f"--{name}"

    def check(self, value: Any, what: str | None = None) -> Any:
        """The value, in a plain type; an error that names the option and what it needs otherwise."""
        name = what or self.name
        if value is None and self.optional:
            return None
        if self.rule.convert is not None:
            return self.rule.convert(value)
        if self.rule.choices is not None:
            return one_of(value, name, self.rule.choices())
        if self.kind is bool:
            return true_or_false(value, name)
        if self.kind is int:
            least, most = (None if bound is None else int(bound) for bound in (self.rule.least, self.rule.most))
            return whole_number(value, name, least if least is not None else 0, most)
        if self.kind is float:
            return number(value, name, least=self.rule.least, above=self.rule.above, most=self.rule.most)
        if not isinstance(value, str):
            raise InputError(f"{name}: a text is needed, got {shown(value)}.")
        return value

    def parse(self, text: str, what: str) -> Any:
        """The value that a text stands for, as the command or "name:option=value" gives it."""
        if self.optional and text.lower() == "none":
            return None
        if self.rule.convert is not None or self.kind is str:
            return self.check(text, what)
        if self.kind is bool:
            return self.check({"true": True, "false": False}.get(text.lower(), text), what)
        try:
            return self.check(self.kind(text), what)
        except ValueError as error:
            if isinstance(error, InputError):
                raise
            return self.check(text, what)  # which says what is needed


def option(
    default: Any,
    *,
    help: str,  # noqa: A002 - what it is called everywhere
    **rule: Any,
) -> Any:
    """A field with a rule; the keywords are those of `Rule`, and choices may be a sequence."""
    choices = rule.get("choices")
    if choices is not None and not callable(choices):
        rule["choices"] = lambda: choices
    return field(default=default, metadata={_KEY: Rule(help=help, **rule)})


class Options:
    """Base of frozen dataclasses whose fields are options: values are checked and made plain when they are given."""

    def __post_init__(self) -> None:
        for each in options_of(type(self)):
            object.__setattr__(self, each.name, each.check(getattr(self, each.name)))

    def value_of(self, name: str) -> Any:
        """The value of an option, as it is stored and compared."""
        return getattr(self, name)

    def to_json(self) -> dict[str, Any]:
        """The values as JSON knows them; what JSON does not know is written as text."""
        values = {each.name: self.value_of(each.name) for each in options_of(type(self))}
        plain = bool | int | float | str | None
        return {name: value if isinstance(value, plain) else str(value) for name, value in values.items()}

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> Self:
        """The inverse of `to_json`; what an earlier version did not know yet has its default."""
        unknown = set(values) - {each.name for each in options_of(cls)}
        if unknown:
            raise InputError(f"config: {', '.join(sorted(unknown))}: not known to this version of vgae.")
        return cls(**values)

    def differences(self, other: Self) -> Iterator[str]:
        """In what two of them differ, option by option, as far as that makes another training."""
        for each in options_of(type(self)):
            own, others = self.value_of(each.name), other.value_of(each.name)
            if each.rule.identifies and own != others:
                yield f"{each.name} {own}, not {others}"


def options_of(cls: type) -> tuple[Option, ...]:
    """The options of a class, in their order."""
    if cls not in _KNOWN:
        hints = get_type_hints(cls)
        _KNOWN[cls] = tuple(_option(each, hints[each.name]) for each in fields(cls) if _KEY in each.metadata)
    return _KNOWN[cls]


_KNOWN: dict[type, tuple[Option, ...]] = {}  # finding out takes a hundred times as long as looking up


def as_arguments(options: Options) -> list[str]:
    """The arguments of a command line that give these options, as far as they are not at their defaults."""
    found: list[str] = []
    for each in options_of(type(options)):
        value = getattr(options, each.name)
        if value == each.default:
            continue
        flags = each.flag.split("/")
        found += [flags[0 if value else -1]] if each.kind is bool else [flags[0], str(value)]
    return found


def _option(of: Field[Any], hint: Any) -> Option:
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    kind = next(each for each in kinds if each is not NoneType)
    default = None if of.default is MISSING else of.default
    return Option(of.name, kind, NoneType in kinds, default, of.metadata[_KEY])


# --------------------------------------------------------------------------------------------------------------- checks


def whole_number(value: Any, what: str, least: int, most: int | None = None) -> int:
    """A plain whole number, whatever type of integer it is given as, or an error that names it."""
    try:
        plain = None if isinstance(value, bool | np.bool_) else index(value)
    except (TypeError, ValueError, RuntimeError):  # the latter of a tensor
        plain = None
    if plain is None or plain < least or (most is not None and plain > most):
        raise InputError(f"{what}: a whole number {_whole_bounds(least, most)} is needed, got {shown(value)}.")
    return plain


def number(
    value: Any, what: str, *, least: float | None = None, above: float | None = None, most: float | None = None
) -> float:
    """A plain finite number out of a plain or NumPy one, or an error that names it."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    try:
        plain = float(value) if is_number else math.nan
    except OverflowError:  # a whole number beyond all floating-point ones
        plain = math.inf
    low, high = (-math.inf if least is None else least), (math.inf if most is None else most)
    if not math.isfinite(plain) or plain < low or (above is not None and plain <= above) or plain > high:
        raise InputError(
            f"{what}: a number {_bounds(least, above, most)}".rstrip() + f" is needed, got {shown(value)}."
        )
    return plain


def _whole_bounds(least: int, most: int | None) -> str:
    return f"of at least {least}" if most is None else f"from {least} to {most}"


def _bounds(least: float | None, above: float | None, most: float | None) -> str:
    bounds = [f"of at least {least:g}"] if least is not None else []
    bounds += [f"above {above:g}"] if above is not None else []
    bounds += [f"of at most {most:g}"] if most is not None else []
    return " and ".join(bounds)


def true_or_false(value: Any, what: str) -> bool:
    """A plain boolean out of a plain or NumPy one, or an error that names it."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{what}: True or False is needed, got {shown(value)}.")
    return bool(value)


def one_of(value: Any, what: str, known: Sequence[str]) -> str:
    """One of some names, or an error that lists them."""
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{what}: {shown(value)} is not one of {', '.join(known)}.")
    return value
