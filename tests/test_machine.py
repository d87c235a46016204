"""Threads of our own, which share out work."""

import os

import pytest

from vgae.machine import in_threads


def test_work_is_done_by_every_thread_and_what_it_raises_is_raised() -> None:
    assert in_threads(lambda number: number**2, 5) == [0, 1, 4, 9, 16]

    def refuse(number: int) -> None:
        if number == 1:
            raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        in_threads(refuse, 2)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes are forked there")
def test_a_forked_process_has_threads_of_its_own() -> None:
    in_threads(lambda _: None, 2)
    child = os.fork()
    if child == 0:
        os._exit(0 if in_threads(lambda number: number, 2) == [0, 1] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
