"""README.md: short, its examples run, and what it says that they print is what they print."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import vgae
from command import run_vgae

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
NAMES = [f"n{number}" for number in range(40)]


def blocks(kind: str) -> list[str]:
    """The code blocks of a kind, in their order."""
    return re.findall(rf"^```{kind}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def commands() -> Iterator[list[str]]:
    """The lines that call the command, without its name and their comments."""
    for block in blocks("sh"):
        for line in block.splitlines():
            name, *arguments = shlex.split(line, comments=True)
            if name == "vgae":
                yield arguments


def write_links(path: Path, separator: str, columns: tuple[str, ...], *more: str) -> None:
    """120 links between 40 nodes, the last of their columns a number, and some rows more."""
    links = [(one, NAMES[(number + step) % 40]) for number, one in enumerate(NAMES) for step in (1, 3, 7)]
    rows = [(*link, str(1 + number % 5))[: len(columns)] for number, link in enumerate(links)]
    lines = [separator.join(row) for row in (columns, *rows)]
    path.write_text("\n".join([*lines, *more]) + "\n")


def test_it_is_read_in_one_go() -> None:
    assert len(README.splitlines()) < 120


def test_it_names_both_commands_that_set_everything_up() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in ("demo", "test"):
        assert f"make {target} " in blocks("sh")[0]
        assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_python_example_runs_and_prints_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it stands, but for the projection of the map, of which the default takes its time."""
    monkeypatch.chdir(tmp_path)
    (code,) = blocks("python")
    said: dict[str, Any] = {}
    for line in code.replace('explore("map.html")', 'explore("map.html", projection="pca")').splitlines():
        statement, _, comment = line.partition("  #")
        if re.match(r"model\.(metrics|transform)", statement):
            said[comment.strip()] = eval(statement, said)  # noqa: S307 - the project's own example
        else:
            exec(statement, said)  # noqa: S102 - the same
    (shown,) = (key for key in said if key.startswith('{"auc"'))
    assert said[shown] == pytest.approx(json.loads(shown), abs=0.01)
    assert said["(2708, 16) embeddings"].shape == (2708, 16)
    assert vgae.load(tmp_path / "runs" / "mine").graph_.num_nodes == 2708
    assert (tmp_path / "map.html").stat().st_size > 100_000


def test_its_commands_run(tmp_path: Path) -> None:
    write_links(tmp_path / "edges.csv", ",", ("source", "target", "times"))
    (tmp_path / "nodes.csv").write_text(
        "name,class,size\n" + "".join(f"{name},{'ab'[number % 2]},{number}\n" for number, name in enumerate(NAMES))
    )
    (tmp_path / "pairs.csv").write_text("n0,n5\nn1,n9\n")
    others = iter(NAMES)
    for arguments in commands():
        if arguments[0] == "--install-completion":
            continue  # tests/cli/test_completion.py, in a home of its own
        given = [next(others) if each == "NODE" else each for each in arguments]
        done = run_vgae(*given, cwd=tmp_path)
        assert done.returncode == 0, (arguments, done.stderr)
    assert {"map.html", "embeddings.parquet", "runs"} < {path.name for path in tmp_path.iterdir()}


def test_what_a_table_is_told_to_be_is_what_is_printed(tmp_path: Path) -> None:
    (transcript,) = blocks("text")
    prompt, *expected = transcript.splitlines()
    write_links(tmp_path / "leute.csv", ";", ("von", "nach", "mal"), "n0;n1;2", "n2;n1;1", "n5;n5;1")
    done = run_vgae(*shlex.split(prompt)[2:], "--no-verdict", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr.splitlines()[: len(expected)] == expected
