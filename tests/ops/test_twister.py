"""A generator that is moved on by many words has the state of one that has drawn them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numba")

from vgae.ops import twister_kernels
from vgae.ops.twister_kernels import N, is_known, pass_over

WORDS = st.one_of(st.sampled_from([0, 1, N - 1, N, N + 1, 2 * N - 1, 2 * N, 2 * N + 1]), st.integers(0, 5000))
# Normal numbers one by one are made in pairs, of which the second is kept for later; sixteen and more are not.
DRAWS = st.tuples(st.sampled_from([torch.rand, torch.randn]), st.sampled_from([1, 3, 16, 100]))


@given(st.integers(0, 2**63 - 1), st.lists(st.tuples(WORDS, DRAWS), min_size=1, max_size=6))
def test_whatever_is_drawn_between(seed: int, steps: list[tuple[int, tuple[object, int]]]) -> None:
    moved, drawn = (torch.Generator().manual_seed(seed) for _ in range(2))
    for num_words, (draw, number) in steps:
        pass_over(moved, num_words)
        torch.empty(num_words, dtype=torch.uint8).random_(generator=drawn)
        assert torch.equal(moved.get_state(), drawn.get_state())
        assert torch.equal(*(draw(number, generator=each) for each in (moved, drawn)))  # type: ignore[operator]


def test_the_ten_thousandth_word_is_that_of_the_standard_of_c_plus_plus() -> None:
    generator = torch.Generator().manual_seed(5489)
    pass_over(generator, 9999)
    assert float(torch.rand(1, generator=generator)) == 4123659995 % 2**24 / 2**24  # as many bits make a number


def test_a_generator_of_another_kind_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_known()
    monkeypatch.setattr(twister_kernels, "SIZE", twister_kernels.SIZE + 8)
    assert not is_known.__wrapped__()
    monkeypatch.undo()
    monkeypatch.setattr(twister_kernels, "N", N - 1)  # words in a twist, as is counted outside of the kernel
    assert not is_known.__wrapped__()
