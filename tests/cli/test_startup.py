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
FORKS = """
import os, sys, torch
from pathlib import Path
for number, arguments in enumerate(sys.argv[1:]):
    child = os.fork()
    if not child:
        Path(str(number)).mkdir()
        os.chdir(str(number))
        sys.argv[1:] = arguments.split()
        exec(REPORT)
    assert os.waitpid(child, 0)[1] == 0, arguments
"""
WITH_TORCH = {
    "parts": (SLOW, "vgae.cli.parts"),
    "plan cora": (SLOW, "vgae.train.plan"),
    "cluster --help": (tuple(name for name in SLOW if name != "pyarrow"), "vgae.cli.cluster"),
    "train --help": (SLOW, "vgae.train.config"),
    "train cora --iterations 1": (SLOW, "vgae.runs.make"),
}


def run_python(code: str, *arguments: str, folder: Path) -> None:
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, cwd=folder, env={**os.environ, "TERM": "dumb"}, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "absent", "present"),
    [
        ("--version", ("numpy", "scipy", "torch", "rich", "vgae.options", *SLOW), "vgae.cli.app"),
        ("--help", ("numpy", "scipy", "torch", "rich", "vgae.options", *SLOW), "vgae.cli.app"),
        ("datasets", ("scipy", "torch", *SLOW), "vgae.cli.datasets"),
    ],
)
def test_a_command_loads_only_what_it_needs(
    tmp_path: Path, arguments: str, absent: tuple[str, ...], present: str
) -> None:
    run_python(REPORT, *arguments.split(), folder=tmp_path)
    found = set((tmp_path / "modules").read_text().split())
    assert present in found
    assert found & set(absent) == set()


def test_commands_that_need_torch_load_little_more(tmp_path: Path) -> None:
    """Each in a fork of a process that has loaded torch and nothing of vgae."""
    run_python(f"REPORT = {REPORT!r}\n{FORKS}", *WITH_TORCH, folder=tmp_path)
    for number, (arguments, (absent, present)) in enumerate(WITH_TORCH.items()):
        found = set((tmp_path / str(number) / "modules").read_text().split())
        assert present in found, arguments
        assert found & set(absent) == set(), arguments
