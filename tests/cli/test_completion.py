"""Completion in a shell: what is offered is what the commands have, at once, and in the shell itself."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from command import assert_refused, run_vgae
from vgae.cli.app import BY_MODEL, COMMANDS, load_command
from vgae.cli.completion import TABLE, Typed, lines, offers
from vgae.cli.completion_table import as_text, make_table
from vgae.cli.shells import SHELLS, script
from vgae.io.catalog import DATASETS
from vgae.train.config import OBJECTIVES

BASH = shutil.which("bash")
FISH = shutil.which("fish")
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


def offered(line: str, shell: str = "fish") -> list[str]:
    """The words that are offered at the end of a line."""
    return [word for word, _ in offers(Typed.of(shell, {"_TYPER_COMPLETE_ARGS": line}))]


def in_bash(*words: str) -> list[str]:
    """The same where bash has divided the line into words."""
    typed = Typed.of("bash", {"COMP_WORDS": "\n".join(words), "COMP_CWORD": str(len(words) - 1)})
    return [word for word, _ in offers(typed)]


def flags(name: str, model: str | None = None) -> set[str]:
    """The options that the help of a command shows."""
    options = [each for each in load_command(name, model).params if each.param_type_name == "option"]
    return {"--help", *(flag for each in options for flag in (*each.opts, *each.secondary_opts))}


def asked_by_shell(folder: Path, **variables: str) -> str:
    """What the process prints, which also leaves the names of its modules in the folder."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT], cwd=folder, env={**os.environ, **variables}, capture_output=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


# ------------------------------------------------------------------------------------------------------------ the table


def test_the_table_is_that_of_the_commands() -> None:
    assert TABLE.read_text() == f"{as_text(make_table())}\n", "the commands have changed: make completion"


def test_every_option_of_every_command_is_offered() -> None:
    for name in COMMANDS:
        assert set(offered(f"vgae {name} -")) == flags(name), name
    for name, models in BY_MODEL.items():
        for model in models:
            found = offered(f"vgae {name} cora --model {model} --")
            assert set(found) == flags(name, model)


