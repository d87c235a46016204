"""Bytes in and out of files, so that neither a reader nor a power cut meets half of one.

Writing: a file is written under a temporary name, flushed to the disk, and renamed. A rename lasts once its folder has
been flushed too (`sync_folder`); until then a power cut may leave the old file, but never an empty one.

Reading: what is in a folder may come from a stranger. Only plain files are opened, because a FIFO would wait forever
and a device has no end, and only up to a size that the reader names.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from vgae.errors import InputError
from vgae.graph.pairs import shown
from vgae.memory import bytes_free

STANDARD = {"/dev/stdout": 1, "/dev/stderr": 2}
DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
CANNOT_FLUSH = (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP)  # file systems that know nothing of flushing
LONGEST_JSON = 2**28  # bytes
JSON_MEMORY = 8  # bytes of memory that a byte of JSON may take as Python objects


def as_path(given: Any, what: str = "path") -> Path:
    """The name of a file or folder as a path."""
    try:
        return Path(given)
    except TypeError:
        raise InputError(f"{what}: the name of a file or folder is needed, got {shown(given)}.") from None


# -------------------------------------------------------------------------------------------------------------- writing


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


def write_json(path: Path, content: Any, *, durable: bool = False, follow_links: bool = True) -> None:
    """A value as indented JSON; numbers that JSON does not know (NaN, infinity) become null."""
    text = json.dumps(finite(content), indent=2, ensure_ascii=False, allow_nan=False)
    with atomic_write(path, durable=durable, follow_links=follow_links) as file:
        file.write(text.encode() + b"\n")


def finite(value: Any) -> Any:
    """A value with null in place of the numbers that JSON does not have, NaN and the infinities."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [finite(item) for item in value]
    return value


def json_line(content: Any) -> bytes:
    """A value as a line of JSON, by the same rule."""
    return json.dumps(finite(content), allow_nan=False).encode() + b"\n"


def hash_json(content: object) -> str:
    """SHA-256 of a value as JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(finite(content), sort_keys=True, allow_nan=False).encode()).hexdigest()


# -------------------------------------------------------------------------------------------------------------- reading


def open_plain(path: Path, *, follow_links: bool = False) -> io.BufferedReader:
    """A file that is plain, opened for reading; anything else (a link, FIFO, device, folder) is refused unopened."""
    found = path.stat() if follow_links else path.lstat()
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"{path}: not a plain file; links, folders, pipes and devices are not read here.")
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


def json_limit() -> float:
    """The size up to which a file of JSON is read: a number of bytes that follows the memory there is."""
    return min(LONGEST_JSON, bytes_free() / JSON_MEMORY)


def read_json(path: Path, *, follow_links: bool = True) -> dict[str, Any]:
    """A JSON object."""
    try:
        with open_plain(path, follow_links=follow_links) as file:
            return parse_json(read_open(file, path, json_limit()), path)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{path}: not readable as JSON ({error.strerror}).") from None


def parse_json(data: bytes, path: Path) -> dict[str, Any]:
    """A JSON object out of the bytes of a file; NaN and infinity, which JSON does not know, are refused."""
    try:
        content = json.loads(data, parse_constant=_refuse_constant, parse_float=_finite_number)
    except (MemoryError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: not readable as JSON ({error}).") from None
    if not isinstance(content, dict):
        raise InputError(f"{path}: expected a JSON object.")
    return content


# ----------------------------------------------------------------------------------------------------------- one by one


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


def _finite_number(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text[:30]} is beyond the largest number")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")
