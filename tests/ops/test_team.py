"""Threads that take part in a kernel: every part is done once, whoever is there, and nobody waits for who is not."""

import os
import sys
import threading
import time
from typing import Any

import numpy as np
import pytest

pytest.importorskip("numba")
from vgae.machine import helpers, in_threads
from vgae.ops import numba_tools, team
from vgae.ops.numba_tools import compiled
from vgae.ops.team import (
    APART,
    Team,
    ask_helpers,
    call,
    first_part,
    get,
    new_counts,
    part_after,
    put,
    wait_for_all,
    with_helpers,
)

SEVERAL = pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="there is no other thread to take part")


@compiled()
def _add_up(counts: Any, numbers: Any, sums: Any, times: Any) -> None:
    """Two phases: each number by its part, and then from what the first phase has of the others."""
    num_parts = len(sums)
    part = first_part(counts, 0)
    while part < num_parts:
        times[0, part] += 1
        for _ in range(50):
            sums[part] = 0.0
            for place in range(numbers.shape[1]):
                sums[part] += numbers[part, place]
        part = part_after(counts, 0)
    wait_for_all(counts, 0, num_parts)
    part = first_part(counts, 1)
    while part < num_parts:
        times[1, part] += 1
        numbers[part, 0] = sums.sum()
        part = part_after(counts, 1)
    wait_for_all(counts, 1, num_parts)


@compiled()
def _add_up_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _add_up, arguments)


def check(num_parts: int, seed: int, caller: Team | None = None, num: int | None = None) -> Team:
    numbers = np.random.default_rng(seed).integers(0, 100, (num_parts, 20)).astype(np.float64)
    expected, sums, times = numbers.sum(axis=1), np.full(num_parts, np.nan), np.zeros((2, num_parts), np.int64)
    given = new_counts(2), numbers, sums, times
    together = caller or team._team()
    together.call(_add_up_together, given, len(helpers()) if num is None else num)
    assert (times == 1).all()
    assert (sums == expected).all()
    assert (numbers[:, 0] == expected.sum()).all()
    return together


@pytest.mark.parametrize("num_parts", [1, 2, 7, 100])
@pytest.mark.parametrize("pause", [0.0, 1e-4, 2e-3])
def test_every_part_is_done_once(num_parts: int, pause: float) -> None:
    """One call after the other, and with pauses in which helpers look out for a while, or go to sleep."""
    for turn in range(200 if not pause else 20):
        check(num_parts, turn)
        time.sleep(pause)


@pytest.mark.parametrize("num", [0, 1, 2, 5])
def test_with_any_number_of_helpers(num: int) -> None:
    """More than there are cores, too."""
    several = Team([type(helpers()[0])() for _ in range(num)] if num and helpers() else [])
    for turn in range(50):
        check(9, turn, several, num)


@pytest.mark.parametrize("num_parts", [1, 100])
def test_nobody_begins_when_a_call_is_over(num_parts: int) -> None:
    """A helper that comes late must not find what it was asked for: the arguments are gone."""
    for turn in range(100):
        board = check(num_parts, turn).board
        assert (board[APART + team.JOB :: APART] == team.NONE).all()
        assert board[0] == 0


@compiled()
def _ask(board: Any) -> Any:
    return ask_helpers(board, 1, (5, 6))


def test_helpers_are_one_threads_at_a_time() -> None:
    """While a thread asks them, another is refused, and changes nothing that was said."""
    board = np.zeros(2 * APART, np.int64)
    assert _ask(board)
    asked = [team.ASKED, 5, 6, 0]
    assert board[0] == 1
    assert board[APART : APART + 4].tolist() == asked
    board[APART + team.FUNCTION] = 7
    assert not _ask(board)
    assert board[APART + team.FUNCTION] == 7


def test_nothing_is_kept_of_a_call() -> None:
    given = new_counts(2), np.ones((3, 20)), np.zeros(3), np.zeros((2, 3), np.int64)
    before = [sys.getrefcount(each) for each in given]
    for _ in range(10):
        call(_add_up_together, given, few=False)
    assert [sys.getrefcount(each) for each in given] == before


@compiled()
def _meet(counts: Any, begun: Any, met: Any) -> None:
    """Each of two parts waits a while for the other to begin, which it does only if another thread has it."""
    part = first_part(counts, 0)
    while part < 2:
        put(begun, part * APART, 1)
        looks = 0
        while not get(begun, (1 - part) * APART) and looks < 100_000:
            looks += 1
        met[part] = looks < 100_000
        part = part_after(counts, 0)
    wait_for_all(counts, 0, 2)


@compiled()
def _meet_together(board: Any, num: int, arguments: Any) -> None:
    with_helpers(board, num, _meet, arguments)


@SEVERAL
def test_a_helper_takes_part() -> None:
    """Alone, the thread that calls has both parts, and the first waits in vain."""
    met = np.zeros(2)
    together = team._team()
    together.call(_meet_together, (new_counts(1), np.zeros(2 * APART, np.int64), met), 0)
    assert met.tolist() == [0, 1]
    until = time.monotonic() + 60
    while not met.all() and time.monotonic() < until:
        together.call(_meet_together, (new_counts(1), np.zeros(2 * APART, np.int64), met), 1)
    assert met.all()


@SEVERAL
def test_a_helper_goes_to_sleep() -> None:
    check(10, 0)
    until = time.monotonic() + 60
    while not helpers()[0].idle and time.monotonic() < until:
        time.sleep(0.001)
    assert helpers()[0].idle
    assert team._team().board[APART + team.PRESENT] == 0


def test_several_threads_call_at_once() -> None:
    """Helpers work for one of them; the others work alone, and none disturbs another."""
    failed: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for turn in range(200):
                check(11, 1000 * seed + turn)
        except BaseException as error:  # noqa: BLE001 - told below
            failed.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_work_of_python_dismisses_those_that_look_out() -> None:
    """Both kinds of work in turn, as in a step of training, by the same threads."""
    for turn in range(100):
        check(10, turn)
        names = in_threads(lambda _: threading.current_thread().name, 2)
        assert len(names) == 2
        check(3, turn)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked there")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_process_has_helpers_of_its_own() -> None:
    check(10, 0)
    child = os.fork()
    if child == 0:
        try:
            for turn in range(20):
                check(10, turn)
            os._exit(0)
        finally:
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_kernels_on_disk_are_made_again_when_what_they_call_has_changed() -> None:
    """Numba asks whether a kernel's own file has changed; else code of two versions would meet."""
    stamp, others = numba_tools.compiled()(_add_up.py_func)._cache._cache_file._source_stamp  # type: ignore[attr-defined]
    assert stamp
    assert {"numba_tools.py", "team.py", "product_kernels.py"} <= {name for name, _, _ in others}
