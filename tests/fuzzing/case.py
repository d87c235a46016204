"""One case of a fuzz: what it may use, what it is allowed to end in, and how it is repeated.

A case is made of nothing but its kind and its seed. It writes files into a folder of its own and hands them to the
library; each call either gives a result or raises a `VgaeError` of one sentence; anything else is a failure.
"""

import shutil
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Self, TypeVar

from vgae.errors import LONGEST, VgaeError
from vgae.visible import visible

Result = TypeVar("Result")
VALUES_SHOWN = 3


class WrongResultError(Exception):
    """Something that must not happen: a wrong graph, a message that is no sentence."""


class Case:
    """The folder, the random numbers and the account of one case."""

    def __init__(self, kind: str, seed: int, folder: Path) -> None:
        self.random = Random(f"{kind} {seed}")  # noqa: S311 - repeatable, not secret
        self.folder = folder
        self.bytes_given = 0
        self.num_read = 0
        self.num_refused = 0
        self.refusal = ""  # the last

    def write(self, name: str, content: bytes, *, unpacked: int = 0) -> Path:
        """A file of the case; what it says when it is unpacked counts as what was given, too."""
        path = self.folder / name
        path.write_bytes(content)
        self.bytes_given += max(len(content), unpacked)
        return path

    def attempt(self, call: Callable[[], Result]) -> Result | None:
        """What a call gives, or None if it is refused in one sentence."""
        try:
            result = call()
        except VgaeError as error:
            self.num_refused += 1
            self.refusal = str(error)
            self.require_sentence(self.refusal)
            return None
        self.num_read += 1
        return result

    def require_sentence(self, message: str) -> None:
        """A message is one line that can be printed anywhere, ends like a sentence, and is not endless."""
        if message != visible(message):
            raise WrongResultError(f"a message with characters that cannot be printed: {message!r}")
        if not message.rstrip(")").endswith((".", "?")):
            raise WrongResultError(f"a message that does not end like a sentence: {message!r}")
        if len(message) > LONGEST:
            raise WrongResultError(f"a message of {len(message)} characters: {message[:300]!r} …")


@dataclass(frozen=True)
class Outcome:
    """What a case came to; `failure` is empty if all was well."""

    num_read: int
    num_refused: int
    bytes_given: int
    failure: str = ""

    @classmethod
    def of(cls, case: Case, failure: str = "") -> Self:
        """The account of a case."""
        return cls(case.num_read, case.num_refused, case.bytes_given, failure)


def run_case(kinds: Mapping[str, Callable[[Case], Any]], kind: str, seed: int, folder: Path) -> Outcome:
    """Run one case in an empty folder; what it has written stays there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    case = Case(kind, seed, folder)
    try:
        kinds[kind](case)
    except WrongResultError as error:
        return Outcome.of(case, str(error))
    except MemoryError:
        return Outcome.of(case, f"MemoryError\n{_shortened(traceback.format_exc())}")
    except Exception:  # noqa: BLE001 - that there is none is what a fuzz shows
        return Outcome.of(case, _shortened(traceback.format_exc()))
    return Outcome.of(case)


def differing(
    words: str, expected: Mapping[Any, Any] | set[Any], found: Mapping[Any, Any] | set[Any]
) -> WrongResultError:
    """A failure that shows some of what differs between what was written and what was read."""
    told = []
    for name, one, two in (("missing", expected, found), ("not written", found, expected)):
        odd = [item for item in one if item not in two]
        if odd:
            told.append(f"{len(odd)} {name}, such as {odd[:VALUES_SHOWN]!r}")
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        odd = [(key, expected[key], found[key]) for key in expected if key in found and expected[key] != found[key]]
        if odd:
            told.append(f"{len(odd)} others, such as {odd[:VALUES_SHOWN]!r}")
    return WrongResultError(f"{words} are not those that were written: {'; '.join(told)[:2000]}")


def _shortened(text: str, most: int = 3000) -> str:
    return text if len(text) <= most else f"{text[: most // 2]}\n…\n{text[-most // 2 :]}"
