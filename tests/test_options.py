"""Checks of single options: what is taken comes back plain, and what is not is named, however strange it is."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers import message_of
from vgae.options import number, one_of, true_or_false, whole_number


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5))
def test_whole_numbers_are_taken_between_their_bounds(value: int, least: int, most: int) -> None:
    if least <= value <= most:
        assert whole_number(np.int16(value), "k", least, most) == value
    else:
        assert message_of(lambda: whole_number(value, "k", least, most)).endswith(f"is needed, got {value}.")


@pytest.mark.parametrize("value", [4, np.int8(4), np.uint64(4), np.array(4), torch.tensor(4)], ids=repr)
def test_any_kind_of_integer_is_a_plain_whole_number(value: Any) -> None:
    assert type(whole_number(value, "k", 0)) is int
    assert whole_number(value, "k", 4, 4) == 4


HUGE = 10**5000  # which Python refuses to write out


@pytest.mark.parametrize(
    "check",
    [
        lambda: whole_number(HUGE, "k", 0, 9),
        lambda: number(HUGE, "k"),
        lambda: true_or_false(HUGE, "k"),
        lambda: one_of(HUGE, "k", ("a", "b")),
    ],
    ids=["whole_number", "number", "true_or_false", "one_of"],
)
def test_a_number_too_long_to_be_written_is_refused_in_short(check: Any) -> None:
    message = message_of(check)
    assert message.startswith("k: ")
    assert "a number of 16610 bits" in message
    assert len(message) < 100
