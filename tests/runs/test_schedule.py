"""When checkpoints are due: writing takes its share of the time, by a clock that the tests have in hand."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vgae
from vgae.errors import InputError
from vgae.runs.schedule import PAUSE, SHARE, SLOW_DISK, Schedule


@given(st.lists(st.floats(0.001, 50), min_size=1, max_size=30), st.floats(0.001, 5), st.floats(0.01, 100))
def test_writing_takes_its_share_of_the_time_and_no_more(
    durations: list[float], guess: float, iteration: float
) -> None:
    """But for what a write takes longer than the last one, however slow the file system is or becomes."""
    now, spent, expected, last = 0.0, 0.0, guess, 0.0
    schedule = Schedule(guess * SLOW_DISK, clock=lambda: now)
    for seconds in durations:
        while not schedule.due():
            now += iteration if iteration > PAUSE else PAUSE / 3
        assert now - last >= PAUSE
        assert spent + min(seconds, expected) <= SHARE * now * (1 + 1e-9)
        now += seconds
        spent, expected, last = spent + seconds, seconds, now
        schedule.wrote(seconds)
    assert not schedule.due()


def test_the_first_checkpoint_waits_for_its_size_and_the_second_for_its_time() -> None:
    now = 0.0
    schedule = Schedule(0.05 * SLOW_DISK, clock=lambda: now)
    due = []
    for now in range(1, 500):
        if schedule.due():
            due.append(now)
            schedule.wrote(1.0)
    assert due == [PAUSE, 200, 300, 400]


@pytest.mark.parametrize(("every", "expected"), [(0, [1, 2, 3, 4, 5]), (2, [2, 4])])
def test_a_fixed_pause_is_observed(every: float, expected: list[int]) -> None:
    now = 0
    schedule = Schedule(1e17, every=every, clock=lambda: now)
    due = []
    for now in range(1, 6):
        if schedule.due():
            due.append(now)
            schedule.wrote(0.0)
    assert due == expected


@pytest.mark.parametrize("every", [-1, float("nan"), float("inf"), "often"])
def test_impossible_pauses_are_named(tmp_path: Path, every: Any) -> None:
    with pytest.raises(InputError, match="checkpoint_every: a number of at least 0 is needed"):
        vgae.GAE(iterations=1).fit([(0, 1), (1, 2)], checkpoint=tmp_path / "checkpoint", checkpoint_every=every)
    assert list(tmp_path.iterdir()) == []
