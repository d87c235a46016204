"""What a command loads before it answers: counted in modules, which no busy machine changes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXTRAS = ("gensim", "matplotlib", "networkx", "polars", "torch_geometric")
SLOW = ("pandas", "pyarrow", "scipy.optimize", "scipy.stats", "sklearn", "sympy", "torch._dynamo", *EXTRAS)
REPORT = """
import os, sys
from pathlib import Path
leave = os._exit
def report(code):
    Path("modules").write_text(" ".join(sys.modules))
    leave(code)
os._exit = report
from vgae.__main__ import main
main()
"""


def modules_of(arguments: str, folder: Path) -> set[str]:
    """Which modules are loaded when the command ends."""
    command = [sys.executable, "-c", REPORT, *arguments.split()]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "TERM": "dumb"}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    return set((folder / "modules").read_text().split())


@pytest.mark.parametrize(
    ("arguments", "absent", "present"),
    [
        ("--version", ("numpy", "scipy", "torch", "rich", "vgae.options", *SLOW), "vgae.cli.app"),
        ("--help", ("numpy", "scipy", "torch", "rich", "vgae.options", *SLOW), "vgae.cli.app"),
        ("datasets", ("scipy", "torch", *SLOW), "vgae.cli.datasets"),
        ("parts", SLOW, "vgae.cli.parts"),
        ("plan cora", SLOW, "vgae.train.plan"),
        ("cluster --help", tuple(name for name in SLOW if name != "pyarrow"), "vgae.cli.cluster"),
        ("train --help", SLOW, "vgae.train.config"),
        ("train cora --iterations 1", SLOW, "vgae.train.loop"),
    ],
)
def test_a_command_loads_only_what_it_needs(
    tmp_path: Path, arguments: str, absent: tuple[str, ...], present: str
) -> None:
    found = modules_of(arguments, tmp_path)
    assert present in found
    assert found & set(absent) == set()
