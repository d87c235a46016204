"""Files that appear under their names only once they are complete, so that nobody meets half of one.

A file is written under a temporary name, flushed to the disk, and renamed. A rename lasts once its folder has been
flushed too (`sync_folder`); until then a power cut may leave the old file, but never an empty one.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
CANNOT_FLUSH = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # file systems that know nothing of flushing


@contextmanager
def atomic_write(path: Path, *, durable: bool = False, follow_links: bool = True) -> Iterator[BinaryIO]:
    """A binary file that appears under its name only once it is complete; if durable, its name outlasts a power cut.

    A file that is replaced passes its permissions on, and its owner where that is allowed. A link stays, and its target
    is replaced; without `follow_links`, for folders that are vgae's own, the link itself. Devices, FIFOs and
    descriptors such as /dev/stdout are written to, not replaced.
    """
    descriptor = _descriptor(path)
    if descriptor is not None or (follow_links and _is_stream(path)):
        with _written_through(path, descriptor) as file:
            yield file
        return
    target = Path(os.path.realpath(path)) if follow_links else path
    target.parent.mkdir(parents=True, exist_ok=True)
    before = _status(target)
    temporary = target.with_name(f".{target.name[:50]}.{secrets.token_hex(4)}")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    handle = os.open(temporary, flags, 0o666 if before is None else 0o600)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            _flush(file.fileno())
            if before is not None:
                _pass_on(before, temporary)
        temporary.replace(target)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    if durable:
        sync_folder(target.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder outlast a power cut, where the system lets a folder be opened for that."""
    if os.name != "posix":
        return
    try:
        handle = os.open(folder, os.O_RDONLY)
    except PermissionError:  # a folder that may be written but not listed
        return
    try:
        _flush(handle)
    finally:
        os.close(handle)


def make_folder(folder: Path) -> list[Path]:
    """Make a folder and those above it, to last; those that were not there before, the innermost first."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    for path in reversed(missing):
        sync_folder(path.parent)
    return missing


def _descriptor(path: Path) -> int | None:
    """The number of the open descriptor that a path such as /dev/stdout stands for."""
    if os.name != "posix":
        return None
    text = os.path.abspath(path)  # noqa: PTH100 - without following links, which is what resolve would do
    found = DESCRIPTOR.fullmatch(text)
    return int(found[1]) if found else STANDARD.get(text)


def _is_stream(path: Path) -> bool:
    """Whether there is something under that name that is written to in place: a device, a FIFO, a socket."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


@contextmanager
def _written_through(path: Path, descriptor: int | None) -> Iterator[BinaryIO]:
    """A temporary file, whose content goes to the stream when it is complete: half of it never does."""
    with tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        if descriptor is not None:
            sys.stdout.flush()
        handle = os.open(path, os.O_WRONLY) if descriptor is None else os.dup(descriptor)
        with os.fdopen(handle, "wb") as stream:
            shutil.copyfileobj(file, stream)


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except FileNotFoundError:
        return None


def _pass_on(before: os.stat_result, path: Path) -> None:
    """Give a file the owner and permissions of the one that it replaces."""
    if not stat.S_ISREG(before.st_mode):
        return
    if os.name == "posix" and (before.st_uid, before.st_gid) != (os.getuid(), os.getgid()):
        with suppress(PermissionError):
            os.chown(path, before.st_uid, before.st_gid)
    path.chmod(stat.S_IMODE(before.st_mode))


def _flush(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in CANNOT_FLUSH:
            raise
