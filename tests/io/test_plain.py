"""Reading plain files: nothing else is opened, and nothing larger than expected is read."""

import os
import sys
from pathlib import Path

import pytest

from helpers import message_of
from vgae.errors import InputError
from vgae.io.json_files import read_json
from vgae.io.plain import open_plain, read_plain

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links, FIFOs and permissions as POSIX has them")


def make(path: Path, kind: str) -> None:
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"zero": "/dev/zero", "loop": path.name, "link": "/etc/hostname"}[kind])


@pytest.mark.parametrize("kind", ["fifo", "folder", "zero", "loop", "link"])
def test_only_plain_files_are_read(tmp_path: Path, kind: str) -> None:
    make(tmp_path / "file", kind)
    with pytest.raises(InputError, match="not a plain file"):
        open_plain(tmp_path / "file")
    if kind != "link":
        assert str(tmp_path / "file") in message_of(lambda: read_json(tmp_path / "file"))


def test_size_is_checked_before_reading(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.touch()
    os.truncate(path, 2**40)  # of which the disk holds nothing
    assert "1,099,511,627,776 bytes" in message_of(lambda: read_plain(path, 100))
    assert "more than can be needed" in message_of(lambda: read_json(path))
