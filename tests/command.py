"""The command, run in this process by the way that `python -m vgae` takes."""

import io
import json
import os
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any
from unittest.mock import patch

from vgae.cli.app import main

Trained = tuple[Path, CompletedProcess[str]]


def run_vgae(*arguments: str, cwd: Path) -> CompletedProcess[str]:
    """Exit code, standard output and standard error of `vgae …`, called in a folder."""
    out, errors = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="\n") for _ in range(2))
    code = 0
    with (
        chdir(cwd),
        patch.object(sys, "argv", ["vgae", *arguments]),
        patch.dict(os.environ, {"COLUMNS": "120"}),
        redirect_stdout(out),
        redirect_stderr(errors),
    ):
        try:
            main()
        except SystemExit as end:
            code = int(end.code or 0)
    return CompletedProcess(arguments, code, _written(out), _written(errors))


def train_cora(folder: Path) -> Trained:
    """A folder with the run of `vgae train cora`, and what the command printed."""
    return folder, run_vgae("train", "cora", "--out", "runs/cora", cwd=folder)


def assert_refused(result: CompletedProcess[str], *words: str) -> None:
    """Exit code 2, nothing on standard output, and one sentence that holds the words."""
    assert result.returncode == 2, result.stderr
    assert result.stdout == ""
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("vgae: ")
    assert lines[0].endswith(".")
    for word in words:
        assert word in lines[0]


def strict_json(text: str) -> Any:
    """What a strict reader makes of it: NaN and Infinity are not JSON."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)


def _written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
