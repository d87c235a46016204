"""Plain files, read: what is in a folder may come from a stranger.

Only plain files are opened, because a FIFO would wait forever and a device has no end, and only up to a size that the
reader names.
"""

from __future__ import annotations

import io
import os
import stat
from pathlib import Path
from typing import Any, BinaryIO

from vgae.errors import InputError
from vgae.words import shown


def as_path(given: Any, what: str = "path") -> Path:
    """The name of a file or folder as a path."""
    try:
        return Path(given)
    except TypeError:
        raise InputError(f"{what}: the name of a file or folder is needed, got {shown(given)}.") from None


def open_plain(path: Path, *, follow_links: bool = False) -> io.BufferedReader:
    """A file that is plain, opened for reading; anything else (a link, FIFO, device, folder) is refused unopened."""
    found = path.stat() if follow_links else path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: this is a {_kind(found.st_mode)}, not a plain file.")
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    file = os.fdopen(os.open(path, flags), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):  # replaced between the two calls
        file.close()
        raise InputError(f"{path}: not a plain file; it was replaced while it was opened.")
    return file


def read_open(file: BinaryIO, path: Path, at_most: float) -> bytes:
    """The content of an open file, if it is no larger than that."""
    size = os.fstat(file.fileno()).st_size
    if size > at_most:
        raise InputError(f"{path}: its {size:,} bytes are more than can be needed; it is damaged or was replaced.")
    return file.read(size)


def read_plain(path: Path, at_most: float) -> bytes:
    """The content of a plain file that is no larger than that."""
    with open_plain(path) as file:
        return read_open(file, path, at_most)


def _kind(mode: int) -> str:
    return "directory" if stat.S_ISDIR(mode) else "link" if stat.S_ISLNK(mode) else "device or pipe"
