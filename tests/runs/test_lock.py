"""One folder has one writer at a time, and a process that was killed is none."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

import vgae
from vgae.errors import InputError
from vgae.runs.files import write_run
from vgae.runs.folder import new_run_folder
from vgae.runs.lock import locked
from vgae.runs.opened import FILES


def test_second_writer_is_refused_until_the_first_is_gone_even_if_killed(tmp_path: Path) -> None:
    code = f"""
import time
from pathlib import Path
from vgae.runs.lock import locked
with locked(Path({str(tmp_path / "lock")!r}), "taken"):
    print("held", flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="taken"), locked(tmp_path / "lock", "taken"):
            pass
        first.send_signal(signal.SIGKILL)
        first.wait()
    assert (tmp_path / "lock").exists()  # but nobody holds it
    with (
        locked(tmp_path / "lock", "taken"),
        pytest.raises(InputError, match="taken"),
        locked(tmp_path / "lock", "taken"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


def test_one_folder_has_one_writer(tmp_path: Path) -> None:
    model = vgae.GAE(iterations=1).fit([(0, 1), (1, 2)])
    with new_run_folder(tmp_path / "run"):
        with pytest.raises(InputError, match="another process is writing this run"):
            model.save(tmp_path / "run", overwrite=True)
        (tmp_path / "run" / "checkpoint" / "checkpoint.json").write_text("{}")
        with pytest.raises(InputError, match="another process is writing this run"):
            model.save(tmp_path / "run")
        (tmp_path / "run" / "checkpoint" / "checkpoint.json").unlink()
        write_run(tmp_path / "run" / "checkpoint" / "run", model.to_run())
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == sorted(["config.json", *FILES])


def test_lock_that_is_let_go_while_another_waits_for_it_is_not_held_twice(tmp_path: Path) -> None:
    """Many threads take the lock in turn; if two ever held it at once, they would count wrong."""
    path, taken, inside, most = tmp_path / "lock", [0], [0], [0]

    def take_turns() -> None:
        for _ in range(200):
            with suppress(InputError), locked(path, "taken"):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                taken[0] += 1
                time.sleep(0.0001)
                inside[0] -= 1

    threads = [threading.Thread(target=take_turns) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most[0] == 1
    assert taken[0] > 0
