import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from helpers import message_of
from vgae.errors import InputError
from vgae.graph.pairs import (
    Pairs,
    canonical,
    check_nodes,
    check_pairs,
    contains,
    distinct,
    from_ranks,
    num_pairs,
    to_ranks,
)
from vgae.options import whole_number
from vgae.words import shown

integers = st.lists(st.integers(-20, 20), max_size=40).map(lambda values: np.array(values, dtype=np.int64))


def every_pair(num_nodes: int) -> Pairs:
    return np.array(list(itertools.combinations(range(num_nodes), 2)), dtype=np.int64).reshape(-1, 2)


@pytest.mark.parametrize("num_nodes", [1, 2, 3, 4, 7, 20, 101])
def test_ranks_number_the_upper_triangle_row_by_row(num_nodes: int) -> None:
    pairs = every_pair(num_nodes)
    assert num_pairs(num_nodes) == len(pairs)
    assert_array_equal(to_ranks(pairs, num_nodes), np.arange(len(pairs)))
    assert_array_equal(from_ranks(np.arange(len(pairs)), num_nodes), pairs)


@given(st.data())
def test_a_rank_counts_the_pairs_in_the_rows_above_and_to_the_left(data: st.DataObject) -> None:
    num_nodes = data.draw(st.integers(2, 3_000_000))
    i = data.draw(st.integers(0, num_nodes - 2))
    j = data.draw(st.integers(i + 1, num_nodes - 1))
    pairs_above = i * (num_nodes - 1) - i * (i - 1) // 2
    ranks = to_ranks(np.array([[i, j]]), num_nodes)
    assert ranks.tolist() == [pairs_above + (j - i - 1)]
    assert from_ranks(ranks, num_nodes).tolist() == [[i, j]]


@pytest.mark.parametrize("num_nodes", [1000, 65_537, 1_000_000, 3_000_000, 150_000_000])
def test_unranking_inverts_ranking_at_the_borders_of_rows_and_in_between(num_nodes: int) -> None:
    generator = np.random.default_rng(num_nodes)
    rows = np.concatenate([[0], num_nodes - 2 - np.arange(500), generator.integers(num_nodes - 1, size=5000)])
    starts = np.stack([rows, rows + 1], axis=1)
    ends = np.stack([rows, np.full_like(rows, num_nodes - 1)], axis=1)
    assert_array_equal(from_ranks(to_ranks(starts, num_nodes), num_nodes), starts)
    assert_array_equal(from_ranks(to_ranks(ends, num_nodes), num_nodes), ends)

    last = num_pairs(num_nodes) - 1
    ranks = np.concatenate([[0, 1, last - 1, last], generator.integers(last + 1, size=50_000)])
    pairs = from_ranks(ranks, num_nodes)
    assert pairs[0].tolist() == [0, 1]
    assert pairs[3].tolist() == [num_nodes - 2, num_nodes - 1]
    assert np.all((pairs[:, 0] >= 0) & (pairs[:, 0] < pairs[:, 1]) & (pairs[:, 1] < num_nodes))
    assert_array_equal(to_ranks(pairs, num_nodes), ranks)


def test_canonical_pairs_have_the_smaller_index_first_and_leave_the_input_alone() -> None:
    pairs = np.array([[3, 1], [0, 2], [5, 5]])
    assert canonical(pairs).tolist() == [[1, 3], [0, 2], [5, 5]]
    assert pairs.tolist() == [[3, 1], [0, 2], [5, 5]]


@given(integers)
def test_distinct_agrees_with_unique(values: Pairs) -> None:
    assert_array_equal(distinct(values), np.unique(values))


@given(integers, integers)
def test_contains_agrees_with_isin(values: Pairs, among: Pairs) -> None:
    assert_array_equal(contains(np.sort(among), values), np.isin(values, among))


@pytest.mark.parametrize(
    ("given_pairs", "expected"),
    [
        ([(0, 4), (3, 3)], [[0, 4], [3, 3]]),
        (np.array([[1, 2]], dtype=np.uint8), [[1, 2]]),
        (np.array([[4, 0]], dtype=np.int32), [[4, 0]]),
        ([], []),
    ],
)
def test_valid_pairs_come_back_as_int64_with_two_columns(given_pairs: Any, expected: list[list[int]]) -> None:
    pairs = check_pairs(given_pairs, num_nodes=5)
    assert pairs.dtype == np.int64
    assert_array_equal(pairs, np.array(expected, dtype=np.int64).reshape(-1, 2))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ([(0, 1), (1, 5), (9, 9)], ["row 1", "(1, 5)", "0 to 4"]),
        ([(0, 1), (1, 2), (-1, 3)], ["row 2", "(-1, 3)", "0 to 4"]),
        ([(0, 1, 2)], ["two columns", "(1, 3)"]),
        ([0, 1], ["two columns", "(2,)"]),
        ([(0.0, 1.0)], ["integer", "float64"]),
        ([("a", "b")], ["integer", "<U1"]),
        ([(True, False)], ["integer", "bool"]),
    ],
)
def test_invalid_pairs_are_refused_by_row_or_type(bad: Any, words: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        check_pairs(bad, num_nodes=5, what="my pairs")
    message = str(caught.value)
    assert message.startswith("my pairs: ")
    assert all(word in message for word in words), message


def test_ragged_pairs_are_refused() -> None:
    with pytest.raises(InputError, match=r"my pairs: .*row 1"):
        check_pairs([(0, 1), (2,)], num_nodes=5, what="my pairs")


def test_unsigned_indices_are_not_wrapped_around() -> None:
    assert check_pairs(np.array([[0, 3]], dtype=np.uint64), 4).tolist() == [[0, 3]]
    message = message_of(lambda: check_pairs(np.array([[0, 2**63]], dtype=np.uint64), 4))
    assert message == f"pairs: {2**63} is too large for a node index; give the ids as node_ids."


@pytest.mark.parametrize("nodes", [[[0], [1, 2]], 5, "ab", [0.5], None, [4], [-1], {1: 2}])
def test_what_is_no_list_of_nodes_is_refused(nodes: Any) -> None:
    assert message_of(lambda: check_nodes(nodes, 4)).startswith("nodes: ")


class Odd:
    def __repr__(self) -> str:
        return "one\ntwo"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("x" * 10**6, "'xxx"),
        (10**5000, "a number of 16610 bits"),
        ([10**5000], "[a number of 16610 bits]"),
        (np.zeros((3, 2)), "an array of float64 of the shape (3, 2)"),
        ({"a": [1, [2, [3, [4]]]] * 100}, "{'a': [1, [2, [...]], 1, ...]}"),
        ("two\nlines", r"'two\nlines'"),
        (Odd(), "one two"),
    ],
    ids=range(7),
)
def test_values_are_shown_on_one_short_line(value: Any, words: str) -> None:
    assert words in shown(value)
    assert "\n" not in shown(value)
    assert len(shown(value)) < 100


@given(st.integers(-5, 5), st.integers(-5, 5), st.integers(-5, 5))
def test_whole_numbers_are_taken_between_their_bounds(value: int, least: int, most: int) -> None:
    if least <= value <= most:
        assert whole_number(np.int16(value), "k", least, most) == value
    else:
        assert message_of(lambda: whole_number(value, "k", least, most)).endswith(f"is needed, got {value}.")
