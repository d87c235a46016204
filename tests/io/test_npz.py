"""npz files from anybody: either the arrays that were written come out, or one sentence."""

import bz2
import gc
import lzma
import os
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from helpers import message_of
from vgae.errors import InputError
from vgae.graph.graph import Graph
from vgae.io import npz
from vgae.io.graphs import GRAPH_ARRAYS, read_npz_graph, write_graph
from vgae.io.npz import Expected, read_npz, write_npz

EDGES = np.array([[0, 1], [1, 2], [0, 2]])
ANY = Expected("biufcSU", (0, 1, 2, 3), "anything")
KNOWN = dict.fromkeys("abcde", ANY)
DAMAGED = "the file is damaged or not an npz file"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "arrays.npz"


def member(array: Any, **header: Any) -> bytes:
    """An npy file, with parts of its header replaced."""
    array = np.asarray(array)
    data: bytes = array.tobytes()
    told = {"descr": array.dtype.str, "fortran_order": False, "shape": array.shape} | header
    text = (repr(told) + "\n").encode("latin1")
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def write_zip(path: Path, compression: int = zipfile.ZIP_STORED, /, **members: bytes) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)


# ----------------------------------------------------------------------------------------------------- what is read


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_arrays_come_back_as_they_were(path: Path, save: Callable[..., None]) -> None:
    arrays = {
        "a": np.arange(6).reshape(2, 3),
        "b": np.array(["x", "yz"]),
        "c": np.array(2.5),
        "d": np.empty((0, 2), dtype=">i4"),
        "e": np.asfortranarray(np.arange(24, dtype=np.float32).reshape(2, 3, 4)),
    }
    save(path, **arrays)
    for found in (read_npz(path, KNOWN), read_npz("elsewhere", KNOWN, content=path.read_bytes())):
        assert found.keys() == arrays.keys()
        for name, array in arrays.items():
            assert found[name].dtype == array.dtype
            assert_array_equal(found[name], array, strict=True)


def test_both_versions_of_the_header_are_read(path: Path) -> None:
    plain = member(np.arange(3))
    length = struct.unpack("<H", plain[8:10])[0]
    write_zip(path, a=plain, b=b"\x93NUMPY\x02\x00" + struct.pack("<I", length) + plain[10:])
    for found in read_npz(path, KNOWN).values():
        assert_array_equal(found, np.arange(3))


