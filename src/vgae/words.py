"""Words for sentences: counts with the right plural, and values in short."""

from reprlib import Repr
from typing import Any


def count(number: int, noun: str, plural: str | None = None) -> str:
    """A number of things: 1 link, 2,000 links, no other plural than with an s unless one is given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def shown(value: Any) -> str:
    """Any value for a sentence: on one line, and short however long it is."""
    return " ".join(_Short().repr(value).split())


class _Short(Repr):
    """Values cut down to a few words, also those that Python itself would not write out or not on one line."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = self.maxtuple = self.maxlist = self.maxset = self.maxfrozenset = self.maxdict = 3
        self.maxstring = self.maxother = 60

    def repr_int(self, x: int, level: int) -> str:
        """Python refuses to write out thousands of digits."""
        return f"a number of {x.bit_length()} bits" if x.bit_length() > 200 else super().repr_int(x, level)

    def repr_ndarray(self, x: Any, _level: int) -> str:
        """What it is, not what is in it."""
        return f"an array of {x.dtype} of the shape {x.shape}"
