"""Results out as text and CSV, in UTF-8: ids exactly as they are or, if asked for, so that no spreadsheet runs them."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from vgae.errors import InputError
from vgae.io.atomic import atomic_write

FORMULAS = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # what spreadsheets take for a formula
QUOTED = frozenset(',;|"\t\r\n')


def without_formulas(ids: Iterable[Any]) -> list[Any]:
    """Ids with an apostrophe before text that a spreadsheet would run as a formula; numbers stay as they are."""
    return [f"'{name}" if isinstance(name, str) and name.startswith(FORMULAS) else name for name in ids]


def json_id(name: Any) -> int | str:
    """An id in JSON: whole numbers stay numbers, everything else is text."""
    return name if type(name) is int else str(name)


def require_utf8(path: Path, texts: Iterable[str], instead: str) -> None:
    """Refuse text that no file in UTF-8 can hold: half of a character, which Python and JSON allow."""
    for text in texts:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(
                f"{path}: {text!r} holds half of a character (a lone surrogate), which UTF-8 cannot; {instead}."
            ) from None


def write_csv(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows below the names of their columns, as CSV."""
    with writing(path) as file:
        for row in chain([columns], rows):
            fields = [str(value) for value in row]
            require_utf8(path, fields, "print --json instead")
            file.write((",".join(map(_field, fields)) + "\n").encode())


def write_text(path: Path, text: str) -> None:
    """A page of text."""
    with writing(path) as file:
        file.write(text.encode())


@contextmanager
def writing(path: Path) -> Iterator[BinaryIO]:
    """A file for what a user asked for; one that cannot be written is named."""
    try:
        with atomic_write(path) as file:
            yield file
    except OSError as error:
        raise InputError(f"{path}: the file cannot be written there ({error.strerror}).") from None


def _field(text: str) -> str:
    """A value, in quotation marks where it has to be or where a spreadsheet might split it, not only at commas."""
    if text and text == text.strip() and QUOTED.isdisjoint(text):
        return text
    return '"' + text.replace('"', '""') + '"'
