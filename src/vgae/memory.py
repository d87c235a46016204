"""How much memory this process may still take: the least of what the machine, its control groups and its limits leave.

machine         /proc/meminfo, MemAvailable
control groups  memory.max less memory.current of every group the process is in (version 2), or
                memory.limit_in_bytes less memory.usage_in_bytes (version 1); file pages that the kernel can drop at
                once (inactive_file) do not count as used
limits          RLIMIT_AS (ulimit -v) less the address space in use, RLIMIT_DATA (ulimit -d) less the data in use

Where none of these is known (no /proc), the machine's physical memory is assumed to be free.
"""

import math
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform != "win32":
    import resource

ROOT = Path("/")
UNLIMITED = 2**60  # version 1 writes "no limit" as a number near 2⁶³


def bytes_free(root: Path = ROOT) -> float:
    """Memory that this process can still take, in bytes; `root` stands in for / in tests."""
    bounds = [*_machine(root), *_control_groups(root), *_limits(root)]
    return float(max(0, min(bounds))) if bounds else _physical()


def _machine(root: Path) -> Iterator[int]:
    for line in _lines(root / "proc/meminfo"):
        name, _, value = line.partition(":")
        if name == "MemAvailable":
            yield 1024 * int(value.split()[0])


def _control_groups(root: Path) -> Iterator[int]:
    """Of the process's group and each group above it, in both versions of the interface."""
    for line in _lines(root / "proc/self/cgroup"):
        number, controllers, group = (*line.split(":", 2), "", "")[:3]
        if number == "0" and not controllers:
            tree, limit, usage = root / "sys/fs/cgroup", "memory.max", "memory.current"
        elif "memory" in controllers.split(","):
            tree, limit, usage = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes"
        else:
            continue
        # Inside a container the path is often that of the host, and the group is mounted at the root of the tree.
        folder = tree / group.strip("/")
        for place in (folder, *(parent for parent in folder.parents if parent.is_relative_to(tree))):
            most, used = _number(place / limit), _number(place / usage)
            if most is not None and used is not None and most < UNLIMITED:
                yield most - max(0, used - _droppable(place))


def _droppable(group: Path) -> int:
    names = ("inactive_file", "total_inactive_file")
    found = [line.split() for line in _lines(group / "memory.stat")]
    return max((int(line[1]) for line in found if len(line) == 2 and line[0] in names), default=0)


def _limits(root: Path) -> Iterator[int]:
    if sys.platform == "win32":
        return
    used = {name: 1024 * int(rest.split()[0]) for name, rest in _status(root)}
    for kind, name in ((resource.RLIMIT_AS, "VmSize"), (resource.RLIMIT_DATA, "VmData")):
        most = resource.getrlimit(kind)[0]
        if most != resource.RLIM_INFINITY:
            yield most - used.get(name, 0)


def _status(root: Path) -> Iterator[tuple[str, str]]:
    for line in _lines(root / "proc/self/status"):
        name, _, rest = line.partition(":")
        if name in ("VmSize", "VmData"):
            yield name, rest


def _physical() -> float:
    if not hasattr(os, "sysconf"):
        return math.inf
    return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


def _number(path: Path) -> int | None:
    """The number in a file; None where there is no file, or it says max."""
    lines = _lines(path)
    return int(lines[0]) if lines and lines[0].strip().isdecimal() else None
