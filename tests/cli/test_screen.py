"""What is printed: nothing that a terminal would obey, whole values, strict JSON, and no fuss over closed streams."""

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import vgae
from command import run_vgae, strict_json
from vgae.cli.app import COMMANDS, load_command
from vgae.cli.exits import exit_code_of
from vgae.errors import InputError, OutputClosedError, TrainingError, VgaeError
from vgae.report.console import print_json, print_table
from vgae.screen import note, prepare_streams, print_line, shell_line, visible, write

EVIL = "\x1b[31mred\x1b]0;title\x07\r\u202eback\u2028:smile:[bold]"
SHOWN = r"\x1b[31mred\x1b]0;title\x07\r\u202eback\u2028:smile:[bold]"
BASH = shutil.which("bash")
DIRECTING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def printed(make: Callable[[], object]) -> str:
    stream = io.StringIO()
    with redirect_stdout(stream):
        make()
    return stream.getvalue()


# ------------------------------------------------------------------------------------------------------- characters


def test_every_character_is_shown_as_it_is_or_written_out() -> None:
    """By the tables of Unicode: controls, halves of characters, separators of lines, what changes the direction."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        unsafe = (
            unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp")
            or unicodedata.bidirectional(character) in DIRECTING
            or character in "\u061c\u200e\u200f"
        )
        shown = visible(character)
        assert (shown != character) == unsafe
        if unsafe:
            assert shown.isascii()
            assert shown.isprintable()
            assert shown.encode().decode("unicode_escape") == character


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_what_is_shown_has_nothing_unsafe_and_the_same_letters(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert "".join(visible(character) for character in text) == shown


@pytest.mark.parametrize("text", ["", "plain", "José", "日本", "שלום", "👩\u200d🚀", "می\u200cخواهم", r"C:\new", "a b"])
def test_writing_of_all_the_world_stays(text: str) -> None:
    assert visible(text) == text


@pytest.mark.skipif(BASH is None, reason="it is about bash")
def test_a_command_to_copy_is_safe_and_means_the_same() -> None:
    words = [
        "plain",
        "",
        "two words",
        "it's",
        "back\\slash\x1b",
        EVIL + "f",
        "\x85é'",
        "caf\udce9.csv",
        "$HOME `x`",
        "\x07b",
    ]
    line = shell_line(words)
    assert line.isprintable()
    script = f"printf '%s\\0' {line}"
    done = subprocess.run([str(BASH), "-c", script], env={"LC_ALL": "C.UTF-8"}, capture_output=True, check=True)
    assert done.stdout.split(b"\0")[:-1] == [os.fsencode(word) for word in words]


# ----------------------------------------------------------------------------------------------------------- tables


def test_tables_in_a_pipe_have_whole_values_in_one_line_each(monkeypatch: pytest.MonkeyPatch) -> None:
    long = "x" * 5000
    rows = [["a", "1"], [EVIL, "22"], [long, "333"], ["日本", "4"], ["line\nbreak", "5"], [":smile: [red]x[/]", "6"]]
    for columns in ("20", "500"):
        monkeypatch.setenv("COLUMNS", columns)
        monkeypatch.setenv("FORCE_COLOR", "1")
        lines = printed(lambda: print_table(("id", "n"), rows, numbers=("n",))).splitlines()
        assert [re.split(" {2,}", line.strip()) for line in lines[1:]] == [
            ["a", "1"],
            [SHOWN, "22"],
            [long, "333"],
            ["日本", "4"],
            [r"line\nbreak", "5"],
            [":smile: [red]x[/]", "6"],
        ]
    short = [line for line in lines if long not in line and SHOWN not in line]
    assert {len(line) + line.count("日") + line.count("本") for line in short} == {45}  # set to the right
    assert max(map(len, short)) < 60  # a long id does not widen the rows of others


def test_a_narrow_terminal_folds_and_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    monkeypatch.setenv("TERM", "xterm")
    ids = ["abcdefghij" * 10, EVIL, ":smile:"]
    shown = on_terminal(lambda: print_table(("id", "n"), [(name, "1.5") for name in ids], numbers=("n",)))
    assert "…" not in shown
    assert all(len(line) <= 30 for line in shown.splitlines())
    letters = re.sub(r"1\.5|\s", "", shown)
    assert letters == "idn" + "".join(re.sub(r"\s", "", visible(name)) for name in ids)


def on_terminal(make: Callable[[], object]) -> str:
    """What a call prints on a terminal, without the styles of titles."""
    leader, follower = pty.openpty()
    try:
        with os.fdopen(follower, "w", encoding="utf-8") as stream, redirect_stdout(stream):
            make()
            stream.flush()
            data = os.read(leader, 100_000).decode()
    finally:
        os.close(leader)
    return re.sub(r"\x1b\[[0-9;]*m", "", data).replace("\r\n", "\n")


def test_the_command_on_a_terminal(tmp_path: Path) -> None:
    """Progress and notes, too, show the name of the file and not what it asks the terminal for."""
    name = "\x1b[31mred:smile:.npz"
    vgae.write_graph(tmp_path / name, vgae.stochastic_block_model(60, 3, feature_dim=5, seed=0))
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "vgae", "train", name, "--iterations", "30", "--out", "run"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "300"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdin=follower, stdout=follower, stderr=follower)
    os.close(follower)
    data = b""
    try:
        while part := os.read(leader, 100_000):
            data += part
    except OSError:  # how a terminal ends on Linux
        pass
    finally:
        os.close(leader)
    assert process.wait() == 0
    shown = data.decode()
    assert r"\x1b[31mred:smile:.npz: Graph(60 nodes" in shown
    assert "objective: exact" in shown
    assert "30/30" in shown  # the bar
    assert "\x1b[31mred" not in shown


# ------------------------------------------------------------------------------------------------- notes and errors


@pytest.mark.parametrize("say", [print_line, note])
def test_lines_are_one_line_without_anything_unsafe(say: Callable[[str], None]) -> None:
    stream = io.StringIO()
    with redirect_stdout(stream), redirect_stderr(stream):
        say(f"{EVIL}\nnext")
    assert stream.getvalue() == SHOWN + r"\nnext" + "\n"


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (InputError(f"{EVIL}: no."), 2, f"{SHOWN}: no."),
        (InputError("a  b\nc"), 2, r"a  b\nc."),
        (TrainingError("diverged"), 1, "diverged."),
        (VgaeError("x."), 1, "x."),
        (KeyError(EVIL), 1, "Unexpected KeyError"),
        (RuntimeError("one\n  two"), 1, "Unexpected RuntimeError: one two; --debug shows where."),
        (MemoryError(), 1, "Memory ran out"),
        (OSError(28, "No space left on device", EVIL), 1, f"{SHOWN}: the system reports: No space left on device."),
        (OSError(36, "File name too long", b"\xff"), 2, r"\udcff: the system reports: File name too long."),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_how_errors_end(error: BaseException, code: int, words: str) -> None:
    def fail() -> None:
        raise error

    stream = io.StringIO()
    with redirect_stderr(stream):
        assert exit_code_of(fail) == code
    assert stream.getvalue().startswith(f"vgae: {words}")
    assert stream.getvalue()[:-1].isprintable()
    with redirect_stderr(stream):
        assert exit_code_of(fail, debug=True) == code
    assert "Traceback" in stream.getvalue()
    assert stream.getvalue().replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("words", "told"), [("Why?", "Why?"), ("No", "No."), ("No.", "No."), ("Who? You", "Who? You.")]
)
def test_a_refusal_ends_as_a_sentence_does(words: str, told: str) -> None:
    def refuse() -> None:
        raise InputError(words)

    errors = io.StringIO()
    with redirect_stderr(errors):
        assert exit_code_of(refuse) == 2
    assert errors.getvalue() == f"vgae: {told}\n"


# ------------------------------------------------------------------------------------------------------------- JSON


def test_json_is_strict() -> None:
    content = {"a": float("nan"), "b": [float("inf"), 1.5, (-float("inf"),)], "c": {"d": EVIL + "\ud800", "e": None}}
    text = printed(lambda: print_json(content))
    assert text.isascii()
    assert strict_json(text) == {"a": None, "b": [None, 1.5, [None]], "c": {"d": EVIL + "\ud800", "e": None}}


# -------------------------------------------------------------------------------------------------- closed and full


def closed_pipe() -> io.TextIOWrapper:
    """A stream that nobody reads."""
    reader, writer = os.pipe()
    os.close(reader)
    return os.fdopen(writer, "w", encoding="utf-8")


def test_output_that_nobody_reads_ends_the_command_quietly() -> None:
    errors = io.StringIO()
    with closed_pipe() as stream, redirect_stdout(stream), redirect_stderr(errors):
        with pytest.raises(OutputClosedError):
            write("x")
        assert exit_code_of(lambda: print_line("x")) in (0, 141)
    with closed_pipe() as stream, redirect_stdout(stream), redirect_stderr(errors):
        assert exit_code_of(lambda: print("x" * 100_000)) == 141
    assert errors.getvalue() == ""


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="there is no full device")
def test_output_that_cannot_be_written_is_told() -> None:
    errors = io.StringIO()
    with Path("/dev/full").open("w") as stream, redirect_stdout(stream), redirect_stderr(errors):
        assert exit_code_of(lambda: print_line("x")) == 1
    assert errors.getvalue() == "vgae: Standard output cannot be written (No space left on device).\n"


def test_notes_that_nobody_reads_do_not_stop_the_work(tmp_path: Path) -> None:
    vgae.write_graph(tmp_path / "g.npz", vgae.stochastic_block_model(60, 3, feature_dim=5, seed=0))
    command = [sys.executable, "-m", "vgae", "train", "g.npz", "--iterations", "2", "--out", "run"]
    with closed_pipe() as out, closed_pipe() as errors:
        done = subprocess.run(command, cwd=tmp_path, stdout=out, stderr=errors, check=False)
    assert done.returncode == 141  # the scores could not be printed
    assert vgae.load(tmp_path / "run").graph_.num_nodes == 60


def test_closed_output_leaves_no_traceback_when_python_ends(tmp_path: Path) -> None:
    with closed_pipe() as out:
        command = [sys.executable, "-m", "vgae", "datasets", "--json"]
        done = subprocess.run(command, cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (141, "")


def test_streams_take_any_text_in_any_encoding() -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="latin-1")
    with redirect_stdout(out), redirect_stderr(out):
        prepare_streams()
        print_line("σ \ud800 日本")
        out.flush()
    assert out.buffer.getvalue() == rb"\u03c3 \ud800 \u65e5\u672c" + b"\n"
    with redirect_stdout(None), redirect_stderr(None):
        prepare_streams()
        print_line("x")
        note("x")
        sys.stdout.close()
        sys.stderr.close()


# ------------------------------------------------------------------------------------------------------------- help


def test_every_default_in_the_help_is_shown(tmp_path: Path) -> None:
    hints = 0
    for name in COMMANDS:
        shown = " ".join(run_vgae(name, "--help", cwd=tmp_path).stdout.split())
        for parameter in load_command(name).params:
            for hint in re.findall(r"\[default: [^\]]+\]", getattr(parameter, "help", None) or ""):
                hints += 1
                assert hint in shown
    assert hints >= 9


def test_the_ids_of_a_run_are_shown_safely(tmp_path: Path) -> None:
    ids = [f"n{number}" for number in range(60)]
    ids[:6] = [EVIL, ":smile:", "[bold]x[/bold]", "x" * 300, "two\nlines", "half \udc80"]
    graph = vgae.stochastic_block_model(60, 3, seed=0)
    exact = np.array(ids, dtype=object)
    vgae.write_graph(tmp_path / "g.npz", vgae.Graph.from_edges(graph.edges, num_nodes=60))
    model = vgae.GAE(iterations=3).fit(vgae.Graph.from_edges(exact[graph.edges], node_ids=exact))
    model.save(tmp_path / "run")
    listed = run_vgae("recommend", "run", "--every-node", "--top", "1", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    lines = listed.stdout.splitlines()
    assert len(lines) == 61
    assert all(line.isprintable() for line in lines)
    for name, line in zip(ids, lines[1:], strict=True):
        assert line.startswith(visible(name))
    for name in ids[:6]:
        near = run_vgae("similar", "run", name, "--top", "3", cwd=tmp_path)
        assert near.returncode == 0, near.stderr
        found = strict_json(run_vgae("similar", "run", name, "--json", cwd=tmp_path).stdout)
        assert found["node"] == name
    refused = run_vgae("similar", "run", EVIL + "!", cwd=tmp_path)
    assert refused.stderr[:-1].isprintable()
