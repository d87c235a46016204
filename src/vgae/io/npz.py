"""npz files from anybody: an array is unpacked only once it is known what it is and that there is room for it.

An npz is a zip archive of npy members. Which members there may be, and of which type and dimension, the caller says;
everything else is refused by its name before anything of it is unpacked. Both the archive and the header of a member
say how large the array is: the two have to agree with each other, with what so many packed bytes can hold at most, and
with the memory that is free. What is then unpacked is bounded by that size and ends in the archive's checksum. No
object, and so no pickle, is ever read.
"""

import ast
import io
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any, BinaryIO, TypeVar

import numpy as np

from vgae.errors import InputError
from vgae.graph.pairs import AnyArray
from vgae.io.atomic import atomic_write
from vgae.io.plain import as_path, open_plain
from vgae.memory import bytes_free
from vgae.words import shown

Read = TypeVar("Read")

SUFFIX = ".npy"
MAGIC = b"\x93NUMPY"
HEADER_LENGTH = {1: "<H", 2: "<I"}  # how the versions of npy write the length of the header
MAX_HEADER = 10_000
PLAIN_TYPE = re.compile(r"[<>=|]([biufcSUVMm])[0-9]*(\[.*\])?")
END, END_MARK = struct.Struct("<4s4H2LH"), b"PK\x05\x06"  # how a zip archive ends, but for a comment
DEFLATE_RATIO = 1032  # one packed byte never holds more than so many
CHUNK = 2**20
UNREADABLE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)


@dataclass(frozen=True)
class Expected:
    """What an array has to be: NumPy's letters for its kind of type, its dimensions, and that in words."""

    kinds: str
    ndim: tuple[int, ...]
    words: str
    required: bool = False


def read_npz(
    path: str | Path, known: Mapping[str, Expected], *, content: bytes | None = None, only: bool = True
) -> dict[str, AnyArray]:
    """The arrays of an npz, each as `known` expects it; `content` is what it holds, if that has been read already.

    Arrays that are not known are refused, or, where there may be others (`only` is false), left as they are, unread.
    """
    with _open(as_path(path)) if content is None else io.BytesIO(content) as file:
        return _read(file, known, str(path), only=only)


def read_rows(path: str | Path, known: Mapping[str, Expected], rows: Mapping[str, range]) -> dict[str, AnyArray]:
    """Some rows of arrays of an npz, all of those that no rows are given for; others are left unread.

    No more than these rows are ever in memory. An array that is stored by columns has no rows to read.
    """
    with _open(as_path(path)) as file:
        return _read(file, known, str(path), only=False, rows=rows)


def shape_in(path: str | Path, name: str, expected: Expected) -> tuple[int, ...] | None:
    """The shape of an array of an npz, of which nothing else is read; None where it is stored by columns."""
    with _open(as_path(path)) as file:
        return _unpacked(file, str(path), lambda archive: _shape(archive, name, expected, str(path)))


def names_in(path: str | Path) -> tuple[str, ...]:
    """The names of the arrays in an npz, none of which is read."""
    try:
        with _open(as_path(path)) as file, zipfile.ZipFile(file) as archive:
            return tuple(member.filename.removesuffix(SUFFIX) for member in archive.infolist())
    except InputError:
        raise
    except UNREADABLE:
        raise InputError(f"{path}: the file is damaged or not an npz file.") from None


def _open(path: Path) -> BinaryIO:
    """An existing plain file, open for reading."""
    try:
        return open_plain(path, follow_links=True)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise InputError(f"{path}: the file cannot be read ({error.strerror}).") from None
    except ValueError as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{shown(str(path))}: no file can have this name.") from None


def write_npz(path: Path, **arrays: Any) -> None:
    """Arrays as a compressed npz without pickles."""
    content: dict[str, Any] = {name: np.asarray(array) for name, array in arrays.items()}
    for name, array in content.items():
        if array.dtype.hasobject:
            raise TypeError(f"{name} holds objects, which only a pickle could store")
    with atomic_write(path) as file:
        np.savez_compressed(file, **content)


def _read(
    file: BinaryIO, known: Mapping[str, Expected], where: str, *, only: bool, rows: Mapping[str, range] | None = None
) -> dict[str, AnyArray]:
    def read(archive: zipfile.ZipFile) -> dict[str, AnyArray]:
        _require_whole(archive)
        found: dict[str, AnyArray] = {}
        free = bytes_free() / 2  # what is read is copied when it becomes a graph
        for key, member in _members(archive, known, where, only=only).items():
            found[key] = _array(archive, member, key, known[key], free, where, (rows or {}).get(key))
            free -= found[key].nbytes
        return found

    return _unpacked(file, where, read)


def _unpacked(file: BinaryIO, where: str, read: Callable[[zipfile.ZipFile], Read]) -> Read:
    """What is read of an archive, or an error that names it."""
    try:
        with zipfile.ZipFile(file) as archive:
            return read(archive)
    except InputError:
        raise
    except MemoryError:
        raise InputError(f"{where}: its arrays are too large for the memory that is free.") from None
    except UNREADABLE:
        raise InputError(f"{where}: the file is damaged or not an npz file.") from None


def _require_whole(archive: zipfile.ZipFile) -> None:
    """As many members as the end of the archive says; zipfile itself does not count, and damage may hide one."""
    if archive.fp is None:
        raise ValueError("closed")
    archive.fp.seek(-END.size - len(archive.comment), os.SEEK_END)
    mark, *_, count, _size, _offset, _length = END.unpack(archive.fp.read(END.size))
    if mark != END_MARK or count != len(archive.infolist()):
        raise ValueError("members are missing")


