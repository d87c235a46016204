"""The command in many processes, as people start it: with --processes, with torchrun, and with what goes wrong."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import vgae
from command import assert_refused, run_vgae
from processes import children_of, hear_ctrl_c, is_running, wait_until
from vgae.errors import VgaeError
from vgae.parallel.launch import run_workers

HERE = Path(__file__).parent
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What commanding.py finds, by its cases."""
    cases, place = "agree,resume,kill,refuse,hang,agents", tmp_path_factory.mktemp("commanding")
    command = [sys.executable, str(HERE / "commanding.py"), cases, str(place)]
    done = subprocess.run(command, env=ONE_THREAD, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.parametrize("kind", ["exact VGAE", "sampled GAE"])
def test_groups_find_what_one_process_finds(found: dict[str, Any], kind: str) -> None:
    case = found["agree"][kind]
    assert max(case["far"]) < 1e-4, case["far"]  # of embeddings of about 1
    assert max(case["auc"]) - min(case["auc"]) < 0.001
    assert case["same bits"]
    assert all(files == case["files"][0] for files in case["files"])


@pytest.mark.parametrize("kind", ["exact VGAE", "sampled GAE"])
def test_the_first_process_speaks_and_the_others_are_silent(found: dict[str, Any], kind: str) -> None:
    said = found["agree"][kind]["said"]
    for name in ("two", "three"):
        (first, notes), *others = said[name]
        assert "saved in" in notes
        assert "objective:" in notes
        assert first.replace(" ", "") == said["one"][0][0].replace(" ", "")  # the table of scores
        assert all(each == ["", ""] for each in others)


def test_another_number_of_processes_continues_a_training(found: dict[str, Any]) -> None:
    for name, case in found["resume"].items():
        if name == "took":
            continue
        assert -signal.SIGKILL in case["codes"], name
        assert 1 <= case["kept"] < 12, name
        assert "may differ in the last bits" in case["said"], name
        assert f"continuing after iteration {case['kept']}" in case["said"], name
        assert case["far"] < 1e-4, name
        assert "checkpoint" not in case["left"], name


def test_a_process_killed_before_any_change_to_a_file_leaves_what_can_be_continued(found: dict[str, Any]) -> None:
    assert found["kill"]["wrong"] == []
    assert set(found["kill"]["kept"]) >= {0, 1}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("other version", ["Rank 1", "has vgae 9.0", "rank 0 has", "install the same version everywhere"]),
        ("other option", ["Rank 1", "learning_rate 0.5, not 0.01", "same options"]),
        ("other graph", ["Rank 1", "another training graph", "same files"]),
        ("no file", ["Rank 1", "none.csv"]),
        ("no file anywhere", ["none.csv"]),
        ("more processes than nodes", ["processes: 4", "more than", "3"]),
        ("batches", ["--batch-size", "several processes"]),
        ("seeds", ["--seeds", "several processes"]),
        ("a part", ["encoder", "directed", "gcn"]),
        ("number", ["processes", "torchrun has started 2, not 3"]),
        ("command", ["evaluate", "one process"]),
        ("option", ["--none"]),
        ("busy port", ["MASTER_PORT", "in use", "free"]),
        ("folder", ["full", "already used"]),
    ],
)
def test_what_cannot_be_is_one_sentence_of_the_first_process(
    found: dict[str, Any], name: str, words: list[str]
) -> None:
    case = found["refuse"][name]
    assert case["codes"][0] == 2, case
    assert 0 not in case["codes"], case
    first, *others = case["said"]
    assert first.startswith("vgae: "), case
    assert len(first.splitlines()) == 1, case
    assert all(word in first for word in words), case
    assert set(others) <= {""}, case
    assert set(case["out"]) == {""}, case
    assert not case["left"], case


def test_who_does_not_come_is_named(found: dict[str, Any]) -> None:
    case = found["refuse"]["nobody comes"]
    assert case["codes"] == [1]
    assert "Rank 1 does not answer: 0.5 s have passed" in case["said"][0]


@pytest.mark.parametrize(("stopped", "speaker"), [("0", 1), ("2", 0)])
def test_a_process_that_hangs_is_named_and_ended(found: dict[str, Any], stopped: str, speaker: int) -> None:
    case = found["hang"][stopped]
    codes, said = case["codes"], case["said"]
    assert codes[int(stopped)] == -signal.SIGKILL
    assert [code for rank, code in enumerate(codes) if rank != int(stopped)] == [1, 1], case
    name = f"Rank {stopped} (process {case['numbers'][int(stopped)]} on "
    assert [rank for rank, words in enumerate(said) if name in words and "does not answer" in words] == [speaker], case
    assert "Traceback" not in "".join(said)
    assert not case["complete"]


def test_workers_of_two_agents_killed_again_and_again_end_with_the_same_bits(found: dict[str, Any]) -> None:
    case = found["agents"]
    assert case["codes"] == [0, 0], case
    assert case["killed"] == 3, case
    assert case["same bits"], case


# ---------------------------------------------------------------------------------------------------------- --processes


def test_no_processes_are_refused(tmp_path: Path) -> None:
    assert_refused(run_vgae("train", "cora", "--processes", "0", cwd=tmp_path), "processes", "0")
    for option in (["--seeds", "2"], ["--compare"], ["--batch-size", "100"]):
        result = run_vgae("train", "cora", "--processes", "2", *option, cwd=tmp_path)
        assert_refused(result, option[0], "several processes")
    assert_refused(run_vgae("train", "cora", "--timeout", "0", cwd=tmp_path), "timeout")


def test_processes_are_interrupted_and_continued_together(tmp_path: Path) -> None:
    graph = vgae.stochastic_block_model(60, 3, feature_dim=6, seed=4)
    vgae.write_graph(tmp_path / "graph.npz", graph)
    options = ["--preset", "paper", "--no-verdict", "--no-features", "--checkpoint-every", "0", "--out", "run"]
    command = [sys.executable, "-m", "vgae", "train", "graph.npz", *options, "--processes", "2"]
    first = [*command, "--iterations", "1000000"]
    with subprocess.Popen(
        first, cwd=tmp_path, env=ONE_THREAD, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c
    ) as started:
        wait_until((tmp_path / "run" / "checkpoint" / "checkpoint.json").exists)
        workers = children_of(started.pid)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    assert started.returncode == 130, said
    assert said.count("To continue, run: vgae train graph.npz") == 1, said
    assert "Traceback" not in said
    assert len(workers) == 2
    assert not any(map(is_running, workers))
    assert (tmp_path / "run" / "checkpoint" / "state-1-1.safetensors").exists() is False  # an older one


def run_python(code: str, processes: int = 3) -> int:
    return run_workers(
        [sys.executable, "-S", "-c", f"import os, signal, time; rank = os.environ['RANK']; {code}"],
        processes,
        patience=5,
    )


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("pass", 0),
        ("os._exit(2 if rank == '0' else 0)", 2),
        ("os._exit(2) if rank == '1' else time.sleep(60)", 2),
        ("os._exit(2 if rank == '0' else 1)", 2),
    ],
)
def test_the_exit_code_is_that_of_the_first_that_fails(code: str, exit_code: int) -> None:
    assert run_python(code) == exit_code


def test_a_worker_that_is_killed_is_named() -> None:
    with pytest.raises(VgaeError, match="Rank 2 was ended by SIGKILL, most likely because memory ran out"):
        run_python("os.kill(os.getpid(), 9) if rank == '2' else time.sleep(60)")
