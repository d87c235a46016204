"""The histogram of logits: every float32 in the bin of its size, in order, in one sweep."""

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from vgae.evaluation.histogram import Counter, bins_of

CPU = torch.device("cpu")
FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(st.lists(FLOATS, min_size=2, max_size=50))
def test_bins_keep_the_order_of_any_numbers(numbers: list[float]) -> None:
    ordered = torch.tensor(sorted(numbers), dtype=torch.float32)
    assert (bins_of(ordered).diff() >= 0).all()


@given(st.lists(FLOATS.filter(lambda x: x == 0 or 1e-30 < abs(x) < 1e30), min_size=1, max_size=50))
def test_the_middle_of_a_bin_is_near_what_is_in_it(numbers: list[float]) -> None:
    for number in numbers:
        counter = Counter(CPU)
        counter.add(torch.tensor([number], dtype=torch.float32))
        found = counter.histogram()
        assert found.counts.tolist() == [1]
        assert abs(found.values[0] - np.float32(number)) <= 2**-9 * abs(number) + 1e-38


def test_counts_of_common_neighbours_have_bins_of_their_own() -> None:
    counter = Counter(CPU)
    for number in range(512):
        counter.add(torch.full((number + 1,), float(number)))
    found = counter.histogram()
    np.testing.assert_array_equal(found.counts, np.arange(512) + 1)
    np.testing.assert_array_equal(found.nearest(np.arange(512.0)), np.arange(512))


def test_blocks_add_up_and_pairs_that_are_left_out_are_not_counted() -> None:
    logits = torch.randn(300, 40, generator=torch.Generator().manual_seed(0)) * 10
    logits[logits > 20] = -torch.inf
    counter = Counter(CPU)
    for block in torch.split(logits, 7):
        counter.add(block)
    found = counter.histogram(factor=0.5)
    finite = logits[torch.isfinite(logits)].numpy()
    assert found.total == len(finite) / 2
    places, counts = np.unique(found.nearest(finite), return_counts=True)
    np.testing.assert_array_equal(places, np.arange(len(found.bins)))
    np.testing.assert_array_equal(counts, 2 * found.counts)