def _members(
    archive: zipfile.ZipFile, known: Mapping[str, Expected], where: str, *, only: bool
) -> dict[str, zipfile.ZipInfo]:
    """The members by the names of their arrays, none of them twice there or missing, nor unknown if `only` is true."""
    members = archive.infolist()
    if not only:
        members = [member for member in members if member.filename.removesuffix(SUFFIX) in known]
    names = [member.filename.removesuffix(SUFFIX) for member in members]
    missing = [key for key, expected in known.items() if expected.required and key not in names]
    if missing:
        holds = ", ".join(map(shown, names[:10])) or "nothing"
        raise InputError(f"{where}: there is no array called {missing[0]} in it; it holds {holds}.")
    for member, key in zip(members, names, strict=True):
        if key not in known or member.filename != key + SUFFIX:
            raise InputError(f"{where}: it holds {shown(key)}, but only {', '.join(known)} are known; leave it out.")
    if len(set(names)) < len(names):
        twice = next(key for key in names if names.count(key) > 1)
        raise InputError(f"{where}: the array {twice} is there twice; the file is damaged or was edited.")
    return dict(zip(names, members, strict=True))


def _shape(archive: zipfile.ZipFile, key: str, expected: Expected, where: str) -> tuple[int, ...] | None:
    with archive.open(key + SUFFIX) as stream:
        header, _ = _header(stream)
    _dtype(header["descr"], header["shape"], key, expected, where)
    shape: tuple[int, ...] = header["shape"]
    return None if header["fortran_order"] and len(shape) > 1 else shape


def _array(
    archive: zipfile.ZipFile,
    member: zipfile.ZipInfo,
    key: str,
    expected: Expected,
    free: float,
    where: str,
    rows: range | None,
) -> AnyArray:
    if member.flag_bits & 1:
        raise InputError(f"{where}: the array {key} is encrypted, which is not read.")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise InputError(f"{where}: the array {key} is packed in a way that is not read; use numpy.savez_compressed.")
    with archive.open(member) as stream:
        header, length = _header(stream)
        descr, shape, by_column = header["descr"], header["shape"], header["fortran_order"]
        dtype = _dtype(descr, shape, key, expected, where)
        kept = shape if rows is None else (len(rows), *shape[1:])
        size = prod(max(1, extent) for extent in kept) * dtype.itemsize
        stored = member.compress_type == zipfile.ZIP_STORED
        most = member.compress_size if stored else DEFLATE_RATIO * member.compress_size
        if size > free:
            raise InputError(f"{where}: the array {key} takes {size:,} bytes, more than the memory that is free.")
        told = length + prod(shape) * dtype.itemsize
        if dtype.itemsize == 0 or told != member.file_size or told > most or (stored and told != most):
            raise ValueError("header, archive and packed size do not agree")
        flat = np.empty(prod(kept), dtype)
        first = 0 if rows is None else rows.start * prod(shape[1:]) * dtype.itemsize
        _fill(flat.view(np.uint8), stream, first, told - length)
    return flat.reshape(shape[::-1]).T if by_column and rows is None else flat.reshape(kept)


def _header(stream: IO[bytes]) -> tuple[dict[str, Any], int]:
    """The header of an npy member and how many bytes it takes; anything that NumPy would not write is a ValueError."""
    magic = stream.read(len(MAGIC) + 2)
    if magic[: len(MAGIC)] != MAGIC or magic[-1] != 0:
        raise ValueError("not an array")
    form = HEADER_LENGTH[magic[-2]]
    (length,) = struct.unpack(form, stream.read(struct.calcsize(form)))
    if length > MAX_HEADER:
        raise ValueError("a header that long describes no plain array")
    try:
        header = ast.literal_eval(stream.read(length).decode("latin1").strip())
    except MemoryError:  # the parser's, about nesting
        raise ValueError("not the header of an array") from None
    if set(header) != {"descr", "fortran_order", "shape"} or not isinstance(header["shape"], tuple):
        raise ValueError("not the header of an array")
    if not all(type(extent) is int and extent >= 0 for extent in header["shape"]):
        raise ValueError("not the shape of an array")
    return header, len(magic) + struct.calcsize(form) + length


def _dtype(descr: Any, shape: tuple[int, ...], key: str, expected: Expected, where: str) -> np.dtype[Any]:
    """The type of an array if it is one of those expected."""
    if isinstance(descr, str) and descr.lstrip("<>=|").startswith("O"):
        raise InputError(f"{where}: the array {key} holds Python objects, which are not read; store text or numbers.")
    plain = PLAIN_TYPE.fullmatch(descr) if isinstance(descr, str) else None
    if plain is None or plain[1] not in expected.kinds or len(shape) not in expected.ndim:
        found = np.dtype(descr) if plain else "something else"
        raise InputError(f"{where}: {key} should be {expected.words}, but is {found} of the shape {shown(shape)}.")
    dtype: np.dtype[Any] = np.dtype(descr)
    return dtype


def _fill(memory: AnyArray, stream: IO[bytes], first: int, total: int) -> None:
    """The bytes from the first on that there is room for, of a stream of as many as told.

    The end of the stream is where the checksum is compared, so that all of it is read.
    """
    place = 0
    while chunk := stream.read(CHUNK):
        end = place + len(chunk)
        if end > total:
            raise ValueError("more than the header says")
        low, high = max(place, first), min(end, first + len(memory))
        if low < high:
            memory[low - first : high - first] = np.frombuffer(chunk, np.uint8)[low - place : high - place]
        place = end
    if place < total:
        raise EOFError("less than the header says")
