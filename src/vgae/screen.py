"""What people read: text in which nothing is left that a terminal would obey.

Everything that is printed for people goes through `visible`. JSON and files keep ids exactly as they are.
"""

import logging
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TextIO

from vgae.errors import OutputClosedError, VgaeError
from vgae.visible import UNSAFE
from vgae.visible import visible as visible

BYTES = 0xDC00  # where Python keeps the bytes of an argument that are not UTF-8
_before: dict[str, int] = {}  # where a stream went before it was silenced


def shell_line(arguments: Sequence[str]) -> str:
    """A command as a line to copy into a shell; where it holds unsafe characters, in the notation of bash and zsh."""
    return " ".join(
        shlex.quote(word) if visible(word) == word else f"$'{''.join(map(_in_shell, word))}'" for word in arguments
    )


def print_line(text: str) -> None:
    """Print a line that is a result, on standard output."""
    write(visible(text) + "\n")


def note(text: str) -> None:
    """Print a line beside the results, on standard error; if that is closed, the line is dropped."""
    try:
        print(visible(text), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


@contextmanager
def noting(*names: str) -> Iterator[None]:
    """Meanwhile what these loggers are told is printed as notes."""
    loggers, handler = [logging.getLogger(name) for name in names], _Notes()
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.removeHandler(handler)
            logger.setLevel(level)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def write(text: str) -> None:
    """Text that is safe already, on standard output; what cannot be written ends the command."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
        raise OutputClosedError("Standard output was closed.") from None
    except OSError as error:
        discard(sys.stdout)
        raise VgaeError(f"Standard output cannot be written ({error.strerror}).") from None


def prepare_streams() -> None:
    """Have both streams take any text, in whatever encoding and even where they are closed."""
    sys.stdout = _prepared(sys.stdout)
    sys.stderr = _prepared(sys.stderr)


def silence() -> None:
    """Say nothing any more, on neither stream: another process of the same command speaks."""
    _before["stderr"] = os.dup(2)
    for stream in (sys.stdout, sys.stderr):
        discard(stream)


def heard_again() -> None:
    """Have standard error heard again after `silence`, because the process that should speak cannot."""
    if "stderr" in _before:
        os.dup2(_before.pop("stderr"), 2)


def _prepared(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed by the parent process
        return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123 - for the rest of the process
    if hasattr(stream, "reconfigure"):
        stream.reconfigure(errors="backslashreplace")
    return stream


def discard(stream: TextIO) -> None:
    """Send what is still in a stream, and what comes, nowhere: Python writes it out once more when it ends."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def _in_shell(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if not UNSAFE.match(character):
        return character
    code = ord(character)
    if code >= BYTES:
        code -= BYTES
        return f"\\x{code:02x}"
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
