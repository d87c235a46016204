"""The bytes of a file: unpacked, from a pipe too, and never more of them than the memory there is can take.

A table takes several times its size while it is parsed, so that its bytes may be `SHARE` of the memory that is free.
They are counted as they come: what a file says about its own size is not relied on.
"""

from __future__ import annotations

import io
import os
import select
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa

from vgae import memory
from vgae.errors import InputError

COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
SHARE = 0.25  # of the free memory, for the bytes of a file
CHUNK = 2**24
WAIT_SECONDS = 5.0  # for somebody to write to a pipe
POLL_MILLISECONDS = 20
LFS_POINTER = b"version https://git-lfs.github.com/"


def suffix_of(path: Path) -> str:
    """The ending that tells the kind of a file, a compression aside."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in COMPRESSED:
        endings.pop()
    return endings[-1] if endings else ""


def is_stream(path: Path) -> bool:
    """Whether this is no file with a name of its own, but a pipe, or standard input under its name in /dev."""
    if path.is_relative_to("/dev") or path.is_relative_to("/proc"):
        return True
    try:
        return stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def is_folder(path: Path) -> bool:
    """Whether this is a folder; no name is an error."""
    return os.path.isdir(path)  # noqa: PTH112 - which is no error for any name


@contextmanager
def readable(path: Path, otherwise: str) -> Iterator[None]:
    """What keeps a file from being read, in a sentence."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except IsADirectoryError:
        raise InputError(f"{path}: this is a directory, not a file.") from None
    except PermissionError:
        raise InputError(f"{path}: this file may not be read; check its permissions.") from None
    except MemoryError:
        raise InputError(not_enough_memory(path)) from None
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: {otherwise} ({first_line(error)}).") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r}: this cannot be the name of a file ({first_line(error)}).") from None


@contextmanager
def enough_memory(name: object) -> Iterator[None]:
    """What runs out of memory, in a sentence that names the file."""
    try:
        yield
    except MemoryError:
        raise InputError(not_enough_memory(name)) from None


def not_enough_memory(name: object) -> str:
    """The sentence about a file that turned out to be too large."""
    return f"{name}: there is not enough memory to read it; use a machine with more, or leave rows or columns out."


def require_room(path: Path, needed: float, free: float) -> None:
    """Refuse what takes more memory than is free."""
    if needed > free:
        raise InputError(
            f"{path}: reading it takes at least {needed / 1e9:.3g} GB of memory, and {free / 1e9:.3g} GB are free; "
            "use a machine with more, or leave rows or columns out."
        )


def unpacked(path: Path) -> bytes:
    """The bytes of a file, unpacked; more than the memory can take are refused."""
    kind = COMPRESSED.get(path.suffix.lower())
    with readable(path, "it cannot be unpacked"), _open(path) as file:
        free = memory.bytes_free()
        about = os.fstat(file.fileno())
        if stat.S_ISREG(about.st_mode):
            refuse_pointer(path, file)
            if kind is None:
                require_room(path, about.st_size / SHARE, free)
            content = file.read() if kind is None else _gathered(path, _unpacked_chunks(file, kind), free)
        else:
            content = _gathered(path, _chunks_of_stream(path, file.fileno()), free)
            if kind is not None:
                content = _gathered(path, _unpacked_chunks(io.BytesIO(content), kind), free)
    return content


def refuse_pointer(path: Path, file: BinaryIO) -> None:
    """Refuse a file that was never fetched by Git LFS, and only says where it is."""
    start = file.read(len(LFS_POINTER))
    file.seek(0)
    if start == LFS_POINTER:
        raise InputError(f"{path}: this is a pointer of Git LFS, not the file itself; fetch it with git lfs pull.")


def _open(path: Path) -> BinaryIO:
    """A file or pipe to read from, opened without waiting for anybody to write to it."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError
        if stat.S_ISBLK(mode) or (stat.S_ISCHR(mode) and not os.isatty(handle)):
            raise InputError(f"{path}: this is a device, not a file.")
        return os.fdopen(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def _gathered(path: Path, chunks: Iterator[bytes], free: float) -> bytes:
    """All chunks in one, as long as they leave room for what is made of them."""
    found, size = [], 0
    for chunk in chunks:
        found.append(chunk)
        size += len(chunk)
        require_room(path, size / SHARE, free)
    return b"".join(found)


def _unpacked_chunks(file: BinaryIO, kind: str) -> Iterator[bytes]:
    with pa.CompressedInputStream(file, kind) as stream:
        while chunk := stream.read(CHUNK):
            yield chunk


def _chunks_of_stream(path: Path, handle: int) -> Iterator[bytes]:
    """What comes out of a pipe or a terminal; a pipe that nobody opens for writing is not waited for without end."""
    deadline = time.monotonic() + WAIT_SECONDS
    poll = select.poll()
    poll.register(handle, select.POLLIN)
    while True:
        try:
            chunk = os.read(handle, CHUNK)
        except BlockingIOError:  # somebody will write
            break
        if chunk:
            yield chunk
            break
        if any(events & select.POLLHUP for _, events in poll.poll(POLL_MILLISECONDS)):  # the writer is done already
            break
        if time.monotonic() > deadline:
            raise InputError(f"{path}: nobody writes to this pipe; start what writes to it first.")
    os.set_blocking(handle, True)
    while chunk := os.read(handle, CHUNK):
        yield chunk


def first_line(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__
