"""One writer at a time: a lock that the operating system holds, so that it ends with its process."""

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vgae.errors import InputError

if sys.platform == "win32":
    import msvcrt

    def _try_lock(handle: int) -> None:
        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _try_lock(handle: int) -> None:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


TAKEN = (BlockingIOError, PermissionError)  # POSIX says the first, Windows the second


@contextmanager
def locked(path: Path, refusal: str) -> Iterator[None]:
    """Hold the lock of that file, which is gone afterwards; whoever comes second gets the refusal.

    The file is empty. One that holds something is not a lock of ours: it is refused, and stays.
    """
    handle = _acquire(path, refusal)
    try:
        yield
    finally:
        if sys.platform == "win32":  # where an open file cannot be removed
            os.close(handle)
        if sys.platform == "win32" or _is_at(handle, path):
            with suppress(OSError):
                path.unlink()
        if sys.platform != "win32":  # held to the end, so that nobody else locks a file that is about to be removed
            os.close(handle)


def _acquire(path: Path, refusal: str) -> int:
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    while True:
        try:
            handle = os.open(path, flags, 0o644)
        except FileNotFoundError:  # its last holder removed the folder
            path.parent.mkdir(parents=True, exist_ok=True)
            continue
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode) or found.st_size:
            os.close(handle)
            raise InputError(f"{path}: not a lock of vgae, which would be an empty file; choose another folder.")
        try:
            _try_lock(handle)
        except TAKEN:
            os.close(handle)
            raise InputError(refusal) from None
        except OSError:
            return handle  # a file system without locks: better unguarded than not at all
        if _is_at(handle, path):
            return handle
        os.close(handle)  # its last holder removed it between our opening and our locking


def _is_at(handle: int, path: Path) -> bool:
    """Whether the open file is the one that has the name."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
