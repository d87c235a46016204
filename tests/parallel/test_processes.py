"""The command in many processes, as people start it: with --processes, with torchrun, and with what goes wrong.

Most of it is found out by commanding.py, which loads torch once for many groups of processes.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import vgae
from command import assert_refused, run_vgae, strict_json
from processes import wait_until
from vgae.errors import VgaeError
from vgae.parallel.launch import run_workers

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}
REFUSED = {
    "other version": ["Rank 1", "has vgae 9.0", "rank 0 has", "install the same version everywhere"],
    "other option": ["Rank 1", "learning_rate 0.5, not 0.01", "same options"],
    "other graph": ["Rank 1", "another training graph", "same files"],
    "no file": ["Rank 1", "none.csv"],
    "no file anywhere": ["vgae: ", "none.csv"],
    "more processes than nodes": ["processes: 4", "more than", "3"],
    "batches": ["--batch-size", "several processes"],
    "seeds": ["--seeds", "several processes"],
    "a part": ["encoder", "directed", "gcn"],
    "number": ["processes", "torchrun has started 2, not 3"],
    "command": ["evaluate", "one process"],
    "option": ["--none"],
    "busy port": ["MASTER_PORT", "in use", "free"],
    "folder": ["full", "already used"],
}


def found_by(place: Path, *cases: str) -> dict[str, Any]:
    """What commanding.py finds, by its cases."""
    command = [sys.executable, str(Path(__file__).with_name("commanding.py")), ",".join(cases), str(place)]
    done = subprocess.run(command, env=ONE_THREAD, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_groups_do_what_one_process_does_or_say_why_not(tmp_path: Path) -> None:
    found = found_by(tmp_path, "agree", "script", "resume", "refuse")
    for case in found["agree"].values():
        assert_agreement(case)
    _, once, twice = found["agree"]["sampled GAE"]["content"]
    assert once == twice  # the same number of processes, the same bits
    assert_fitted(found["script"])
    for name, case in found["resume"].items():
        assert_continued(name, case)
    nobody = found["refuse"].pop("nobody comes")
    assert set(found["refuse"]) == set(REFUSED)
    for name, words in REFUSED.items():
        assert_one_sentence(found["refuse"][name], words)
    assert nobody["codes"] == [1]
    assert "Rank 1 does not answer: 0.5 s have passed" in nobody["said"][0]


def assert_agreement(case: dict[str, Any]) -> None:
    """Embeddings and history as one process has them; the first process speaks, and the others are silent."""
    assert max(case["far"]) < 1e-5
    one, *groups = case["content"]
    for group in groups:
        assert group["files"] == one["files"]
        for theirs, own in zip(group["history"], one["history"], strict=True):
            assert theirs == pytest.approx(own, rel=1e-5)
    [alone], *said = case["said"]
    for first, *others in said:
        assert first[0] == alone[0]  # the table of scores
        assert "objective: " in first[1]
        assert first[1].count("saved in") == 1
        assert others == [["", ""]] * len(others)


def assert_fitted(case: dict[str, Any]) -> None:
    """A script of two processes was killed, started again, and has one model, in the first of them."""
    assert -signal.SIGKILL in case["codes"][0], case
    assert case["codes"][1] == [0, 0], case
    assert 1 <= case["kept"] < 12
    assert [out.split() for out in case["out"]] == [["True", "0", "2"], ["False", "1", "2"]], case
    assert case["said"] == ["", ""]
    assert case["far"] < 1e-5
    assert "config.json" in case["files"]
    assert "checkpoint" not in case["files"]


def assert_continued(name: str, case: dict[str, Any]) -> None:
    """Another number of processes has continued a training that was killed, and said that bits may differ."""
    assert -signal.SIGKILL in case["codes"], name
    assert 1 <= case["kept"] < 12, name
    assert "may differ in the last bits" in case["said"], name
    assert f"continuing after iteration {case['kept']}" in case["said"], name
    assert case["far"] < 1e-5, name
    assert "checkpoint" not in case["left"], name


def assert_one_sentence(case: dict[str, Any], words: list[str]) -> None:
    """The first process has said why, the others nothing; nothing is left."""
    assert case["codes"][0] == 2, case
    assert 0 not in case["codes"], case
    first, *others = case["said"]
    assert first.startswith("vgae: "), case
    assert len(first.splitlines()) == 1, case
    assert all(word in first for word in words), case
    assert set(others) <= {""}, case
    assert set(case["out"]) == {""}, case
    assert not case["left"], case


def test_processes_that_are_killed_or_hang_lose_nothing(tmp_path: Path) -> None:
    found = found_by(tmp_path, "kill", "hang", "orphans", "agents")
    assert found["kill"]["wrong"] == []
    assert {0, 1} <= set(found["kill"]["kept"])
    for stopped, speaker in (("0", 1), ("2", 0)):
        assert_named(found["hang"][stopped], int(stopped), speaker)
    assert not found["orphans"]["is running"]
    agents = found["agents"]
    assert agents["codes"] == [0, 0], agents
    assert len(agents["at"]) == 2, agents
    assert agents["same bits"], agents


def assert_named(case: dict[str, Any], stopped: int, speaker: int) -> None:
    """A process that hangs is named by one of the others, and ended; all of them fail."""
    codes, said = case["codes"], case["said"]
    assert codes == [-signal.SIGKILL if rank == stopped else 1 for rank in range(3)], case
    name = f"Rank {stopped} (process {case['numbers'][stopped]} on "
    assert [rank for rank, words in enumerate(said) if name in words and "does not answer" in words] == [speaker], case
    assert "".join(said).count("vgae: ") == 1, case
    assert not case["complete"]


# ---------------------------------------------------------------------------------------------------------- --processes


def test_what_does_not_go_with_processes_is_refused(tmp_path: Path) -> None:
    assert_refused(run_vgae("train", "cora", "--processes", "0", cwd=tmp_path), "processes", "0")
    for option in (["--seeds", "2"], ["--compare"], ["--batch-size", "100"]):
        result = run_vgae("train", "cora", "--processes", "2", *option, cwd=tmp_path)
        assert_refused(result, option[0], "several processes")
    assert_refused(run_vgae("train", "cora", "--timeout", "0", cwd=tmp_path), "timeout")
    assert_refused(run_vgae("train", "cora", "--model", "stack", "--processes", "2", cwd=tmp_path), "--processes")


def test_processes_make_a_run_like_any_other(tmp_path: Path) -> None:
    vgae.write_graph(tmp_path / "graph.npz", vgae.stochastic_block_model(60, 3, feature_dim=6, seed=4))
    options = ["train", "graph.npz", "--preset", "paper", "--iterations", "20", "--no-verdict", "--json"]
    command = [sys.executable, "-m", "vgae", *options, "--processes", "2", "--out", "two"]
    done = subprocess.run(command, cwd=tmp_path, env=ONE_THREAD, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    alone = run_vgae(*options, "--out", "one", cwd=tmp_path)
    together, one = strict_json(done.stdout), strict_json(alone.stdout)
    assert together["test"] == pytest.approx(one["test"], abs=1e-3)
    found, expected = (vgae.load(tmp_path / name).transform() for name in ("two", "one"))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    for words in (["evaluate", "two"], ["recommend", "two", "--top", "3"]):
        assert run_vgae(*words, "--json", cwd=tmp_path).returncode == 0


def test_a_plan_of_processes_tells_what_each_needs_and_sends(tmp_path: Path) -> None:
    vgae.write_graph(tmp_path / "graph.npz", vgae.stochastic_block_model(3000, 3, seed=4))
    plan = ["plan", "graph.npz", "--preset", "paper", "--json"]
    alone, group = (strict_json(run_vgae(*plan, *more, cwd=tmp_path).stdout) for more in ([], ["--processes", "3"]))
    for objective in ("exact", "sampled"):
        assert group[objective]["bytes"] < alone[objective]["bytes"]
        assert group[objective]["sent_bytes"] > 0
    assert_refused(run_vgae(*plan, "--processes", "3001", cwd=tmp_path), "processes", "3001", "3000")


def run_python(code: str) -> int:
    """Three processes of a little program."""
    start = "import os, signal, time; rank = os.environ['RANK']; "
    return run_workers([sys.executable, "-S", "-c", start + code], 3, patience=5)


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("pass", 0),
        ("os._exit(2 if rank == '0' else 0)", 2),
        ("os._exit(2) if rank == '1' else time.sleep(60)", 2),
        ("os._exit(2 if rank == '0' else 1)", 2),
    ],
)
def test_the_exit_code_is_that_of_the_lowest_rank_that_fails(code: str, exit_code: int) -> None:
    before, handler = dict(os.environ), signal.getsignal(signal.SIGINT)
    assert run_python(code) == exit_code
    assert signal.getsignal(signal.SIGINT) is handler
    assert {**os.environ, "TORCHELASTIC_SIGNALS_TO_HANDLE": ""} == {**before, "TORCHELASTIC_SIGNALS_TO_HANDLE": ""}


def test_a_worker_that_is_killed_is_named() -> None:
    with pytest.raises(VgaeError, match="Rank 2 was ended by SIGKILL, most likely because memory ran out"):
        run_python("os.kill(os.getpid(), 9) if rank == '2' else time.sleep(60)")


# Ctrl-C comes at any moment: what torchrun's code has open just then, it leaves to Python to close.
@pytest.mark.filterwarnings("ignore:(?s).*ResourceWarning:pytest.PytestUnraisableExceptionWarning")
def test_ctrl_c_reaches_the_workers_which_end_by_themselves(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    code = f"signal.signal(signal.SIGINT, lambda *_: os._exit(130)); open(f'{ready}{{rank}}', 'w'); time.sleep(60)"

    def press() -> None:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 3)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    assert run_python(code) == 130
    thread.join()