# -------------------------------------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "content",
    [b"", b"source,target\n", b"PK\x03\x04rest", b"\0" * 99, b"PK\x05\x06" + b"\xff" * 18],
    ids=["empty", "csv", "broken zip", "zeros", "only an end"],
)
def test_a_file_that_is_no_npz_is_named_and_not_left_open(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert message_of(lambda: read_npz(path, KNOWN)) == f"{path}: {DAMAGED}."
        gc.collect()
    assert caught == []


def test_a_single_array_in_place_of_an_npz_is_named(path: Path) -> None:
    path.write_bytes(member(EDGES))
    assert message_of(lambda: read_npz(path, KNOWN)) == f"{path}: {DAMAGED}."


def test_what_is_no_plain_file_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    for name, words in (
        (tmp_path, "this is a directory, not a plain file"),
        (tmp_path / "fifo", "this is a device or pipe, not a plain file"),
        ("/dev/zero", "this is a device or pipe, not a plain file"),
        (tmp_path / "loop", "the file cannot be read (Too many levels of symbolic links)"),
        (tmp_path / "absent", "there is no such file"),
    ):
        assert message_of(lambda name=name: read_npz(name, KNOWN)) == f"{name}: {words}."  # type: ignore[misc]
    assert "no file can have this name" in message_of(lambda: read_npz(f"{tmp_path}/a\0b", KNOWN))


class MakesFolder:
    """Unpickled, it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.folder),)


@pytest.mark.parametrize("name", ["node_ids", "labels", "edges"])
def test_a_pickle_is_refused_and_not_executed(path: Path, name: str) -> None:
    marker = path.parent / "marker"
    arrays: dict[str, Any] = {"edges": EDGES, name: np.array([MakesFolder(marker)], dtype=object)}
    np.savez(path, **arrays)
    assert message_of(lambda: read_npz_graph(path)) == (
        f"{path}: the array {name} holds Python objects, which are not read; store text or numbers."
    )
    assert not marker.exists()
    with np.load(path, allow_pickle=True) as archive:  # the pickle does what it is here for
        _ = archive[name]
    assert marker.exists()


HEADERS: dict[str, tuple[bytes, str]] = {
    "text": (b"these are no arrays", DAMAGED),
    "nothing": (b"", DAMAGED),
    "an unknown version": (b"\x93NUMPY\x09\x00" + member(EDGES)[8:], DAMAGED),
    "version 3, for names of fields": (b"\x93NUMPY\x03\x00" + member(EDGES)[8:], DAMAGED),
    "a shape too large": (member(EDGES, shape=(10**18, 2)), "takes 16,000,000,000,000,000,000 bytes, more than"),
    "a shape a bit too large": (member(EDGES, shape=(4, 2)), DAMAGED),
    "a shape too small": (member(EDGES, shape=(2, 2)), DAMAGED),
    "a huge shape of nothing": (member(np.empty(0), shape=(10**18, 0)), "more than the memory that is free"),
    "text of no width": (member(np.empty(0), descr="<U0", shape=(10**12,)), DAMAGED),
    "a negative shape": (member(EDGES, shape=(-3, -2)), DAMAGED),
    "a shape of floats": (member(EDGES, shape=(3.0, 2)), DAMAGED),
    "a shape of booleans": (member(EDGES, shape=(True, True)), DAMAGED),
    "a number for a shape": (member(EDGES, shape=6), DAMAGED),
    "a shape of many digits": (member(EDGES, shape=()).replace(b"()", b"(" + b"9" * 5000 + b",)"), DAMAGED),
    "too many dimensions": (member(EDGES, shape=(1,) * 40), "a should be anything, but is int64 of the shape"),
    "fields": (member(EDGES, descr=[("x", "<i8"), ("y", "<i8")]), "a should be anything, but is something else"),
    "objects": (member(EDGES, descr="|O"), "holds Python objects"),
    "dates": (member(EDGES, descr="<M8[D]"), "a should be anything, but is datetime64[D]"),
    "an unknown type": (member(EDGES, descr="<q7"), "a should be anything, but is something else"),
    "an impossible width": (member(EDGES, descr="<i99"), DAMAGED),
    "an enormous width": (member(EDGES, descr="<U99999999999"), DAMAGED),
    "a key more": (member(EDGES, more=1), DAMAGED),
    "a call": (member(EDGES).replace(b"False", b"f()  "), DAMAGED),
    "a set": (b"\x93NUMPY\x01\x00\x22\x00{'descr','fortran_order','shape'}  ", DAMAGED),
    "deep brackets": (b"\x93NUMPY\x01\x00\x00\x20" + b"[" * 2**13, DAMAGED),
    "many signs": (b"\x93NUMPY\x01\x00\x00\x20" + b"-" * 2**13, DAMAGED),
    "a header of 1 MB": (b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**20) + b" " * 2**20, DAMAGED),
    "a header of 4 GB": (b"\x93NUMPY\x02\x00" + b"\xff" * 4, DAMAGED),
}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize("what", HEADERS)
def test_a_member_that_is_no_plain_array_is_refused(path: Path, what: str, compression: int) -> None:
    content, words = HEADERS[what]
    write_zip(path, compression, a=content)
    message = message_of(lambda: read_npz(path, KNOWN))
    assert message.startswith(f"{path}: ")
    assert words in message
    assert len(message) < 300 + len(str(path))


@pytest.mark.parametrize("name", ["more", "a", "a.npy.npy", "../a", "/a", "a/", "A", "ä", "x" * 60_000, "a\nb"])
def test_a_member_that_is_not_known_is_refused_unread(path: Path, name: str) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("b.npy", member(EDGES))
        archive.writestr(name, b"whatever this is")
    message = message_of(lambda: read_npz(path, KNOWN))
    assert message.startswith(f"{path}: it holds ")
    assert "\n" not in message
    assert len(message) < 200 + len(str(path))


def test_a_member_that_is_there_twice_is_refused(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        archive.writestr("a.npy", member(EDGES))
        archive.writestr("a.npy", member(EDGES))
    assert "the array a is there twice" in message_of(lambda: read_npz(path, KNOWN))


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused_whole_or_corrupt(path: Path, compression: int) -> None:
    content = member(np.arange(1000))
    write_zip(path, compression, a=content)
    intact = path.read_bytes()
    packed = bz2.compress(content) if compression == zipfile.ZIP_BZIP2 else lzma.compress(content)
    for damaged in (intact, intact.replace(packed[20:40], b"\0" * 20), intact[:60] + b"\xff" * 20 + intact[80:]):
        path.write_bytes(damaged)
        assert "packed in a way that is not read" in message_of(lambda: read_npz(path, KNOWN))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda info: setattr(info, "flag_bits", info.flag_bits | 1), "the array a is encrypted"),
        (lambda info: setattr(info, "compress_type", 99), "packed in a way that is not read"),
        (lambda info: setattr(info, "file_size", 2**31), DAMAGED),
        (lambda info: setattr(info, "file_size", 5), DAMAGED),
        (lambda info: setattr(info, "compress_size", 2**31), DAMAGED),
        (lambda info: setattr(info, "compress_size", 20), DAMAGED),
        (lambda info: setattr(info, "CRC", info.CRC ^ 1), DAMAGED),
        (lambda info: setattr(info, "header_offset", 7), DAMAGED),
        (lambda info: setattr(info, "header_offset", 2**31), DAMAGED),
    ],
)
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_directory_that_lies_is_noticed(
    path: Path, compression: int, change: Callable[[zipfile.ZipInfo], None], words: str
) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("a.npy", member(np.arange(1000)))
        change(archive.infolist()[0])  # the directory is written when the archive is closed
    assert words in message_of(lambda: read_npz(path, KNOWN))


def test_members_that_overlap_hold_no_more_than_they_say(path: Path) -> None:
    """The same packed bytes under five names, as bombs are built."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", member(np.zeros(10_000)))
        for name in "bcde":
            info = zipfile.ZipInfo(f"{name}.npy")
            for part in ("compress_type", "CRC", "compress_size", "file_size", "header_offset"):
                setattr(info, part, getattr(archive.infolist()[0], part))
            archive.filelist.append(info)
    assert message_of(lambda: read_npz(path, KNOWN)) == f"{path}: {DAMAGED}."