# ------------------------------------------------------------------------------------------------------------- answers


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("vgae ", list(COMMANDS)),
        ("vgae tr", ["train"]),
        ("vgae p", ["plot", "predict", "plan", "parts"]),
        ("vgae --ver", ["--version"]),
        ("vgae train --itera", ["--iterations"]),
        ("vgae train cora --objective ", list(OBJECTIVES)),
        ("vgae train cora --objective s", ["sampled"]),
        ("vgae train cora --objective=s", ["--objective=sampled"]),
        ("vgae train --decoder sc", ["scaled"]),
        ("vgae train --no-features cor", ["cora"]),
        ("vgae train --seed 3 cite", ["citeseer"]),
        ("vgae baseline a", ["aa", "all"]),
        ("vgae baseline aa pub", ["pubmed"]),
        ("vgae train --model stack --fol", ["--folds"]),
        ("vgae train --model=stack --fol", ["--folds"]),
        ("vgae train --fol", []),
        ("vgae train cora cor", []),  # there is one graph
        ("vgae train ", []),  # files, which the shell knows
        ("vgae embed runs/mine --out ", []),
        ("vgae nonsense --", []),
        ("vgae train 'an open quote --itera", ["--iterations"]),
        ("", list(COMMANDS)),
    ],
)
def test_what_is_offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str, expected: list[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered(line) == expected


def test_bash_divides_at_equals_signs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert in_bash("vgae", "train", "--objective", "=", "s") == ["sampled"]
    assert in_bash("vgae", "train", "--objective", "=") == list(OBJECTIVES)
    assert in_bash("vgae", "train", "--seed", "=", "3", "cite") == ["citeseer"]
    assert in_bash("vgae", "train", "--model", "=", "stack", "--fol") == ["--folds"]


def test_a_file_goes_before_datasets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert offered("vgae train c") == [name for name in DATASETS if name.startswith("c")]
    (tmp_path / "courses.csv").touch()
    assert offered("vgae train c") == []
    assert offered("vgae train ci") == ["citeseer"]


def test_every_shell_is_told_what_a_word_means() -> None:
    described = {shell: list(lines(shell, iter([("--out", "A folder"), ("a:b", "")]))) for shell in SHELLS}
    assert described == {
        "bash": ["--out", "a:b"],
        "zsh": ["--out:A folder", r"a\:b"],
        "fish": ["--out\tA folder", "a:b\t"],
    }


# ---------------------------------------------------------------------------------------------------------- the process


@pytest.mark.parametrize(("words", "expected"), [("vgae tr", "train\n"), ("vgae train --itera", "--iterations\n")])
def test_the_answer_loads_nothing(tmp_path: Path, words: str, expected: str) -> None:
    position = str(len(words.split()) - 1)
    found = asked_by_shell(tmp_path, _VGAE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=position)
    assert found == expected
    modules = set((tmp_path / "modules").read_text().split())
    assert "vgae.cli.completion" in modules
    assert modules & {"numpy", "scipy", "torch", "rich", "typer", "click", "vgae.options"} == set()


def test_what_no_shell_asks_is_refused(tmp_path: Path) -> None:
    for instruction in ("complete_tcsh", "nonsense", ""):
        done = subprocess.run(
            [sys.executable, "-m", "vgae"],
            cwd=tmp_path,
            env={**os.environ, "_VGAE_COMPLETE": instruction},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (2, b"")
        assert b"bash, zsh, fish" in done.stderr


@pytest.fixture
def path_with_vgae(tmp_path: Path) -> str:
    """A PATH on which `vgae` is this package, whether or not it is installed."""
    command = tmp_path / "bin" / "vgae"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m vgae "$@"\n')
    command.chmod(0o755)
    return f"{command.parent}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.skipif(BASH is None, reason="there is no bash here")
def test_bash_completes(tmp_path: Path, path_with_vgae: str) -> None:
    asking = "COMP_WORDS=(vgae train --objective e) COMP_CWORD=3; _vgae_completion vgae; echo ${COMPREPLY[@]}"
    done = subprocess.run(
        [str(BASH), "--norc", "-c", f"{script('bash')}\n{asking}; complete -p vgae"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path_with_vgae},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "exact\ncomplete -o default -F _vgae_completion vgae\n"


@pytest.mark.skipif(FISH is None, reason="there is no fish here")
def test_fish_completes(tmp_path: Path, path_with_vgae: str) -> None:
    (tmp_path / "edges.csv").touch()
    asking = 'complete -C "vgae train --objective e"; complete -C "vgae train ed"'
    done = subprocess.run(
        [str(FISH), "--no-config", "-c", f"{script('fish')}\n{asking}"],
        cwd=tmp_path,
        env={**os.environ, "PATH": path_with_vgae, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["exact", "edges.csv"]


# --------------------------------------------------------------------------------------------------------- installation


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "ZDOTDIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(("shell", "start"), [("bash", ".bashrc"), ("zsh", ".zshrc")])
def test_installed_twice_is_installed_once(home: Path, monkeypatch: pytest.MonkeyPatch, shell: str, start: str) -> None:
    monkeypatch.setenv("SHELL", f"/usr/bin/{shell}")
    (home / start).write_bytes(b"alias x=y # \xff")  # neither a last newline nor UTF-8
    for _ in range(2):
        done = run_vgae("--install-completion", cwd=home)
        assert done.returncode == 0, done.stderr
    written = home / ".local" / "share" / "vgae" / f"completion.{shell}"
    assert written.read_text() == f"{script(shell)}\n"
    first, second = (home / start).read_bytes().splitlines()
    assert first == b"alias x=y # \xff"
    assert str(written).encode() in second
    assert f"{home / start}: written" not in done.stdout


def test_fish_finds_its_file_by_itself(home: Path) -> None:
    assert run_vgae("--install-completion", "fish", cwd=home).returncode == 0
    assert [path.name for path in home.rglob("*") if path.is_file()] == ["vgae.fish"]


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_can_be_looked_at(tmp_path: Path, shell: str) -> None:
    done = run_vgae("--show-completion", shell, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"{script(shell)}\n")
    sourced = subprocess.run(
        [sys.executable, "-m", "vgae"],
        env={**os.environ, "_VGAE_COMPLETE": f"source_{shell}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert sourced.stdout == done.stdout


def test_a_shell_that_is_not_known_is_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert_refused(run_vgae("--install-completion", "tcsh", cwd=home), "tcsh", "bash, zsh, fish")
    monkeypatch.setenv("SHELL", "/bin/tcsh")
    assert_refused(run_vgae("--show-completion", cwd=home), "tcsh", "--show-completion bash")
    monkeypatch.delenv("SHELL")
    assert_refused(run_vgae("--install-completion", cwd=home), "$SHELL")
    assert list(home.iterdir()) == []
