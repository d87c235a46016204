"""Writing in one step: what is under the name of a file, whatever was there before and whatever happens."""

import errno
import os
import stat
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from helpers import message_of
from vgae.io.atomic import atomic_write
from vgae.io.embeddings import write_embeddings
from vgae.io.exports import write_csv

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, FIFOs and permissions as POSIX has them")


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path: Path, content: bytes = b"new") -> None:
    with atomic_write(path) as file:
        file.write(content)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o644, 0o400, 0o777, 0o666])
@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_file_that_is_replaced_passes_its_permissions_on(tmp_path: Path, mode: int, umask: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    before = os.umask(umask)
    try:
        write(path)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == mode
    assert path.read_bytes() == b"new"


def test_a_file_is_never_readable_by_more_people_than_the_one_it_replaces(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    with atomic_write(path):
        (temporary,) = (found for found in tmp_path.iterdir() if found != path)
        assert stat.S_IMODE(temporary.stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_a_file_that_is_replaced_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("exists", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, steps: int, exists: bool) -> None:
    target = tmp_path / "elsewhere" / "file"
    target.parent.mkdir()
    if exists:
        target.write_bytes(b"old")
    path = target
    for step in range(steps):
        link = tmp_path / f"link-{step}"
        link.symlink_to(path)
        path = link
    write(path)
    assert path.is_symlink()
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()
    assert [found.name for found in target.parent.iterdir()] == ["file"]


def test_a_link_in_a_folder_of_our_own_is_replaced_and_its_target_spared(tmp_path: Path) -> None:
    (tmp_path / "precious").write_bytes(b"old")
    (tmp_path / "state").symlink_to(tmp_path / "precious")
    with atomic_write(tmp_path / "state", follow_links=False) as file:
        file.write(b"new")
    assert (tmp_path / "precious").read_bytes() == b"old"
    assert not (tmp_path / "state").is_symlink()


@pytest.mark.parametrize("path", ["loop", "file/below", "x" * 300])
def test_impossible_names_are_told(tmp_path: Path, path: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    assert "cannot be written" in message_of(lambda: write_csv(tmp_path / path, ["a"], [[1]]))
    assert sorted(found.name for found in tmp_path.iterdir()) == ["file", "loop"]


def test_names_as_long_as_the_file_system_allows_can_be_written(tmp_path: Path) -> None:
    for name in ("x" * 255, "ü" * 127):
        write(tmp_path / name)
        assert (tmp_path / name).read_bytes() == b"new"


def test_devices_are_written_to_and_not_replaced() -> None:
    for _ in range(2):
        write(Path("/dev/null"), b"x" * 100_000)
        assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_fifo_gets_the_content_and_stays(tmp_path: Path) -> None:
    path, got = tmp_path / "fifo", []
    os.mkfifo(path)
    reader = threading.Thread(target=lambda: got.append(path.read_bytes()))
    reader.start()
    write(path, b"x" * 200_000)
    reader.join()
    assert got == [b"x" * 200_000]
    assert stat.S_ISFIFO(path.stat().st_mode)


def test_half_of_a_file_never_reaches_a_fifo(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    def fail() -> None:
        with atomic_write(path) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert os.read(handle, 100) == b""
    os.close(handle)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_added_to(tmp_path: Path, name: str) -> None:
    """As `vgae … --out /dev/stdout >> log` has it: what is in the log stays."""
    log = tmp_path / "log"
    log.write_bytes(b"before\n")
    saved, handle = os.dup(1), os.open(log, os.O_WRONLY | os.O_APPEND)
    os.dup2(handle, 1)
    try:
        write(Path(name), b"content\n")
        os.write(1, b"after\n")
    finally:
        os.dup2(saved, 1)
        os.close(saved)
        os.close(handle)
    assert log.read_bytes() == b"before\ncontent\nafter\n"


@pytest.mark.parametrize("ending", ["csv", "parquet", "npz", "txt"])
def test_embeddings_of_every_format_go_through_a_link_and_keep_permissions(tmp_path: Path, ending: str) -> None:
    target = tmp_path / f"real.{ending}"
    target.touch(mode=0o600)
    (tmp_path / f"link.{ending}").symlink_to(target)
    write_embeddings(tmp_path / f"link.{ending}", ["a", "b"], np.eye(2, dtype=np.float32))
    assert target.stat().st_size > 0
    assert stat.S_IMODE(target.stat().st_mode) == 0o600


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
def test_a_disk_that_fails_at_the_flush_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(_: int) -> None:
        raise OSError(code, os.strerror(code))

    path = tmp_path / "file.csv"
    path.write_bytes(b"old")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        assert os.strerror(code) in message_of(lambda: write_csv(path, ["a"], [[1]]))
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["file.csv"]


def test_a_file_system_that_cannot_flush_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: int) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fail)
    with atomic_write(tmp_path / "file", durable=True) as file:
        file.write(b"new")
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_file_appears_complete_with_its_folder_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "file.bin"
    with atomic_write(path) as file:
        file.write(b"one")
        assert not path.exists()
        file.write(b" two")
    assert path.read_bytes() == b"one two"
    assert names_in(path.parent) == ["file.bin"]


def test_a_reader_sees_the_old_file_until_the_new_one_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "file.bin"
    path.write_bytes(b"old")
    with atomic_write(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert names_in(tmp_path) == ["file.bin"]


def write_half(path: Path, error: type[BaseException]) -> None:
    with atomic_write(path) as file:
        file.write(b"half of")
        raise error


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("old", [None, b"old"], ids=["no file before", "a file before"])
def test_a_write_that_fails_leaves_everything_as_it_was(
    tmp_path: Path, old: bytes | None, error: type[BaseException]
) -> None:
    path = tmp_path / "file.bin"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(error):
        write_half(path, error)
    assert names_in(tmp_path) == ([] if old is None else ["file.bin"])
    assert old is None or path.read_bytes() == old


def test_a_name_taken_by_a_folder_leaves_nothing_behind(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="taken"), atomic_write(tmp_path / "taken") as file:
        file.write(b"content")
    assert names_in(tmp_path) == ["taken"]


@pytest.mark.parametrize("umask", [0o022, 0o077, 0o002])
def test_a_file_gets_the_permissions_of_any_other_file(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        (tmp_path / "plain").write_bytes(b"")
        with atomic_write(tmp_path / "atomic"):
            pass
        assert os.umask(umask) == umask
    finally:
        os.umask(before)
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode
