"""Memory that is free, by files laid out as the kernel's are, and by a real limit on a real process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from vgae.memory import bytes_free

resource = pytest.importorskip("resource")

GIB = 2**30
MEMINFO = {"proc/meminfo": f"MemTotal: 99999999 kB\nMemAvailable: {16 * 2**20} kB\n"}


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return root


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, 16 * GIB),
        (  # version 2: the group's own limit
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/memory.max": f"{4 * GIB}\n",
                "sys/fs/cgroup/a/b/memory.current": f"{3 * GIB}\n",
            },
            GIB,
        ),
        (  # a limit higher up is the tighter one, and pages that can be dropped are free
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/b/memory.max": "max\n",
                "sys/fs/cgroup/a/b/memory.current": f"{3 * GIB}\n",
                "sys/fs/cgroup/a/memory.max": f"{8 * GIB}\n",
                "sys/fs/cgroup/a/memory.current": f"{6 * GIB}\n",
                "sys/fs/cgroup/a/memory.stat": f"anon 5\ninactive_file {2 * GIB}\n",
            },
            4 * GIB,
        ),
        (  # in a container: the host's path is not there, the group is the root of the tree
            {
                "proc/self/cgroup": "0::/docker/123\n",
                "sys/fs/cgroup/memory.max": f"{2 * GIB}\n",
                "sys/fs/cgroup/memory.current": "0\n",
            },
            2 * GIB,
        ),
        (  # version 1, and the number it has for no limit
            {
                "proc/self/cgroup": "7:cpu:/x\n5:memory:/x\n",
                "sys/fs/cgroup/memory/x/memory.limit_in_bytes": f"{5 * GIB}\n",
                "sys/fs/cgroup/memory/x/memory.usage_in_bytes": f"{2 * GIB}\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
                "sys/fs/cgroup/memory/memory.usage_in_bytes": f"{90 * GIB}\n",
            },
            3 * GIB,
        ),
        (  # more used than allowed
            {
                "proc/self/cgroup": "0::/\n",
                "sys/fs/cgroup/memory.max": f"{GIB}\n",
                "sys/fs/cgroup/memory.current": f"{2 * GIB}\n",
            },
            0,
        ),
    ],
)
def test_the_tightest_bound_counts(tmp_path: Path, files: dict[str, str], expected: int) -> None:
    assert bytes_free(lay_out(tmp_path, MEMINFO | files)) == expected


@pytest.mark.skipif(not hasattr(os, "sysconf"), reason="asks the system")
def test_without_any_of_it_the_physical_memory_is_assumed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resource.getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert bytes_free(tmp_path) == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
@pytest.mark.parametrize("kind", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limits_of_the_process_are_known(kind: str) -> None:
    code = (
        "import resource; from vgae.memory import bytes_free; before = bytes_free(); "
        f"resource.setrlimit(resource.{kind}, (2**30, resource.RLIM_INFINITY)); taken = bytearray(2**28); "
        "print(before > 2**29 and 2**28 < bytes_free() < 2**30 - 2**28)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True\n"
