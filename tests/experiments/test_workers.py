"""Workers give their results, end with their parent however it ends, and are told of when they are killed."""

import os
import signal
import subprocess
import sys
import threading
from contextlib import closing
from multiprocessing import active_children
from pathlib import Path

import pytest

from command import run_vgae
from jobs import Job, do
from processes import children_of, hear_ctrl_c, is_running, wait_until
from vgae.errors import InputError
from vgae.workers import WorkerKilledError, results_of

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")


def test_every_task_has_its_result_whatever_the_number_of_workers() -> None:
    for num_workers in (1, 3):
        found = dict(results_of(do, [Job(number) for number in range(7)], num_workers=num_workers))
        assert found == {number: number**2 for number in range(7)}
    assert list(results_of(do, [], num_workers=2)) == []
    assert active_children() == []


@pytest.mark.parametrize(
    ("deed", "kind", "words"),
    [
        ("refuse", InputError, r"job 1 is refused\."),
        ("fail", RuntimeError, "KeyError: 1"),
        ("memory", MemoryError, "all of it"),
        ("exit", WorkerKilledError, "A worker ended with exit code 7 while it ran Job"),
        ("SIGKILL", WorkerKilledError, "A worker was killed while it ran Job.*, most likely because memory ran out"),
        ("SIGSEGV", WorkerKilledError, "A worker was ended by SIGSEGV while it ran Job"),
    ],
)
def test_what_goes_wrong_in_a_worker_is_raised_and_ends_the_others(
    deed: str, kind: type[Exception], words: str
) -> None:
    jobs = [Job(0), Job(1, deed), *(Job(number) for number in range(2, 5))]
    with pytest.raises(kind, match=words) as caught:
        list(results_of(do, jobs, num_workers=1))
    assert ("in do" in "".join(getattr(caught.value, "__notes__", []))) == (kind is not WorkerKilledError)
    assert active_children() == []


def test_workers_end_when_nobody_wants_more() -> None:
    with closing(results_of(do, [Job(number) for number in range(9)], num_workers=2)) as results:
        next(results)
        assert len(active_children()) == 2
    assert active_children() == []


SCRIPT = """
import os, sys, time
from pathlib import Path
from vgae.workers import results_of

def work(number):
    Path(sys.argv[1], str(number)).write_text(str(os.getpid()))
    while number % 2:
        pass
    time.sleep(600)

if __name__ == "__main__":
    for _ in results_of(work, range(2), num_workers=2):
        pass
"""


@LINUX
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_its_parent(tmp_path: Path, how: signal.Signals) -> None:
    """One of them sleeps, the other is busy; Ctrl-C comes as a terminal sends it, to all processes at once."""
    (tmp_path / "script.py").write_text(SCRIPT)
    (tmp_path / "pids").mkdir()
    command = [sys.executable, "script.py", "pids"]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c, start_new_session=True
    ) as parent:
        assert parent.stderr is not None
        wait_until(lambda: all((tmp_path / "pids" / name).exists() for name in "01"))
        wait_until(lambda: all((tmp_path / "pids" / name).read_text() for name in "01"))
        workers = [int((tmp_path / "pids" / name).read_text()) for name in "01"]
        if how is signal.SIGINT:
            os.killpg(parent.pid, how)
        else:
            os.kill(parent.pid, how)
        said = parent.stderr.read()  # to the end: the workers have it open, too
    wait_until(lambda: not any(map(is_running, workers)))
    assert said.count("Traceback") == (how is signal.SIGINT)  # the script's own; the workers say nothing
    assert "resource_tracker" not in said


@LINUX
def test_ctrl_c_tells_what_is_stored_and_how_to_continue(tmp_path: Path) -> None:
    arguments = ["reproduce", "--dataset", "pubmed", "--model", "VGAE", "--runs", "2", "--out", "a b"]
    command = [sys.executable, "-m", "vgae", *arguments]
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=hear_ctrl_c, start_new_session=True
    ) as parent:
        assert parent.stderr is not None
        wait_until(lambda: len(children_of(parent.pid)) >= 2)  # one of them is Python's resource tracker
        workers = children_of(parent.pid)
        os.killpg(parent.pid, signal.SIGINT)
        said = parent.stderr.read()
    assert parent.returncode == 130
    assert said == (
        "vgae: Interrupted; 0 of 2 results are stored in a b. To continue, run: vgae reproduce --dataset pubmed "
        "--model VGAE --runs 2 --out 'a b'\n"
    )
    wait_until(lambda: not any(map(is_running, workers)))


def test_killed_worker_is_told_with_what_is_stored(tmp_path: Path) -> None:
    arguments = ["reproduce", "--dataset", "cora", "--model", "GAE*", "--runs", "2", "--figure", "none", "--json"]

    def kill_a_worker() -> None:
        wait_until(active_children)
        active_children()[0].kill()

    killer = threading.Thread(target=kill_a_worker)
    killer.start()
    killed = run_vgae(*arguments, cwd=tmp_path)
    killer.join()
    assert (killed.returncode, killed.stdout) == (1, "")
    assert killed.stderr.startswith("vgae: A worker was killed while it ran GAE* on cora (split 0, seed ")
    assert "most likely because memory ran out" in killed.stderr
    assert "of 2 results are stored in results; to continue, run the same command again.\n" in killed.stderr
