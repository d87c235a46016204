"""Text from strangers, made harmless: what a terminal would obey is written out.

Ids, labels, file names and names of columns come from strangers. An escape sequence in one of them would colour, move
or rename things on the terminal, a line break would forge a line, and a mark that reverses the direction of writing
would show another id than the one that is meant. ESC therefore becomes \\x1b wherever people read it: in messages
(`errors.py`) and on the screen (`screen.py`).
"""

import re

UNSAFE = re.compile(
    "["
    "\x00-\x1f\x7f-\x9f"  # control characters: C0, DEL and C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # what changes the direction of writing
    "\u2028\u2029"  # separators of lines and paragraphs
    "\ud800-\udfff"  # halves of a character, as Python keeps bytes of a file name that are not UTF-8
    "]"
)
SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: str) -> str:
    """The text with every character that a terminal would obey, and every half of one, written out."""
    return UNSAFE.sub(_written_out, text)


def _written_out(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return SHORT.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")
