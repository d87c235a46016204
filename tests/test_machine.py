"""Threads of our own, which share out work."""

import os
import threading

import pytest

from vgae.machine import helpers, in_threads


def test_work_is_done_by_every_thread_and_what_it_raises_is_raised() -> None:
    assert in_threads(lambda number: number**2, 5) == [0, 1, 4, 9, 16]

    def refuse(number: int) -> None:
        if number == 1:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_threads(refuse, 2)


def test_numbers_that_no_thread_has_begun_are_done_here() -> None:
    """Other threads may be busy, or there may be none: work is done all the same, each number once."""
    begun, free = [helper for helper in helpers() if helper.idle], threading.Event()
    for helper in begun:
        helper.ask(free.wait)
    done: list[int] = []

    def work(number: int) -> int:
        done.append(number)
        return number

    try:
        assert in_threads(work, 4) == [0, 1, 2, 3]
    finally:
        free.set()
    assert sorted(done) == [0, 1, 2, 3]


def test_work_that_was_not_begun_is_withdrawn() -> None:
    """What nobody waits for any more is not begun later, when a thread comes to it."""
    done: list[int] = []
    for _ in range(200):
        in_threads(done.append, 2)
    assert done.count(0) == done.count(1) == 200
    wanted = threading.Event()
    for helper in helpers():
        helper.ask(wanted.set)
    assert not helpers() or wanted.wait(60)  # they are there for what comes next


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked there")
def test_a_forked_process_has_threads_of_its_own() -> None:
    in_threads(lambda _: None, 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if in_threads(lambda number: number, 2) == [0, 1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
