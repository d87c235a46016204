"""What people read: text in which nothing is left that a terminal would obey.

Ids, labels, file names and names of columns come from strangers. An escape sequence in one of them would colour, move
or rename things on the terminal, a line break would forge a line, and a mark that reverses the direction of writing
would show another id than the one that is meant. Everything that is printed for people therefore goes through
`visible`, which writes such characters out: ESC becomes \\x1b. JSON and files keep ids exactly as they are.
"""

import os
import re
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TextIO

from vgae.errors import OutputClosedError, VgaeError

UNSAFE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters: C0, DEL and C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of writing
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff"  # halves of a character, as Python keeps bytes of a file name that are not UTF-8
    "]"
)
BYTES = 0xDC00  # where Python keeps the bytes of an argument that are not UTF-8
SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    """The text with every character that a terminal would obey, and every half of one, written out."""
    return UNSAFE.sub(_written_out, text)


def shell_line(arguments: Sequence[str]) -> str:
    """A command as a line to copy into a shell; where it holds unsafe characters, in the notation of bash and zsh."""
    return " ".join(
        shlex.quote(word) if visible(word) == word else f"$'{''.join(map(_in_shell, word))}'" for word in arguments
    )


def tell(text: str) -> None:
    """A line that is a result, on standard output."""
    write(visible(text) + "\n")


def note(text: str) -> None:
    """A line beside the results, on standard error; if nobody reads it any more, work goes on without."""
    try:
        print(visible(text), file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


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


def _prepared(stream: TextIO | None) -> TextIO:
    if stream is None:  # closed by whoever started the process
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


def _written_out(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
