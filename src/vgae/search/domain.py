"""What the values of one option may be in a search: a range of numbers, or a choice of values.

Written as text, `16..256` is a range and `gcn,mlp` a choice. A range whose ends differ by a factor of ten or more has a
logarithmic scale.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from vgae.errors import InputError
from vgae.options import Option
from vgae.spelling import as_known
from vgae.words import shown

LOGARITHMIC = 10.0  # the factor between the ends of a range from which on its scale is logarithmic
DIGITS = 3  # of a number that is drawn; more say nothing about how good it is
HOW = "give a range, such as 16..256, or values to choose from, such as 16,32,64"


class Trial(Protocol):
    """What a search draws values from, as Optuna's trials do."""

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """A whole number."""

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """A number."""

    def suggest_categorical(self, name: str, choices: Any) -> Any:
        """One of some values."""


@dataclass(frozen=True)
class Range:
    """All numbers from the lowest to the highest, both among them."""

    low: float
    high: float
    whole: bool

    @property
    def logarithmic(self) -> bool:
        """Whether it is drawn from by factors, not by differences."""
        return self.low > 0 and self.high >= LOGARITHMIC * self.low

    def draw(self, trial: Trial, name: str) -> int | float:
        """A value of it."""
        if self.whole:
            return trial.suggest_int(name, int(self.low), int(self.high), log=self.logarithmic)
        drawn = trial.suggest_float(name, self.low, self.high, log=self.logarithmic)
        return min(max(float(f"{drawn:.{DIGITS}g}"), self.low), self.high)

    def __contains__(self, value: Any) -> bool:
        return isinstance(value, int | float) and not isinstance(value, bool) and self.low <= value <= self.high

    def __str__(self) -> str:
        return f"{self.low:g}..{self.high:g}"


@dataclass(frozen=True)
class Choices:
    """Some values."""

    values: tuple[Any, ...]

    def draw(self, trial: Trial, name: str) -> Any:
        """One of them."""
        return trial.suggest_categorical(name, self.values)

    def __contains__(self, value: Any) -> bool:
        return any(value == each and type(value) is type(each) for each in self.values)

    def __str__(self) -> str:
        return ",".join(map(str, self.values))


Domain = Range | Choices


def own_domain(option: Option) -> Domain | None:
    """What an option says itself about where to search; None where it says nothing.

    An option whose default None means that the graph decides stays that way, unless it is asked for.
    """
    search = option.rule.search
    if search is None or option.optional:
        return None
    return Choices(search) if option.kind in (bool, str) else _range(option, search[0], search[1], option.name)


def given_domain(option: Option, given: Any, name: str) -> Domain:
    """What a user wants an option to be searched in: a pair of numbers, a list of values, or either as text."""
    if isinstance(given, str):
        return _parsed(option, given, name)
    if isinstance(given, tuple) and len(given) == 2 and option.kind in (int, float):
        return _range(option, *given, name)
    if isinstance(given, list) and given:
        return Choices(tuple(dict.fromkeys(option.check(value, f"search, {name}") for value in given)))
    raise InputError(
        f"search: {name} needs a pair of numbers (low, high) or a list of values to choose from, got {shown(given)}."
    )


def names_in(given: Any, family: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """The parts of a family that a user names, as a list or as text."""
    names = given.split(",") if isinstance(given, str) else given
    if not isinstance(names, list) or not names:
        raise InputError(f"search: {family} needs a list of names to choose from, got {shown(given)}.")
    names = [as_known(name, known) if isinstance(name, str) else name for name in names]
    for name in names:
        if name not in known:
            raise InputError(f"search: {family} {shown(name)} is not one of {', '.join(known)}.")
    return tuple(dict.fromkeys(names))


def _parsed(option: Option, text: str, name: str) -> Domain:
    what = f"search, {name}"
    if ".." in text and option.kind in (int, float):
        low, _, high = text.partition("..")
        return _range(option, option.parse(low, what), option.parse(high, what), name)
    if not text:
        raise InputError(f"search: {name} has no values; {HOW}.")
    return Choices(tuple(dict.fromkeys(option.parse(value, what) for value in text.split(","))))


def _range(option: Option, low: Any, high: Any, name: str) -> Range:
    low, high = (option.check(end, f"search, {name}") for end in (low, high))
    if low is None or high is None:
        raise InputError(f"search: {name} needs two numbers, got {low} and {high}.")
    if low > high:
        raise InputError(f"search: {name}={low}..{high} is empty; give the smaller number first.")
    return Range(low, high, whole=option.kind is int)
