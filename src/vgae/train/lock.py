"""One writer at a time: a lock that the operating system holds, so that it dies with its process."""

import os
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
    """Hold the lock of that file, which is gone afterwards; whoever comes second gets the refusal."""
    handle = _acquire(path, refusal)
    try:
        yield
    finally:
        if sys.platform == "win32":  # where an open file cannot go
            os.close(handle)
        with suppress(OSError):
            path.unlink()
        if sys.platform != "win32":  # held to the end, so that nobody else locks a file that is about to go
            os.close(handle)


def _acquire(path: Path, refusal: str) -> int:
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
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
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False
