"""Ctrl-C, whenever it comes: no traceback, and what is said of the run folder is what is in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from processes import hear_ctrl_c


def test_what_is_said_after_ctrl_c_is_what_is_there(tmp_path: Path) -> None:
    command = [sys.executable, str(Path(__file__).with_name("interrupting.py")), str(tmp_path)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # threads do not survive a fork
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["wrong"] == []
    assert len(found["seen"]) > 80
    assert len(set(found["seen"])) == 3


@pytest.mark.parametrize(
    ("module", "command"),
    [("vgae.cli.app", "--version"), ("typer", "--help"), ("vgae.cli.datasets", "datasets"), ("torch.nn", "train cora")],
)
def test_ctrl_c_while_modules_are_loaded_is_one_sentence(module: str, command: str) -> None:
    """Pressed when the module begins to be loaded, by a finder that is asked before all others."""
    code = f"""
import os, signal, sys

class Finger:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finger())
sys.argv[1:] = {command.split()!r}
from vgae.__main__ import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, preexec_fn=hear_ctrl_c
    )
    assert done.returncode == 130
    assert (done.stdout, done.stderr.strip()) == ("", "vgae: Interrupted; nothing was saved.")
