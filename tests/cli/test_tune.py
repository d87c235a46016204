"""`vgae tune` as a person uses it: killed and resumed, its files, its words, its refusals."""

import csv
import os
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn, cast
from unittest.mock import patch

import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from processes import hear_ctrl_c, wait_until
from vgae.graph.split import HeldOut, split_links
from vgae.runs.lock import locked
from vgae.search import study
from vgae.search.folder import JOURNAL, LOCK
from vgae.train.config import Config

SHORT = ("--latent-dim", "4", "--iterations", "4", "--eval-every", "1", "--workers", "1", "--finalists", "1")
LONG = (
    "--finalists",
    "2",
    "--latent-dim",
    "4",
    "--iterations",
    "60",
    "--eval-every",
    "1",
    "--workers",
    "1",
    "--encoder",
    "gcn",
)

ENDED = re.compile(r'"op_code":6,.*"state":[12],')  # complete or pruned, as Optuna writes it


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph, and a search on it."""
    place = tmp_path_factory.mktemp("graphs")
    graph = vgae.stochastic_block_model(80, 2, degree_within=10, degree_between=2, feature_dim=12, seed=0)
    vgae.write_graph(place / "words.npz", graph)
    found = run_vgae("tune", "words.npz", "--val", "0.2", "--trials", "12", *SHORT, cwd=place)
    assert found.returncode == 0, found.stderr
    (place / "out.txt").write_text(found.stdout)
    (place / "err.txt").write_text(found.stderr)
    return place


def rows_of(path: Path) -> list[dict[str, str]]:
    with (path / "trials.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_search_says_what_it_found_and_how_to_train_it(folder: Path) -> None:
    out, said = (folder / "out.txt").read_text(), (folder / "err.txt").read_text()
    rows = rows_of(folder / "runs" / "words-tune")
    assert [row["trial"] for row in rows] == [str(number) for number in range(12)]
    assert (rows[0]["preset"], rows[1]["preset"], rows[0]["encoder"]) == (
        "paper",
        "accurate",
        str(Config().value_of("encoder")),
    )
    best = max((row for row in rows if row["state"] == "complete"), key=lambda row: float(row["score"]))
    lines = out.splitlines()
    assert lines[0].split() == ["trial", "AUC", "AP", "seconds", "what", "differs", "from", "the", "paper"]
    assert lines[1].split()[:2] == [best["trial"], f"{100 * float(best['score']):.1f}"]
    assert any(line.startswith("0 (paper)") and "iterations 4" in line for line in lines)
    gain = 100 * (float(best["score"]) - float(rows[0]["score"]))
    assert lines[-2].startswith("12 trials: ")
    assert f"Best by validation AUC: trial {best['trial']}, {100 * float(best['score']):.1f} on the val" in lines[-2]
    assert lines[-2].endswith(f"{gain:+.1f} compared with the preset paper.")
    assert lines[-1] == "To train it, run: vgae train words.npz --val 0.2 --config runs/words-tune/best.json"
    assert "searching: 12 trials, 1 at a time" in said
    assert "trial 0: validation AUC" in said
    assert "saved in runs/words-tune: trials.csv, best.json, history.png, importance.png" in said
    for picture in ("history.png", "importance.png"):
        assert (folder / "runs" / "words-tune" / picture).read_bytes().startswith(b"\x89PNG")
    trained = run_vgae(*lines[-1].split()[5:], "--no-verdict", "--json", cwd=folder)
    assert strict_json(trained.stdout)["validation"]["auc"] == float(best["score"])


def test_json_has_the_same(folder: Path) -> None:
    again = run_vgae("tune", "words.npz", "--val", "0.2", "--trials", "12", *SHORT, "--resume", "--json", cwd=folder)
    assert (again.returncode, again.stderr) == (0, "")
    found = strict_json(again.stdout)
    rows = rows_of(folder / "runs" / "words-tune")
    assert (found["trials"], found["complete"] + found["pruned"] + found["failed"]) == (12, 12)
    assert found["best"]["validation"]["auc"] == max(float(row["score"]) for row in rows if row["state"] == "complete")
    assert set(found["presets"]) == {"paper", "accurate"}
    assert found["importance"]
    assert found["config"] == "runs/words-tune/best.json"


def started(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The search in a process of its own, in which no test has registered a part that would be searched too."""
    command = [sys.executable, "-m", "vgae", "tune", "words.npz", "--trials", "9", *LONG, *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def killed_after(trials: int, how: signal.Signals, cwd: Path) -> tuple[int, str]:
    """The search, ended by a signal after so many trials; its exit code and what it said."""
    command = [sys.executable, "-m", "vgae", "tune", "words.npz", "--trials", "9", *LONG, "--out", "killed", "--resume"]
    with subprocess.Popen(
        command, cwd=cwd, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c, start_new_session=True
    ) as process:
        assert process.stderr is not None
        journal = cwd / "killed" / JOURNAL
        wait_until(lambda: journal.exists() and len(ENDED.findall(journal.read_text())) >= trials)
        os.killpg(process.pid, how)
        said = process.stderr.read()
    return process.returncode, said


@pytest.mark.skipif(sys.platform == "win32", reason="it has no such signals")
def test_killed_twice_and_interrupted_a_search_ends_with_each_trial_once(folder: Path) -> None:
    assert killed_after(2, signal.SIGKILL, folder)[0] == -signal.SIGKILL
    assert killed_after(4, signal.SIGKILL, folder)[0] == -signal.SIGKILL
    code, said = killed_after(6, signal.SIGINT, folder)
    assert code == 130
    stored = len(rows_of(folder / "killed"))
    assert 6 <= stored < 9
    words = f"vgae: Interrupted after {stored} of 9 trials; the search is stored in killed. To continue, run: vgae tune"
    assert said.splitlines()[-1].startswith(words)
    assert said.splitlines()[-1].endswith("--resume")
    done = started("--out", "killed", "--resume", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert f"continuing after {stored} trials of 9" in done.stderr
    assert "comparing the best trials again, on other links: 4 trainings" in done.stderr
    assert "Best by validation AUC and 2 other sets of links (mean " in done.stdout
    assert [row["trial"] for row in rows_of(folder / "killed")] == [str(number) for number in range(9)]
    whole = started("--out", "whole", cwd=folder)
    assert whole.returncode == 0, whole.stderr
    timed = ("seconds",)
    for one, other in zip(rows_of(folder / "killed"), rows_of(folder / "whole"), strict=True):
        assert {name: value for name, value in one.items() if name not in timed} == {
            name: value for name, value in other.items() if name not in timed
        }


def test_interrupted_before_a_trial_ended_it_says_how_to_continue(folder: Path, tmp_path: Path) -> None:
    asked = ("tune", str(folder / "words.npz"), "--trials", "2", *SHORT, "--out", "search")
    with (  # Ctrl-C in the first trial; the process, which is that of the tests, is not ended
        patch.object(study.Study, "finished", side_effect=KeyboardInterrupt),
        patch.object(os, "_exit", side_effect=SystemExit),
    ):
        last = run_vgae(*asked, cwd=tmp_path).stderr.strip().splitlines()[-1]
    assert last.startswith("vgae: Interrupted before a trial ended; the search is stored in search. To continue, run: ")
    assert last.endswith("--resume")
    assert_refused(run_vgae(*asked, "--json", cwd=tmp_path), "a search is there already; --resume to continue it")
    assert run_vgae(*asked, "--resume", cwd=tmp_path).returncode == 0
    assert len(rows_of(tmp_path / "search")) == 2


def test_no_command_reads_a_test_link(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Unreadable:
        def __getattribute__(self, name: str) -> NoReturn:
            raise AssertionError(f"{name} of the test pairs was asked for")

        def __len__(self) -> NoReturn:
            raise AssertionError("the number of test pairs was asked for")

    def without_test(*given: Any, **options: Any) -> Any:
        return replace(split_links(*given, **options), test=cast(HeldOut, Unreadable()))

    monkeypatch.setattr("vgae.cli.opening.split_links", without_test)
    arguments = ("tune", str(folder / "words.npz"), "--trials", "3", *SHORT, "--by", "precision@5", "--out", "search")
    found = run_vgae(*arguments, cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    trained = run_vgae("train", str(folder / "words.npz"), "--iterations", "2", "--out", "run", cwd=tmp_path)
    assert trained.returncode == 1  # the guard guards
    assert "of test pairs was asked for" in trained.stderr or "of the test pairs was asked for" in trained.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--search", "latent_dim=9..3"], "search: latent_dim=9..3 is empty"),
        (["--search", "encoder"], "search: 'encoder' is not understood; write encoder=gcn,mlp"),
        (["--search", "beta=1..2", "--search", "beta=2..3"], "search: beta is given twice"),
        (["--search", "beta=1..2", "--beta", "1"], "search: beta has one value already"),
        (["--search", "prior=mixture", "--search", "posterior=delta"], "search: the space is empty"),
        (["--search", "decoder__sacle=1..2"], "no decoder that is searched has such an option"),
        (["--by", "f1"], "by: 'f1' is not one of auc, ap and precision@K"),
        (["--val", "0"], "there are no validation links to search by"),
        (["--trials", "0"], "trials: a whole number"),
        (["--out", "words.npz"], "this is a file, not a folder"),
        (["--out", "other"], "this folder is used for something else"),
        (["--out", "runs/words-tune"], "a search is there already; --resume to continue it, --overwrite"),
        (["--out", "runs/words-tune", "--resume"], "another one (different: graph, validation, space)"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, arguments: list[str], words: str) -> None:
    (folder / "other").mkdir(exist_ok=True)
    (folder / "other" / "notes.txt").touch()
    out = () if "--out" in arguments else ("--out", "new")
    assert_refused(run_vgae("tune", "words.npz", "--json", *arguments, *out, cwd=folder), words)
    assert not (folder / "runs" / "words-tune" / LOCK).exists()
    assert not (folder / "new").exists()


def test_two_searches_do_not_share_a_folder(folder: Path, tmp_path: Path) -> None:
    place = tmp_path / "search"
    place.mkdir()
    arguments = ("tune", str(folder / "words.npz"), "--trials", "2", *SHORT, "--json", "--out", "search")
    with locked(place / LOCK, "taken"):
        assert_refused(run_vgae(*arguments, cwd=tmp_path), "search: another process is searching into this folder")
    assert run_vgae(*arguments, cwd=tmp_path).returncode == 0
    (place / "notes.txt").write_text("mine")
    other = run_vgae(*arguments, "--overwrite", "--by", "ap", cwd=tmp_path)
    assert other.returncode == 0, other.stderr
    assert strict_json(other.stdout)["by"] == "ap"
    assert (place / "notes.txt").read_text() == "mine"


def test_without_optuna_it_says_how_to_install_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> NoReturn:
        raise ImportError(name)

    monkeypatch.setattr(study, "import_module", missing)
    assert_refused(run_vgae("tune", "words.npz", cwd=folder), "optuna", "pip install 'vgae[tune]'")


def test_without_matplotlib_there_are_no_pictures(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    found = run_vgae("tune", str(folder / "words.npz"), "--trials", "2", *SHORT, "--out", "search", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "no pictures: Pictures need matplotlib" in found.stderr
    assert not (tmp_path / "search" / "history.png").exists()
    assert (tmp_path / "search" / "best.json").exists()