def test_memory_is_the_bound_and_is_looked_at_before_anything_is_unpacked(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_npz(path, edges=np.zeros((50_000, 2), dtype=np.int64), weights=np.zeros(100_000))
    for free, too_large in ((1_500_000.0, "edges"), (2_000_000.0, "weights")):
        monkeypatch.setattr(npz, "bytes_free", lambda free=free: free)
        assert message_of(lambda: read_npz_graph(path)) == (
            f"{path}: the array {too_large} takes 800,000 bytes, more than the memory that is free."
        )
    monkeypatch.setattr(npz, "bytes_free", lambda: 1_500_000.0)
    monkeypatch.setattr(npz, "_fill", lambda *_: pytest.fail("something was unpacked"))
    assert "the array edges takes" in message_of(lambda: read_npz_graph(path))


def test_an_unknown_member_of_any_size_costs_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.savez_compressed(path, edges=EDGES, bomb=np.zeros(10_000_000, dtype=np.int8))
    assert path.stat().st_size < 20_000
    monkeypatch.setattr(zipfile.ZipFile, "open", lambda *_: pytest.fail("something was unpacked"))
    assert message_of(lambda: read_npz_graph(path)).startswith(f"{path}: it holds 'bomb', but only edges, ")


# ------------------------------------------------------------------------------------- every cut, every flipped byte


@pytest.fixture(params=[np.savez, np.savez_compressed], ids=["stored", "packed"])
def graph_file(request: pytest.FixtureRequest, path: Path) -> tuple[Graph, Path]:
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    graph = Graph.from_edges(edges, node_ids="abc", labels=[1, 1, 2])
    write_graph(path, graph)
    with np.load(path) as archive:
        arrays = dict(archive)
    request.param(path, **arrays)
    return graph, path


def test_every_cut_is_noticed(graph_file: tuple[Graph, Path]) -> None:
    _, path = graph_file
    content = path.read_bytes()
    for length in range(len(content)):
        with pytest.raises(InputError):
            read_npz(path, GRAPH_ARRAYS, content=content[:length])


def test_a_flipped_byte_is_noticed_or_changes_nothing(graph_file: tuple[Graph, Path]) -> None:
    graph, path = graph_file
    content = path.read_bytes()
    same = 0
    for place in range(len(content)):
        flipped = bytearray(content)
        flipped[place] ^= (1, 0x80, 0xFF, 0x10)[place % 4]
        path.write_bytes(flipped)
        try:
            found = read_npz_graph(path)
        except InputError:
            continue
        same += 1
        assert found.content_hash == graph.content_hash
        assert found.node_ids is not None
        assert found.labels is not None
        assert found.node_ids.tolist() == ["a", "b", "c"]
        assert found.labels.tolist() == [1, 1, 2]
    assert 0 < same < len(content) / 2  # dates and the like are not part of the graph
